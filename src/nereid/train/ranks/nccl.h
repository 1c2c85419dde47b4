// NCCL, as far as sharded training needs it; libtorch's CUDA half has loaded it.
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

struct NcclId {
  char bytes[128];
};

class Nccl {
 public:
  static Result<NcclId> new_id();
  // All ranks at once, each with its own device.
  static Result<Nccl> join(const NcclId& id, int64_t rank, int64_t count, at::Device device);
  Nccl(Nccl&& other) noexcept
      : communicator_(std::exchange(other.communicator_, nullptr)), device_(other.device_) {}
  Nccl& operator=(Nccl&&) = delete;
  ~Nccl();

  // As in Ranks; flat is on the device. Queued on the stream that everything here runs on.
  Status sum_to_owners(const at::Tensor& flat, const std::vector<int64_t>& borders);
  Status share_from_owners(const at::Tensor& flat, const std::vector<int64_t>& borders);

 private:
  Nccl(void* communicator, at::Device device) : communicator_(communicator), device_(device) {}
  void* communicator_;
  at::Device device_;
};

}  // namespace nereid::train
