#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/compiler/ir/choices.h"
#include "nereid/dataset/choices/best_pairs.h"
#include "nereid/dataset/choices/measurement.h"
#include "nereid/gpu/driver.h"
#include "nereid/verify/stages/verifier_processes.h"

namespace nereid::cli {
namespace {

constexpr const char* kChoicesHelp = R"(Examples:
  nereid synth --operators 3 --count 2000 --max-elements 2^22 --max-work 2^28 --min-bytes 2^22 -o tasks.jsonl
  nereid choices tasks.jsonl -o measured --budget 10m         programs with something to win, 16 choices each
  nereid choices tasks.jsonl -o measured --brief --choices 32  plans that small models learn
  nereid choices tasks.jsonl -o modelled --device cpu    without a GPU: the cost model's seconds, marked so
  python tools/fit_cost_model.py measured/choices.jsonl       the cost model's constants from these times
  nereid train data measured/pairs.jsonl -o data/measured -t models/small/tokenizer.json

A task is a line with `code`, as `nereid synth` and `nereid harvest` write them. Each task is lowered in
several ways: fusion boundaries, tiles, warps, stages, precision, split sums, attention in one pass. Every
answer is verified and compiled on the CPU; one GPU times what is Verified (as `nereid verify --time-only`).
The folder gets choices.jsonl (one program per line) and pairs.jsonl (the fastest Verified answer of each).
The same command resumes. docs/data.md describes both files.)";

struct ChoicesOptions {
  std::vector<std::string> inputs, answers;
  std::string output, policy = "strict", device = "auto", budget, target;
  uint64_t seed = 1;
  int choices = 16, trials = 3, jobs = 0, clocks = 3;
  double max_share = 0.6, time_limit = 30, timing_seconds = 0.1;
  bool brief = false, fast_inputs = false;
};

// What decides the lines, the number of jobs apart.
std::string settings_of(const ChoicesOptions& o, const std::string& device) {
  return fmt::format(
      "tasks={} answers={} choices={} max-share={} seed={} policy={} trials={}{}{} device={} target={} "
      "timing-seconds={}",
      fmt::join(o.inputs, ","), fmt::join(o.answers, ","), o.choices, o.max_share, o.seed, o.policy, o.trials,
      o.brief ? " brief" : "", o.fast_inputs ? " fast-inputs" : "", device.empty() ? "none" : device,
      o.target, o.timing_seconds);
}

// The lines of programs, appended whole; what a killed run left of a line is cut off.
class ChoicesFile {
 public:
  static Result<ChoicesFile> open(const std::filesystem::path& folder, const std::string& settings) {
    ChoicesFile file;
    file.path_ = folder / "choices.jsonl";
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) return input_error("-o {}: {}", folder.string(), failure.message());
    const auto settings_path = folder / "settings.txt";
    if (std::filesystem::exists(settings_path)) {
      NEREID_TRY(const std::string other, read_file(settings_path, size_t{1} << 20));
      if (other != settings + "\n")
        return input_error("{} was made with other options; expected\n  {}got\n  {}\nname another folder",
                           file.path_.string(), other, settings);
    } else if (std::filesystem::exists(file.path_)) {
      return input_error("{} exists without {}, which holds its settings; name another folder",
                         file.path_.string(), settings_path.string());
    } else {
      NEREID_TRY_STATUS(write_file_atomically(settings_path, settings + "\n"));
    }
    std::string text;
    if (std::filesystem::exists(file.path_)) {
      NEREID_TRY(text, read_file(file.path_, size_t{1} << 36));
      text.resize(text.rfind('\n') + 1);
    }
    NEREID_TRY_STATUS(file.read_ids(text));
    file.fd_ = Fd(::open(file.path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    if (!file.fd_.valid() || ::ftruncate(file.fd_.get(), static_cast<off_t>(text.size())) != 0 ||
        ::lseek(file.fd_.get(), 0, SEEK_END) < 0)
      return input_error("-o: cannot write {}: {}", file.path_.string(), std::strerror(errno));
    return file;
  }

  bool has(const std::string& id) const { return ids_.contains(id); }
  const std::filesystem::path& path() const { return path_; }

  Status append(const std::string& line) {
    const std::string whole = line + "\n";
    for (std::string_view rest = whole; !rest.empty();) {
      const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return our_error("{}: {}", path_.string(), std::strerror(errno));
      rest.remove_prefix(static_cast<size_t>(written));
    }
    return ok_status();
  }

 private:
  Status read_ids(std::string_view text) {
    for (int64_t number = 1; !text.empty(); ++number) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(line.size() + 1);
      const std::string where = fmt::format("{}:{}", path_.string(), number);
      NEREID_TRY(const Json json, parse_json(line, where));
      const JsonField root(json, where);
      NEREID_TRY(const auto id, root.at("id"));
      NEREID_TRY(std::string named, id.text());
      ids_.insert(std::move(named));
    }
    return ok_status();
  }

