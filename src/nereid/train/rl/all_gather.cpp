#include "nereid/train/rl/all_gather.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "nereid/base/json_field.h"

namespace nereid::train {
namespace {

constexpr size_t kMaxRollouts = 1 << 24;

Json rollouts_json(const PrefetchedRollouts& written, const std::vector<JudgedAnswer>& verdicts) {
  Json list = Json::array();
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const DrawnAnswer& answer = written.answers[i];
    const JudgedAnswer& verdict = verdicts[i];
    list.push_back({{"prompt", answer.prompt},
                    {"turn", answer.turn},
                    {"sample", answer.sample},
                    {"verdict", to_string(verdict.kind)},
                    {"rule", verdict.rule},
                    {"valid", verdict.judged.valid},
                    {"correct", verdict.judged.correct},
                    {"speedup", verdict.judged.speedup},
                    {"length", answer.tokens.tokens.size() - answer.tokens.prompt},
                    {"plan", answer.plan_tokens},
                    {"cut_off", answer.cut_off}});
  }
  return list;
}

Result<ScoredRollout> read_rollout(const JsonField& field) {
  ScoredRollout rollout;
  for (const auto& [key, target] : {std::pair{"prompt", &rollout.prompt},
                                    {"turn", &rollout.turn},
                                    {"sample", &rollout.sample},
                                    {"length", &rollout.length},
                                    {"plan", &rollout.plan_tokens}}) {
    NEREID_TRY(const auto number, field.at(key));
    NEREID_TRY(const int64_t value, number.integer(0, INT64_MAX));
    *target = static_cast<size_t>(value);
  }
  NEREID_TRY(const std::string verdict, field.text_at("verdict"));
  const auto kind = verify::verdict_kind_from_string(verdict);
  if (!kind) return field.expected("a rollout with a verdict");
  rollout.kind = *kind;
  NEREID_TRY(rollout.rule, field.text_at("rule"));
  NEREID_TRY(rollout.judged.valid, field.boolean_at("valid", false));
  NEREID_TRY(rollout.judged.correct, field.boolean_at("correct", false));
  NEREID_TRY(rollout.cut_off, field.boolean_at("cut_off", false));
  NEREID_TRY(const auto speedup, field.at("speedup"));
  NEREID_TRY(rollout.judged.speedup, speedup.number());
  return rollout;
}

// Of everybody, by prompts.
Result<std::vector<ScoredRollout>> gather_rollouts(Ranks& ranks, const Json& mine) {
  NEREID_TRY(const auto parts, ranks.gather(nereid::to_cbor(mine)));
  std::vector<ScoredRollout> all;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const std::string where = fmt::format("rank {}'s verdicts", rank);
    NEREID_TRY(const Json json, parse_cbor(parts[rank], where));
    const JsonField root(json, where);
    size_t index = 0;
    NEREID_TRY_STATUS(root.each(kMaxRollouts, [&](const JsonField& field) -> Status {
      NEREID_TRY(ScoredRollout rollout, read_rollout(field));
      if (std::cmp_equal(rank, ranks.rank())) rollout.own = index;
      ++index;
      all.push_back(std::move(rollout));
      return ok_status();
    }));
  }
  std::ranges::stable_sort(all, {},
                           [](const ScoredRollout& r) { return std::tuple(r.prompt, r.turn, r.sample); });
  return all;
}

using Conversation = std::pair<size_t, size_t>;  // prompt and sample
Conversation conversation_of(const ScoredRollout& rollout) { return {rollout.prompt, rollout.sample}; }

// What their returns have of later turns.
void add_later_returns(StepRollouts& step, const ObjectiveSettings& objective, double discount) {
  std::vector<Judged> judged;
  std::vector<size_t> next(step.rollouts.size(), kNoTurn);
  std::map<Conversation, size_t> latest;
  for (size_t i = step.rollouts.size(); i-- > 0;) {
    const auto [known, fresh] = latest.emplace(conversation_of(step.rollouts[i]), i);
    if (!fresh) next[i] = std::exchange(known->second, i);
  }
  for (const ScoredRollout& rollout : step.rollouts) judged.push_back(rollout.judged);
  const auto later = later_returns(objective, discount, judged, step.groups, next);
  for (size_t i = 0; i < later.size(); ++i) step.rollouts[i].later = later[i];
}

// Of this rank's answers, by index: plan's and code's. drpo weighs rollouts, and has none.
std::map<size_t, SplitReward> own_advantages(const StepRollouts& step, const ObjectiveSettings& objective) {
  std::map<size_t, SplitReward> found;
  if (objective.kind == ObjectiveSettings::Kind::kDrpo) return found;
  for (size_t g = 0; g + 1 < step.groups.size(); ++g) {
    const size_t begin = step.groups[g], end = step.groups[g + 1];
    std::vector<Judged> group;
    std::vector<SplitReward> later;
    for (size_t i = begin; i < end; ++i)
      group.push_back(step.rollouts[i].judged), later.push_back(step.rollouts[i].later);
    const auto of_plan = plan_advantages(objective, group, later);
    const auto of_code = code_advantages(objective, group, later);
    for (size_t i = begin; i < end; ++i)
      if (step.rollouts[i].own) found[*step.rollouts[i].own] = {of_plan[i - begin], of_code[i - begin]};
  }
  return found;
}

}  // namespace

