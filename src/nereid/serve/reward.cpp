#include "nereid/serve/reward.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "nereid/base/json_field.h"
#include "nereid/serve/json_member.h"

namespace nereid::serve {
namespace {

constexpr std::array<std::string_view, 4> kObjectives = {"binary", "hierarchical", "uniform", "decoupled"};

struct Components {
  double plan = 0, code = 0, reward = 0;
};

Components components_of(const train::Judged& judged, const RewardSettings& settings) {
  const auto split = train::split_reward(judged, settings.speedup_limit);
  switch (settings.objective) {
    case Objective::kBinary:
      return {split.code, split.code, split.code};
    case Objective::kUniform:
      return {split.plan, split.plan, split.plan};
    case Objective::kDecoupled: {
      const double limit = std::log(settings.speedup_limit);
      const double plan = judged.correct ? std::clamp(std::log(judged.speedup), -limit, limit) : 0;
      return {plan, split.code, split.code + plan};
    }
    case Objective::kHierarchical:
      break;
  }
  return {split.plan, split.code, split.plan};
}

// What counts of a verdict: with `ignore_rules` what it would be without rules.
const Json& counted(const Json& verdict) {
  const Json* without = member(verdict, "verdict_without_rules");
  return without != nullptr ? *without : verdict;
}

// 0 where nothing was timed.
double speedup_in(const Json& verdict) {
  const Json* times = member(verdict, "times");
  const Json* speedup = times != nullptr && times->is_object() ? member(*times, "speedup") : nullptr;
  return speedup != nullptr && speedup->is_number() ? speedup->get<double>() : 0;
}

}  // namespace

std::optional<Objective> objective_from_string(std::string_view name) {
  const auto found = std::ranges::find(kObjectives, name);
  if (found == kObjectives.end()) return std::nullopt;
  return static_cast<Objective>(found - kObjectives.begin());
}

std::string_view to_string(Objective objective) { return kObjectives[static_cast<size_t>(objective)]; }

Result<RewardSettings> read_reward(const Json& item, const std::string& where,
                                   const RewardSettings& defaults) {
  RewardSettings settings = defaults;
  if (const Json* name = member(item, "reward")) {
    const auto objective = name->is_string() ? objective_from_string(name->get<std::string>()) : std::nullopt;
    if (!objective) return input_error("{}.reward: expected one of {}", where, fmt::join(kObjectives, ", "));
    settings.objective = *objective;
  }
  if (const Json* limit = member(item, "speedup_limit")) {
    if (!limit->is_number() || !(limit->get<double>() >= 1 && limit->get<double>() <= 1e6))
      return input_error("{}.speedup_limit: expected a number from 1 to 1000000", where);
    settings.speedup_limit = limit->get<double>();
  }
  return settings;
}

std::optional<train::Judged> judged_in(const Json& verdict) {
  const Json& judged = counted(verdict);
  const auto kind = verify::verdict_kind_from_string(judged.value("verdict", ""));
  if (!kind || *kind == verify::VerdictKind::kError) return std::nullopt;
  return train::judged_of(*kind, speedup_in(judged));
}

Json reward_answer(Json verdict, const RewardSettings& settings, Json receipt) {
  const auto judged = judged_in(verdict);
  if (!judged) {
    const std::string reason = verdict.value("reason", "the judge gave no reason");
    const Blame blame = verdict.value("blame", "ours") == "input" ? Blame::kInput : Blame::kOurs;
    return error_answer(reason, blame, std::move(verdict), std::move(receipt));
  }
  const Components earned = components_of(*judged, settings);
  Json spans = Json::array();
  if (const Json* places = member(verdict, "spans"))
    for (const auto& [name, reward] : {std::pair{"plan", earned.plan}, {"code", earned.code}})
      if (const Json* place = member(*places, name);
          place != nullptr && place->is_array() && place->size() == 2)
        spans.push_back({{"start", (*place)[0]}, {"end", (*place)[1]}, {"name", name}, {"reward", reward}});
  const bool timed = judged->correct && speedup_in(counted(verdict)) > 0;
  const bool verified =
      verify::verdict_kind_from_string(verdict.value("verdict", "")) == verify::VerdictKind::kVerified;
  verdict["reward"] = {{"objective", to_string(settings.objective)},
                       {"valid", judged->valid},
                       {"correct", judged->correct},
                       {"speedup", timed ? Json(judged->speedup) : Json()},
                       {"plan", earned.plan},
                       {"code", earned.code}};
  return {{"reward", earned.reward},
          {"scores",
           {{"valid", judged->valid ? 1.0 : 0.0},
            {"correct", judged->correct ? 1.0 : 0.0},
            {"speedup", timed ? judged->speedup : 1.0}}},
          {"reward_components", {{"plan", earned.plan}, {"code", earned.code}}},
          {"spans", std::move(spans)},
          {"status", verified ? "verified" : "refused"},
          {"verdict", std::move(verdict)},
          {"receipt", std::move(receipt)}};
}

Json error_answer(const std::string& message, Blame blame, Json verdict, Json receipt) {
  return {{"reward", nullptr},
          {"scores", Json::object()},
          {"reward_components", Json::object()},
          {"spans", Json::array()},
          {"status", "error"},
          {"verdict", std::move(verdict)},
          {"receipt", std::move(receipt)},
          {"error", message},
          {"blame", blame == Blame::kInput ? "input" : "ours"}};
}

int status_of(const Json& answer) {
  if (answer.at("status") != "error") return 200;
  return answer.at("blame") == "input" ? 422 : 503;
}

Result<train::ObjectiveSettings> read_objective(const Json& json, const std::string& where) {
  using Kind = train::ObjectiveSettings::Kind;
  train::ObjectiveSettings settings;
  if (!json.is_object()) return input_error("{}: expected an object", where);
  const JsonField root(json, where);
  for (const auto& [key, value] : json.items()) {
    NEREID_TRY(const JsonField field, root.at(key));
    if (key == "objective") {
      NEREID_TRY(const std::string name, field.text());
      if (name != "grpo" && name != "hrd" && name != "best")
        return field.expected(
            "grpo, hrd or best (drpo has no advantages: it needs the policy's probabilities)");
      settings.kind = name == "grpo" ? Kind::kGrpo : name == "hrd" ? Kind::kHrd : Kind::kBest;
    } else if (key == "baseline") {
      NEREID_TRY(const std::string name, field.text());
      if (name != "normalized" && name != "mean" && name != "leave_one_out")
        return field.expected("normalized, mean or leave_one_out");
      settings.baseline = name == "normalized" ? train::Baseline::kNormalized
                          : name == "mean"     ? train::Baseline::kMean
                                               : train::Baseline::kLeaveOneOut;
    } else if (key == "uniform_reward") {
      NEREID_TRY(settings.uniform_reward, field.boolean());
    } else if (key == "speedup_limit" || key == "incorrect_penalty" || key == "plan_incorrect_penalty") {
      NEREID_TRY(const double number, field.number());
      const double lowest = key == "speedup_limit" ? 1 : 0;
      if (!(number >= lowest && number <= 1e6))
        return field.expected(fmt::format("a number from {} to 1000000", lowest));
      if (key == "speedup_limit")
        settings.speedup_limit = number;
      else
        (key == "incorrect_penalty" ? settings.incorrect_penalty : settings.plan_incorrect_penalty) = number;
    } else {
      return input_error(
          "{}: unknown key '{}': expected objective, baseline, speedup_limit, incorrect_penalty, "
          "plan_incorrect_penalty or uniform_reward",
          where, key.substr(0, 100));
    }
  }
  return settings;
}

Json group_advantages(const std::vector<std::optional<train::Judged>>& answers,
                      const std::vector<std::string>& groups, const train::ObjectiveSettings& settings) {
  std::map<std::string, std::vector<size_t>> members;
  for (size_t i = 0; i < answers.size(); ++i)
    if (answers[i]) members[groups[i]].push_back(i);
  Json found = Json::array();
  found.get_ref<Json::array_t&>().resize(answers.size());
  for (const auto& [name, places] : members) {
    std::vector<train::Judged> group;
    for (const size_t i : places) group.push_back(*answers[i]);
    const auto plan = train::plan_advantages(settings, group), code = train::code_advantages(settings, group);
    for (size_t k = 0; k < places.size(); ++k) found[places[k]] = {{"plan", plan[k]}, {"code", code[k]}};
  }
  return found;
}

}  // namespace nereid::serve
