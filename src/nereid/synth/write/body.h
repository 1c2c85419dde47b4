// The body of a function or of forward() while it is written, and what its constructor has to hold.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/synth/write/emit.h"
#include "nereid/synth/write/words.h"

namespace nereid::synth {

// A value as it is written in the body at hand.
struct WrittenValue {
  std::string text;
  bool atomic = true;  // false: an infix expression, which a method needs in parentheses
};

// An argument of a constructor that is no size.
struct NumberArgument {
  std::string argument, value;
  std::string text;  // as get_init_inputs() has it
};

// A class or function that is being written.
struct Body {
  NameTable names;                      // of variables
  NameTable attributes;                 // of self
  std::string init;                     // lines of __init__
  std::string lines;                    // of forward, or of the function
  std::vector<int32_t> sizes;           // written in __init__ by name, in the order of their arguments
  std::vector<NumberArgument> numbers;  // further ones
  std::vector<std::pair<int32_t, std::string>> unpacked;  // sizes that variables of forward() hold
  std::vector<WrittenValue> steps, inputs;  // how each value is written here; empty: not known here
  std::vector<std::pair<Ref, std::string>> arguments;
  std::vector<Layout::Owner> parameters, submodules;  // of self's tensors: whose they are
  std::vector<size_t> unplaced;                       // steps in the statement that is being put together
  // Steps, and lines of `lines` or further ones; behind all steps the statements that come before theirs.
  std::vector<std::pair<size_t, int>> placed;
  bool method = true;
  bool model = false;  // the whole module's
};

// Names of values: those that are wanted, or an inventor's.
struct ValueNames {
  explicit ValueNames(const CodeStyle& style)
      : invented(style.invented_names != 0), inventor(style.invented_names) {}
  std::string called(std::string_view wanted) { return invented ? inventor.value() : std::string(wanted); }

  const bool invented;
  NameInventor inventor;
};

template <typename... Args>
void append(std::string& to, fmt::format_string<Args...> text, Args&&... args) {
  fmt::format_to(std::back_inserter(to), text, std::forward<Args>(args)...);
}
template <typename T>
void shuffle(Rng& rng, std::vector<T>& list) {
  for (size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.below(static_cast<uint32_t>(i))]);
}

int lines_in(std::string_view text);

}  // namespace nereid::synth
