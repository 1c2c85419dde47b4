#include "nereid/replay/worker/order_sensitivity.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNearlyLargest = 0.99 * std::numeric_limits<float>::max();

struct Given {
  const c10::OperatorHandle& op;
  const torch::jit::Stack& arguments;

  const c10::IValue* operator()(std::string_view name) const {
    const auto index = op.schema().argumentIndexWithName(name);
    return index ? &arguments[static_cast<size_t>(*index)] : nullptr;
  }
};

// NaN for rows whose query is no number, or of whose scores one is none: PyTorch has zeros for them here and
// NaN there. Where that is of keys or values that a mask hides, or a score overflows on its way, or all of a
// row are minus infinity, right kernels have numbers as well as NaN: what is NaN becomes a number there, and
// a number NaN.
void poison_attention(const Given& given, at::Tensor& result) {
  constexpr int64_t kMaxScores = int64_t{1} << 26;
  const auto query = given("query")->toTensor();
  auto key = given("key")->toTensor(), value = given("value")->toTensor();
  result = result.masked_fill(query.isfinite().logical_not().any(-1, true), kNan);
  if (query.numel() / query.size(-1) * key.size(-2) > kMaxScores) return;
  if (query.dim() > 2 && key.size(-3) != query.size(-3))
    for (at::Tensor* shared : {&key, &value})
      *shared = shared->repeat_interleave(query.size(-3) / shared->size(-3), shared->dim() - 3);
  const auto size = [](const at::Tensor& tensor) { return tensor.abs().nan_to_num(0, 0, 0); };
  const auto scores = query.matmul(key.transpose(-2, -1));
  const auto overflows = size(query).matmul(size(key).transpose(-2, -1)).gt(kNearlyLargest);
  const auto odd = scores.isnan();

  const auto *mask = given("attn_mask"), *causal = given("is_causal");
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  auto hidden = at::zeros(scores.sizes(), scores.options().dtype(c10::kBool));
  if (causal != nullptr && causal->toBool()) hidden = at::ones(scores.sizes(), hidden.options()).triu(1);
  if (mask != nullptr && mask->isTensor()) {
    const auto shown = mask->toTensor();
    hidden = hidden.logical_or(shown.scalar_type() == c10::kBool ? shown.logical_not() : shown.eq(kLowest));
  }
  const auto seen = hidden.logical_not();
  const auto flip = [&](const at::Tensor& where) {
    const auto lost = result.isnan();
    result = result.masked_fill(where.logical_and(lost.logical_not()), kNan)
                 .masked_fill(where.logical_and(lost), 0);
  };
  const auto spoilt = odd.logical_and(seen).any(-1, true);
  result = result.masked_fill(spoilt, kNan);
  const auto none_left = hidden.logical_or(scores.eq(kLowest)).all(-1, true);
  // A mask that is added makes NaN of infinity.
  const auto either = odd.logical_or(scores.eq(-kLowest))
                          .logical_and(hidden)
                          .logical_or(overflows)
                          .any(-1, true)
                          .logical_or(none_left);
  flip(either.logical_and(spoilt.logical_not()));
  if (!hidden.any().item().toBool()) return;
  const auto odd_values = value.isfinite().logical_not().to(c10::kDouble);
  const auto meets_odd = [&](const at::Tensor& keys) {
    return keys.to(c10::kDouble).matmul(odd_values).gt(0);
  };
  result = result.masked_fill(meets_odd(seen), kNan);
  flip(meets_odd(hidden)
           .logical_and(meets_odd(seen).logical_not())
           .logical_and(spoilt.logical_or(either).logical_not()));
}

// Squares are summed: PyTorch does so in float64 on the CPU and in float32 elsewhere.
void poison_squares(const Given& given, at::Tensor& result) {
  const auto& name = given.op.schema().name();
  auto squares = name == "aten::var" ? result : result.square();
  if (name != "aten::linalg_vector_norm")
    squares = squares.mul(static_cast<double>(given("self")->toTensor().numel()) /
                          static_cast<double>(result.numel()));
  result = result.masked_fill(squares.gt(kNearlyLargest).logical_and(result.isfinite()), kNan);
  if (name == "aten::linalg_vector_norm") return;
  // Of equal numbers the deviation is 0 where their mean is not rounded.
  const auto *over = given("dim"), *keep = given("keepdim");
  const auto largest = given("self")->toTensor().abs().amax(
      over != nullptr && over->isIntList() ? over->toIntVector() : std::vector<int64_t>(),
      keep != nullptr && keep->toBool());
  result = result.masked_fill(result.eq(0).logical_and(largest.gt(0)), kNan);
}

// All of a transposed convolution's channel whose weights are not all finite.
void poison_channels(const Given& given, at::Tensor& result) {
  const auto& name = given.op.schema().name();
  const auto *weights = given("weight"), *groups = given("groups"), *transposed = given("transposed");
  const bool classes =
      transposed != nullptr ? transposed->toBool() : name.starts_with("aten::conv_transpose");
  if (!classes || weights == nullptr || groups == nullptr) return;
  const auto weight = weights->toTensor();  // [in, out / groups, taps...]
  const auto group = groups->toInt();
  const auto odd = weight.isfinite().logical_not().reshape(
      {group, weight.size(0) / group, weight.size(1), weight.numel() / (weight.size(0) * weight.size(1))});
  std::vector<int64_t> channels(static_cast<size_t>(weight.dim() - 1), 1);
  channels[0] = group * weight.size(1);
  const auto spoilt = odd.any(3).any(1).reshape(channels);
  // [out, 1...] against [batch, out, places...], or [out, places...]
  result = result.masked_fill(spoilt, kNan);
}

