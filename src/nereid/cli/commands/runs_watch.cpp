#include "nereid/cli/commands/runs_watch.h"

#include <poll.h>

#include <algorithm>
#include <map>

#include "nereid/base/program/interrupt.h"
#include "nereid/cli/output.h"
#include "nereid/cli/pages/live_run_page.h"
#include "nereid/serve/http_server.h"
#include "nereid/serve/server.h"
#include "nereid/train/runs/run_progress.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;
using train::RunProgress;

constexpr const char* kAddress = "127.0.0.1";

// What has to change for a run to be read again.
struct Stamp {
  fs::file_time_type changed{};
  bool running = false;
  bool operator==(const Stamp&) const = default;
};

Result<Stamp> stamp_of(const fs::path& folder) {
  Stamp stamp;
  NEREID_TRY(stamp.running, train::is_running(folder));
  std::error_code error;
  stamp.changed = fs::last_write_time(folder / train::MetricsLog::kName, error);
  return stamp;
}

// "reward 0.61, verified 58 %, 12345 tokens/s"
std::vector<std::string> figure_texts(const std::map<std::string, double>& figures) {
  std::vector<std::string> texts;
  const auto add = [&](const char* figure, const char* format, double factor = 1) {
    if (const auto found = figures.find(figure); found != figures.end())
      texts.push_back(fmt::format(fmt::runtime(format), factor * found->second));
  };
  add("loss", "loss {:.4f}");
  add("reward", "reward {:.3f}");
  add("verdict/Verified", "verified {:.0f} %", 100);
  add("rollouts_per_h", "{:.0f} rollouts/h");
  add("tokens_per_s", "{:.0f} tokens/s");
  return texts;
}

std::vector<std::string> time_texts(const std::map<std::string, double>& figures) {
  std::vector<std::string> texts;
  const auto add = [&](const char* figure, const char* name) {
    if (const auto found = figures.find(figure); found != figures.end())
      texts.push_back(fmt::format("{} {:.0f} %", name, 100 * found->second));
  };
  for (const char* part : {"engine", "judge", "clock", "trainer", "other"})
    add(fmt::format("wall/{}", part).c_str(), part);
  add("busy/gpu", "GPU busy");
  add("busy/judge", "judge busy");
  return texts;
}

std::string step_text(const RunProgress& run, int64_t step) {
  return run.steps > 0 ? fmt::format("step {}/{}", step + 1, run.steps) : fmt::format("step {}", step + 1);
}

std::string line_of(const RunProgress& run, int64_t step) {
  const auto figures = run.figures_of(step);
  std::string line = step_text(run, step);
  for (const auto& texts : {figure_texts(figures), time_texts(figures)})
    if (!texts.empty()) line += fmt::format(", {}", fmt::join(texts, ", "));
  if (step == run.step && run.left && run.state != RunProgress::State::kFinished)
    line += fmt::format(", {} left", train::duration_text(*run.left));
  return line + "\n";
}

// For a terminal: some lines that are drawn over each other.
std::vector<std::string> table_of(const fs::path& folder, const RunProgress& run) {
  const auto figures = run.figures_of(run.step);
  std::string head =
      fmt::format("{}: {}, {}", folder.string(), to_string(run.state), step_text(run, run.step));
  if (run.process && run.state == RunProgress::State::kRunning)
    head += fmt::format(", process {} on {}", run.process->pid, run.process->host);
  if (run.left && run.state != RunProgress::State::kFinished)
    head += fmt::format(", {} left", train::duration_text(*run.left));
  std::vector<std::string> lines = {head};
  for (const auto& texts : {figure_texts(figures), time_texts(figures)})
    if (!texts.empty()) lines.push_back(fmt::format("  {}", fmt::join(texts, "   ")));
  return lines;
}

class Watching {
 public:
  Watching(const WatchOptions& options, bool json)
      : folder_(options.folder), every_(options.every), once_(options.once), json_(json) {}

  Result<Answer> go() {
    for (std::optional<Stamp> seen;;) {
      NEREID_TRY(const Stamp now, stamp_of(folder_));
      if (seen != now) {
        NEREID_TRY(const RunProgress run, train::progress_of(folder_));
        NEREID_TRY_STATUS(show(run));
        seen = now;
        if (once_ || run.state != RunProgress::State::kRunning) return Answer::kYes;
      }
      pollfd interrupt{interrupt_fd(), POLLIN, 0};
      (void)::poll(&interrupt, 1, static_cast<int>(1000 * every_));
      if (interrupted()) return Error{"interrupted; the run is as it was", Blame::kInterrupted};
    }
  }

 private:
  // A table on a terminal, else a line for each step that is new: of those that were there, the last.
  Status show(const RunProgress& run) {
    if (terminal_.terminal && !json_) return draw(table_of(folder_, run));
    std::vector<int64_t> steps;
    for (const auto& [name, points] : run.curves)
      for (const auto& [step, value] : points)
        if (step > shown_ && step <= run.step) steps.push_back(step);
    std::ranges::sort(steps);
    const auto again = std::ranges::unique(steps);
    steps.erase(again.begin(), again.end());
    if (shown_ < 0 && !steps.empty()) steps = {steps.back()};
    for (const int64_t step : steps)
      NEREID_TRY_STATUS(
          stream_stdout(json_ ? json_line(watched_step(folder_, run, step)) : line_of(run, step)));
    shown_ = std::max(shown_, run.step);
    if (run.state == RunProgress::State::kRunning && !once_) return ok_status();
    // How it ended, or that nothing is done yet.
    if (json_)
      return steps.empty() ? stream_stdout(json_line(watched_step(folder_, run, run.step))) : ok_status();
    return stream_stdout(fmt::format("{}: {}\n", folder_.string(), to_string(run.state)));
  }