  std::filesystem::path path_;
  Fd fd_;
  std::set<std::string> ids_;
};

// The GPU that times, where there is one.
struct ChoicesClock {
  std::string device{};  // empty: none
  int arch = 0;
  gpu::DevicePeaks peaks{};
};

Result<ChoicesClock> clock_of(ChoicesOptions& options) {
  NEREID_TRY(const replay::Device device, device_from(options.device));
  ChoicesClock clock;
  if (device == replay::Device::kCuda) {
    NEREID_TRY(const auto* driver, gpu::Driver::open());
    NEREID_TRY(const auto facts, gpu::device_facts(*driver, 0));
    clock.device = facts.name, clock.arch = facts.arch;
  }
  if (options.target.empty()) options.target = compiler::target_of_device(clock.device);
  NEREID_TRY(const compiler::Target target, compiler::target_named(options.target));
  const auto* peaks =
      gpu::peaks_of(clock.device.empty() ? fmt::format("NVIDIA {}", target.example) : clock.device);
  clock.peaks = peaks != nullptr ? *peaks
                                 : gpu::DevicePeaks{.name = target.example,
                                                    .bytes = target.bytes_per_second,
                                                    .f64 = target.fp32 / 2,
                                                    .f32 = target.fp32,
                                                    .tf32 = target.tf32,
                                                    .half = target.bf16};
  return clock;
}

Json report_of(const dataset::MeasurementReport& report, const dataset::BestPairs& best, size_t tasks,
               double seconds) {
  return {{"tasks", tasks},
          {"programs", report.programs},
          {"complete", report.complete},
          {"choices", report.choices},
          {"timed", report.timed},
          {"verdicts", report.verdicts},
          {"left_out", report.left_out},
          {"refused", report.refused},
          {"seconds", seconds},
          {"seconds_of", report.seconds},
          {"out_of_time", report.out_of_time},
          {"pairs", best.pairs},
          {"first_is_best", best.first},
          {"gain", best.pairs > 0 ? Json(best.gain) : Json()},
          {"times", best.pairs > 0 ? Json(best.measured ? "measured" : "modelled") : Json()}};
}

std::string text_of(const dataset::MeasurementReport& report, const dataset::BestPairs& best,
                    const std::string& output) {
  const auto counts = [](const std::map<std::string, int64_t>& all) {
    std::string text;
    for (const auto& [name, count] : all)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
    return text.empty() ? std::string("none") : text;
  };
  std::string text =
      fmt::format("{}: {} programs with {} choices ({}), {} timed; left out: {}\n", output, report.programs,
                  report.choices, counts(report.verdicts), report.timed, counts(report.left_out));
  if (best.pairs > 0)
    text += fmt::format(
        "{} pairs; the best {} choice is {:.3f} times as fast as the compiler's own (geometric mean), "
        "which is the best of {}\n",
        best.pairs, best.measured ? "measured" : "modelled", best.gain, best.first);
  else
    text += "no pairs: no program was measured\n";
  for (const auto& why : report.refused) text += "  " + why + "\n";
  return text;
}

// Lines with a task's `id` and the `text` of an answer.
Result<std::map<std::string, std::vector<std::string>>> read_answers(
    const std::vector<std::string>& files, const std::vector<dataset::GivenTask>& tasks) {
  std::set<std::string> known;
  for (const auto& task : tasks) known.insert(task.about.at("id").get<std::string>());
  std::map<std::string, std::vector<std::string>> answers;
  for (const auto& file : files) {
    NEREID_TRY(const std::string text, read_file(file));
    int64_t number = 0;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const std::string where = fmt::format("{}:{}", file, ++number);
      if (line.empty()) continue;
      NEREID_TRY(const Json json, parse_json(line, where));
      const JsonField root(json, where);
      NEREID_TRY(const auto id, root.at("id"));
      NEREID_TRY(const std::string of, id.text());
      NEREID_TRY(const auto answer, root.at("text"));
      NEREID_TRY(std::string said, answer.text(size_t{8} << 20));
      if (!known.contains(of)) return id.expected("the id of a task");
      answers[of].push_back(std::move(said));
    }
  }
  return answers;
}

