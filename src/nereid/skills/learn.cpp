#include "nereid/skills/learn.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/text.h"
#include "nereid/lm/chat/prompts.h"
#include "nereid/skills/retrieval.h"
#include "nereid/trace/notation.h"
#include "nereid/trace/op_class.h"
#include "nereid/verify/batch/answer.h"

namespace nereid::skills {
namespace {

constexpr int kMaxDrafts = 3;  // of a model, until its text is a skill
constexpr size_t kMaxPlan = 800, kMaxDropped = 8, kMaxLine = 110, kLongestLine = 400;
constexpr int64_t kMaxRecords = 20000;

// The code without the guard that a written file ends with.
std::string code_of(const VerifiedAnswer& answer) {
  const auto read = answer.answer ? verify::read_answer(answer.text) : verify::read_source(answer.text);
  const auto* code = std::get_if<verify::Code>(&read);
  std::string source = code == nullptr ? answer.text : code->source;
  source = source.substr(0, source.find("\n# ---- "));
  return std::string(trimmed(source)) + "\n";
}

// What an answer or a written file says of itself before its code.
std::string plan_of(const VerifiedAnswer& answer) {
  std::string plan = answer.judged.plan;
  if (answer.answer && plan.empty()) plan = answer.text.substr(0, answer.text.find("```"));
  if (!answer.answer) {
    const size_t from = answer.text.find("\nPlan\n"), to = answer.text.find("\"\"\"", from);
    if (from != answer.text.npos && to != answer.text.npos)
      plan = answer.text.substr(from + 6, to - from - 6);
  }
  return std::string(trimmed(plan));
}

// Of unknown text, what a skill may hold: printable lines without a fence, at most so many bytes.
std::string safe(std::string_view text, size_t most) {
  std::string out = printable(text, Lines::kMany);
  for (size_t at; (at = out.find("```")) != out.npos;) out.replace(at, 3, "'''");
  if (out.size() <= most) return out;
  out.resize(most);
  while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
  if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
  return out;
}

std::vector<std::string> lines_of(const std::string& code) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < code.size();) {
    const size_t end = std::min(code.find('\n', at), code.size());
    if (const auto line = trimmed(std::string_view(code).substr(at, end - at));
        !line.empty() && !line.starts_with("#"))
      lines.emplace_back(line);
    at = end + 1;
  }
  return lines;
}

// "BLOCK" -> "128" of all assignments of tile sizes, warps and stages, the last of a name.
std::map<std::string, std::string> constants_in(const std::string& code) {
  static const std::regex kConstant(R"(\b([A-Z][A-Z0-9_]*|num_warps|num_stages)\s*(?::[^=\n]*)?=\s*(\d+)\b)");
  std::map<std::string, std::string> found;
  for (const auto& line : lines_of(code)) {
    if (line.size() > kLongestLine) continue;  // std::regex recurs for each character
    for (std::sregex_iterator it(line.begin(), line.end(), kConstant), end; it != end; ++it)
      found[(*it)[1].str()] = (*it)[2].str();
  }
  return found;
}

