#include "nereid/train/runs/run_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/run_file.h"

namespace nereid::train {
namespace {

constexpr size_t kRecent = 10;  // steps whose mean is what another takes

// A run file of an older program may have keys that are unknown now: then there is no schedule.
std::optional<ScheduleSettings> schedule_of(const std::filesystem::path& folder) {
  const auto path = folder / "run.toml";
  const auto text = read_file(path, 1 << 20);
  if (!text.ok()) return std::nullopt;
  if (text->starts_with("[rl") || text->find("\n[rl") != std::string::npos) {
    const auto run = parse_rl_file(*text, path.string());
    return run.ok() ? std::optional(run->run.schedule) : std::nullopt;
  }
  const auto run = parse_run_file(*text, path.string());
  return run.ok() ? std::optional(run->schedule) : std::nullopt;
}

// Seconds of each step: `step_s` of reinforcement learning, `seconds` of fine-tuning.
const std::vector<std::pair<int64_t, double>>* seconds_of(const Curves& curves) {
  for (const char* name : {"step_s", "seconds"})
    if (const auto found = curves.find(name); found != curves.end() && !found->second.empty())
      return &found->second;
  return nullptr;
}

bool finished(const RunProgress& run, const ScheduleSettings& schedule) {
  if (run.step < 0) return false;
  if (schedule.seconds <= 0) return run.step + 1 >= schedule.steps;
  if (run.spent >= schedule.seconds) return true;
  const auto* seconds = seconds_of(run.curves);
  const double before = run.spent_until(run.step - 1);
  const double latest =
      seconds != nullptr && seconds->size() > 1 ? (*seconds)[seconds->size() - 2].second : 0;
  return is_last_step(schedule, run.step, before, latest);
}

}  // namespace

std::map<std::string, double> RunProgress::figures_of(int64_t of_step) const {
  std::map<std::string, double> figures;
  for (const auto& [name, points] : curves) {
    const auto found = std::ranges::lower_bound(points, of_step, {}, [](const auto& p) { return p.first; });
    if (found != points.end() && found->first == of_step) figures[name] = found->second;
  }
  return figures;
}

double RunProgress::spent_until(int64_t of_step) const {
  double sum = 0;
  if (const auto* seconds = seconds_of(curves))
    for (const auto& [own, value] : *seconds) sum += own <= of_step ? value : 0;
  return sum;
}

std::string_view to_string(RunProgress::State state) {
  switch (state) {
    case RunProgress::State::kRunning:
      return "running";
    case RunProgress::State::kFinished:
      return "finished";
    case RunProgress::State::kStopped:
      break;
  }
  return "stopped";
}

Result<RunProgress> progress_of(const std::filesystem::path& folder) {
  std::error_code error;
  RunProgress run;
  // First: what is written after this belongs to a run that was said to be running.
  NEREID_TRY(const bool running, is_running(folder));
  const bool begun = std::filesystem::exists(folder / MetricsLog::kName, error);
  if (!begun && !std::filesystem::exists(folder / "run.toml", error))
    return input_error("{}: expected the folder of a run, with run.toml and {}", folder.string(),
                       MetricsLog::kName);
  NEREID_TRY(run.process, process_of(folder));
  if (begun) {
    NEREID_TRY(run.curves, read_metrics(folder));
  }
  for (const auto& [name, points] : run.curves)
    if (!points.empty()) run.step = std::max(run.step, points.back().first);
  run.spent = run.spent_until(run.step);
  const auto schedule = schedule_of(folder);
  if (running)
    run.state = RunProgress::State::kRunning;
  else if (schedule && finished(run, *schedule))
    run.state = RunProgress::State::kFinished;
  if (!schedule) return run;
  if (schedule->seconds > 0) {
    run.seconds = schedule->seconds;
    run.left = std::max(schedule->seconds - run.spent, 0.0);
  } else {
    run.steps = schedule->steps;
    if (const auto* seconds = seconds_of(run.curves)) {
      const size_t recent = std::min(kRecent, seconds->size());
      double sum = 0;
      for (size_t i = seconds->size() - recent; i < seconds->size(); ++i) sum += (*seconds)[i].second;
      run.left = sum / static_cast<double>(recent) *
                 static_cast<double>(std::max<int64_t>(run.steps - run.step - 1, 0));
    }
  }
  return run;
}

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace nereid::train