Result<std::vector<dataset::GivenTask>> read_tasks(const ChoicesOptions& options) {
  NEREID_TRY(auto tasks, dataset::read_given_tasks(options.inputs));
  std::set<std::string> seen;
  for (const auto& task : tasks)
    if (const auto id = task.about.at("id").get<std::string>(); !seen.insert(id).second)
      return input_error("the id {} stands twice in {}", id, fmt::join(options.inputs, ", "));
  return tasks;
}

// Verdicts by processors, times by the GPU where there is one: as
// `nereid verify --batch --compile-for --traces` and `--time-only`, which share seed and traces.
Result<dataset::MeasurementReport> measure(const ChoicesOptions& options, const ChoicesClock& clock,
                                           const std::vector<dataset::GivenTask>& tasks,
                                           std::map<std::string, std::vector<std::string>> answers,
                                           ChoicesFile& file, int64_t done) {
  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  NEREID_TRY(const auto traces, TemporaryFolder::create("nereid-traces"));
  verify::Settings settings;
  settings.policy = *verify::policy_from_string(options.policy);
  settings.trials = options.trials, settings.seed = options.seed, settings.threads = 1;
  settings.time_limit = options.time_limit, settings.fast_inputs = options.fast_inputs;
  settings.traces = traces.path(), settings.compile_for = clock.arch;
  NEREID_TRY(const auto processes,
             verify::VerifierProcesses::open({.jobs = jobs, .compile_for = clock.arch}));
  verify::Judge judge(processes->backends(), settings);
  std::unique_ptr<verify::VerifierProcesses> clock_processes;
  std::unique_ptr<verify::Judge> timer;
  if (!clock.device.empty()) {
    NEREID_TRY(clock_processes,
               verify::VerifierProcesses::open({.jobs = options.clocks, .device = replay::Device::kCuda}));
    verify::Settings timed = settings;
    timed.device = replay::Device::kCuda, timed.compile_for = 0;
    timed.time = timed.time_only = true, timed.timing_seconds = options.timing_seconds;
    timer = std::make_unique<verify::Judge>(clock_processes->backends(), timed);
  }
  nereid::Progress progress("choices", done + std::ssize(tasks));
  progress.advance(done);
  const Ticker ticker(progress);
  dataset::MeasurementBackends backends{.trace = processes->backends().trace,
                                        .analyze = processes->backends().analyze,
                                        .judge = [&](const verify::Pair& pair) { return judge.judge(pair); },
                                        .device = clock.device,
                                        .peaks = clock.peaks,
                                        .write = [&](const std::string& line) { return file.append(line); },
                                        .progress =
                                            [&](const std::string& note, int64_t programs) {
                                              progress.advance(programs);
                                              progress.say(note);
                                            }};
  if (timer) backends.clock = [&](const verify::Pair& pair) { return timer->judge(pair); };
  dataset::MeasurementOptions how{.choices = options.choices,
                                  .max_share = options.max_share,
                                  .brief = options.brief,
                                  .seed = options.seed,
                                  .policy = options.policy,
                                  .target = options.target,
                                  .threads = jobs,
                                  .clocks = options.clocks,
                                  .answers = std::move(answers)};
  if (!options.budget.empty()) {
    NEREID_TRY(how.seconds, seconds_from(options.budget, "--budget"));
  }
  return dataset::Measurement(backends, how).run(tasks);
}

