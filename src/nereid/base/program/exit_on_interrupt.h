// Work of which nothing is kept, and its interrupts.
#pragma once

namespace nereid {

// While one lives, an interrupt ends this process at once, with exit code 130: for work of which nothing is
// kept, such as the load of a model. One that came before does so, too.
class ExitOnInterrupt {
 public:
  ExitOnInterrupt();
  ~ExitOnInterrupt();
  ExitOnInterrupt(const ExitOnInterrupt&) = delete;
  ExitOnInterrupt& operator=(const ExitOnInterrupt&) = delete;
};

}  // namespace nereid
