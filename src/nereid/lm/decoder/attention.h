// Attention, behind one interface: what a layer asks of it, whatever keys it looks at and whichever kernel
// does it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nereid::lm {

// Where each token's document begins and where it ends: [tokens], int32, on the device.
struct Documents {
  at::Tensor starts, ends;
};

class Attention {
 public:
  virtual ~Attention() = default;
  // query: [tokens, heads, head_dim]; key, value: [tokens, key_value_heads, head_dim]; all rotated.
  // The result is [tokens, heads, head_dim]. Every token sees itself and what came before it in its sequence.
  virtual at::Tensor attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value) = 0;
  // Of a batch that attends to its own tokens alone; null where there are other keys.
  virtual const Documents* documents() { return nullptr; }
};

// Softmax over what each query may see, for one sequence: the last queries of it, and all of its keys. query:
// [queries, heads, head_dim]; key, value: [keys, key_value_heads, head_dim], keys >= queries; the last query
// sees all keys.
at::Tensor attend_causally(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

// Whether at::_flash_attention_forward takes such a query: on CUDA, in half precision, of a fitting head.
bool flash_takes(const at::Tensor& query);

// Documents one after another, none of which sees another's tokens; differentiable. `cumulative` are the
// places where documents begin, and the end of the last: [0, ..., tokens], never decreasing.
class PackedAttention : public Attention {
 public:
  PackedAttention(std::vector<int32_t> cumulative, at::Device device);
  at::Tensor attend(int64_t layer, const at::Tensor& query, const at::Tensor& key,
                    const at::Tensor& value) override;
  const Documents* documents() override;

 private:
  std::vector<int32_t> cumulative_;
  at::Device device_;
  at::Tensor on_device_;  // the same, [documents + 1] int32; made when asked for, as is documents_
  Documents documents_;
  int64_t longest_ = 0;
};

}  // namespace nereid::lm
