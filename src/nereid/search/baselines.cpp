#include "nereid/search/baselines.h"

#include <algorithm>

#include "nereid/base/interrupt.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/policy/inductor.h"
#include "nereid/search/program_text.h"
#include "nereid/search/result_file.h"

namespace nereid::search {
namespace {

Json json_of(const Baseline& b) {
  Json json = {{"first_seconds", b.first_seconds}};
  if (b.call_ms) json["call_ms"] = *b.call_ms;
  if (b.gpu_ms) json["gpu_ms"] = *b.gpu_ms;
  if (!b.declined.empty()) json["declined"] = b.declined;
  return json;
}

Result<Baseline> baseline_from(const std::string& text) {
  NEREID_TRY(const Json json, parse_json(text, "a baseline"));
  const JsonField root(json, "baseline");
  Baseline b;
  const auto number = [&](const char* key, std::optional<double>& into) -> Status {
    NEREID_TRY(const auto field, root.find(key));
    if (!field) return ok_status();
    NEREID_TRY(into, field->number());
    return ok_status();
  };
  std::optional<double> first;
  NEREID_TRY_STATUS(number("call_ms", b.call_ms));
  NEREID_TRY_STATUS(number("gpu_ms", b.gpu_ms));
  NEREID_TRY_STATUS(number("first_seconds", first));
  b.first_seconds = first.value_or(0);
  NEREID_TRY(const auto declined, root.find("declined"));
  if (declined) {
    NEREID_TRY(b.declined, declined->text());
  }
  return b;
}

bool is_called(const std::string& way) { return way != "inductor"; }

}  // namespace

const std::vector<std::string>& baseline_ways() {
  static const std::vector<std::string> kWays = {"eager", "graph", "compile", "max-autotune", "inductor"};
  return kWays;
}

std::vector<std::string> usual_ways(replay::Device device) {
  if (device == replay::Device::kCuda) return baseline_ways();
  return {"eager", "compile", "inductor"};
}

BaselineClock::BaselineClock(Bench& bench, const Installation& installation, BaselineOptions options)
    : bench_(bench),
      options_(std::move(options)),
      device_(bench.settings().device == replay::Device::kCuda ? "cuda" : "cpu"),
      server_(installation, std::any_of(options_.ways.begin(), options_.ways.end(), [](const auto& way) {
                return way == "compile" || way == "max-autotune";
              })) {
  for (const auto& way : baseline_ways())
    if (is_called(way) && std::count(options_.ways.begin(), options_.ways.end(), way) > 0)
      called_.push_back(way);
}

Result<std::unique_ptr<BaselineClock>> BaselineClock::make(Bench& bench, const Installation& installation,
                                                           BaselineOptions options) {
  std::unique_ptr<BaselineClock> clock(new BaselineClock(bench, installation, std::move(options)));
  const auto& ways = clock->options_.ways;
  if (std::count(ways.begin(), ways.end(), "inductor") > 0) {
    NEREID_TRY(clock->inductor_, policy::InductorProposer::start(installation, clock->options_.jobs,
                                                                 policy::InductorProposer::Asked::kCompile));
  }
  return clock;
}

Result<Compared> BaselineClock::measure(const Task& task, Deadline deadline) {
  Compared compared;
  NEREID_TRY_STATUS(call(task, deadline, compared.baselines));
  if (inductor_ && !interrupted() && !deadline.passed()) {
    NEREID_TRY_STATUS(replay(task, deadline, compared));
  }
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  return compared;
}

store::Key BaselineClock::key_of(const Task& task, const std::string& way) const {
  return {.kind = store::Kind::kTime,
          .task = task.hash,
          .subject = "baseline " + way,
          .question = fmt::format("{} s on {}", options_.seconds, device_),
          .hardware = bench_.options().hardware,
          .versions = bench_.options().versions};
}

Status BaselineClock::call(const Task& task, Deadline deadline, Baselines& baselines) {
  CallRequest request{.device = device_,
                          .seconds = options_.seconds,
                          .patience = options_.patience,
                          .threads = options_.jobs > 1 ? 1 : 0};
  for (const auto& way : called_) {
    if (const auto known = bench_.look_up(key_of(task, way)))
      if (auto again = baseline_from(known->document); again.ok()) {
        baselines[way] = *std::move(again);
        continue;
      }
    request.ways.push_back(way);
  }
  if (request.ways.empty() || deadline.passed()) return ok_status();
  const auto take = [&](const std::string& way, const Json& answer) {
    auto baseline = baseline_from(answer.dump(-1, ' ', false, Json::error_handler_t::replace));
    if (!baseline.ok()) baseline = Baseline{.declined = baseline.error().message};
    bench_.keep({.key = key_of(task, way),
                 .word = baseline->call_ms ? "measured" : "declined",
                 .milliseconds = baseline->call_ms,
                 .document = json_of(*baseline).dump(-1, ' ', false, Json::error_handler_t::replace)},
                {task.source});
    baselines[way] = *std::move(baseline);
  };
  auto program = program_text(task.trace, device_);
  if (!program.ok()) {
    for (const auto& way : request.ways) take(way, Json{{"declined", program.error().message}});
    return ok_status();
  }
  request.program = *std::move(program);
  return server_.run(request, deadline, take);
}

Status BaselineClock::replay(const Task& task, Deadline deadline, Compared& compared) {
  const auto answer = bench_.ask(*inductor_, task, 0, {}, deadline);
  if (!answer.ok() || answer->proposals.empty()) {
    compared.declined = answer.ok() ? answer->declined : answer.error().message;
    return ok_status();
  }
  auto judged = bench_.measure(task, "inductor", answer->proposals[0], deadline);
  if (!judged.broken_off) compared.kernels = std::move(judged);
  return ok_status();
}

Json to_json(const Baselines& baselines) {
  Json json = Json::object();
  for (const auto& [way, baseline] : baselines) json[way] = json_of(baseline);
  return json;
}

std::string baseline_name(const std::string& way) {
  static const std::map<std::string, const char*> kNames = {{"eager", "eager PyTorch"},
                                                            {"graph", "eager PyTorch as a CUDA graph"},
                                                            {"compile", "torch.compile"},
                                                            {"max-autotune", "torch.compile, max-autotune"}};
  const auto found = kNames.find(way);
  return found == kNames.end() ? way : found->second;
}

std::string baselines_text(const Baselines& baselines, const std::string& hardware) {
  if (baselines.empty()) return "";
  std::string text = fmt::format("As a user calls them, on this {}:\n", hardware);
  for (const auto& [way, b] : baselines) {
    text += baseline_name(way) + ": ";
    if (!b.call_ms)
      text += "not timed: " + b.declined.substr(0, 160);
    else
      text += milliseconds_text(*b.call_ms) + " a call";
    if (b.gpu_ms) text += fmt::format(", {} of it on the GPU", milliseconds_text(*b.gpu_ms));
    text += "\n";
  }
  return text;
}

}  // namespace nereid::search
