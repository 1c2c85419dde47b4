#include "nereid/train/rl/conversations.h"

#include <map>

namespace nereid::train {
namespace {

// Numbers of prompts of later turns, which seed their samples: apart from those of tasks.
constexpr size_t kTurnBit = 48, kPromptBit = 24;

class Conversations {
 public:
  Conversations(Policy& policy, const std::vector<Prompt>& prompts, const ConversationSettings& settings,
                ScoringRound& round)
      : policy_(policy), prompts_(prompts), settings_(settings), round_(round) {}

  Result<std::vector<DrawnAnswer>> hold() {
    for (const Prompt& prompt : prompts_) by_number_[prompt.number] = &prompt;
    NEREID_TRY_STATUS(write(prompts_, settings_.sampling.samples, {}));
    size_t begin = 0;
    for (int64_t turn = 1; turn < settings_.turns; ++turn) {
      NEREID_TRY_STATUS(round_.wait(settings_.sampling.interruptible));
      const size_t end = answers_.size();
      std::vector<Prompt> asked;
      std::vector<size_t> after;  // the answers that they are about
      for (size_t i = begin; i < end; ++i) {
        NEREID_TRY(auto prompt, next_prompt(i));
        if (prompt) asked.push_back(*std::move(prompt)), after.push_back(i);
      }
      if (asked.empty()) break;
      NEREID_TRY_STATUS(write(asked, 1, after));
      begin = end;
    }
    return std::move(answers_);
  }

 private:
  // What is asked after an answer; nothing where its conversation ends.
  Result<std::optional<Prompt>> next_prompt(size_t index) {
    const DrawnAnswer& answer = answers_[index];
    const JudgedAnswer& verdict = round_.verdict(index);
    if (verdict.judged.correct || verdict.kind == verify::VerdictKind::kError || answer.cut_off)
      return std::optional<Prompt>();
    auto& wrong = wrong_[{answer.prompt, answer.sample}];
    wrong.push_back({answer.text, verdict.feedback});
    Prompt prompt{.number = (answer.turn + 1) << kTurnBit | answer.prompt << kPromptBit | answer.sample,
                  .task = by_number_.at(answer.prompt)->task,
                  .wrong = wrong};
    const size_t length = answer.tokens.tokens.size() - answer.tokens.prompt;
    NEREID_TRY(const bool room, policy_.format().has_room(prompt, length));
    return room ? std::optional(std::move(prompt)) : std::nullopt;
  }

  // A turn's answers; `after` are the answers before each prompt, none of a first turn.
  Status write(const std::vector<Prompt>& asked, int64_t samples, const std::vector<size_t>& after) {
    const size_t begin = answers_.size();
    const auto place = [&](DrawnAnswer& answer, size_t index) {
      if (after.empty()) return;
      const DrawnAnswer& before = answers_[after[index]];
      answer.prompt = before.prompt, answer.sample = before.sample, answer.turn = before.turn + 1;
    };
    const auto submit = [&](size_t index, const DrawnAnswer& answer) {
      const size_t prompt = after.empty() ? answer.prompt : answers_[after[index]].prompt;
      round_.add(begin + index, by_number_.at(prompt)->task.source, answer.text);
    };
    Sampling sampling = settings_.sampling;
    sampling.samples = samples;
    NEREID_TRY(auto written, policy_.write(asked, sampling,
                                           settings_.judge_waits ? AnswerWriter::AnswerCallback() : submit));
    for (size_t i = 0; i < written.size(); ++i) {
      if (settings_.judge_waits) submit(i, written[i]);
      place(written[i], i);
    }
    answers_.insert(answers_.end(), std::make_move_iterator(written.begin()),
                    std::make_move_iterator(written.end()));
    return ok_status();
  }

  Policy& policy_;
  const std::vector<Prompt>& prompts_;
  const ConversationSettings& settings_;
  ScoringRound& round_;
  std::map<size_t, const Prompt*> by_number_;
  std::map<std::pair<size_t, size_t>, std::vector<lm::WrongAnswer>> wrong_;  // by prompt and sample
  std::vector<DrawnAnswer> answers_;
};

}  // namespace

Result<std::vector<DrawnAnswer>> converse(Policy& policy, const std::vector<Prompt>& prompts,
                                          const ConversationSettings& settings, ScoringRound& round) {
  return Conversations(policy, prompts, settings, round).hold();
}

}  // namespace nereid::train
