// A fixed set of threads that share the iterations of a loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace nereid {

class ThreadPool {
 public:
  // `threads` counts the caller, who works too; 0 means one a core. No thread is started before the first
  // loop that needs one, so a process may still fork.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Runs body(index, thread) for every index in [0, count), thread in [0, threads()), and returns when all
  // are done. Indices are handed out in order, `grain` at a time. `body` must not throw. Not reentrant.
  void parallel_for(int64_t count, const std::function<void(int64_t index, int thread)>& body,
                    int64_t grain = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace nereid
