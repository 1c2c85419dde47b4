// What constructors hold: layers, parameters, and numbers that calls take from attributes, arguments or
// globals.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/synth/write/body.h"
#include "nereid/synth/write/size_names.h"

namespace nereid::synth {

class Constructor {
 public:
  // `layout` gets the names of parameters and layers.
  Constructor(const Program& program, const CodeStyle& style, SizeNames& sizes, ValueNames& values,
              Layout& layout)
      : program_(program), style_(style), sizes_(sizes), values_(values), layout_(layout) {}

  // What the constructors' arguments call a size: as globals do, or "n" of N.
  std::string argument_name(int32_t size);
  // A size in a constructor.
  void argument(Body& body, std::string& to, int32_t size);

  void own_parameter(Body& body, Ref ref, const Step& step);
  void submodule(Body& body, size_t i, std::string prefix);
  void construct(Body& body, const ops::Applied& applied);
  // The operator's own tensors as parameters; what their names start with.
  std::string weights(Body& body, const ops::Applied& applied);
  // Constants and an axis of a call become attributes: `torch.clamp(x, self.min_val, self.max_val)`.
  void keep_numbers(Body& body, const ops::Applied& applied, std::string_view pattern, std::string& text);

  // Globals that are no sizes, and their values.
  std::vector<std::pair<std::string, std::string>> take_globals() { return std::move(globals_); }

 private:
  void shape(Body& body, const ops::Shape& shape);
  void keep(Body& body, std::string& text, size_t at, std::string_view value, std::string_view name);
  // An argument of the constructor with that value: how it is called there. Empty where the name is taken.
  std::string passed_number(Body& body, std::string_view name, std::string_view value);
  // Of "nn.Conv2d(C, D, 3, padding=1)", which begins at `begin`: kernel_size, padding=padding.
  void pass_numbers(Body& body, size_t begin);

  const Program& program_;
  const CodeStyle& style_;
  SizeNames& sizes_;
  ValueNames& values_;
  Layout& layout_;
  NameTable arguments_, global_numbers_;  // other than sizes as they are called everywhere
  std::vector<std::pair<int32_t, std::string>> argument_names_;
  std::vector<std::pair<std::string, std::string>> globals_;
};

}  // namespace nereid::synth
