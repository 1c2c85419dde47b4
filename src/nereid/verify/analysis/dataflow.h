// Where data comes from and where it goes, storage by storage, through all phases of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nereid/replay/report.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

// What a storage's contents derive from.
enum Origin : uint32_t {
  kInputs0 = 1,
  kInputs1 = 2,
  kInputs2 = 4,       // of the three calls
  kState = 8,         // parameters and buffers
  kLaunchNow = 16,    // went through a Triton launch of the judged call
  kComputed = 32,     // went through any work that is not free, as a parameter's first values do
  kRandom = 64,       // a random draw of the judged call
  kFloats = 128,      // holds, in integers perhaps, what PyTorch's operators made of floating-point data
  kFromLaunch = 256,  // made from what a launch of the judged call made of floating-point data
};
constexpr uint32_t inputs_of(int call) { return 1U << call; }

struct StaleRead {
  int step = 0;  // of the judged forward
  trace::StorageId storage = -1;
  uint32_t origins = 0;
  // Where something else filled it before, or the judged forward writes to it, and reads it in kernels alone:
  // the first step that wrote something of any inputs to it.
  std::optional<replay::LeftAsFound> begun{};
};

// A step of the judged forward, or one before a launch of it.
struct DataflowStep {
  const StepAnalysis* facts = nullptr;
  int step = 0;  // its number, or that of its launch
  bool before = false;
  bool live = false;     // its result reaches an output
  bool as_data = false;  // ... as part of its numbers, not as an index, an address or a mask alone
  uint32_t origins = 0;  // what it reads derives from
  // StepAnalysis::work, but for work over integers (docs/verdicts.md, "aten-compute").
  Work work = Work::kFree;
  bool counted = false;  // work over integers that is bookkeeping, and whose amount is bounded
};

struct Dataflow {
  std::vector<uint32_t> origins;    // of each storage, at the end
  std::vector<DataflowStep> steps;  // of the judged forward, in the order in which they run
  std::vector<bool> live;           // of each step of the judged forward: its result reaches an output
  std::vector<bool> made_before;    // of each storage: it was there before the judged forward began
  std::vector<StaleRead>
      stale_reads;  // live reads of bytes that an earlier call made, and this call has not surely overwritten
  std::vector<trace::StorageId>
      reused;  // storages made from the state before the judged call, and read by it (live)
  // Of each tensor of the output: this call has overwritten all of its bytes, whatever the data is.
  std::vector<bool> output_overwritten;
  // Likewise: work of this call is on its way.
  std::vector<bool> output_computed;
};

Dataflow trace_dataflow(const TraceAnalysis& facts);

// What each step of the forward `call` reads derives from (for comparing calls).
std::vector<uint32_t> origins_of_call(const TraceAnalysis& facts, int call);

}  // namespace nereid::verify
