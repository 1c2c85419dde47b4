#include "nereid/lm/engine/runner/runner.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "nereid/base/check.h"
#include "nereid/base/memory.h"

namespace nereid::lm {
namespace {

class Kept : public Recorded {
 public:
  explicit Kept(std::function<void()> work) : work_(std::move(work)) {}
  void replay() override { work_(); }

 private:
  std::function<void()> work_;
};

// A view of the host's numbers, for a copy to the device at once.
template <typename T>
at::Tensor on_host(const std::vector<T>& numbers) {
  constexpr auto type = std::is_same_v<T, int64_t> ? at::kLong : at::kInt;
  return at::from_blob(const_cast<T*>(numbers.data()), {static_cast<int64_t>(numbers.size())},
                       at::TensorOptions(type));
}

// Rows of `width`, zeros after each sequence's own blocks.
std::vector<int32_t> flat_tables(const Step& step, size_t width) {
  std::vector<int32_t> flat(step.sequences() * width);
  for (size_t i = 0; i < step.sequences(); ++i)
    std::copy(step.blocks[i].begin(), step.blocks[i].end(), flat.begin() + static_cast<ptrdiff_t>(i * width));
  return flat;
}

}  // namespace

std::unique_ptr<Recorded> Device::record(const std::function<void()>& work) {
  work();
  return std::make_unique<Kept>(work);
}

Result<std::unique_ptr<FusedModel>> Device::fused(const lm::Config&, int64_t) {
  return std::unique_ptr<FusedModel>();
}

std::unique_ptr<HostModel> Device::host_model(const lm::Weights&) { return {}; }

std::unique_ptr<HostModel> HostDevice::host_model(const lm::Weights& weights) {
  return HostModel::takes(weights) ? std::make_unique<HostModel>(weights) : nullptr;
}

int64_t Device::free_bytes() const { return available_memory(); }

std::vector<int64_t> recorded_sizes_up_to(int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < most; size += std::min<int64_t>(size, 64)) sizes.push_back(size);
  sizes.push_back(most);
  return sizes;
}

Runner::Runner(const lm::Weights& weights, Device& device, RunnerOptions options,
               std::unique_ptr<FusedModel> fused, std::unique_ptr<HostModel> host)
    : weights_(&weights),
      device_(&device),
      options_(std::move(options)),
      fused_(std::move(fused)),
      host_(std::move(host)) {
  cache_ = make_cache(weights.config, options_.blocks, options_.block_size,
                      host_ ? at::TensorOptions(at::kFloat) : weights.flat.options());
}

DecodeKernel& Runner::decode_kernel() { return fused_ ? static_cast<DecodeKernel&>(*fused_) : padded_; }

at::Tensor Runner::hidden_states(const StepTensors& tensors, StoredAttention& attention) {
  if (fused_)
    return fused_->hidden_states(*weights_, tensors.tokens, tensors.positions, tensors.slots, cache_,
                                 attention);
  return lm::hidden_states(*weights_, tensors.tokens, tensors.positions, attention);
}

Result<std::unique_ptr<Runner>> Runner::create(const lm::Weights& weights, Device& device,
                                               const RunnerOptions& given) {
  const c10::NoGradGuard no_gradients;
  RunnerOptions options = given;
  NEREID_CHECK(options.block_size > 0, "blocks of at least one key, got {}", options.block_size);
  if (options.max_tokens == 0) options.max_tokens = weights.config.max_position_embeddings;
  std::sort(options.recorded_sizes.begin(), options.recorded_sizes.end());
  auto host = device.host_model(weights);
  if (options.blocks == 0) {
    const int64_t bytes =
        block_bytes(weights.config, options.block_size, host ? at::kFloat : weights.flat.scalar_type());
    options.blocks =
        static_cast<int64_t>(static_cast<double>(device.free_bytes()) * options.memory_share) / bytes;
    if (options.max_blocks > 0) options.blocks = std::min(options.blocks, options.max_blocks);
  }
  if (options.blocks < 2)
    return our_error("memory for {} blocks of {} keys and values is not enough: expected at least 2",
                     options.blocks, options.block_size);
  NEREID_TRY(auto fused, device.fused(weights.config, options.block_size));
  return std::unique_ptr<Runner>(
      new Runner(weights, device, std::move(options), std::move(fused), std::move(host)));
}