Result<StepRollouts> all_gather_rollouts(Ranks& ranks, const PrefetchedRollouts& written,
                                         const std::vector<JudgedAnswer>& verdicts,
                                         const ObjectiveSettings& objective, double turn_discount) {
  NEREID_TRY(auto all, gather_rollouts(ranks, rollouts_json(written, verdicts)));
  StepRollouts found;
  std::set<Conversation> unjudged;  // the returns of their earlier turns are not known either
  for (const ScoredRollout& rollout : all)
    if (rollout.kind == verify::VerdictKind::kError) unjudged.insert(conversation_of(rollout));
  double cut = 0, rewards = 0, alike = 0, verified = 0, log_speedups = 0;
  for (size_t i = 0; i < all.size();) {
    const size_t prompt = all[i].prompt, turn = all[i].turn, begin = found.rollouts.size();
    for (; i < all.size() && all[i].prompt == prompt && all[i].turn == turn; ++i) {
      ScoredRollout& rollout = all[i];
      if (unjudged.contains(conversation_of(rollout))) {
        ++found.unjudged;
        continue;
      }
      found.turns.resize(std::max(found.turns.size(), turn + 1));
      ++found.turns[turn].answers;
      found.turns[turn].verified += rollout.kind == verify::VerdictKind::kVerified;
      ++found.figures.verdicts[std::string(to_string(rollout.kind))];
      if (rollout.kind == verify::VerdictKind::kDisallowed) ++found.figures.rules[rollout.rule];
      if (rollout.kind == verify::VerdictKind::kVerified)
        ++verified, log_speedups += std::log(rollout.judged.speedup);
      rewards += binary_reward(rollout.judged), cut += rollout.cut_off;
      found.tokens += static_cast<double>(rollout.length);
      found.rollouts.push_back(std::move(rollout));
    }
    if (found.rollouts.size() == begin) continue;
    found.groups.push_back(found.rollouts.size());
    const double first = binary_reward(found.rollouts[begin].judged);
    alike +=
        std::all_of(found.rollouts.begin() + static_cast<std::ptrdiff_t>(begin), found.rollouts.end(),
                    [&](const ScoredRollout& rollout) { return binary_reward(rollout.judged) == first; });
  }
  add_later_returns(found, objective, turn_discount);
  const double count = std::max(static_cast<double>(found.rollouts.size()), 1.0);
  found.figures.length = found.tokens / count;
  found.figures.cut_off = cut / count;
  found.figures.reward = rewards / count;
  if (verified > 0) found.figures.speedup = std::exp(log_speedups / verified);
  found.figures.groups_alike = alike / std::max(static_cast<double>(found.groups.size() - 1), 1.0);
  return found;
}

std::vector<RolloutRecord> records_of(const PrefetchedRollouts& written,
                                      const std::vector<JudgedAnswer>& verdicts, const StepRollouts& step,
                                      const ObjectiveSettings& objective) {
  const auto worth = own_advantages(step, objective);
  std::vector<RolloutRecord> records;
  std::map<std::string_view, int64_t> texts;  // of this prompt and turn
  for (size_t i = 0; i < written.answers.size(); ++i) {
    const DrawnAnswer& answer = written.answers[i];
    if (i > 0 && std::pair(written.answers[i - 1].prompt, written.answers[i - 1].turn) !=
                     std::pair(answer.prompt, answer.turn))
      texts.clear();
    const auto sample = static_cast<int64_t>(answer.sample);
    const JudgedAnswer& verdict = verdicts[i];
    RolloutRecord record{
        .step = written.step,
        .of_class = written.classes[answer.prompt],
        .task = static_cast<int64_t>(written.tasks[answer.prompt]),
        .prompt = static_cast<int64_t>(answer.prompt),
        .sample = sample,
        .turn = static_cast<int64_t>(answer.turn),
        .verdict = std::string(to_string(verdict.kind)),
        .rule = verdict.rule,
        .reason = verdict.reason,
        .reward = binary_reward(verdict.judged),
        .tokens = std::ssize(answer.tokens.tokens) - static_cast<int64_t>(answer.tokens.prompt),
        .plan_tokens = static_cast<int64_t>(answer.plan_tokens),
        .cut_off = answer.cut_off};
    if (verdict.judged.correct && verdict.reference_ms) record.speedup = verdict.judged.speedup;
    if (const auto found = worth.find(i); found != worth.end())
      record.plan_advantage = found->second.plan, record.advantage = found->second.code;
    const auto [same, fresh] = texts.emplace(answer.text, sample);
    if (fresh)
      record.answer = answer.text;
    else
      record.same_as = same->second;
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace nereid::train
