// The order in which the programs of a launch run on one thread, when they may wait for one another.
//
// A program that polls in vain (an atomic that changed nothing, or a volatile read, and then a backward jump)
// is set aside and taken up again later. No more programs are begun and not ended than are resident on the
// GPU, so what waits for a program that could not begin waits for ever: a deadlock, and a finding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "nereid/ttir/exec/machine.h"

namespace nereid::ttir {

// The k-th program to begin. Shuffled: a permutation that begins with another than the first and ends with
// another than the last, and turns the order of many pairs around.
class ProgramOrder {
 public:
  ProgramOrder(int64_t programs, bool shuffled);
  int64_t operator[](int64_t k) const;

 private:
  int64_t programs_, step_ = 1, first_ = 0;
};

class Schedule {
 public:
  // What makes a machine ready to run programs, and what takes over what a finished one found.
  struct Hooks {
    std::function<std::unique_ptr<Machine>()> make;
    std::function<void(Machine&)> finished;
  };
  // `resident`: how many programs the GPU holds at once; 0: all. `interleaved`: programs also switch after
  // their atomics, a few at a time.
  Schedule(const LaunchContext& context, int64_t programs, bool shuffled, bool interleaved, int64_t resident,
           Hooks hooks);
  // False where time ran out, or where programs wait for what none of them does.
  bool run();

 private:
  struct Running {
    std::unique_ptr<Machine> machine;
    bool waits = false;
  };
  void begin();
  bool resume(size_t which);  // false: time ran out
  bool report_deadlock();

  const LaunchContext& context_;
  const int64_t programs_, resident_;
  const bool interleaved_;
  const ProgramOrder order_;
  Hooks hooks_;
  std::vector<Running> running_;
  std::vector<std::unique_ptr<Machine>> idle_;
  int64_t begun_ = 0, quiet_ = 0;  // times in a row that a program was taken up in vain
  size_t crowd_ = 0, active_ = 0;  // active: do not wait
};

}  // namespace nereid::ttir
