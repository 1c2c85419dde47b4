#include "nereid/train/rollout_log.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>

#include "nereid/base/json_field.h"
#include "nereid/train/line_file.h"

namespace nereid::train {
namespace {

constexpr std::string_view kStem = "rollouts", kEnding = ".jsonl";
constexpr size_t kLongest = size_t{64} << 20;  // of an answer

std::string line_of(const RolloutRecord& rollout) {
  nlohmann::ordered_json line = {
      {"step", rollout.step},     {"class", rollout.of_class}, {"task", rollout.task},
      {"prompt", rollout.prompt}, {"sample", rollout.sample},  {"verdict", rollout.verdict},
      {"reward", rollout.reward}, {"tokens", rollout.tokens},  {"plan_tokens", rollout.plan_tokens}};
  if (rollout.turn > 0) line["turn"] = rollout.turn;
  if (rollout.speedup) line["speedup"] = *rollout.speedup;
  if (rollout.plan_advantage) line["plan_advantage"] = *rollout.plan_advantage;
  if (rollout.advantage) line["advantage"] = *rollout.advantage;
  if (!rollout.rule.empty()) line["rule"] = rollout.rule;
  if (!rollout.reason.empty()) line["reason"] = rollout.reason;
  if (rollout.cut_off) line["cut_off"] = true;
  if (rollout.same_as)
    line["same_as"] = *rollout.same_as;
  else
    line["answer"] = rollout.answer;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<RolloutRecord> parse_line(const std::string& line, const std::string& where) {
  NEREID_TRY(const Json json, parse_json(line, where));
  const JsonField root(json, where);
  RolloutRecord rollout;
  for (const auto& [key, target] : {std::pair{"step", &rollout.step},
                                    {"class", &rollout.of_class},
                                    {"task", &rollout.task},
                                    {"prompt", &rollout.prompt},
                                    {"sample", &rollout.sample},
                                    {"tokens", &rollout.tokens}}) {
    NEREID_TRY(const auto field, root.at(key));
    NEREID_TRY(*target, field.integer(0, INT64_MAX));
  }
  NEREID_TRY(rollout.turn, root.integer_at("turn", 0, 0, INT64_MAX));
  NEREID_TRY(const auto reward, root.at("reward"));
  NEREID_TRY(rollout.reward, reward.number());
  NEREID_TRY(const auto plan_tokens, root.find("plan_tokens"));
  if (plan_tokens) {
    NEREID_TRY(rollout.plan_tokens, plan_tokens->integer(0, INT64_MAX));
  }
  for (const auto& [key, target] : {std::pair{"speedup", &rollout.speedup},
                                    {"plan_advantage", &rollout.plan_advantage},
                                    {"advantage", &rollout.advantage}}) {
    NEREID_TRY(const auto field, root.find(key));
    if (field) {
      NEREID_TRY(*target, field->number());
    }
  }
  NEREID_TRY(rollout.verdict, root.text_at("verdict"));
  NEREID_TRY(rollout.rule, root.text_at("rule"));
  NEREID_TRY(rollout.reason, root.text_at("reason", kLongest));
  NEREID_TRY(rollout.answer, root.text_at("answer", kLongest));
  NEREID_TRY(rollout.cut_off, root.boolean_at("cut_off", false));
  NEREID_TRY(const auto same, root.find("same_as"));
  if (same) {
    NEREID_TRY(rollout.same_as, same->integer(0, INT64_MAX));
  }
  return rollout;
}

Status read_file_of(const std::filesystem::path& path,
                    const std::function<Status(RolloutRecord rollout)>& found) {
  std::ifstream lines(path);
  if (!lines) return input_error("{}: cannot be read", path.string());
  std::string line;
  std::tuple<int64_t, int64_t, int64_t> group{-1, -1, -1};  // step, prompt and turn
  std::map<int64_t, std::string> texts;                     // of this group, by sample
  for (int64_t number = 1; std::getline(lines, line) && !lines.eof(); ++number) {
    const std::string where = fmt::format("{}:{}", path.string(), number);
    NEREID_TRY(RolloutRecord rollout, parse_line(line, where));
    const std::tuple own{rollout.step, rollout.prompt, rollout.turn};
    if (group != own) texts.clear();
    group = own;
    if (rollout.same_as) {
      const auto same = texts.find(*rollout.same_as);
      if (same == texts.end())
        return input_error("{}: expected an earlier sample of this prompt as same_as, got {}", where,
                           *rollout.same_as);
      rollout.answer = same->second;
    } else {
      texts[rollout.sample] = rollout.answer;
    }
    NEREID_TRY_STATUS(found(std::move(rollout)));
  }
  return ok_status();
}

}  // namespace

Result<RolloutLog> RolloutLog::open(const std::filesystem::path& folder, int64_t rank, int64_t from_step) {
  const auto path = folder / fmt::format("{}{}{}", kStem, rank == 0 ? "" : fmt::format("-{}", rank), kEnding);
  NEREID_TRY(Fd fd, open_cut_off(path, from_step));
  return RolloutLog(std::move(fd), path);
}

Status RolloutLog::add(const std::vector<RolloutRecord>& rollouts) {
  std::string lines;
  for (const RolloutRecord& rollout : rollouts) lines += line_of(rollout);
  return append(fd_, path_, lines);
}

Status read_rollouts(const std::filesystem::path& folder,
                     const std::function<Status(RolloutRecord rollout)>& found) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kStem) && name.ends_with(kEnding)) files.push_back(entry.path());
  }
  if (error) return input_error("{}: {}", folder.string(), error.message());
  std::ranges::sort(files);
  for (const auto& file : files) NEREID_TRY_STATUS(read_file_of(file, found));
  return ok_status();
}

}  // namespace nereid::train
