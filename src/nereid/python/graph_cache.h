// Executable CUDA graphs of one plan, by the addresses that its kernels are given.
//
// A graph of ours is what its launches are, with the addresses that it was made for, and has no memory of its
// own: inputs are not copied, and results are the call's. So it is launched where all addresses are the same,
// and in no other call.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "nereid/python/cuda_driver.h"

namespace nereid::python {

// Owns an executable graph.
class Graph {
 public:
  Graph(std::shared_ptr<const CudaDriver> driver, CUgraphExec graph)
      : driver_(std::move(driver)), graph_(graph) {}
  ~Graph() { driver_->cuGraphExecDestroy(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Threads take turns: the driver does not lock a graph itself.
  CUresult launch(CUstream stream) {
    const std::lock_guard<std::mutex> turn(turn_);
    return driver_->cuGraphLaunch(graph_, stream);
  }

 private:
  std::shared_ptr<const CudaDriver> driver_;
  CUgraphExec graph_;
  std::mutex turn_;
};

// Not locked: the caller holds the interpreter's lock.
class GraphCache {
 public:
  explicit GraphCache(size_t most) : most_(most) {}

  size_t size() const { return entries_.size(); }
  size_t most() const { return most_; }

  // The graph for these addresses; empty where there is none.
  std::shared_ptr<Graph> find(const std::vector<uint64_t>& pointers);

  // Whether to make a graph for addresses that have none: they came before, not long ago, and there is room,
  // or a graph that was not used for kIdle calls.
  bool wants(const std::vector<uint64_t>& pointers);

  void add(const std::vector<uint64_t>& pointers, std::shared_ptr<Graph> graph);
  void remove(const std::shared_ptr<Graph>& graph);

  // No more graphs after kMaxFailures.
  void failed() { ++failures_; }

 private:
  static constexpr size_t kIdle = 64, kMaxFailures = 3;
  struct Entry {
    std::vector<uint64_t> pointers;
    std::shared_ptr<Graph> graph;
    size_t used;  // at which call
  };

  std::vector<Entry>::iterator oldest();

  size_t most_, calls_ = 0, failures_ = 0, next_ = 0;
  std::vector<Entry> entries_;
  std::array<uint64_t, 16> seen_ = {};  // hashes of the last addresses without a graph
};

}  // namespace nereid::python
