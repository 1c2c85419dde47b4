// Ends what waits for a socket too long: it shuts the socket down, and the wait ends with an error.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "nereid/base/deadline.h"

namespace nereid::store {

class Watchdog {
 public:
  Watchdog() = default;
  Watchdog(const Watchdog&) = delete;
  ~Watchdog();

  // From now on until `disarm`. One socket at a time.
  void arm(int socket, double seconds);
  // True: the socket was shut down.
  bool disarm();

 private:
  void watch();

  std::mutex mutex_;
  std::condition_variable changed_;
  int socket_ = -1;  // -1: not armed
  Clock::time_point when_;
  bool fired_ = false, ending_ = false;
  std::thread thread_;  // begins with the first `arm`
};

}  // namespace nereid::store
