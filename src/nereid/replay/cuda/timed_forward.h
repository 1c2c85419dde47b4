// The judged forward of a replay, run again and again on the GPU's own clock: as a captured CUDA graph, or
// issued anew.
//
// Every run begins like the checked ones: what it may write is restored or poisoned first (in place, where a
// graph is replayed: its addresses are fixed), then the level-2 cache is emptied of it. Runs take turns with
// copies of the inputs, each with a graph of its own. The clock runs between two events, in a graph as nodes
// of it, so that neither the restoring nor the host's part of a graph launch is timed.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/replay/cuda/cuda_machine.h"
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
  // left.
  std::string capture(const RunOptions& options);

  // Seconds of each run. Errors are exceptions. The replay's outputs are then what the last run made.
  std::vector<double> graph(int count, Deadline deadline);
  std::vector<double> launches(const RunOptions& options, int count, Deadline deadline);

  // The GPU's seconds for the forward with these alternatives, warm: for choosing among them.
  double quick(const RunOptions& options, int count);

  int input_sets() const { return static_cast<int>(sets_.size()); }

 private:
  struct Event;
  struct Graph;
  using Bindings = std::vector<std::pair<trace::StorageId, c10::Storage>>;
  struct InputSet {
    Bindings inputs;               // those that the forward does not write
    std::unique_ptr<Graph> graph;  // null: not captured
    Bindings made;                 // the graph's workspace and outputs
  };
  void make_sets();
  std::string capture(InputSet& set, const RunOptions& options);
  void bind(const Bindings& bindings);
  InputSet& next_set() { return sets_[turn_++ % sets_.size()]; }
  double elapsed() const;
  void poison_pool(const Graph& graph);
  void poison_free_memory();
  void wait(Deadline deadline);

  CudaMachine& machine_;
  Replay& replay_;
  CacheFlush& flush_;
  std::unique_ptr<Event> begin_, end_;
  std::vector<InputSet> sets_;
  size_t turn_ = 0;
};

// Chooses among the alternatives of each launch by the GPU's clock, one launch after the other; launches that
// offer the same kernels get the same choice. `options.alternatives` is filled in. An alternative that the
// GPU cannot launch is passed over. Returns how many were timed.
int choose_alternatives(TimedForward& forward, const Program& program, RunOptions& options, double seconds);

}  // namespace nereid::replay::cuda
