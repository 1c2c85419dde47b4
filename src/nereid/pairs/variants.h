// One task lowered in several ways: the compiler's own first, then others that are as legal.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lower/module.h"
#include "nereid/synth/dice.h"

namespace nereid::pairs {

// What was chosen otherwise than the cost model has it.
struct Choice {
  enum class Kind : uint8_t { kCut, kFusion, kWay } kind{};
  std::string kernel{};  // kCut: the kernel, as it is named
  std::string
      text{};  // kCut: "m=64, n=32, ..."; kFusion: the operator that a boundary lies before; kWay: which
};
std::string to_string(const Choice& choice);

struct Variant {
  lower::Module module;
  std::vector<Choice> choices;  // none: the compiler's own
  std::string normal_form;      // of the module's text; no two of a task are alike
  bool one_by_one = false;      // a kernel for each operator, nearly
};

// At most `most`, in which dice decide about all but the first. An error: the task cannot be lowered.
Result<std::vector<Variant>> variants_of(const trace::Trace& trace, const std::string& source,
                                         synth::Dice& dice, int most);

// The first with a kernel for each operator, nearly: what follows element by element is taken in. The others
// are such with other cuts, or fused: as the compiler has it, or with other cuts and perhaps another boundary.
Result<std::vector<Variant>> variants_one_by_one(const trace::Trace& trace, const std::string& source,
                                                 synth::Dice& dice, int most);

}  // namespace nereid::pairs
