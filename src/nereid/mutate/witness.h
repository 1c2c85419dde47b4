// The search for a legal input on which a mutant is wrong.
//
// It looks further than a verdict does and judges by another measure: inputs of distributions that no trial
// of a verdict has (witness_inputs.cpp writes them into the reference's trace), besides those that it has,
// under seeds of its own, and parameters drawn anew. A mutant is wrong where its error against the reference
// in float64 is far above both the error of the candidate that it was made of, and the reference's own, on
// the same inputs (kTimesElement, kTimesNorm), and beyond the tolerance that a verdict would have there, or
// where the sanitizer finds something, or where a replay fails that the candidate's passes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/mutate/mutant.h"
#include "nereid/replay/host/client.h"

namespace nereid::mutate {

// Of the larger of the candidate's and the reference's own error; a verdict allows four times the
// reference's.
inline constexpr double kTimesElement = 8, kTimesNorm = 5;
inline constexpr double kWider = 4;  // all of it, on other inputs than the task's own
// Units of the last place that are no fault: of the largest error of an element, and of the error's norm.
inline constexpr double kFloorElement = 32, kFloorNorm = 8;            // float32
inline constexpr double kFloorElementHalf = 3, kFloorNormHalf = 0.75;  // float16, bfloat16

struct Witness {
  std::string inputs;  // the distribution: "own", "cauchy"
  uint64_t seed = 0;
  std::string reason;  // "output: error 0.31, the candidate's 1.2e-07"
};

// What KernelBench's published check says: five random inputs of the task's own, torch.allclose. Undecided
// where a replay ends at an access outside of an allocation: what a GPU makes of that hangs on what lies
// there.
enum class KernelBench : uint8_t { kKills, kPasses, kUndecided };
std::string_view to_string(KernelBench result);  // "kills", "passes", "undecided"

struct Searched {
  std::optional<Witness> witness;
  int trials = 0;
  KernelBench kernelbench = KernelBench::kUndecided;
};

// Of one subject. Thread-safe.
class WitnessSearch {
 public:
  WitnessSearch(replay::Server& server, const Subject& subject, double phase_seconds, Deadline deadline)
      : server_(server), subject_(subject), phase_seconds_(phase_seconds), deadline_(deadline) {}

  // An Error is a fault of ours, or the deadline passed.
  Result<Searched> search(const Mutant& mutant, const trace::Trace& mutated);

 private:
  struct Inputs {
    std::string name;
    int distribution = -1;  // of witness_inputs.h; -1: the task's own, changed as `kind` says
    replay::InputDistribution kind = replay::InputDistribution::kOwn;
    uint64_t seed = 0;
    bool sanitize = false;
  };
  struct Measured {  // of the candidate itself
    bool usable = false;
    std::vector<replay::OutputComparison> outputs;
  };
  static std::vector<Inputs> all_inputs();
  static bool is_own(const Inputs& inputs);

  Result<std::unique_ptr<replay::Session>> open(int distribution, const trace::Trace& candidate);
  Result<const Measured*> measured(const Inputs& inputs);
  Result<replay::TrialReport> trial(replay::Session& session, const Mutant* mutant, const Inputs& inputs,
                                    bool well_measured);
  Result<std::optional<Witness>> look(replay::Session& session, const Mutant& mutant, const Inputs& inputs);
  Result<KernelBench> kernelbench(replay::Session& session);
  const trace::Trace* reference(int distribution);
  Deadline within_patience() const;

  replay::Server& server_;
  const Subject& subject_;
  const double phase_seconds_;
  const Deadline deadline_;  // of the run
  std::mutex mutex_;
  std::map<std::string, Measured> measured_;                       // by name and seed
  std::map<int, std::unique_ptr<const trace::Trace>> references_;  // by distribution; null: it does not apply
};

}  // namespace nereid::mutate
