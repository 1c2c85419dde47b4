// Training pairs of tasks that are given as text (`nereid train pairs`): traced, lowered in the kinds of
// brief pairs, each answer judged in processes of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "nereid/dataset/maker.h"

namespace nereid::dataset {

struct GivenTask {
  std::string source{};    // the file with class Model
  nlohmann::json about{};  // what each of its lines has, `id` among it
  uint64_t number = 0;     // seeds the choice of its variants
};

// Lines as `nereid harvest` and `nereid synth` write them: the text is `code` (or `task`), the rest is kept.
// An error names file and line.
Result<std::vector<GivenTask>> read_given_tasks(const std::vector<std::string>& files);

// Options of PairMaker, of which `wordings` and `brief` are not looked at. An Error is a
// fault of ours, or an interrupt; a task that cannot be traced or lowered has `not_lowered`. Thread-safe.
class GivenPairMaker {
 public:
  GivenPairMaker(verify::VerifierProcesses& processes, const Options& options);
  // Tasks of `verify_every` 0 are traced together in one child, where one could change the trace of the next.
  Result<std::vector<Yield>> make(std::span<const GivenTask> tasks);

 private:
  bool is_judged(const GivenTask& task) const;
  Result<Yield> make_one(const GivenTask& task, const tracer::TraceAnswer& answer);

  verify::VerifierProcesses& processes_;
  const Options options_;
  const verify::VerifierBackends backends_;
  verify::Judge judge_;
};

}  // namespace nereid::dataset
