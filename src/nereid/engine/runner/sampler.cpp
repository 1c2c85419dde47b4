#include "nereid/engine/runner/sampler.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>


#include "nereid/base/check.h"
#include "nereid/engine/runner/uniform.h"

namespace nereid::engine {
namespace {

// One number a row, as a column on the device: [rows, 1].
template <typename T, typename F>
at::Tensor column(const std::vector<DrawParameters>& parameters, const std::vector<int64_t>& rows, at::Device device, F&& f) {
  std::vector<T> numbers;
  for (const int64_t row : rows) numbers.push_back(static_cast<T>(f(parameters[static_cast<size_t>(row)])));
  return at::tensor(numbers).unsqueeze(1).to(device);
}

struct Picked {
  at::Tensor tokens;    // [rows], int64
  at::Tensor logprobs;  // [rows], float64, under the distribution that was drawn from
};

// weights: [rows, n], float64, not scaled; uniforms: [rows, 1]. The first place whose running sum exceeds the uniform's share of all: it has a weight.
Picked invert(const at::Tensor& weights, const at::Tensor& uniforms) {
  const auto sums = weights.cumsum(1);
  const auto totals = sums.slice(1, -1);  // [rows, 1]
  const auto places = at::searchsorted(sums, uniforms * totals, /*out_int32=*/false, /*right=*/true).clamp_max_(weights.size(1) - 1);
  return {places.squeeze(1), (weights.gather(1, places) / totals).log().squeeze(1)};
}

// logits: [rows, vocab], float32.
Picked draw_from_all(const at::Tensor& logits, const at::Tensor& temperatures, const at::Tensor& uniforms) {
  return invert((logits.to(at::kDouble) / temperatures).softmax(1), uniforms);
}

Picked draw_from_cut(const at::Tensor& logits, const at::Tensor& temperatures, const at::Tensor& uniforms, const at::Tensor& top_k, const at::Tensor& top_p,
                     const at::Tensor& min_p) {
  const auto [sorted, order] = logits.sort(/*stable=*/true, /*dim=*/1, /*descending=*/true);
  auto weights = (sorted.to(at::kDouble) / temperatures).softmax(1);
  weights.masked_fill_(at::arange(weights.size(1), logits.options().dtype(at::kLong)).unsqueeze(0) >= top_k, 0);
  // The share of those before a token decides whether it is still needed; the first always is.
  const auto before = weights.cumsum(1) - weights;
  weights.masked_fill_(before >= top_p * weights.sum(1, /*keepdim=*/true), 0);
  weights.masked_fill_(weights < min_p * weights.slice(1, 0, 1), 0);
  auto picked = invert(weights, uniforms);
  picked.tokens = order.gather(1, picked.tokens.unsqueeze(1)).squeeze(1);
  return picked;
}

}  // namespace

Drawn draw(const at::Tensor& given, const std::vector<DrawParameters>& parameters) {
  const c10::NoGradGuard no_gradients;
  NEREID_CHECK(given.dim() == 2 && given.size(0) == static_cast<int64_t>(parameters.size()), "logits of {} rows, got {}", parameters.size(), given.size(0));
  const at::Tensor logits = given.to(at::kFloat);
  const auto device = logits.device();
  std::vector<int64_t> greedy, whole, cut;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& p = parameters[i];
    auto& kind = p.temperature <= 0 ? greedy : p.top_k > 0 || p.top_p < 1 || p.min_p > 0 ? cut : whole;
    kind.push_back(static_cast<int64_t>(i));
  }
  auto tokens = at::empty({logits.size(0)}, logits.options().dtype(at::kLong));
  auto drawn_logprobs = at::full({logits.size(0)}, 0.0, logits.options().dtype(at::kDouble));
  const auto rows_of = [&](const std::vector<int64_t>& rows) { return at::tensor(rows).to(device); };
  if (!greedy.empty()) {
    const auto rows = rows_of(greedy);
    tokens.index_copy_(0, rows, logits.index_select(0, rows).argmax(1));
  }
  for (const auto* kind : {&whole, &cut}) {
    if (kind->empty()) continue;
    const auto rows = rows_of(*kind);
    const auto own = kind->size() == parameters.size() ? logits : logits.index_select(0, rows);
    const auto of = [&](auto f) { return column<double>(parameters, *kind, device, f); };
    const auto temperatures = of([](const auto& p) { return p.temperature; });
    const auto uniforms = of([](const auto& p) { return uniform_at(p.seed, p.index); });
    const auto picked =
        kind == &whole
            ? draw_from_all(own, temperatures, uniforms)
            : draw_from_cut(own, temperatures, uniforms,
                            column<int64_t>(parameters, *kind, device, [&](const auto& p) { return p.top_k > 0 ? p.top_k : logits.size(1); }),
                            of([](const auto& p) { return p.top_p; }), of([](const auto& p) { return p.min_p; }));
    tokens.index_copy_(0, rows, picked.tokens);
    drawn_logprobs.index_copy_(0, rows, picked.logprobs);
  }
  const auto logprobs = logits.gather(1, tokens.unsqueeze(1)).squeeze(1) - logits.logsumexp(1);

  // One transfer for all three.
  Drawn drawn;
  std::vector<at::Tensor> parts = {tokens.to(at::kDouble), logprobs.to(at::kDouble), drawn_logprobs};
  const auto host = at::stack(parts).cpu();
  const double* numbers = host.const_data_ptr<double>();
  const size_t n = parameters.size();
  for (size_t i = 0; i < n; ++i) {
    drawn.tokens.push_back(static_cast<int64_t>(numbers[i]));
    drawn.logprobs.push_back(static_cast<float>(numbers[n + i]));
    drawn.drawn_logprobs.push_back(static_cast<float>(numbers[2 * n + i]));
  }
  return drawn;
}

}  // namespace nereid::engine
