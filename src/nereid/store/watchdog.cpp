#include "nereid/store/watchdog.h"

#include <sys/socket.h>

#include <utility>

namespace nereid::store {

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::arm(int socket, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    socket_ = socket;
    when_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    fired_ = false;
  }
  if (thread_.joinable())
    changed_.notify_all();
  else
    thread_ = std::thread([this] { watch(); });
}

bool Watchdog::disarm() {
  const std::lock_guard lock(mutex_);
  socket_ = -1;
  return std::exchange(fired_, false);
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (socket_ < 0) {
      changed_.wait(lock);
    } else if (Clock::now() < when_) {
      changed_.wait_until(lock, when_);
    } else {
      ::shutdown(socket_, SHUT_RDWR);
      socket_ = -1, fired_ = true;
    }
  }
}

}  // namespace nereid::store
