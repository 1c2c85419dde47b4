#include "nereid/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace nereid {

struct ThreadPool::State {
  int wanted = 1;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable wake, done;
  uint64_t loop = 0;  // which loop the threads should be in
  int working = 0;
  bool stopping = false;

  const std::function<void(int64_t, int)>* body = nullptr;
  int64_t count = 0, grain = 1;
  std::atomic<int64_t> next{0};

  void work(int thread) {
    for (int64_t first; (first = next.fetch_add(grain)) < count;)
      for (int64_t i = first; i < std::min(count, first + grain); ++i) (*body)(i, thread);
  }

  void serve(int thread) {
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    while (true) {
      wake.wait(lock, [&] { return stopping || loop != seen; });
      if (stopping) return;
      seen = loop;
      lock.unlock();
      work(thread);
      lock.lock();
      if (--working == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  state_->wanted = threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  for (auto& thread : state_->threads) thread.join();
}

int ThreadPool::threads() const { return state_->wanted; }

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t, int)>& body, int64_t grain) {
  auto& s = *state_;
  if (s.wanted == 1 || count <= grain) {
    for (int64_t i = 0; i < count; ++i) body(i, 0);
    return;
  }
  {
    std::lock_guard lock(s.mutex);
    s.body = &body, s.count = count, s.grain = std::max<int64_t>(1, grain), s.next = 0;
    s.working = s.wanted - 1;
    ++s.loop;
    while (static_cast<int>(s.threads.size()) < s.wanted - 1)
      s.threads.emplace_back([&s, thread = static_cast<int>(s.threads.size()) + 1] { s.serve(thread); });
  }
  s.wake.notify_all();
  s.work(0);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.working == 0; });
}

}  // namespace nereid