std::string steps_text(const search::Work& work) {
  std::map<std::string, int> launches;
  int calls = 0;
  for (const auto& step : work.steps) step.triton ? ++launches[step.name] : ++calls;
  int count = 0;
  std::string names;
  for (const auto& [name, times] : launches) {
    count += times;
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text =
      fmt::format("{} launch{}{}", count, count == 1 ? "" : "es", names.empty() ? "" : " (" + names + ")");
  if (calls > 0) text += fmt::format(" and {} operator{} of PyTorch", calls, calls == 1 ? "" : "s");
  return text;
}

// What differs, a line each.
std::string facts_of(const AnswerPair& pair) {
  std::string text = fmt::format("{:.2f} times as fast as another verified answer to the same task{}.\n",
                                 pair.speedup, pair.modelled ? ", by the cost model" : "");
  const auto &fast = pair.faster.judged.work, &slow = pair.slower.judged.work;
  if (fast && slow) {
    text += fmt::format("* Work: {}; the slower one has {}.\n", steps_text(*fast), steps_text(*slow));
    text += fmt::format("* Memory: {} instead of {}; {} instead of {}.\n",
                        trace::quantity_text(fast->bytes, "B"), trace::quantity_text(slow->bytes, "B"),
                        trace::quantity_text(fast->flops, "FLOP"), trace::quantity_text(slow->flops, "FLOP"));
  }
  const std::string fast_code = code_of(pair.faster), slow_code = code_of(pair.slower);
  const auto fast_constants = constants_in(fast_code), slow_constants = constants_in(slow_code);
  std::vector<std::string> changed;
  for (const auto& [name, value] : fast_constants)
    if (const auto other = slow_constants.find(name); other == slow_constants.end())
      changed.push_back(fmt::format("{} = {}", name, value));
    else if (other->second != value)
      changed.push_back(fmt::format("{} = {} instead of {}", name, value, other->second));
  if (!changed.empty()) text += fmt::format("* Constants: {}.\n", fmt::join(changed, ", "));
  const auto fast_lines = lines_of(fast_code);
  const std::set<std::string> kept(fast_lines.begin(), fast_lines.end());
  std::string dropped;
  size_t count = 0;
  for (const auto& line : lines_of(slow_code))
    if (!kept.contains(line) && count++ < kMaxDropped) dropped += "\n    " + line.substr(0, kMaxLine);
  if (!dropped.empty())
    text += fmt::format("* Lines of the slower one alone{}:\n{}\n",
                        count > kMaxDropped ? fmt::format(" (the first {} of {})", kMaxDropped, count) : "",
                        dropped);
  if (const std::string plan = plan_of(pair.faster); !plan.empty())
    text += fmt::format("\nIts plan: {}\n", plan.substr(0, kMaxPlan));
  return std::string(trimmed(safe(text, kMaxText - 100)));
}

// The code from its first kernel on, in whole lines.
std::string pattern_of(const VerifiedAnswer& answer) {
  std::string code = code_of(answer);
  if (const size_t kernel = code.find("@triton.jit"); kernel != code.npos) code.erase(0, kernel);
  code = safe(code, kMaxPattern);
  if (code.size() + 8 > kMaxPattern)
    code = code.substr(0, std::min(code.rfind('\n', kMaxPattern - 10), kMaxPattern - 10)) + "\n# ...";
  return std::string(trimmed(code)) + "\n";
}

void set_facts(Skill& skill, const AnswerPair& pair, const search::Task& task, const std::string& writer) {
  skill.operators = operators_of(task.trace);
  std::erase_if(skill.operators, [](const std::string& name) {
    return name.size() > kMaxWord ||
           name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") != name.npos;
  });
  if (skill.operators.size() > kMaxOperators) skill.operators.resize(kMaxOperators);
  skill.origin = Origin{.task = task.hash,
                        .slower = sha256_hex(pair.slower.text),
                        .faster = sha256_hex(pair.faster.text),
                        .speedup = pair.speedup,
                        .modelled = pair.modelled,
                        .writer = writer,
                        .forward = forward_signature(task.trace)};
}

// The file in an answer: from its first border on, without a fence around it.
std::string skill_file_in(std::string text) {
  if (const size_t thought = text.rfind("</think>"); thought != text.npos) text.erase(0, thought + 8);
  const size_t from = text.find("+++\n");
  if (from == text.npos) return std::string(trimmed(text));
  std::string file = std::string(trimmed(std::string_view(text).substr(from)));
  const bool fenced = trimmed(std::string_view(text).substr(0, from)).starts_with("```");
  if (fenced && file.ends_with("```\n```")) file.resize(file.size() - 4);
  return file + "\n";
}

}  // namespace

Result<AnswerPair> pair_of(const std::string& task, VerifiedAnswer a, VerifiedAnswer b) {
  for (const auto* one : {&a, &b})
    if (!one->judged.verified() || !one->judged.ms())
      return input_error("expected two verified answers, got {}: {}", to_string(one->judged.kind),
                         one->judged.reason);
  AnswerPair pair{.task = task};
  // A measured time is never compared with a modelled one.
  pair.modelled = !a.judged.times || !b.judged.times;
  if (pair.modelled) a.judged.times.reset(), b.judged.times.reset();
  if (!a.judged.ms() || !b.judged.ms()) return input_error("expected two answers timed alike");
  const bool first_is_slower = *a.judged.ms() >= *b.judged.ms();
  pair.slower = std::move(first_is_slower ? a : b), pair.faster = std::move(first_is_slower ? b : a);
  pair.speedup = *pair.slower.judged.ms() / std::max(*pair.faster.judged.ms(), 1e-9);
  if (pair.speedup < kMinGain)
    return input_error("expected one answer at least {:g} times as fast as the other, got {:.2f}", kMinGain,
                       pair.speedup);
  return pair;
}

