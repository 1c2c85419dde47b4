// One task lowered in several ways: the compiler's own first, then others that are as legal.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/compiler/module.h"
#include "nereid/synth/sample/rng.h"

namespace nereid::dataset {

// What was chosen otherwise than the cost model has it.
struct Choice {
  enum class Kind : uint8_t { kCut, kFusion, kWay } kind{};
  std::string kernel{};  // kCut: the kernel, as it is named
  std::string
      text{};  // kCut: "m=64, n=32, ..."; kFusion: the operator that a boundary is before; kWay: which
};
std::string to_string(const Choice& choice);

// How operators become kernels, from what is the easiest to write on: a kernel for each, nearly; what goes
// element by element together; what is read by index, too (Fusion in compiler/ir/choices.h); as the compiler
// has it.
enum class Kind : uint8_t { kOneByOne, kSimplyFused, kFused, kCompiled };

struct Variant {
  compiler::Module module;
  std::vector<Choice> choices;  // none: the compiler's own
  std::string normal_form;      // of the module's text; no two of a task are alike
  Kind kind = Kind::kCompiled;
};

// At most `most`, of which all but the first are random. An error: the task cannot be lowered.
Result<std::vector<Variant>> variants_of(const trace::Trace& trace, const std::string& source,
                                         synth::Rng& rng, int most);

// Of two random ones of the first three kinds, then of the third, then with other cuts; of two, two in five
// are one by one, three in ten simply fused and as many fused, where they differ. A variant is of the easiest
// kind that has its kernels.
Result<std::vector<Variant>> variants_of_kinds(const trace::Trace& trace, const std::string& source,
                                               synth::Rng& rng, int most);

// What a clock is to compare: the compiler's own first, then each of the kinds and ways that differs, then
// random ones, of another kind, another way, a boundary between two operators, and other cuts of each kernel,
// as likely as not.
Result<std::vector<Variant>> variants_to_measure(const trace::Trace& trace, const std::string& source,
                                                 synth::Rng& rng, int most,
                                                 const std::string& target = "sm_90");

}  // namespace nereid::dataset
