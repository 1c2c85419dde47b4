#include "nereid/base/program/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "nereid/base/printable.h"

namespace nereid {

Progress::Progress(std::string what, int64_t total)
    : what_(printable(what)), total_(total), terminal_(::isatty(STDERR_FILENO) == 1) {
  if (!terminal_) return;
  ticking_ = std::jthread([this](const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); }))
      draw();
  });
}

Progress::~Progress() {
  ticking_ = {};
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::advance(int64_t by) {
  std::lock_guard lock(mutex_);
  done_ += by;
  draw();
}

void Progress::say(const std::string& note) {
  std::lock_guard lock(mutex_);
  note_ = printable(note);
  draw();
}

void Progress::suffix(const std::string& what) {
  std::lock_guard lock(mutex_);
  suffix_ = printable(what);
  draw();
}

void Progress::note(const std::string& line) {
  std::lock_guard lock(mutex_);
  fmt::print(stderr, "{}{}\n", shown_ ? "\r\033[K" : "", printable(line));
  std::fflush(stderr);
  shown_ = false;
}

void Progress::draw() {
  if (!terminal_ || started_.seconds() < 2 || (shown_ && drawn_.seconds() < 0.1)) return;
  std::string line = what_;
  if (total_ > 0) {
    const double per_item = done_ > 0 ? started_.seconds() / static_cast<double>(done_) : 0;
    line += fmt::format(" {}/{}", done_, total_);
    line += done_ > 0 ? fmt::format(", {:.0f} s left", per_item * static_cast<double>(total_ - done_))
                      : fmt::format(", {:.0f} s", started_.seconds());
  } else {
    line += fmt::format(" {:.0f} s", started_.seconds());
  }
  if (!note_.empty()) line += ": " + note_;
  if (!suffix_.empty()) line += (note_.empty() ? ": " : "; ") + suffix_;
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
  shown_ = true;
  drawn_ = Stopwatch();
}

}  // namespace nereid