void Runner::check(const Step& step) const {
  const size_t tokens = step.tokens.size(), sequences = step.sequences();
  NEREID_CHECK(step.positions.size() == tokens && step.slots.size() == tokens,
               "positions and slots of {} tokens, got {} and {}", tokens, step.positions.size(),
               step.slots.size());
  NEREID_CHECK(step.starts.size() == sequences + 1 && step.blocks.size() == sequences &&
                   step.starts.front() == 0 && step.starts.back() == static_cast<int64_t>(tokens),
               "starts and blocks of {} sequences", sequences);
  for (size_t i = 0; i < sequences; ++i) {
    NEREID_CHECK(
        step.starts[i] < step.starts[i + 1] && step.lengths[i] >= step.starts[i + 1] - step.starts[i],
        "a token of sequence {}, and it among its keys", i);
    NEREID_CHECK(static_cast<int64_t>(step.blocks[i].size()) * options_.block_size >= step.lengths[i],
                 "blocks for {} keys, got {}", step.lengths[i], step.blocks[i].size());
    for (const int32_t block : step.blocks[i])
      NEREID_CHECK(block > 0 && block < options_.blocks, "a block from 1 to {}, got {}", options_.blocks - 1,
                   block);
  }
  for (const int64_t token : step.tokens)
    NEREID_CHECK(token >= 0 && token < weights_->config.vocab_size, "a token from 0 to {}, got {}",
                 weights_->config.vocab_size - 1, token);
  for (const int64_t slot : step.slots)
    NEREID_CHECK(slot >= options_.block_size && slot < options_.blocks * options_.block_size,
                 "a slot in blocks 1 to {}, got {}", options_.blocks - 1, slot);
  for (const int64_t place : step.wanted)
    NEREID_CHECK(place >= 0 && place < static_cast<int64_t>(tokens), "a place among {} tokens, got {}",
                 tokens, place);
}

at::Tensor Runner::forward(const Step& step) {
  const c10::NoGradGuard no_gradients;
  check(step);
  if (host_) return host_->forward(step, cache_);
  const auto sequences = static_cast<int64_t>(step.sequences());
  const bool decodes = step.tokens.size() == step.sequences() && step.wanted.size() == step.tokens.size();
  const auto size =
      std::lower_bound(options_.recorded_sizes.begin(), options_.recorded_sizes.end(), sequences);
  if (decodes && size != options_.recorded_sizes.end() &&
      *std::max_element(step.lengths.begin(), step.lengths.end()) <= options_.max_tokens)
    return decode(step, *size);

  const auto device = weights_->flat.device();
  size_t width = 0;
  for (const auto& blocks : step.blocks) width = std::max(width, blocks.size());
  const auto tables = flat_tables(step, width);
  const StepTensors tensors = {on_host(step.tokens).to(device),
                               on_host(step.positions).to(device),
                               on_host(step.slots).to(device),
                               on_host(step.starts).to(device),
                               on_host(step.lengths).to(device),
                               on_host(tables).to(device).view({sequences, static_cast<int64_t>(width)})};
  PagedAttention attention(cache_, step, tensors, decode_kernel());
  auto hidden = hidden_states(tensors, attention);
  if (step.wanted.size() != step.tokens.size())
    hidden = hidden.index_select(0, on_host(step.wanted).to(device));
  return lm::logits_of(*weights_, hidden);
}

at::Tensor Runner::decode(const Step& step, int64_t size) {
  Decoding& decoding = decodings_[size];
  const int64_t width = (options_.max_tokens + options_.block_size - 1) / options_.block_size;
  if (!decoding.recorded) {
    const auto longs = weights_->flat.options().dtype(at::kLong),
               ints = weights_->flat.options().dtype(at::kInt);
    // Padding decodes token 0 at place 0 of block 0, which belongs to no sequence.
    decoding.tensors = {at::zeros({size}, longs),         at::zeros({size}, longs),
                        at::zeros({size}, longs),         {},
                        at::zeros({size}, ints).fill_(1), at::zeros({size, width}, ints)};
  }
  const auto sequences = static_cast<int64_t>(step.sequences());
  const auto copy = [&](const at::Tensor& to, const at::Tensor& from) {
    to.narrow(0, 0, sequences).copy_(from);
    return to.narrow(0, sequences, size - sequences);  // what is padding now may have been a sequence before
  };
  const auto& tensors = decoding.tensors;
  copy(tensors.tokens, on_host(step.tokens)).zero_();
  copy(tensors.positions, on_host(step.positions)).zero_();
  copy(tensors.slots, on_host(step.slots)).zero_();
  copy(tensors.lengths, on_host(step.lengths)).fill_(1);
  // After a sequence's length, and in padding, what an earlier step left is never looked at, or harmless:
  // numbers of blocks that exist.
  size_t used = 0;
  for (const auto& blocks : step.blocks) used = std::max(used, blocks.size());
  const auto tables = flat_tables(step, used);
  tensors.tables.narrow(0, 0, sequences)
      .narrow(1, 0, static_cast<int64_t>(used))
      .copy_(on_host(tables).view({sequences, -1}));
  if (decoding.recorded) {
    decoding.recorded->replay();
  } else {
    decoding.recorded = device_->record([this, &decoding] {
      const c10::NoGradGuard no_gradients;
      DecodeAttention attention(cache_, decoding.tensors, decode_kernel());
      decoding.logits = lm::logits_of(*weights_, hidden_states(decoding.tensors, attention));
    });
  }
  return decoding.logits.narrow(0, 0, sequences);
}

void Runner::copy_blocks(const std::vector<std::pair<int32_t, int32_t>>& pairs) {
  if (pairs.empty()) return;
  std::vector<int64_t> from, to;
  for (const auto& [source, target] : pairs) from.push_back(source), to.push_back(target);
  const auto device = weights_->flat.device();
  const auto sources = on_host(from).to(device), targets = on_host(to).to(device);
  for (auto* cache : {&cache_.keys, &cache_.values})
    cache->index_copy_(1, targets, cache->index_select(1, sources));
}

}  // namespace nereid::lm
