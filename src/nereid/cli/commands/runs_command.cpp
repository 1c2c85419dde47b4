#include <algorithm>
#include <chrono>
#include <climits>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/cli/command_group.h"
#include "nereid/cli/commands/runs_watch.h"
#include "nereid/cli/output.h"
#include "nereid/cli/pages/runs_page.h"
#include "nereid/train/runs/run_move.h"
#include "nereid/train/runs/run_progress.h"

namespace nereid::cli {
namespace {

constexpr const char* kRunsExamples = R"(A run's folder holds metrics.jsonl (docs/sft.md).

Examples:
  nereid runs                                  the runs below ./training, the newest first
  nereid runs list elsewhere --json
  nereid runs show training/tiny               each figure: first, last, lowest, highest
  nereid runs show training/rl --rollouts --step 40 --verdict Disallowed    answers and their verdicts
  nereid runs show training/rl --rollouts --json | jq -r .answer
  nereid runs page training/a training/b -o ab.html    curves on one self-contained page
  nereid runs watch training/rl                each step as it is done, until the run ends
  nereid runs watch training/rl --port 8090    the same as a live page
  nereid runs stop training/rl                 ends it with a checkpoint; the same command resumes
  nereid runs move training/rl /mnt/b/rl --path /data=/mnt/b/data
  nereid train rl /mnt/b/rl/run.toml -o /mnt/b/rl    resumes the moved run

docs/runs.md: launching, watching, stopping, resuming and moving runs.)";

constexpr const char* kDefaultRoot = "training";

struct RunsOptions {
  std::string root = kDefaultRoot, output;
  std::vector<std::string> folders;
  bool rollouts = false;
  std::optional<int64_t> step;
  std::string verdict;
  WatchOptions watch;
  double patience = 600;
  std::vector<std::string> paths;  // OLD=NEW
};

struct FoundRun {
  std::filesystem::path folder;
  std::filesystem::file_time_type changed;
};

Result<std::vector<FoundRun>> find_runs(const std::filesystem::path& root) {
  std::error_code error;
  std::filesystem::recursive_directory_iterator walk(root, error);
  if (error) return input_error("{}: {}", root.string(), error.message());
  std::vector<FoundRun> runs;
  for (; walk != std::filesystem::recursive_directory_iterator(); walk.increment(error)) {
    if (error) return input_error("{}: {}", root.string(), error.message());
    if (walk->path().filename() != train::MetricsLog::kName) continue;
    const auto changed = walk->last_write_time(error);
    if (!error) runs.push_back({walk->path().parent_path(), changed});
  }
  std::ranges::sort(runs, std::greater{}, &FoundRun::changed);
  return runs;
}

std::optional<double> last_of(const train::Curves& curves, const std::string& figure) {
  const auto found = curves.find(figure);
  return found == curves.end() || found->second.empty() ? std::nullopt
                                                        : std::optional(found->second.back().second);
}

int64_t last_step(const train::Curves& curves) {
  int64_t last = -1;
  for (const auto& [figure, points] : curves)
    if (!points.empty()) last = std::max(last, points.back().first);
  return last;
}

std::string number_text(const std::optional<double>& value) {
  return value ? fmt::format("{:.5g}", *value) : "-";
}

Result<Answer> list_runs(const RunsOptions& options, bool json) {
  NEREID_TRY(const auto runs, find_runs(options.root));
  std::string text;
  if (!json)
    text = fmt::format("{:>8}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", "step", "loss", "held out", "reward",
                       "tokens/s", "run");
  for (const auto& run : runs) {
    NEREID_TRY(const auto curves, train::read_metrics(run.folder));
    const auto loss = last_of(curves, "loss"), held_out = last_of(curves, "held_out_loss");
    const auto reward = last_of(curves, "reward"), speed = last_of(curves, "tokens_per_s");
    const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
    if (json)
      text += json_line({{"run", run.folder.string()},
                         {"step", last_step(curves)},
                         {"loss", or_null(loss)},
                         {"held_out_loss", or_null(held_out)},
                         {"reward", or_null(reward)},
                         {"tokens_per_s", or_null(speed)}});
    else
      text +=
          fmt::format("{:>8}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", last_step(curves), number_text(loss),
                      number_text(held_out), number_text(reward), number_text(speed), run.folder.string());
  }
  NEREID_TRY_STATUS(json ? write_stdout(text) : write_text(text));
  return Answer::kYes;
}

Json rollout_json(const train::RolloutRecord& rollout) {
  const auto or_null = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
  return {{"step", rollout.step},
          {"class", rollout.of_class},
          {"task", rollout.task},
          {"prompt", rollout.prompt},
          {"sample", rollout.sample},
          {"turn", rollout.turn},
          {"verdict", rollout.verdict},
          {"rule", rollout.rule},
          {"reason", rollout.reason},
          {"reward", rollout.reward},
          {"speedup", or_null(rollout.speedup)},
          {"advantage", or_null(rollout.advantage)},
          {"plan_advantage", or_null(rollout.plan_advantage)},
          {"tokens", rollout.tokens},
          {"plan_tokens", rollout.plan_tokens},
          {"cut_off", rollout.cut_off},
          {"answer", rollout.answer}};
}

Result<Answer> show_rollouts(const RunsOptions& options, bool json) {
  std::string head;
  if (!json)
    head = fmt::format("{:>6}  {:>9}  {:>9}  {:12}  {:>6}  {:>9}  {:>8}  {:>6}  {}\n", "step", "task",
                       "answer", "verdict", "reward", "advantage", "speed-up", "tokens", "reason");
  const std::filesystem::path folder = options.folders.front();
  std::set<std::string> verdicts;
  int64_t first = INT64_MAX, last = -1, shown = 0;
  const Status read = train::read_rollouts(folder, [&](const train::RolloutRecord& rollout) -> Status {
    verdicts.insert(rollout.verdict);
    first = std::min(first, rollout.step), last = std::max(last, rollout.step);
    if (options.step && rollout.step != *options.step) return ok_status();
    if (!options.verdict.empty() && rollout.verdict != options.verdict) return ok_status();
    if (shown++ == 0) NEREID_TRY_STATUS(stream_stdout(head));
    if (json) return stream_stdout(json_line(rollout_json(rollout)));
    return stream_stdout(
        fmt::format("{:>6}  {:>9}  {:>9}  {:12}  {:>6}  {:>9}  {:>8}  {:>6}  {}\n", rollout.step,
                    fmt::format("{}/{}", rollout.of_class, rollout.task),
                    fmt::format("{}/{}{}", rollout.prompt, rollout.sample,
                                rollout.turn > 0 ? fmt::format(".{}", rollout.turn + 1) : ""),
                    printable(rollout.verdict), rollout.reward, number_text(rollout.advantage),
                    number_text(rollout.speedup), rollout.tokens,
                    printable(rollout.reason.substr(0, rollout.reason.find('\n')))));
  });
  if (!read.ok() && !interrupted() && read.error().blame == Blame::kInterrupted)
    return Answer::kYes;  // `| head` has enough
  NEREID_TRY_STATUS(read);
  if (shown > 0) return Answer::kYes;
  if (last < 0)
    return input_error("{}: there is no rollout in it: expected the folder of a run of `nereid train rl`",
                       folder.string());
  return input_error(
      "{}: no rollout is of that step and verdict: expected a step from {} to {}, and a verdict of {}",
      folder.string(), first, last, fmt::join(verdicts, ", "));
}

Result<Answer> show_run(const RunsOptions& options, bool json) {
  if (options.rollouts) return show_rollouts(options, json);
  NEREID_TRY(const auto curves, train::read_metrics(options.folders.front()));
  Json figures = Json::object();
  std::string text = fmt::format("{:24}  {:>7}  {:>11}  {:>11}  {:>11}  {:>11}\n", "figure", "steps", "first",
                                 "last", "lowest", "highest");
  for (const auto& [figure, points] : curves) {
    const auto [low, high] =
        std::ranges::minmax_element(points, {}, [](const auto& point) { return point.second; });
    figures[figure] = {{"steps", points.size()},
                       {"first", points.front().second},
                       {"last", points.back().second},
                       {"lowest", low->second},
                       {"highest", high->second}};
    text += fmt::format("{:24}  {:>7}  {:>11.5g}  {:>11.5g}  {:>11.5g}  {:>11.5g}\n", figure, points.size(),
                        points.front().second, points.back().second, low->second, high->second);
  }
  NEREID_TRY_STATUS(write_stdout(
      json ? json_line({{"run", options.folders.front()}, {"step", last_step(curves)}, {"figures", figures}})
           : text));
  return Answer::kYes;
}

Result<Answer> draw_runs(const RunsOptions& options, bool json) {
  NEREID_TRY_STATUS(can_be_written("-o", options.output));
  std::vector<RunCurves> runs;
  for (const std::filesystem::path folder : options.folders) {
    NEREID_TRY(auto curves, train::read_metrics(folder));
    NEREID_TRY(auto rollouts, some_rollouts(folder));
    runs.push_back({.name = folder.lexically_normal().string(),
                    .curves = std::move(curves),
                    .rollouts = std::move(rollouts)});
  }
  NEREID_TRY_STATUS(write_file_atomically(options.output, runs_page(runs)));
  if (json) NEREID_TRY_STATUS(write_stdout(json_line({{"page", options.output}, {"runs", options.folders}})));
  return Answer::kYes;
}

Result<Answer> watch(const RunsOptions& options, bool json) {
  WatchOptions watch = options.watch;
  watch.folder = options.folders.front();
  return watch_run(watch, json);
}

Result<Answer> stop(const RunsOptions& options, bool json) {
  const std::filesystem::path folder = options.folders.front();
  NEREID_TRY_STATUS(train::stop_run(folder, options.patience));
  NEREID_TRY(const auto run, train::progress_of(folder));
  const std::string command = run.process ? run.process->command : "the same command";
  NEREID_TRY_STATUS(json ? write_stdout(json_line({{"run", folder.string()},
                                                   {"state", std::string(to_string(run.state))},
                                                   {"step", run.step},
                                                   {"resume", command}}))
                         : write_text(fmt::format("{}: stopped after step {}; {} resumes\n", folder.string(),
                                                  run.step + 1, command)));
  return Answer::kYes;
}

Result<Answer> move(const RunsOptions& options, bool json) {
  std::vector<train::PathChange> changes;
  for (const auto& text : options.paths) {
    const size_t at = text.find('=');
    if (at == text.npos || at == 0 || at + 1 == text.size())
      return input_error("--path: expected OLD=NEW, got '{}'", text);
    changes.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  NEREID_TRY(const auto moved, train::move_run(options.root, options.output, std::move(changes)));
  std::string text = fmt::format("{} is {} now\n", options.root, options.output);
  Json changed = Json::object();
  for (const auto& [before, after] : moved.changed) {
    changed[before] = after;
    text += fmt::format("  path {} is {} now\n", before, after);
  }
  for (const auto& path : moved.missing) text += fmt::format("  not here: {} (--path OLD=NEW)\n", path);
  NEREID_TRY_STATUS(json ? write_stdout(json_line(
                               {{"run", options.output}, {"paths", changed}, {"missing", moved.missing}}))
                         : write_text(text));
  return Answer::kYes;
}

void add_control(CommandGroup<RunsOptions>& runs) {
  RunsOptions& options = runs.options();
  CLI::App& watching = runs.add("watch", "Show each step of a run as it is done, until the run ends", watch);
  watching.add_option("RUN", options.folders, "Run folder")->required()->expected(1);
  watching
      .add_option("--port", options.watch.port,
                  "Serve a live page on this port of 127.0.0.1; 0: any that is free")
      ->check(CLI::Range(0, 65535));
  watching.add_flag("--once", options.watch.once, "Show the last step and end");
  watching.add_option("--every", options.watch.every, "Seconds between updates")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  CLI::App& stopping =
      runs.add("stop", "End a run of this host with a checkpoint, and wait until it has", stop);
  stopping.add_option("RUN", options.folders, "Run folder")->required()->expected(1);
  stopping.add_option("--timeout", options.patience, "Seconds to wait for its end")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  CLI::App& moving = runs.add("move", "Move a run's folder, and change paths of its run file", move);
  moving.add_option("RUN", options.root, "Run folder")->required();
  moving.add_option("TO", options.output, "Its new name; RUN itself: only paths change")->required();
  moving.add_option("--path", options.paths, "OLD=NEW: paths of run.toml that begin with folder OLD");
}

}  // namespace

void add_runs_command(CLI::App& app, Chosen& chosen) {
  CommandGroup<RunsOptions> runs(app, chosen, "runs", "Show training runs and draw their curves", list_runs);
  RunsOptions& options = runs.options();
  runs.add("list", "List runs, the newest first", list_runs)
      .add_option("FOLDER", options.root, "Folder with runs, at any depth")
      ->capture_default_str();
  CLI::App& show = runs.add("show", "Show the figures of one run, or its rollouts", show_run);
  show.add_option("RUN", options.folders, "Run folder")->required()->expected(1);
  auto* rollouts =
      show.add_flag("--rollouts", options.rollouts, "Show rollouts with their verdicts; texts with --json");
  show.add_option("--step", options.step, "With --rollouts: those of this step")->needs(rollouts);
  show.add_option("--verdict", options.verdict, "With --rollouts: those with this verdict")->needs(rollouts);
  CLI::App& page = runs.add("page", "Draw curves of runs on one page", draw_runs);
  page.add_option("RUN", options.folders, "Run folders")->required();
  page.add_option("-o", options.output, "HTML file to write")->required();
  add_control(runs);
  runs.command().footer(kRunsExamples);  // after its subcommands, which would inherit it
}

}  // namespace nereid::cli
