// Whether a skill is worth having: the same model's answers to held-out tasks with it and without it, judged
// and timed as any candidate.
//
// Admitted are skills with a speed-up (worth.h) of at least `speedup` whose interval begins above
// `interval_above`, and a change of the verified share whose interval begins at -`max_loss` or above. A
// skill whose estimates reach these limits and whose intervals do not stays a candidate: more samples or
// tasks decide. Samples of earlier calls count, so that asking again until chance helps is no way in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nereid/search/evaluator.h"
#include "nereid/skills/library.h"

namespace nereid::skills {

inline constexpr int64_t kCapacity = 100;  // of a library: admitted skills

struct AdmissionOptions {
  std::string
      question{};         // what times and answers depend on besides the task: model, policy, hardware, clock
  bool modelled = false;  // times are the cost model's
  int samples = 8;        // of each task and arm, with those of earlier calls
  int jobs = 1;           // tasks at the same time
  double speedup = 1.2, interval_above = 1.1, max_loss = 0.05;
  int64_t fewest_tasks = 4;
  std::function<void(const Sample&)> report{};  // each that was judged; called under a lock
};

// Tasks that hold all of the skill's operators, and are not what the skill was written from: neither by their
// text nor by what their forward does (`forward_signature`).
std::vector<const search::Task*> tasks_for(const Skill& skill,
                                           const std::vector<std::unique_ptr<const search::Task>>& tasks);

// Draws what is missing of the samples, keeps each as soon as it is judged, and decides. `with`: gives this
// skill to every sample; `without`: the same model without it. An Error (blamed on the input) where there are
// fewer than `fewest_tasks` tasks; ours where a model cannot be asked or a verdict is an Error; an
// interrupt's. Whatever was judged until then is kept.
Result<Decision> admit(Library& library, const Entry& entry, search::Evaluator& evaluator,
                       proposers::Proposer& with, proposers::Proposer& without,
                       const std::vector<const search::Task*>& tasks, const AdmissionOptions& options);

// Admitted or refused, or a candidate still: by what was measured. `reason` says why.
State decide_admission(const Worth& worth, const AdmissionOptions& options, std::string& reason);

// Evicts skills that are measured to make answers slower or wrong (an interval over at least three tasks ends
// below 1, or below no change), then those of the least speed-up until `capacity` are left; of equals the
// older. Returns the decisions, which are kept.
Result<std::vector<Decision>> settle(Library& library, int64_t capacity);

// Keeps what became of a search's samples with skills and of those without (skilled_proposer.h), each under
// the question of its proposer, then evicts what lost its worth. `questions`: by proposer's name.
Status record_outcome(Library& library, const search::Task& task, const std::vector<search::Judged>& tried,
                      const std::map<std::string, std::string>& questions);

}  // namespace nereid::skills
