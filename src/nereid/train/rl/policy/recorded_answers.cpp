#include "nereid/train/rl/policy/recorded_answers.h"

#include "nereid/train/rollout_log.h"

namespace nereid::train {

Result<RecordedAnswers> RecordedAnswers::read(const std::filesystem::path& folder) {
  RecordedAnswers recorded;
  recorded.folder_ = folder;
  NEREID_TRY_STATUS(read_rollouts(folder, [&](RolloutRecord rollout) -> Status {
    if (rollout.turn > 0) return ok_status();
    recorded.answers_[{rollout.of_class, static_cast<size_t>(rollout.task)}].push_back(
        {.text = std::move(rollout.answer),
         .plan_tokens = static_cast<size_t>(rollout.plan_tokens),
         .cut_off = rollout.cut_off});
    return ok_status();
  }));
  if (recorded.answers_.empty())
    return input_error(
        "rl.recorded_answers: {}: expected the folder of a run with rollouts.jsonl, got no rollout",
        folder.string());
  return recorded;
}

Result<std::vector<GivenAnswer>> RecordedAnswers::of(int64_t of_class, size_t task) const {
  const auto found = answers_.find({of_class, task});
  if (found == answers_.end())
    return input_error("rl.recorded_answers: {}: expected answers to task {} of class {}, got none",
                       folder_.string(), task, of_class);
  return found->second;
}

}  // namespace nereid::train
