// Who answers a seccomp filter that asks (load_seccomp_filter_with_listener): notes every call that the
// filter refuses, and refuses it; or lets it pass, to see what a library would do with all it wants.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "nereid/base/file.h"

namespace nereid::sandbox {

struct Asked {
  std::string call;  // "openat", "system call 461"
  std::string what;  // the paths of files, the address of a socket, else the first arguments
  int phase = 0;     // what `phase` held then
  bool operator<(const Asked& other) const {
    return std::tie(phase, call, what) < std::tie(other.phase, other.call, other.what);
  }
};

class Refusals {
 public:
  enum class Answer { kRefuse, kAllow };
  // `phase` may be in memory that the other process shares and counts up.
  Refusals(Fd listener, Answer answer, const std::atomic<int>* phase = nullptr);
  ~Refusals();  // later calls fail with ENOSYS

  // What was asked so far, and how often.
  std::map<Asked, int> asked() const;

 private:
  void answer_all(Answer answer, const std::atomic<int>* phase);

  Fd listener_;
  mutable std::mutex mutex_;
  std::map<Asked, int> asked_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

}  // namespace nereid::sandbox
