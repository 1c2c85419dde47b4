// A progress line on stderr for anything that takes longer than two seconds; silent when stderr is no
// terminal. It is drawn anew every second, also where nothing new is said: so one sees that there is work.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "nereid/base/deadline.h"

namespace nereid {

class Progress {
 public:
  // `total` 0: unknown. Thread-safe. Nothing is drawn in the first two seconds.
  explicit Progress(std::string what, int64_t total = 0);
  ~Progress();
  void advance(int64_t by = 1);
  void say(const std::string& note);
  // Text after the note.
  void suffix(const std::string& what);
  // A line of its own that stays, also where stderr is no terminal.
  void note(const std::string& line);

 private:
  void draw();
  std::mutex mutex_;
  const std::string what_;
  const int64_t total_;
  int64_t done_ = 0;
  std::string note_, suffix_;
  Stopwatch started_, drawn_;
  const bool terminal_;
  bool shown_ = false;
  std::condition_variable_any wake_;
  std::jthread ticking_;  // last: it stops before the rest goes
};

}  // namespace nereid
