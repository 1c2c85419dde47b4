// One pass over the steps writes bodies: forward() and, for regions written apart, functions and submodules.
// What a body's constructor must hold is collected on the way; sizes are named when they are first written.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/synth/write/emit.h"
#include "nereid/synth/write/prose.h"
#include "nereid/synth/write/words.h"

namespace nereid::synth {

class Emitter {
 public:
  Emitter(const Program& program, const CodeStyle& style, std::string& to);
  Layout write();

 private:
  // A value as it is written in the body at hand.
  struct Written {
    std::string text;
    bool atomic = true;  // false: an infix expression, which a method needs in parentheses
  };

  // An argument of a constructor that is no size.
  struct Number {
    std::string argument, value;
    std::string text;  // as get_init_inputs() has it
  };

  // A class or function that is being written.
  struct Body {
    NameTable names;              // of variables
    NameTable attributes;         // of self
    std::string init;             // lines of __init__
    std::string lines;            // of forward, or of the function
    std::vector<int32_t> sizes;   // written in __init__ by name, in the order of their arguments
    std::vector<Number> numbers;  // further ones
    std::vector<std::pair<int32_t, std::string>> unpacked;  // sizes that variables of forward() hold
    std::vector<Written> steps, inputs;  // how each value is written here; empty: not known here
    std::vector<std::pair<Ref, std::string>> arguments;
    std::vector<Layout::Owner> parameters, submodules;  // of self's tensors: whose they are
    std::vector<size_t> unplaced;                       // steps in the statement that is being put together
    // Steps, and lines of `lines` or further ones; behind all steps the statements that come before theirs.
    std::vector<std::pair<size_t, int>> placed;
    bool method = true;
    bool model = false;  // the whole module's
  };

  template <typename... Args>
  static void format(std::string& to, fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
  }
  template <typename T>
  static void shuffle(Rng& rng, std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[rng.below(static_cast<uint32_t>(i))]);
  }

  // ---- prose
  bool says(uint32_t one_in) { return style_.prose != 0 && prose_.one_in(one_in); }
  // Lines of comments.
  void comments(const char* indent, uint32_t one_in, std::string& to);
  // At the end of a line.
  void remark(uint32_t one_in, std::string& to);
  void docstring(const char* indent, std::string& to);
  void file_prose();
  // One empty line where there were two.
  void tighten();
  // `torch.nn.` for `nn.`, in every line.
  void spell_out();

  // ---- names
  std::string value_called(std::string_view wanted);

  // ---- where things are
  static int lines_in(std::string_view text);
  // What is placed in a text that comes next.
  void place(const std::vector<std::pair<size_t, int>>& placed);
  // The body's lines come next in `text`.
  static void move_on(Body& body, std::string_view text);
  Body body(bool method) const;

  // ---- sizes
  const std::string& size_name(int32_t size);
  void number(std::string& to, int32_t size) const { format(to, "{}", size); }
  void global(std::string& to, int32_t size);
  // In forward() or a function.
  void in_forward(const Body& body, std::string& to, int32_t size);
  // `b, c = x.shape`, or no variables at all.
  void unpack(Body& body);
  // What the constructors' arguments call it: as globals do, or "n" of N.
  std::string argument_name(int32_t size);
  // In a constructor.
  void argument(Body& body, std::string& to, int32_t size);
  void shape(std::string& to, const ops::Shape& shape, bool in_constructor, Body* body);

  // ---- arguments
  // Inputs and earlier results that the steps take from outside.
  void arguments_of(Body& body, size_t first, size_t end);
  void own_parameter(Body& body, Ref ref, const Step& step);

  // ---- steps
  void steps(Body& body, size_t first, size_t end, bool regions);
  void one(Body& body, size_t i);
  Written expression_of(Body& body, size_t i);
  // What a pattern's statement names, "gate, value = ...", is called something that is free.
  std::string with_fresh_names(Body& body, std::string_view pattern);
  // Whether operators stand outside of all parentheses.
  static bool is_infix(std::string_view pattern);
  // Whether operators or methods are next to an operand.
  static bool binds(std::string_view pattern);
  // Constants and an axis of a call become attributes: `torch.clamp(x, self.min_val, self.max_val)`.
  void keep(Body& body, std::string& text, size_t at, std::string_view value, std::string_view name);
  // An argument of the constructor with that value: how it is called there. Empty where the name is taken.
  std::string passed_number(Body& body, std::string_view name, std::string_view value);
  // Of "nn.Conv2d(C, D, 3, padding=1)", which begins at `begin`: kernel_size, padding=padding.
  void pass_numbers(Body& body, size_t begin);
  bool is_size(std::string_view name) const;
  void keep_numbers(Body& body, const ops::Applied& applied, std::string_view pattern, std::string& text);
  void submodule(Body& body, size_t i, std::string prefix);
  void construct(Body& body, const ops::Applied& applied);
  // The operator's own tensors as parameters; what their names start with.
  std::string weights(Body& body, const ops::Applied& applied);
  static double fan_in(const ops::Applied& applied);
  // The statement that gives a result its name.
  void assign(Body& body, size_t i, const std::string& expression);
  bool tapped_later(Ref input, size_t i) const;

  // ---- regions
  void apart(Body& body, const Region& region);
  // The tensors of a submodule, its own first.
  void adopt(Body& body, const Body& part, const std::string& prefix);
  Body body_of(const Region& region);
  void sequential(Body& body, const Region& region);

  // ---- whole functions and classes
  void finish(Body& body, int last, int second_output);
  void parameter_list(const Body& body, std::string& to) const;
  void write_function(Body& body, const std::string& name);
  void write_class(Body& body, const std::string& name, std::string& to);
  void class_docstring(const Body& body, bool model, std::string& to);
  void forward_docstring(const Body& body, std::string& to) const;
  void imports();
  void globals();
  std::string inputs_function(const Body& model);
  void value(std::string& to, const Input& input);
  void normal(std::string& to, const ops::Shape& size);
  std::string init_function(const Body& model);

  const Program& program_;
  const CodeStyle& style_;
  const Uses uses_;
  std::string& to_;
  Layout layout_;
  std::string apart_;  // functions and submodules
  std::vector<std::pair<size_t, int>> placed_apart_;
  std::string model_mentions_;
  NameTable functions_;
  NameInventor inventor_;
  Prose prose_;
  NameTable arguments_, global_numbers_;  // of constructors, other than sizes as they are called everywhere
  std::vector<std::pair<int32_t, std::string>> argument_names_;
  std::vector<std::pair<std::string, std::string>> globals_;  // and their values
  std::vector<std::string> listed_sizes_;  // names of sizes, in the order in which they are given
  std::vector<std::pair<int32_t, std::string>> size_names_;
  std::vector<std::string> operands_;
};

}  // namespace nereid::synth
