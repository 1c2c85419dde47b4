// The judge as a process of its own: `nereid verify --batch -`, which runs candidates in jails. Started again
// when it dies or says nothing for too long.
//
// A process has a generation, from 1. What was asked of one that died is not asked again by itself: its owner
// decides, for one of these pairs may be what kills it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/result.h"

namespace nereid::serve {

struct JudgeSpec {
  std::vector<std::string> words;        // of its command line, the program first
  std::vector<std::string> environment;  // "NAME=value"
  double patience = 600;                 // seconds without a line while something is asked
  double max_seconds_between = 10;       // of a process that dies and dies again, from one start to the next
  bool fleet = false;  // it asks judges elsewhere, reports (`is_report`), and ends at once when stdin does
};

// Of a fleet's line: it says how the fleet is, and answers nothing.
bool is_report(std::string_view line);

class JudgeProcess {
 public:
  // Called on a thread of its own.
  struct Events {
    std::function<void(uint64_t generation, std::string line)> on_line;
    // `why` has the end of what it wrote to stderr. The next generation begins some time later.
    std::function<void(uint64_t generation, std::string why)> on_death;
    std::function<void(uint64_t generation)> on_start;  // of all generations but the first
  };
  static Result<std::unique_ptr<JudgeProcess>> start(JudgeSpec spec, Events events);
  ~JudgeProcess();  // ends the process; an idle one leaves its workers warm where NEREID_KEEP_WARM says so

  // A line, without its end. Of a generation that is over: nothing happens.
  void ask(uint64_t generation, std::string line);
  int pid() const;

 private:
  JudgeProcess(JudgeSpec spec, Events events) : spec_(std::move(spec)), events_(std::move(events)) {}
  Status start_program();
  void kill_program();
  void begin_shutdown();
  void work();
  bool exchange();
  void read_lines();
  bool wait_for_next_start(int deaths_in_a_row);

  const JudgeSpec spec_;
  const Events events_;
  // The thread's own.
  Fd to_, from_, errors_;
  std::string outgoing_, incoming_, said_;
  size_t under_way_ = 0, lines_ = 0;
  // Of both sides.
  mutable std::mutex mutex_;
  std::string asked_;
  size_t requested_lines_ = 0;
  uint64_t generation_ = 0;
  int pid_ = -1;
  KilledAtExit killed_at_exit_;
  bool ending_ = false;
  Fd wake_;
  std::thread thread_;
};

}  // namespace nereid::serve
