// A trace as the rules see it: for each step what it reads, what it writes, what kind of work that is and how
// much.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::verify {

enum class Work {
  kFree,       // views, allocations, fills, casts, copies, concatenation, bookkeeping on integers
  kPointwise,  // PyTorch's, elementwise over floating-point data
  kHeavy,      // PyTorch's: contractions, convolutions, attention, normalisations, reductions, scans over
               // floating-point data
  kTriton,
};

struct StepFacts {
  std::string name{};  // "aten::mm", or the kernel's name
  std::string key{};  // equal for two steps that do the same: the name, and of a launch the kernel's hash and
                      // the grid
  std::string kind{};  // of heavy work: "a contraction"
  trace::Place place{};
  Work work = Work::kFree;
  std::vector<trace::StorageId> reads{}, writes{};
  bool overwrites = false;  // leaves nothing of what the storages in `writes` held
  bool random = false;
  double flops = 0, bytes = 0;
};

struct PhaseFacts {
  trace::PhaseKind kind{};
  int call = 0;
  std::vector<StepFacts> steps{};
};

struct KernelFacts {
  bool int_to_ptr = false;
  std::vector<std::string> assembly{};
  bool branches_on_float_data = false;
  bool moves_by_data = true;  // ttir/facts.h; true where that cannot be told
  // Where the executor cannot read the kernel: why. What the rules forbid is then looked for in the text.
  std::string unreadable{};
  bool malformed = false;          // it is not TTIR at all, or breaks its rules
  std::string foreign_function{};  // a function of a library that the executor does not know
};

struct TraceFacts {
  const trace::Trace* trace = nullptr;
  std::vector<PhaseFacts> phases{};    // one for each of the trace's
  std::vector<KernelFacts> kernels{};  // one for each of the trace's

  int judged() const;  // index of the last forward's phase; -1 where there is none
  // Whether the judged forward does the same whatever the values are: launches alone, each of which goes the
  // same ways and touches the same bytes. No inputs are then slower or less safe than others.
  bool blind_to_values() const;
};

}  // namespace nereid::verify