Result<Answer> run(ChoicesOptions options, bool json) {
  NEREID_TRY(const ChoicesClock clock, clock_of(options));
  // The input first: what is wrong with it leaves no folder.
  NEREID_TRY(auto tasks, read_tasks(options));
  NEREID_TRY(auto answers, read_answers(options.answers, tasks));
  NEREID_TRY(auto file, ChoicesFile::open(options.output, settings_of(options, clock.device)));
  const size_t all = tasks.size();
  std::erase_if(tasks,
                [&](const auto& task) { return file.has(task.about.at("id").template get<std::string>()); });
  const Stopwatch watch;
  dataset::MeasurementReport report;
  constexpr const char* kResume = "interrupted; run the same command to resume";
  end_soon_after_interrupt(kSecondsToEnd, kResume);
  if (!tasks.empty()) {
    auto measured =
        measure(options, clock, tasks, std::move(answers), file, static_cast<int64_t>(all - tasks.size()));
    // Also where its workers were still starting.
    if (!measured.ok() && measured.error().blame == Blame::kInterrupted)
      return Error{kResume, Blame::kInterrupted};
    NEREID_TRY(report, std::move(measured));
  }
  NEREID_TRY(const std::string lines, read_file(file.path(), size_t{1} << 36));
  NEREID_TRY(const auto best, dataset::best_pairs(lines, file.path().string()));
  NEREID_TRY_STATUS(write_file_atomically(std::filesystem::path(options.output) / "pairs.jsonl", best.lines));
  NEREID_TRY_STATUS(json ? write_stdout(json_line(report_of(report, best, all, watch.seconds())))
                         : write_text(text_of(report, best, options.output)));
  return Answer::kYes;
}

void add_measuring_options(CLI::App& command, ChoicesOptions& options) {
  command.option_defaults()->group("Verdict");
  command.add_option("--policy", options.policy, "Policy of the verdicts (see `nereid verify --help`)")
      ->check(CLI::IsMember({"strict", "mostly", "hybrid"}))
      ->capture_default_str();
  command.add_option("--trials", options.trials, "Number of draws of the task's own inputs")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--fast-inputs", options.fast_inputs,
                   "Use few input distributions: huge, outliers, negative; above 256 MiB only huge");
  command.add_option("--time-limit", options.time_limit, "Time limit of a replay, in seconds of work")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.option_defaults()->group("Times");
  command
      .add_option("--device", options.device,
                  "Device that times; cpu: no times, the seconds of the cost model")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--target", options.target,
                  "GPU of the cost model: sm_80, sm_90, sm_100 (default: this machine's GPU, else sm_90)")
      ->check(CLI::IsMember({"sm_80", "sm_90", "sm_100"}));
  command.add_option("--timing-seconds", options.timing_seconds, "Time for sampling one choice, in seconds")
      ->check(CLI::Range(0.001, 60.0))
      ->capture_default_str();
  command
      .add_option("--clocks", options.clocks,
                  "Choices on the GPU at a time: one is timed, the others are prepared")
      ->check(CLI::Range(1, 6))
      ->capture_default_str();
}

}  // namespace

void add_choices_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ChoicesOptions>();
  CLI::App* command = app.add_subcommand("choices", "Measure alternative lowerings of programs; resumes");
  command->footer(kChoicesHelp);
  command->add_option("FILE", options->inputs, "Files of lines with `code`, as `nereid synth` writes them")
      ->required();
  command->option_defaults()->group("Choices");
  command->add_option("--choices", options->choices, "Maximum choices of one program")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      ->add_option("--max-share", options->max_share,
                   "Skip programs whose roofline plus one launch exceeds this share of the first choice's "
                   "modelled time")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  command->add_option(
      "--answers", options->answers,
      "Files of lines with a task's `id` and the `text` of an answer, measured next to the choices");
  command->add_flag("--brief", options->brief, "Write the short plans that small models learn");
  command->add_option("--seed", options->seed, "Seed of the choices and of the verdicts")
      ->capture_default_str();
  add_measuring_options(*command, *options);
  command->option_defaults()->group("Run");
  command->add_option("-o,--output", options->output, "Folder of the results; the same command resumes")
      ->required();
  command->add_option(
      "--budget", options->budget,
      "Time budget, as 5m: then programs are written with what was timed (default: no limit)");
  command->add_option("--jobs", options->jobs, "Choices verified in parallel; 0: one per core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->option_defaults()->group("Options");
  add_json_flag(*command, chosen,
                "Print one JSON object: programs, choices, timed, verdicts, left_out, gain, ...");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
