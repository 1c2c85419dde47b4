// Steps as statements and expressions of bodies: forward() and, for regions written apart, functions and
// submodules.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/synth/write/class_writer.h"

namespace nereid::synth {

class BodyWriter {
 public:
  BodyWriter(const Program& program, const CodeStyle& style, SizeNames& sizes, ValueNames& values,
             Commentary& commentary, Constructor& constructor, Layout& layout)
      : program_(program),
        style_(style),
        uses_(uses_of(program)),
        sizes_(sizes),
        values_(values),
        commentary_(commentary),
        constructor_(constructor),
        classes_(program, style, commentary, constructor),
        layout_(layout) {}

  // forward() of the whole module.
  Body model();
  void write_class(Body& body, const std::string& name, std::string& to) {
    classes_.write_class(body, name, to);
  }

  // Functions and submodules, and the steps that are placed in them.
  const std::string& apart() const { return apart_; }
  const std::vector<std::pair<size_t, int>>& placed_apart() const { return placed_apart_; }

 private:
  Body body(bool method) const;
  // A size in forward() or a function.
  void in_forward(const Body& body, std::string& to, int32_t size);
  // `b, c = x.shape`, or no variables at all.
  void unpack(Body& body);
  // Inputs and earlier results that the steps take from outside.
  void arguments_of(Body& body, size_t first, size_t end);

  void steps(Body& body, size_t first, size_t end, bool regions);
  void one(Body& body, size_t i);
  WrittenValue expression_of(Body& body, size_t i);
  // What a pattern's statement names, "gate, value = ...", is called something that is free.
  std::string with_fresh_names(Body& body, std::string_view pattern);
  // The statement that gives a result its name.
  void assign(Body& body, size_t i, const std::string& expression);
  bool tapped_later(Ref input, size_t i) const;

  void write_region(Body& body, const Region& region);
  // The tensors of a submodule, its own first.
  void adopt(Body& body, const Body& part, const std::string& prefix);
  Body body_of(const Region& region);
  void sequential(Body& body, const Region& region);
  void finish(Body& body, int last, int second_output);

  const Program& program_;
  const CodeStyle& style_;
  const Uses uses_;
  SizeNames& sizes_;
  ValueNames& values_;
  Commentary& commentary_;
  Constructor& constructor_;
  ClassWriter classes_;
  Layout& layout_;
  std::string apart_;
  std::vector<std::pair<size_t, int>> placed_apart_;
  NameTable functions_;
  std::vector<std::string> operands_;
};

}  // namespace nereid::synth
