#include "nereid/train/reinforce/judge.h"

#include <charconv>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/sandbox/subprocess.h"

namespace nereid::train {
namespace {

constexpr double kPatience = 60;  // seconds beside what the replays of an answer may take

Result<Judged> judged_of(std::string_view word, const JsonField& verdict) {
  Judged judged;
  judged.correct = word == "Verified";
  judged.valid = word != "Malformed" && word != "Untraceable" && word != "Disallowed" && word != "Error";
  judged.speedup = judged.correct ? 1 : 0;
  NEREID_TRY(const auto times, verdict.find("times"));
  if (times && times->json().is_object() && times->json().contains("speedup")) {
    NEREID_TRY(const auto field, times->at("speedup"));
    NEREID_TRY(judged.speedup, field.number());
    if (!(judged.speedup > 0)) return field.expected("a number above 0");
  }
  return judged;
}

}  // namespace

Result<std::pair<size_t, JudgedAnswer>> parse_judged(std::string_view line, const std::string& where) {
  NEREID_TRY(const Json json, parse_json(line, where));
  const JsonField root(json, where);
  NEREID_TRY(const auto id_field, root.at("id"));
  NEREID_TRY(const std::string id, id_field.text());
  size_t index = 0;
  const auto [end, failure] = std::from_chars(id.data(), id.data() + id.size(), index);
  if (failure != std::errc() || end != id.data() + id.size()) return id_field.expected("a number");
  JudgedAnswer answer;
  NEREID_TRY(const auto word, root.at("verdict"));
  NEREID_TRY(answer.word, word.text());
  if (answer.word == "Disallowed") {
    NEREID_TRY(const auto evidence, root.find("evidence"));
    if (evidence && evidence->json().is_array() && !evidence->json().empty()) {
      const JsonField first = evidence->item(0);
      NEREID_TRY(answer.rule, first.text_at("rule"));
    }
  }
  NEREID_TRY(const auto otherwise, root.find("otherwise"));
  if (otherwise) {
    NEREID_TRY(const auto unruled, otherwise->at("verdict"));
    NEREID_TRY(const std::string word_without_rules, unruled.text());
    NEREID_TRY(answer.judged, judged_of(word_without_rules, *otherwise));
  } else {
    NEREID_TRY(answer.judged, judged_of(answer.word, root));
  }
  return std::pair(index, std::move(answer));
}

Result<std::vector<JudgedAnswer>> judge_answers(const Installation& installation,
                                                const std::vector<AnswerToJudge>& answers,
                                                const JudgeSettings& settings,
                                                const std::filesystem::path& folder) {
  std::string lines;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Json line = {{"id", fmt::to_string(i)},
                       {"reference_source", answers[i].task},
                       {"candidate_source", answers[i].answer},
                       {"form", "answer"}};
    lines += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  const auto input = folder / "judged.jsonl", output = folder / "verdicts.jsonl";
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  NEREID_TRY_STATUS(write_file_atomically(input, lines));
  sandbox::SpawnSpec spec{
      .words = {(installation.bin / "nereid").string(), "verify", "--batch", input.string(), "-o",
                output.string(), "--policy", settings.policy, "--device", settings.device, "--time-limit",
                fmt::to_string(settings.time_limit)},
      .environment = sandbox::own_environment()};
  if (settings.times) spec.words.emplace_back("--time");
  if (!settings.rule_reward) spec.words.emplace_back("--beyond-rules");
  const auto deadline =
      Deadline::after(kPatience + settings.time_limit * 4 * static_cast<double>(answers.size()));
  // Its exit code says whether all were Verified, which is nothing that we ask; what it did not judge is
  // missing below.
  const auto ran = sandbox::run_program(std::move(spec), deadline);
  const auto text = read_file(output);
  if (!text.ok()) return ran.ok() ? text.error() : ran.error();
  std::vector<JudgedAnswer> found(answers.size());
  size_t number = 0, known = 0;
  for (size_t at = 0, end; (end = text->find('\n', at)) != text->npos; at = end + 1) {
    NEREID_TRY(auto judged, parse_judged(std::string_view(*text).substr(at, end - at),
                                         fmt::format("{}:{}", output.string(), ++number)));
    if (judged.first >= found.size())
      return our_error("{}:{}: there is no answer {}", output.string(), number, judged.first);
    known += found[judged.first].word.empty();
    found[judged.first] = std::move(judged.second);
  }
  if (known < answers.size())
    return our_error("{} of {} answers have no verdict{}", answers.size() - known, answers.size(),
                     ran.ok() ? "" : ": " + ran.error().message);
  return found;
}

}  // namespace nereid::train
