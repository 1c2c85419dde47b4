#include "nereid/search/baselines.h"

#include <algorithm>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/proposers/inductor.h"
#include "nereid/render/program_text.h"
#include "nereid/search/report/result_file.h"

namespace nereid::search {
namespace {

Json json_of(const Baseline& b) {
  Json json = {{"first_seconds", b.first_seconds}};
  if (b.call_ms) json["call_ms"] = *b.call_ms;
  if (b.gpu_ms) json["gpu_ms"] = *b.gpu_ms;
  if (!b.declined.empty()) json["declined"] = b.declined;
  if (b.timed_out) json["timed_out"] = true;
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
  NEREID_TRY(b.timed_out, root.boolean_at("timed_out", false));
  return b;
}

CallRequest request_of(const BaselineOptions& options) {
  return {.seconds = options.seconds, .patience = options.patience, .threads = options.jobs > 1 ? 1 : 0};
}

bool compiles(const std::vector<std::string>& modes) {
  return std::any_of(modes.begin(), modes.end(), [](const auto& mode) {
    return mode.starts_with("compile") || mode.starts_with("max-");
  });
}

bool is_called(const std::string& mode) { return mode != "inductor"; }

}  // namespace

const std::vector<std::string>& baseline_names() {
  static const std::vector<std::string> kWays = {
      "eager",      "graph",        "compile",           "max-autotune",
      "eager-tf32", "compile-tf32", "max-autotune-tf32", "inductor"};
  return kWays;
}

std::vector<std::string> default_baselines(replay::Device device) {
  if (device == replay::Device::kCuda) return {"eager", "graph", "compile", "max-autotune", "inductor"};
  return {"eager", "compile", "inductor"};
}

BaselineClock::BaselineClock(Evaluator& evaluator, const Installation& installation, BaselineOptions options)
    : evaluator_(evaluator),
      options_(std::move(options)),
      device_(evaluator.settings().device == replay::Device::kCuda ? "cuda" : "cpu"),
      server_(installation, compiles(options_.modes) ? CallServer::Kind::kCompile : CallServer::Kind::kEager,
              device_),
      candidates_(installation, CallServer::Kind::kCandidates, device_) {
  for (const auto& mode : baseline_names())
    if (is_called(mode) && std::count(options_.modes.begin(), options_.modes.end(), mode) > 0)
      called_.push_back(mode);
}

Result<std::unique_ptr<BaselineClock>> BaselineClock::make(Evaluator& evaluator,
                                                           const Installation& installation,
                                                           BaselineOptions options) {
  std::unique_ptr<BaselineClock> clock(new BaselineClock(evaluator, installation, std::move(options)));
  const auto& modes = clock->options_.modes;
  if (std::count(modes.begin(), modes.end(), "inductor") > 0) {
    NEREID_TRY(clock->inductor_,
               proposers::InductorProposer::start(installation, clock->options_.jobs,
                                                  proposers::InductorProposer::Asked::kCompile));
  }
  return clock;
}

Result<Compared> BaselineClock::measure(const Task& task, const std::string& candidate, Deadline deadline,
                                        bool direct) {
  Compared compared;
  NEREID_TRY_STATUS(call(task, deadline, compared.baselines));
  if (!called_.empty() && !interrupted() && !deadline.passed()) {
    NEREID_TRY(compared.baselines[kCandidateName], call_candidate(task, candidate, deadline, direct));
  }
  if (inductor_ && !interrupted() && !deadline.passed()) {
    NEREID_TRY_STATUS(replay(task, deadline, compared));
  }
  if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
  return compared;
}

store::Key BaselineClock::key_of(const Task& task, const std::string& subject) const {
  return {.kind = store::Kind::kTime,
          .task = task.hash,
          .subject = subject,
          .question = fmt::format("{} s on {}", options_.seconds, device_),
          .hardware = evaluator_.options().hardware,
          .versions = evaluator_.options().versions};
}

Status BaselineClock::call(const Task& task, Deadline deadline, Baselines& baselines) {
  CallRequest request = request_of(options_);
  const auto key = [&](const std::string& mode) { return key_of(task, "baseline " + mode); };
  for (const auto& mode : called_) {
    if (auto before = known(key(mode)))
      baselines[mode] = *std::move(before);
    else
      request.modes.push_back(mode);
  }
  if (request.modes.empty() || deadline.passed()) return ok_status();
  const auto take = [&](const std::string& mode, const Json& answer) {
    baselines[mode] = taken(key(mode), answer, task);
  };
  auto program = render::program_text(task.trace, device_);
  if (!program.ok() || !program->kernels.empty()) {
    const std::string why = program.ok() ? "the module launches kernels of its own" : program.error().message;
    for (const auto& mode : request.modes) take(mode, Json{{"declined", why}});
    return ok_status();
  }
  request.program = std::move(program->text);
  return server_.run(request, deadline, take);
}

Result<Baseline> BaselineClock::call_candidate(const Task& task, const std::string& candidate,
                                               Deadline deadline, bool direct) {
  const auto key = key_of(task, (direct ? "called directly " : "called ") + sha256_hex(candidate));
  if (auto before = known(key)) return *std::move(before);
  const auto declined = [&](const Error& why) { return taken(key, Json{{"declined", why.message}}, task); };
  auto traced = evaluator_.candidate(task, candidate, deadline);
  if (!traced.ok()) {
    if (traced.error().blame != Blame::kInput) return traced.error();
    return declined(traced.error());
  }
  auto program = render::program_text(traced->trace, device_, &task.trace);
  if (!program.ok()) return declined(program.error());
  CallRequest request = request_of(options_);
  request.program = std::move(program->text), request.kernels = std::move(program->kernels);
  request.modes = {"eager"}, request.direct = direct;
  for (const auto& [hash, constants] : request.kernels)
    request.files[hash + ".json"] = std::move(traced->kernels.at(hash));
  Baseline called;
  NEREID_TRY_STATUS(candidates_.run(
      request, deadline, [&](const std::string&, const Json& answer) { called = taken(key, answer, task); }));
  return called;
}

std::optional<Baseline> BaselineClock::known(const store::Key& key) {
  const auto record = evaluator_.look_up(key);
  auto baseline = record ? baseline_from(record->document) : Result<Baseline>(Error{});
  return baseline.ok() ? std::optional(*std::move(baseline)) : std::nullopt;
}

Baseline BaselineClock::taken(const store::Key& key, const Json& answer, const Task& task) {
  auto baseline = baseline_from(answer.dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!baseline.ok()) baseline = Baseline{.declined = baseline.error().message};
  evaluator_.keep({.key = key,
                   .state = baseline->call_ms ? "measured" : "declined",
                   .milliseconds = baseline->call_ms,
                   .document = json_of(*baseline).dump(-1, ' ', false, Json::error_handler_t::replace)},
                  {task.source});
  return *std::move(baseline);
}

Status BaselineClock::replay(const Task& task, Deadline deadline, Compared& compared) {
  const auto answer = evaluator_.ask(*inductor_, task, 0, {}, deadline);
  if (!answer.ok() || answer->proposals.empty()) {
    compared.declined = answer.ok() ? answer->declined : answer.error().message;
    return ok_status();
  }
  auto judged = evaluator_.measure(task, "inductor", answer->proposals[0], deadline);
  if (!judged.broken_off) compared.kernels = std::move(judged);
  return ok_status();
}

Json to_json(const Baselines& baselines) {
  Json json = Json::object();
  for (const auto& [mode, baseline] : baselines) json[mode] = json_of(baseline);
  return json;
}

std::string baseline_name(const std::string& mode) {
  static const std::map<std::string, const char*> kNames = {
      {"eager", "eager PyTorch"},
      {"graph", "eager PyTorch as a CUDA graph"},
      {"compile", "torch.compile"},
      {"max-autotune", "torch.compile, max-autotune"},
      {"eager-tf32", "eager PyTorch in TF32"},
      {"compile-tf32", "torch.compile in TF32"},
      {"max-autotune-tf32", "torch.compile, max-autotune, in TF32"},
      {kCandidateName, "ModelNew"}};
  const auto found = kNames.find(mode);
  return found == kNames.end() ? mode : found->second;
}

std::string baselines_text(const Baselines& baselines, const std::string& hardware) {
  if (baselines.empty()) return "";
  std::string text = fmt::format("As a user calls them, on this {}:\n", hardware);
  for (const auto& [mode, b] : baselines) {
    text += baseline_name(mode) + ": ";
    if (b.timed_out)
      text += "timed out: " + b.declined.substr(0, 160);
    else if (!b.call_ms)
      text += "not timed: " + b.declined.substr(0, 160);
    else
      text += milliseconds_text(*b.call_ms) + " a call";
    if (b.gpu_ms) text += fmt::format(", {} of it on the GPU", milliseconds_text(*b.gpu_ms));
    text += "\n";
  }
  return text;
}

}  // namespace nereid::search
