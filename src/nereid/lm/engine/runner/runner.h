// The forward of the engine: steps in, logits out, over a cache of keys and values in blocks; decoding as
// CUDA graphs where there is a GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>

#include "nereid/base/result.h"
#include "nereid/lm/decoder/weights.h"
#include "nereid/lm/engine/runner/fused.h"
#include "nereid/lm/engine/runner/host_model.h"
#include "nereid/lm/engine/runner/paged_attention.h"
#include "nereid/lm/engine/runner/step.h"

namespace nereid::lm {

// Something that was run once and can be run again on whatever its tensors hold by then.
class Recorded {
 public:
  virtual ~Recorded() = default;
  virtual void replay() = 0;
};

// What a device has of its own. The base class is every device's: PyTorch's operators, and work that is
// recorded by keeping the function. HostDevice is a CPU with our own loops.
class Device {
 public:
  virtual ~Device() = default;
  // Runs `work` and records it. `work` reads and writes tensors that stay where they are, and no value of
  // them.
  virtual std::unique_ptr<Recorded> record(const std::function<void()>& work);
  // Kernels for such a model; null where PyTorch's operators do all.
  virtual Result<std::unique_ptr<FusedModel>> fused(const lm::Config& config, int64_t block_size);
  // A forward in our own loops, where it is the CPU's; null where libtorch computes it.
  virtual std::unique_ptr<HostModel> host_model(const lm::Weights& weights);
  // For our own kernels; null where there are none.
  virtual Launcher* launcher() { return nullptr; }
  // Memory that is left for a cache, in bytes.
  virtual int64_t free_bytes() const;
};

class HostDevice : public Device {
 public:
  std::unique_ptr<HostModel> host_model(const lm::Weights& weights) override;
};

struct RunnerOptions {
  int64_t blocks =
      0;  // of the cache, block 0 (unused) included; 0: as many as `memory_share` of the free memory holds
  int64_t max_blocks = 0;  // where `blocks` is 0: no more than these; 0: no bound
  int64_t block_size = 16;
  double memory_share = 0.9;
  // Decoding is recorded for so many sequences at a time (the next larger of these); none: nothing is
  // recorded.
  std::vector<int64_t> recorded_sizes = {};
  int64_t max_tokens =
      0;  // of a sequence; 0: the configuration's max_position_embeddings. Recorded block tables are as wide
};

// Sizes up to `most`: doubled up to 64, then multiples of 64. Decoding reads all weights for one sequence as
// for many, so padding costs little; a recording takes the time of a few steps.
std::vector<int64_t> recorded_sizes_up_to(int64_t most);

class Runner {
 public:
  // `weights` may be changed in place between steps; they and `device` outlive the runner.
  static Result<std::unique_ptr<Runner>> create(const lm::Weights& weights, Device& device,
                                                const RunnerOptions& options);

  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // step.wanted's logits: [wanted, vocab], in the weights' type (float32 of a host's own forward), valid
  // until the next forward. Steps are checked: what does not fit is a programmer's mistake.
  at::Tensor forward(const Step& step);

  const KvCache& cache() const { return cache_; }
  const RunnerOptions& options() const { return options_; }
  const lm::Config& config() const { return weights_->config; }
  // Copies whole blocks, keys and values of all layers: what copy-on-write asks for. Pairs of (from, to).
  void copy_blocks(const std::vector<std::pair<int32_t, int32_t>>& pairs);

 private:
  struct Decoding {
    StepTensors tensors;
    at::Tensor logits;
    std::unique_ptr<Recorded> recorded;
  };
  Runner(const lm::Weights& weights, Device& device, RunnerOptions options, std::unique_ptr<FusedModel> fused,
         std::unique_ptr<HostModel> host);
  void check(const Step& step) const;
  DecodeKernel& decode_kernel();
  at::Tensor hidden_states(const StepTensors& tensors, StoredAttention& attention);
  at::Tensor decode(const Step& step, int64_t size);

  const lm::Weights* weights_;
  Device* device_;
  RunnerOptions options_;
  KvCache cache_;
  std::unique_ptr<FusedModel> fused_;  // may be null
  std::unique_ptr<HostModel> host_;    // may be null; else it computes all
  PaddedDecode padded_;
  std::map<int64_t, Decoding> decodings_;  // by size
};

}  // namespace nereid::lm
