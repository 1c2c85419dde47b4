// A trace as the rules see it: for each step what it reads, what it writes, what kind of work that is and how
// much.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
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

// Bytes of a storage that a step writes, as far as it is known.
struct WrittenRange {
  enum class Coverage {
    kAll,      // every byte of the range, whatever the data is
    kPart,     // not every byte of it
    kUnknown,  // which bytes depends on data, or was not counted
  };
  trace::StorageId storage = -1;
  int64_t first = 0, last = 0;
  Coverage coverage = Coverage::kUnknown;
  double bytes = 0;  // of kPart: how many of them are written
  // Of a launch: the same for every launch that writes the same bytes of its storage. Empty where data
  // decides which.
  std::string place{};
};

struct StepAnalysis {
  std::string name{};  // "aten::mm", or the kernel's name
  std::string key{};  // equal for two steps that do the same: the name, and of a launch the kernel's hash and
                      // the grid
  std::string kind{};  // of heavy work: "a contraction"
  trace::Place place{};
  Work work = Work::kFree;
  std::vector<trace::StorageId> reads{}, writes{};
  // Of `writes` of a launch: those that only an address leads to that is chosen from several tensors'.
  std::vector<trace::StorageId> perhaps_writes{};
  bool overwrites = false;  // leaves nothing of what the storages in `writes` held
  bool random = false;
  double flops = 0, bytes = 0;
  // Of work over integers alone, which is free as bookkeeping: what it is where it is none (`kind`, `flops`
  // and `bytes` are of that). kFree: it is no such work.
  Work over_integers = Work::kFree;
  // To, or from, an integer or a boolean; between two dtypes of these.
  enum class Cast { kNone, kFromFloat, kToFloat, kIntegral };
  Cast cast = Cast::kNone;
  // (read, written): what is read may be part of what is written, as a number and not as an index, an address
  // or a mask. All pairs where `data_everywhere`.
  std::vector<std::pair<trace::StorageId, trace::StorageId>> data{};
  bool data_everywhere = true;
  std::vector<WrittenRange> ranges{};
  // Of a launch, by storage that is older than the phase: distinct bytes that it reads. None where the count
  // is not exact.
  std::map<trace::StorageId, double> bytes_read_by_storage{};
  // Of a launch: what its configurations' hooks, heuristics and grid functions call before it. Each is a step
  // of its own in all but its number.
  std::vector<StepAnalysis> before{};
  // Numbers that it is given by the host and that may be part of what it writes: a launch's scalars and its
  // kernel's constants, a fill's value. `slot` is the same for the same argument of the same kernel or
  // operator.
  struct Number {
    std::string slot{};
    double value = 0;
  };
  std::vector<Number> numbers{};
  // Likewise, of a launch: numbers that decide how often a loop turns, or how many programs add something up.
  std::vector<Number> counts{};
  trace::StorageId constant = -1;  // the storage of a tensor made of the host's data here
  std::string same{};    // of a launch: equal for launches of the same kernel with the same arguments
  bool by_data = false;  // of a launch: they depend on what it loads, and a replay counts them (ReplayedWork)
  double max_bytes = 0;  // that such a launch can reach
};

struct PhaseAnalysis {
  trace::PhaseKind kind{};
  int call = 0;
  std::vector<StepAnalysis> steps{};
};

// The steps of a phase in the order in which they run, those before launches among them.
struct OrderedStep {
  const StepAnalysis* facts = nullptr;
  int step = 0;         // in PhaseAnalysis::steps
  bool before = false;  // one of StepAnalysis::before
};
std::vector<OrderedStep> in_order(const PhaseAnalysis& phase);

struct KernelAnalysis {
  bool int_to_ptr = false;
  std::vector<std::string> assembly{};
  bool branches_on_float_data = false;
  bool moves_by_data = true;  // ttir/analysis/facts.h; true where that is unknown
  // Where the executor cannot read the kernel: why. What the rules forbid is then looked for in the text.
  std::string unreadable{};
  bool malformed = false;          // it is not TTIR at all, or breaks its rules
  std::string foreign_function{};  // a function of a library that the executor does not know
};

struct TraceAnalysis {
  const trace::Trace* trace = nullptr;
  std::vector<PhaseAnalysis> phases{};    // one for each of the trace's
  std::vector<KernelAnalysis> kernels{};  // one for each of the trace's
  std::vector<bool> floating{};           // of each storage: something looks at it as floating-point data

  int judged() const;  // index of the last forward's phase; -1 where there is none
  // Floating-point operations of the judged forward, as its operators count them.
  double judged_flops() const {
    double flops = 0;
    for (const auto& step : phases.at(static_cast<size_t>(judged())).steps) flops += step.flops;
    return flops;
  }
  // Whether the judged forward does the same whatever the values are: launches alone, each of which goes the
  // same ways and touches the same bytes. No inputs are then slower or less safe than others.
  bool is_value_independent() const;
};

}  // namespace nereid::verify
