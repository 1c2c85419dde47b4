// The judged forward of a replay, run again and again on the GPU's own clock: as a captured CUDA graph, or
// issued anew.
//
// Every run begins like the checked ones: what it may write is restored or poisoned first (in place, where a
// graph is replayed: its addresses are fixed), then the level-2 cache is emptied of it. The clock runs
// between two events, in a graph as nodes of it, so that neither the restoring nor the host's part of a graph
// launch is timed.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/replay/cuda/worker/cuda_machine.h"
#include "nereid/replay/worker/replay.h"

namespace at::cuda {
struct CUDAGraph;
}

namespace nereid::replay::cuda {

// Memory larger than the level-2 cache; reading it leaves the cache full of lines that need no writing back.
class CacheFlush {
 public:
  explicit CacheFlush(const CudaMachine& machine);
  void run();

 private:
  at::Tensor memory_, sum_;
};

class TimedForward {
 public:
  // `replay` stands at the state where the judged forward begins; all three must outlive this.
  TimedForward(CudaMachine& machine, Replay& replay, CacheFlush& flush);
  ~TimedForward();

  // Captures the forward. Empty, or why it cannot be captured (it waits for the GPU, say): then `launches` is
  // left. What the replay's outputs are bound to is from then on what the graph writes.
  std::string capture(const RunOptions& options);

  // Seconds of each run. Errors are exceptions.
  std::vector<double> graph(int count, Deadline deadline);
  std::vector<double> launches(const RunOptions& options, int count, Deadline deadline);

  // The GPU's seconds for the forward with these alternatives, warm: for choosing among them.
  double quick(const RunOptions& options, int count);

  int64_t pool_bytes() const;

 private:
  struct Event;
  struct Graph;
  double elapsed() const;
  void poison_pool();
  void poison_free_memory();
  void wait(Deadline deadline);

  CudaMachine& machine_;
  Replay& replay_;
  CacheFlush& flush_;
  std::unique_ptr<Event> begin_, end_;
  std::unique_ptr<Graph> graph_;
};

// Chooses among the alternatives of each launch by the GPU's clock, one launch after the other; launches that
// offer the same kernels get the same choice. `options.alternatives` is filled in. An alternative that the
// GPU cannot launch is passed over. Returns how many were timed.
int choose_alternatives(TimedForward& forward, const Program& program, RunOptions& options, double seconds);

}  // namespace nereid::replay::cuda