Result<std::vector<AnswerPair>> pairs_in(store::Store& store, size_t most) {
  NEREID_TRY(const auto records,
             store.list({.kind = store::Kind::kVerdict, .state = "Verified", .most = kMaxRecords}));
  struct Extremes {
    const store::Record *slowest = nullptr, *fastest = nullptr;
    double slow = 0, fast = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string, std::string, bool>, Extremes> groups;
  for (const auto& record : records) {
    const auto judged = search::judged_from(record.document);
    if (!judged.ok() || !judged->ms()) continue;
    const auto question = parse_json(record.key.question, "question");
    Json alike = question.ok() && question->is_object() ? *question : Json::object();
    alike.erase("answer");  // a file and a raw answer are judged alike
    auto& group = groups[{record.key.task, alike.dump(), record.key.hardware, record.key.versions,
                          judged->times.has_value()}];
    const double ms = *judged->ms();
    if (group.slowest == nullptr || ms > group.slow) group.slowest = &record, group.slow = ms;
    if (group.fastest == nullptr || ms < group.fast) group.fastest = &record, group.fast = ms;
  }
  std::map<std::string, Extremes> best;  // by task
  for (const auto& [key, group] : groups) {
    auto& of_task = best[std::get<0>(key)];
    if (of_task.slowest == nullptr || group.slow / group.fast > of_task.slow / of_task.fast) of_task = group;
  }
  std::vector<Extremes> sorted;
  for (const auto& [task, group] : best) sorted.push_back(group);
  std::ranges::stable_sort(
      sorted, [](const Extremes& a, const Extremes& b) { return a.slow / a.fast > b.slow / b.fast; });
  std::vector<AnswerPair> pairs;
  for (const auto& group : sorted) {
    if (pairs.size() == most || group.slow < kMinGain * group.fast) break;
    const auto answer_of = [&](const store::Record& record) -> Result<std::optional<VerifiedAnswer>> {
      NEREID_TRY(auto text, store.text(record.key.subject));
      if (!text) return std::optional<VerifiedAnswer>();
      NEREID_TRY(auto judged, search::judged_from(record.document));
      const auto question = parse_json(record.key.question, "question");
      const bool raw = question.ok() && question->is_object() && question->value("answer", false);
      return std::optional(VerifiedAnswer{*std::move(text), raw, std::move(judged)});
    };
    NEREID_TRY(const auto task, store.text(group.slowest->key.task));
    NEREID_TRY(auto slower, answer_of(*group.slowest));
    NEREID_TRY(auto faster, answer_of(*group.fastest));
    if (!task || !slower || !faster) continue;
    NEREID_TRY(auto pair, pair_of(*task, *std::move(slower), *std::move(faster)));
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

Skill skill_from_difference(const AnswerPair& pair, const search::Task& task) {
  Skill skill;
  set_facts(skill, pair, task, "difference");
  for (const auto& name : skill.operators) {
    if (skill.name.size() + name.size() > kMaxName - 10) break;
    for (const char c : name + "-")
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
        skill.name += c;
      else if (!skill.name.empty() && !skill.name.ends_with('-'))
        skill.name += '-';
  }
  skill.name += skill.origin->faster.substr(0, 8);
  std::set<std::string> tags;
  for (const auto& step : task.facts.phases.at(static_cast<size_t>(task.facts.judged())).steps)
    if (step.name.starts_with("aten::"))
      if (const auto kind = trace::listed_class(step.name); !trace::is_free(kind))
        tags.emplace(to_string(kind));
  skill.tags.assign(tags.begin(), tags.end());
  if (skill.tags.size() > kMaxTags) skill.tags.resize(kMaxTags);
  const auto& work = pair.faster.judged.work;
  skill.when = safe(fmt::format("A forward with {}{}.", fmt::join(skill.operators, ", "),
                                work ? fmt::format(", which {} can do", steps_text(*work)) : ""),
                    kMaxWhenText);
  std::ranges::replace(skill.when, '\n', ' ');
  skill.text = facts_of(pair);
  skill.pattern = pattern_of(pair.faster);
  return skill;
}

Result<Skill> skill_from_model(proposers::Proposer& model, const Prompts& prompts, const AnswerPair& pair,
                               const search::Task& task, Deadline deadline) {
  NEREID_TRY(auto question, lm::fill(prompts.learn,
                                     {{"source", pair.task},
                                      {"slower", code_of(pair.slower)},
                                      {"faster", code_of(pair.faster)},
                                      {"speedup", fmt::format("{:.2f}", pair.speedup)},
                                      {"facts", facts_of(pair)}},
                                     "learn-skill.md"));
  std::vector<proposers::Message> messages = {{"user", std::move(question)}};
  for (int writing = 1;; ++writing) {
    NEREID_TRY(const auto reply, model.converse(messages, deadline));
    if (!reply) return input_error("the proposer {} writes no text", model.name());
    auto skill = parse_skill(skill_file_in(reply->text), "the model's answer");
    if (skill.ok()) {
      set_facts(*skill, pair, task, std::string(model.name()));
      return skill;
    }
    if (writing == kMaxDrafts) return input_error("{} ({} answers)", skill.error().message, kMaxDrafts);
    messages.push_back({"assistant", reply->text});
    messages.push_back({"user", fmt::format("That is not of the form: {}. Answer with the whole file again.",
                                            skill.error().message)});
  }
}

}  // namespace nereid::skills
