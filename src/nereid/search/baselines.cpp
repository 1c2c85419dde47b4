#include "nereid/search/baselines.h"

#include "nereid/base/file.h"
#include "nereid/base/interrupt.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/sandbox/subprocess.h"
#include "nereid/search/baseline_text.h"
#include "nereid/search/result_file.h"

namespace nereid::search {
namespace {

constexpr double kSeconds = 2;     // of sampling, each way
constexpr double kPatience = 900;  // of one way: max-autotune tries many kernels
constexpr size_t kMostAnswer = 1 << 20;

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

class Measuring {
 public:
  Measuring(Bench& bench, const Installation& installation, const Task& task, Deadline deadline)
      : bench_(bench),
        installation_(installation),
        task_(task),
        deadline_(deadline),
        device_(bench.settings().device == replay::Device::kCuda ? "cuda" : "cpu") {}

  Baseline one(const std::string& way) {
    const store::Key key{.kind = store::Kind::kTime,
                         .task = task_.hash,
                         .subject = "baseline " + way,
                         .question = fmt::format("{} s on {}", kSeconds, device_),
                         .hardware = bench_.options().hardware,
                         .versions = bench_.options().versions};
    if (const auto known = bench_.look_up(key))
      if (auto again = baseline_from(known->document); again.ok()) return *std::move(again);
    auto measured = run(way);
    if (!measured.ok()) return {.declined = measured.error().message};
    bench_.keep({.key = key,
                 .word = measured->call_ms ? "measured" : "declined",
                 .milliseconds = measured->call_ms,
                 .document = json_of(*measured).dump(-1, ' ', false, Json::error_handler_t::replace)},
                {task_.source});
    return *std::move(measured);
  }

 private:
  Result<Baseline> run(const std::string& way) {
    NEREID_TRY(const std::string text, baseline_text(task_.trace, device_));
    NEREID_TRY(const auto folder, TemporaryFolder::create());
    const auto program = folder.path() / "program.py";
    NEREID_TRY_STATUS(write_file_atomically(program, text));
    auto environment = sandbox::own_environment();
    environment.push_back("PYTHONPATH=" + installation_.package.parent_path().string());
    environment.push_back("TORCHINDUCTOR_CACHE_DIR=" + (folder.path() / "inductor").string());
    environment.push_back("TRITON_CACHE_DIR=" + (folder.path() / "triton").string());
    NEREID_TRY(const std::string answer,
               sandbox::run_program(
                   {.words = {installation_.python.string(), "-m", "nereid.baselines", program.string(), way,
                              "--device", device_, "--seconds", fmt::format("{}", kSeconds)},
                    .environment = environment},
                   Deadline::earlier(deadline_, Deadline::after(kPatience)), kMostAnswer));
    // Libraries may talk before the answer, which is the last line.
    const size_t end = answer.find_last_not_of('\n');
    const size_t before = end == answer.npos ? answer.npos : answer.rfind('\n', end);
    return baseline_from(before == answer.npos ? answer : answer.substr(before + 1));
  }

  Bench& bench_;
  const Installation& installation_;
  const Task& task_;
  const Deadline deadline_;
  const std::string device_;
};

}  // namespace

Baselines measure_baselines(Bench& bench, const Installation& installation, const Task& task,
                            Deadline deadline) {
  Measuring measuring(bench, installation, task, deadline);
  std::vector<std::string> ways = {"eager", "compile"};
  if (bench.settings().device == replay::Device::kCuda) ways = {"eager", "graph", "compile", "max-autotune"};
  Baselines baselines;
  for (const auto& way : ways)
    if (!interrupted() && !deadline.passed()) baselines[way] = measuring.one(way);
  return baselines;
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
