// The role of a CUDA worker: the role that a CPU worker plays, and besides
//
//   memory {} -> {"free": bytes of the device}
//   kernel {"hash"} + a file with the compiled kernel as JSON -> {"ok"}
//   choose {"seconds"} -> {"alternatives": [[step, index]...], "timed": n}: among the offered ones, by the
//     GPU's clock
//   time_begin {"alternatives"}
//     -> {"graph": "", or why the forward cannot be captured, "input_sets": copies that runs take in turn}
//   time {"mode": "graph"|"launches", "count", "seconds"} -> {"samples": [seconds...]}
//   time_end {} -> {}: a candidate's outputs of the last timed run go to its block, to be judged
#pragma once

#include <memory>

#include "nereid/replay/cuda/cuda_machine.h"
#include "nereid/replay/cuda/timed_forward.h"
#include "nereid/replay/worker/roles/role.h"

namespace nereid::replay::cuda {

class CudaRole final : public Role {
 public:
  CudaRole(CudaMachine& machine, CacheFlush& flush, std::unique_ptr<Role> role);
  ~CudaRole() override;

  Json handle(const std::string& verb, Message& request, std::vector<int>& descriptors) override;
  Playing playing() override { return role_->playing(); }
  void copy_outputs() override { role_->copy_outputs(); }

 private:
  Json memory();
  Json take_kernel(Message& request);
  Json choose(const Json& document);
  Json time_begin(const Json& document);
  Json time(const Json& document);
  Json time_end();
  TimedForward& forward();

  CudaMachine& machine_;
  CacheFlush& flush_;
  std::unique_ptr<Role> role_;
  std::unique_ptr<TimedForward> forward_;
  RunOptions options_;
  int fenced_runs_ = 0;
  bool ran_ = false;  // something of this role's: a fault may be its own
};

}  // namespace nereid::replay::cuda
