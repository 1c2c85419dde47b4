#include "nereid/train/rl/all_gather.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "nereid/base/json_field.h"

namespace nereid::train {
namespace {

constexpr size_t kMostRollouts = 1 << 24;

Json told_json(const PrefetchedRollouts& written, const std::vector<JudgedAnswer>& verdicts) {
  Json list = Json::array();
  for (size_t i = 0; i < verdicts.size(); ++i) {
    const DrawnAnswer& answer = written.answers[i];
    const JudgedAnswer& verdict = verdicts[i];
    list.push_back({{"prompt", answer.prompt},
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

Result<ScoredRollout> read_told(const JsonField& field) {
  ScoredRollout told;
  for (const auto& [key, target] :
       {std::pair{"prompt", &told.prompt}, {"length", &told.length}, {"plan", &told.plan_tokens}}) {
    NEREID_TRY(const auto number, field.at(key));
    NEREID_TRY(const int64_t value, number.integer(0, INT64_MAX));
    *target = static_cast<size_t>(value);
  }
  NEREID_TRY(const std::string verdict, field.text_at("verdict"));
  const auto kind = verify::verdict_kind_from_string(verdict);
  if (!kind) return field.expected("a rollout with a verdict");
  told.kind = *kind;
  NEREID_TRY(told.rule, field.text_at("rule"));
  NEREID_TRY(told.judged.valid, field.boolean_at("valid", false));
  NEREID_TRY(told.judged.correct, field.boolean_at("correct", false));
  NEREID_TRY(told.cut_off, field.boolean_at("cut_off", false));
  NEREID_TRY(const auto speedup, field.at("speedup"));
  NEREID_TRY(told.judged.speedup, speedup.number());
  return told;
}

// Of everybody, by prompts.
Result<std::vector<ScoredRollout>> all_told(Ranks& ranks, const Json& mine) {
  NEREID_TRY(const auto parts, ranks.gather(nereid::to_cbor(mine)));
  std::vector<ScoredRollout> all;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    const std::string where = fmt::format("rank {}'s verdicts", rank);
    NEREID_TRY(const Json json, parse_cbor(parts[rank], where));
    const JsonField root(json, where);
    size_t index = 0;
    NEREID_TRY_STATUS(root.each(kMostRollouts, [&](const JsonField& field) -> Status {
      NEREID_TRY(ScoredRollout told, read_told(field));
      if (std::cmp_equal(rank, ranks.rank())) told.own = index;
      ++index;
      all.push_back(std::move(told));
      return ok_status();
    }));
  }
  std::ranges::stable_sort(all, {}, &ScoredRollout::prompt);
  return all;
}

// Of this rank's answers, by index: plan's and code's. drpo weighs rollouts, and has none.
std::map<size_t, SplitReward> own_advantages(const StepRollouts& gathered, const ObjectiveSettings& objective) {
  std::map<size_t, SplitReward> found;
  if (objective.kind == ObjectiveSettings::Kind::kDrpo) return found;
  for (size_t g = 0; g + 1 < gathered.groups.size(); ++g) {
    const size_t begin = gathered.groups[g], end = gathered.groups[g + 1];
    std::vector<Judged> group;
    for (size_t i = begin; i < end; ++i) group.push_back(gathered.told[i].judged);
    const auto of_plan = plan_advantages(objective, group);
    const auto of_code = code_advantages(objective, group);
    for (size_t i = begin; i < end; ++i)
      if (gathered.told[i].own) found[*gathered.told[i].own] = {of_plan[i - begin], of_code[i - begin]};
  }
  return found;
}

}  // namespace

Result<StepRollouts> all_gather_rollouts(Ranks& ranks, const PrefetchedRollouts& written,
                                 const std::vector<JudgedAnswer>& verdicts) {
  NEREID_TRY(auto all, all_told(ranks, told_json(written, verdicts)));
  StepRollouts found;
  double cut = 0, rewards = 0, alike = 0, verified = 0, log_speedups = 0;
  for (size_t i = 0; i < all.size();) {
    const size_t prompt = all[i].prompt, begin = found.told.size();
    for (; i < all.size() && all[i].prompt == prompt; ++i) {
      ScoredRollout& told = all[i];
      if (told.kind == verify::VerdictKind::kError) {
        ++found.unjudged;
        continue;
      }
      ++found.figures.verdicts[std::string(to_string(told.kind))];
      if (told.kind == verify::VerdictKind::kDisallowed) ++found.figures.rules[told.rule];
      if (told.kind == verify::VerdictKind::kVerified) ++verified, log_speedups += std::log(told.judged.speedup);
      rewards += binary_reward(told.judged), cut += told.cut_off;
      found.tokens += static_cast<double>(told.length);
      found.told.push_back(std::move(told));
    }
    if (found.told.size() == begin) continue;
    found.groups.push_back(found.told.size());
    const double first = binary_reward(found.told[begin].judged);
    alike += std::all_of(found.told.begin() + static_cast<std::ptrdiff_t>(begin), found.told.end(),
                         [&](const ScoredRollout& told) { return binary_reward(told.judged) == first; });
  }
  const double count = std::max(static_cast<double>(found.told.size()), 1.0);
  found.figures.length = found.tokens / count;
  found.figures.cut_off = cut / count;
  found.figures.reward = rewards / count;
  if (verified > 0) found.figures.speedup = std::exp(log_speedups / verified);
  found.figures.groups_alike = alike / std::max(static_cast<double>(found.groups.size() - 1), 1.0);
  return found;
}

std::vector<RolloutRecord> records_of(const PrefetchedRollouts& written, const std::vector<JudgedAnswer>& verdicts,
                                      const StepRollouts& gathered, const ObjectiveSettings& objective) {
  const auto worth = own_advantages(gathered, objective);
  std::vector<RolloutRecord> records;
  std::map<std::string_view, int64_t> texts;  // of this prompt
  int64_t sample = 0;
  for (size_t i = 0; i < written.answers.size(); ++i) {
    const DrawnAnswer& answer = written.answers[i];
    if (i > 0 && written.answers[i - 1].prompt != answer.prompt) sample = 0, texts.clear();
    const JudgedAnswer& verdict = verdicts[i];
    RolloutRecord record{
        .step = written.step,
        .of_class = written.classes[answer.prompt],
        .task = static_cast<int64_t>(written.tasks[answer.prompt]),
        .prompt = static_cast<int64_t>(answer.prompt),
        .sample = sample,
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
    ++sample;
  }
  return records;
}

}  // namespace nereid::train
