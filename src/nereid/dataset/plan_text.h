// A plan in words and a file with comments: the same program as several authors would describe it.
//
// Everything said is read off the lowered module: which kernels there are, what each does, over what, how it
// is cut, what it moves. The generator decides only how it is said, how much of it, and where in the file.
#pragma once

#include <string>

#include "nereid/dataset/variants.h"
#include "nereid/synth/sample/rng.h"

namespace nereid::dataset {

// What PyTorch does of the task, by itself.
struct TaskFacts {
  std::vector<std::string> operators;  // in their order, as the catalogue names them
  int64_t calls = 0;                   // of the traced forward
  double bytes = 0, flops = 0;
};
TaskFacts facts_of(const trace::Trace& trace, std::vector<std::string> operators);

struct PlanText {
  std::string plan;
  std::string code;  // of the variant's normal form
};
// In a few words, the same for everybody: what is done step by step (compiler/output/trace_summary.h), of
// which kind it is (variants.h), which kernels, what each does, what it reads and writes, over what and how
// it is cut. The code begins without a plan.
PlanText write_brief_plan(const std::string& steps, const Variant& variant);
// Number 0 is the compiler's own; others are drawn with `rng`.
PlanText write_plan_text(const TaskFacts& task, const Variant& variant, int number, synth::Rng& rng);

}  // namespace nereid::dataset