// Products of matrices and convolutions: a kernel may split factors into parts (three TF32 or bf16 products
// for a float32 one), and of an infinite factor the parts' products are infinities of either sign.
bool is_product(std::string_view name) {
  return name != "aten::sum" && name != "aten::mean" && name != "aten::cumsum";
}

void poison_sums(const Given& given, at::Tensor& result) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const bool product = is_product(given.op.schema().name());
  auto sizes = given.arguments;
  for (auto& each : sizes) {
    if (!each.isTensor() || each.toTensor().scalar_type() != c10::kDouble) continue;
    const auto size = each.toTensor().abs();
    each = product ? size.masked_fill(size.gt(kNearlyLargest), kInfinite) : size;
  }
  given.op.callBoxed(sizes);
  auto total = sizes[0].toTensor();
  const auto* summed = given("self");
  if (given.op.schema().name() == "aten::mean" && summed != nullptr)
    total = total.mul(static_cast<double>(summed->toTensor().numel()) / static_cast<double>(result.numel()));
  // An infinite term makes its sum infinite in every order, but not in parts (NaN: it meets a zero).
  const auto hangs = product ? total.le(kNearlyLargest).logical_not()
                             : total.gt(kNearlyLargest).logical_and(total.isfinite());
  result = result.masked_fill(hangs, kNan);
}

// The elements of rows of factors [rows, n] whose product hangs on the order of multiplying in float32: the
// factors of some run of neighbours, up to the element, overflow or underflow, and the whole does not do so
// in every order. [rows, n] of bool.
at::Tensor depends_on_runs(const at::Tensor& factors) {
  constexpr double kMaxBits = 127.98, kMinBits = -126;  // of float32, whose subnormals a GPU may flush
  constexpr double kBeyond = 1e6;                       // bits that stand for zero and for infinity
  const auto sizes = factors.abs();
  const auto bits = sizes.log2().clamp(-kBeyond, kBeyond).nan_to_num(0).cumsum(1);
  const auto largest = std::get<0>(bits.sub(std::get<0>(bits.cummin(1)).clamp_max(0)).cummax(1));
  const auto smallest = std::get<0>(bits.sub(std::get<0>(bits.cummax(1)).clamp_min(0)).cummin(1));
  const auto over = largest.gt(kMaxBits), under = smallest.lt(kMinBits);
  const auto met = [](const at::Tensor& which) { return which.to(c10::kByte).cumsum(1).gt(0); };
  const auto nan =
      met(sizes.isnan())
          .logical_or(met(sizes.eq(0)).logical_and(met(sizes.eq(std::numeric_limits<double>::infinity()))));
  return over.logical_and(under.logical_or(bits.le(kMaxBits)))
      .logical_or(under.logical_and(bits.gt(kMinBits)))
      .logical_and(nan.logical_not());
}

// Rows of neighbours as threads take them that go through a row in steps of `stride`.
at::Tensor strided(const at::Tensor& rows, int64_t stride) {
  std::vector<at::Tensor> parts;
  for (int64_t first = 0; first < stride; ++first)
    parts.push_back(rows.slice(1, first, std::nullopt, stride));
  return at::cat(parts, 1);
}

// Of each row of factors [rows, n]: the products of all (a reduction also multiplies what threads take in
// steps of a power of two), or of those up to each element. [rows] or [rows, n] of bool.
at::Tensor depends_on_order(const at::Tensor& rows, bool running) {
  constexpr int64_t kLongestStride = 1024;
  const auto length = rows.size(1);
  auto hangs = depends_on_runs(rows);
  if (running) return hangs;
  hangs = hangs.select(1, length - 1);
  for (int64_t stride = 2; stride <= std::min(kLongestStride, length / 2); stride *= 2)
    hangs = hangs.logical_or(depends_on_runs(strided(rows, stride)).select(1, length - 1));
  return hangs;
}

void poison_products(const Given& given, at::Tensor& result) {
  constexpr int64_t kPart = int64_t{1} << 22;  // elements: what is made on the way is no larger
  const auto* dim = given("dim");
  const bool running = given.op.schema().name() == "aten::cumprod";
  auto factors = given("self")->toTensor();
  if (factors.numel() == 0) return;
  if (dim == nullptr || factors.dim() == 0) factors = factors.reshape({-1});
  const auto along = dim == nullptr ? 0 : dim->toInt();
  const auto moved = factors.movedim(along, -1);
  const auto length = moved.size(-1), count = moved.numel() / length;
  const auto rows = moved.reshape({count, length});
  std::vector<at::Tensor> parts;
  const auto step = std::max<int64_t>(1, kPart / length);
  for (int64_t first = 0; first < count; first += step)
    parts.push_back(depends_on_order(rows.narrow(0, first, std::min(step, count - first)), running));
  auto hangs = at::cat(parts, 0);
  if (running) hangs = hangs.view(moved.sizes()).movedim(-1, along);
  // What is NaN becomes a number, so that it differs too.
  result = at::where(hangs.reshape(result.sizes()), at::where(result.isnan(), 0.0, kNan), result);
}

}  // namespace

void invalidate_order_sensitive(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                                at::Tensor& result) {
  if (result.scalar_type() != c10::kDouble || result.numel() == 0) return;
  const Given given{op, arguments};
  const auto& name = op.schema().name();
  if (name == "aten::scaled_dot_product_attention") return poison_attention(given, result);
  if (name == "aten::prod" || name == "aten::cumprod") return poison_products(given, result);
  if (name == "aten::std" || name == "aten::var" || name == "aten::linalg_vector_norm")
    return poison_squares(given, result);
  poison_sums(given, result);
  poison_channels(given, result);
}

}  // namespace nereid::replay
