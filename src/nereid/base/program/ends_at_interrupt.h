// Work of which nothing is kept, and its interrupts.
#pragma once

namespace nereid {

// While one lives, an interrupt ends this process at once, with exit code 130: for work of which nothing is
// kept, such as the load of a model. One that came before does so, too.
class EndsAtInterrupt {
 public:
  EndsAtInterrupt();
  ~EndsAtInterrupt();
  EndsAtInterrupt(const EndsAtInterrupt&) = delete;
  EndsAtInterrupt& operator=(const EndsAtInterrupt&) = delete;
};

}  // namespace nereid
