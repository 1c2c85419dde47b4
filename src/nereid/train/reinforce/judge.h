// Verdicts on answers, by `nereid verify --batch` in a process of its own: nothing of an answer runs, or is
// parsed, where weights lie.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/installation.h"
#include "nereid/base/result.h"
#include "nereid/train/rl/advantages.h"

namespace nereid::train {

struct JudgeSettings {
  std::string policy = "mostly", device = "auto";
  double time_limit = 30;   // seconds, of a replay
  bool times = false;       // ask for the speed, too
  bool rule_reward = true;  // false: what only a rule refuses counts as correct; its word stays
};

struct AnswerToJudge {
  std::string task;    // the reference's source
  std::string answer;  // as the model wrote it
};

struct JudgedAnswer {
  std::string word;  // of the ladder; "Error": a fault of ours, no verdict and no reward
  std::string rule;  // of Disallowed
  Judged judged;
};

// In their order. Both files lie in `folder` meanwhile.
Result<std::vector<JudgedAnswer>> judge_answers(const Installation& installation,
                                                const std::vector<AnswerToJudge>& answers,
                                                const JudgeSettings& settings,
                                                const std::filesystem::path& folder);

// One line of what `verify --batch` wrote (with `otherwise`, where it was asked to look beyond rules);
// `where` names it in errors.
Result<std::pair<size_t, JudgedAnswer>> parse_judged(std::string_view line, const std::string& where);

}  // namespace nereid::train