  Status draw(const std::vector<std::string>& lines) {
    std::string out = drawn_ > 0 ? fmt::format("\x1b[{}A", drawn_) : "";
    for (const auto& line : lines)
      out += "\x1b[2K" + printable(line).substr(0, static_cast<size_t>(terminal_.width)) + "\n";
    drawn_ = lines.size();
    return stream_stdout(out);
  }

  const fs::path folder_;
  const double every_;
  const bool once_, json_;
  const Terminal terminal_ = Terminal::of_stdout();
  int64_t shown_ = -1;
  size_t drawn_ = 0;  // lines
};

// The page's parts, made anew where the run has changed.
class LivePage {
 public:
  explicit LivePage(fs::path folder) : folder_(std::move(folder)) {}

  serve::HttpResponse answer(const serve::HttpRequest& request) {
    if (request.method != "GET" && request.method != "HEAD")
      return {.status = 405, .body = "GET is expected\n", .type = "text/plain"};
    if (request.path == "/")
      return {.body = live_run_page(folder_.string()),
              .type = "text/html; charset=utf-8",
              .headers = {{"Content-Security-Policy",
                           "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                           "connect-src 'self'; base-uri 'none'; form-action 'none'"}}};
    if (request.path != "/content" && request.path != "/run.json")
      return {.status = 404, .body = "/, /content and /run.json are there\n", .type = "text/plain"};
    if (const Status read = look(); !read.ok())
      return {.status = 500, .body = read.error().message + "\n", .type = "text/plain; charset=utf-8"};
    if (request.path == "/run.json") return {.body = json_};
    return {.body = content_, .type = "text/html; charset=utf-8"};
  }

 private:
  Status look() {
    NEREID_TRY(const Stamp now, stamp_of(folder_));
    if (seen_ == now) return ok_status();
    NEREID_TRY(const RunProgress run, train::progress_of(folder_));
    NEREID_TRY(const auto rollouts, some_rollouts(folder_));
    content_ = live_run_content(folder_, run, rollouts);
    json_ = json_line(watched_step(folder_, run, run.step));
    seen_ = now;
    return ok_status();
  }

  const fs::path folder_;
  std::optional<Stamp> seen_;
  std::string content_, json_;
};

std::optional<serve::HttpResponse> refused(const serve::HttpRequest& request) {
  if (!serve::from_another_site(request, /*only_by_address=*/true)) return std::nullopt;
  return serve::HttpResponse{
      .status = 403, .body = "this page is for this host alone\n", .type = "text/plain"};
}

Result<Answer> serve_page(const WatchOptions& options, bool json) {
  NEREID_TRY([[maybe_unused]] const RunProgress run, train::progress_of(options.folder));
  LivePage page(options.folder);
  NEREID_TRY(const auto http,
             serve::HttpServer::listen(
                 kAddress, options.port, {.body = 1 << 10, .connections = 64},
                 {.on_head = refused,
                  .on_request = [&page](const serve::HttpRequest& request,
                                        const serve::Reply& reply) { reply(page.answer(request)); },
                  .socket_path = "",
                  .on_socket = [](const serve::HttpRequest&,
                                  const std::shared_ptr<serve::WebSocket>& socket) { socket->close(); }}));
  const std::string url = fmt::format("http://{}:{}/", kAddress, http->port());
  NEREID_TRY_STATUS(stream_stdout(json ? json_line({{"run", options.folder}, {"url", url}})
                                       : fmt::format("{}: {} (Ctrl-C ends it)\n", options.folder, url)));
  http->when_readable(interrupt_fd(), [&http] { http->stop(); });
  http->run();
  return Answer::kYes;
}

}  // namespace

Result<std::vector<train::RolloutRecord>> some_rollouts(const fs::path& folder) {
  constexpr int kOfAVerdict = 4;
  std::vector<train::RolloutRecord> found;
  std::map<std::string, int> verdicts;
  NEREID_TRY_STATUS(train::read_rollouts(folder, [&](train::RolloutRecord rollout) -> Status {
    if (rollout.same_as) return ok_status();
    if (!found.empty() && rollout.step < found.back().step) return ok_status();
    if (!found.empty() && rollout.step > found.back().step) found.clear(), verdicts.clear();
    if (++verdicts[rollout.verdict] <= kOfAVerdict) found.push_back(std::move(rollout));
    return ok_status();
  }));
  std::ranges::stable_sort(found, std::greater{}, &train::RolloutRecord::reward);
  return found;
}

Result<Answer> watch_run(const WatchOptions& options, bool json) {
  return options.port >= 0 ? serve_page(options, json) : Watching(options, json).go();
}

}  // namespace nereid::cli
