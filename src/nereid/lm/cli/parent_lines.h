// JSON objects, a line each, from and to the program that started this one.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::lm {

// Lines from standard input, read during generation. Never destroyed: its thread reads until the process
// ends.
class ParentLines {
 public:
  ParentLines() {
    std::thread([this] { read(); }).detach();
  }
  // What has come; where that is nothing and `wait`, the next, or nothing at an interrupt.
  std::deque<std::string> take(bool wait) {
    std::unique_lock lock(mutex_);
    while (wait && lines_.empty() && !interrupted()) arrived_.wait_for(lock, std::chrono::milliseconds(200));
    return std::exchange(lines_, {});
  }

 private:
  static constexpr size_t kMaxBytes = size_t{64} << 20;  // of a line

  void read() {
    std::string rest;
    while (true) {
      char chunk[1 << 16];
      const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0 || rest.size() > kMaxBytes) ::_exit(0);  // in the middle of a forward, too
      rest.append(chunk, static_cast<size_t>(got));
      size_t at = 0;
      const std::lock_guard lock(mutex_);
      for (size_t end; (end = rest.find('\n', at)) != rest.npos; at = end + 1)
        lines_.push_back(rest.substr(at, end - at));
      rest.erase(0, at);
      arrived_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::string> lines_;
};

inline void write_to_parent(const Json& json) {
  const std::string line = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t wrote = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(0);  // no reader is left
    rest.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace nereid::lm
