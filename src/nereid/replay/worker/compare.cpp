#include "nereid/replay/worker/compare.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

constexpr int64_t kChunk = int64_t{1} << 22;  // elements held in float64 at once

at::Tensor flat(const at::Tensor& tensor) {
  auto t = tensor.resolve_conj().resolve_neg();
  if (t.is_complex()) t = at::view_as_real(t);
  return t.reshape({-1});
}

at::Tensor as_double(const at::Tensor& tensor) { return tensor.to(c10::kDouble); }

double number(const at::Tensor& tensor, int64_t index) {
  return tensor.narrow(0, index, 1).to(c10::kDouble).item().toDouble();
}

std::vector<int64_t> position(int64_t index, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out(sizes.size());
  for (size_t d = sizes.size(); d-- > 0; index /= std::max<int64_t>(sizes[d], 1))
    out[d] = index % std::max<int64_t>(sizes[d], 1);
  return out;
}

// One output on its way to a verdict: flat tensors, walked in chunks.
class Comparer {
 public:
  Comparer(const OutputTensors& tensors, const Tolerance& tolerance)
      : tensors_(tensors),
        tolerance_(tolerance),
        got_(flat(tensors.got)),
        own_(flat(tensors.own)),
        truth_(flat(tensors.truth)),
        largest_(largest_finite(tensors.dtype)) {
    for (const auto& near : tensors.nearby) nearby_.push_back(flat(near));
    for (const auto& finite : tensors.finite) finite_.push_back(flat(finite));
    out_.dtype = trace::to_string(tensors.dtype);
    out_.sizes = tensors.own.sizes().vec();
    out_.elements = tensors.own.numel();
  }

  OutputComparison run() {
    if (out_.elements == 0) return out_;
    if (trace::is_integral(tensors_.dtype))
      integers();
    else if (tolerance_.rtol || tolerance_.atol)
      plain();
    else
      scaled();
    finish();
    return out_;
  }

 private:
  struct Chunk {
    int64_t first = 0;
    at::Tensor got, own, truth;
    at::Tensor defined, finite;
  };

  template <typename F>
  void for_chunks(F body) {
    for (int64_t first = 0; first < own_.numel(); first += kChunk) {
      Chunk chunk{first, {}, {}, {}, {}, {}};
      const auto size = std::min(kChunk, own_.numel() - first);
      chunk.got = as_double(got_.narrow(0, first, size));
      chunk.own = as_double(own_.narrow(0, first, size));
      chunk.truth = as_double(truth_.narrow(0, first, size));
      if (!finite_.empty()) {
        chunk.finite = agreed_on(chunk);
        chunk.defined = chunk.finite;
        body(chunk);
        continue;
      }
      // What the truth is in the dtype's range.
      const auto rounded = at::where(chunk.truth.abs().gt(largest_),
                                     chunk.truth.mul(std::numeric_limits<double>::infinity()), chunk.truth);
      const auto own_finite = at::isfinite(chunk.own), finite = at::isfinite(rounded);
      const auto same_odd =
          chunk.own.eq(rounded).logical_or(at::isnan(chunk.own).logical_and(at::isnan(rounded)));
      chunk.finite = own_finite.logical_and(finite);
      chunk.defined =
          chunk.finite.logical_or(own_finite.logical_or(finite).logical_not().logical_and(same_odd));
      body(chunk);
    }
  }

  // Where truth and own are numbers that do not hang on what the non-finite inputs are.
  at::Tensor agreed_on(const Chunk& chunk) const {
    constexpr double kAgree = 1e-6;
    auto agreed = at::isfinite(chunk.truth)
                      .logical_and(at::isfinite(chunk.own))
                      .logical_and(chunk.truth.abs().le(largest_));
    for (const auto& other : finite_) {
      const auto value = as_double(other.narrow(0, chunk.first, chunk.own.numel()));
      agreed = agreed.logical_and(value.sub(chunk.truth).abs().le(chunk.truth.abs().mul(kAgree)));
    }
    return agreed;
  }

  static at::Tensor same(const at::Tensor& a, const at::Tensor& b) {
    return a.eq(b).logical_or(at::isnan(a).logical_and(at::isnan(b)));
  }

  // Notes the wrong elements of a chunk, the first of them, and where the error is largest.
  void note(const Chunk& chunk, const at::Tensor& wrong, const at::Tensor& error) {
    const auto count = wrong.sum().item().toLong();
    const auto [largest, at] = error.max(0);
    const double value = largest.item().toDouble();
    if (worst_ < 0 || value > worst_error_) worst_error_ = value, worst_ = chunk.first + at.item().toLong();
    if (count > 0 && first_ < 0) first_ = chunk.first + wrong.to(c10::kByte).argmax().item().toLong();
    out_.wrong += count;
  }

  void integers() {
    for (int64_t first = 0; first < own_.numel(); first += kChunk) {
      const auto size = std::min(kChunk, own_.numel() - first);
      const auto got = got_.narrow(0, first, size), own = own_.narrow(0, first, size),
                 truth = truth_.narrow(0, first, size);
      auto wrong = got.ne(own).logical_and(got.ne(truth));
      for (const auto& other : finite_) wrong = wrong.logical_and(other.narrow(0, first, size).eq(truth));
      const auto error = at::where(wrong, as_double(got).sub(as_double(own)).abs(), 0.0);
      note({first, {}, {}, {}, {}, {}}, wrong, error);
      out_.max_absolute_error = std::max(out_.max_absolute_error, worst_error_);
    }
    out_.error = out_.wrong ? 1 : 0;
  }

  void plain() {
    const double rtol = tolerance_.rtol.value_or(0), atol = tolerance_.atol.value_or(0);
    for_chunks([&](const Chunk& chunk) {
      absolute(chunk);
      const auto error = chunk.got.sub(chunk.own).abs();
      const auto close = error.le(chunk.own.abs().mul(rtol).add(atol)).logical_or(same(chunk.got, chunk.own));
      const auto wrong = close.logical_not().logical_and(chunk.defined);
      note(chunk, wrong, odd_error(chunk, error));
      out_.undefined += chunk.defined.numel() - chunk.defined.sum().item().toLong();
    });
    out_.error = worst_error_;
    out_.error_limit = atol;
  }

  // An error where something finite is expected and something else came is infinite.
  at::Tensor odd_error(const Chunk& chunk, const at::Tensor& error) const {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto odd =
        at::where(same(chunk.got, chunk.own), at::zeros_like(error), at::full_like(error, infinity));
    const auto finite = at::where(at::isnan(error), at::full_like(error, infinity), error);
    return at::where(chunk.finite, finite, at::where(chunk.defined, odd, at::zeros_like(error)));
  }

  void scaled() {
    double truth_squared = 0, count = 0;
    for_chunks([&](const Chunk& chunk) {
      truth_squared += at::where(chunk.finite, chunk.truth.square(), 0.0).sum().item().toDouble();
      count += chunk.finite.sum().item().toDouble();
      out_.undefined += chunk.defined.numel() - chunk.defined.sum().item().toLong();
    });
    double scale = count > 0 ? std::sqrt(truth_squared / count) : 0;
    if (scale == 0) scale = tensors_.usual_scale;
    if (scale == 0) scale = 1;
    const double norm =
        truth_squared > 0 ? std::sqrt(truth_squared) : scale * std::sqrt(std::max(count, 1.0));

    std::vector<double> own_squared(1 + nearby_.size(), 0);
    for_chunks([&](const Chunk& chunk) {
      const auto unit = chunk.truth.abs().clamp_min(scale);
      for (size_t i = 0; i <= nearby_.size(); ++i) {
        const auto other =
            i == 0 ? chunk.own : as_double(nearby_[i - 1].narrow(0, chunk.first, chunk.own.numel()));
        const auto both = chunk.finite.logical_and(at::isfinite(other));
        const auto error = at::where(both, other.sub(chunk.truth), 0.0);
        out_.own_error = std::max(out_.own_error, error.abs().div(unit).max().item().toDouble());
        own_squared[i] += error.square().sum().item().toDouble();
      }
    });
    out_.own_norm_error = std::sqrt(*std::ranges::max_element(own_squared)) / norm;
    const double eps = epsilon(tensors_.dtype);
    out_.error_limit = tolerance_.factor * out_.own_error + floor_ulps(tensors_.dtype) * eps;
    out_.norm_limit = tolerance_.factor * out_.own_norm_error + norm_floor_ulps(tensors_.dtype) * eps;

    double squared = 0;
    for_chunks([&](const Chunk& chunk) {
      absolute(chunk);
      const auto unit = chunk.truth.abs().clamp_min(scale);
      const auto error = odd_error(chunk, chunk.got.sub(chunk.truth).abs().div(unit));
      note(chunk, error.gt(out_.error_limit), error);
      squared += at::where(chunk.finite, chunk.got.sub(chunk.truth), 0.0).square().sum().item().toDouble();
    });
    out_.error = worst_error_;
    out_.norm_error = std::sqrt(squared) / norm;
  }

  void absolute(const Chunk& chunk) {
    const auto error = at::where(chunk.finite, chunk.got.sub(chunk.truth).abs(), 0.0);
    out_.max_absolute_error = std::max(out_.max_absolute_error, error.max().item().toDouble());
    const auto relative = at::where(chunk.truth.eq(0), 0.0, error.div(chunk.truth.abs()));
    out_.max_relative_error = std::max(out_.max_relative_error, relative.max().item().toDouble());
  }

  void finish() {
    const auto sizes =
        tensors_.own.is_complex() ? at::view_as_real(tensors_.own.resolve_conj()).sizes().vec() : out_.sizes;
    const bool norm_exceeded = !(out_.norm_error <= out_.norm_limit) && !tolerance_.rtol &&
                               !tolerance_.atol && !trace::is_integral(tensors_.dtype);
    out_.agrees = out_.wrong == 0 && !norm_exceeded;
    if (out_.agrees) return;
    if (first_ >= 0) {
      out_.first_wrong = position(first_, sizes);
      out_.first_got = number(got_, first_);
      out_.first_want = number(own_, first_);
    }
    out_.worst = position(worst_, sizes);
    out_.worst_got = number(got_, worst_);
    out_.worst_want = number(own_, worst_);
    if (trace::is_integral(tensors_.dtype))
      out_.reason = fmt::format("{} of {} elements are other numbers", out_.wrong, out_.elements);
    else if (std::isinf(out_.error))
      out_.reason = fmt::format(
          "{} of {} elements are wrong, some of them not finite where the reference is, or the other way "
          "round",
          out_.wrong, out_.elements);
    else if (out_.wrong > 0)
      out_.reason = fmt::format(
          "{} of {} elements are off by more than {:.3g} of the output's scale, the worst by {:.3g}",
          out_.wrong, out_.elements, out_.error_limit, out_.error);
    else
      out_.reason = fmt::format("the error's norm is {:.3g} of the output's, more than {:.3g}",
                                out_.norm_error, out_.norm_limit);
  }

  const OutputTensors& tensors_;
  const Tolerance& tolerance_;
  at::Tensor got_, own_, truth_;
  std::vector<at::Tensor> nearby_, finite_;
  double largest_;
  int64_t first_ = -1, worst_ = -1;
  double worst_error_ = 0;
  OutputComparison out_;
};

}  // namespace

double floor_ulps(trace::DType type) {
  switch (type) {
    case trace::DType::kF32:
    case trace::DType::kC64:
      return 16;
    case trace::DType::kF64:
    case trace::DType::kC128:
      return 1024;  // float64 cannot measure its own error
    default:
      return 2;
  }
}

double norm_floor_ulps(trace::DType type) {
  switch (type) {
    case trace::DType::kF32:
    case trace::DType::kC64:
      return 4;
    case trace::DType::kF64:
    case trace::DType::kC128:
      return 256;
    default:
      return 1;
  }
}

double rms(const at::Tensor& tensor) {
  const auto t = flat(tensor);
  if (t.numel() == 0) return 0;
  double squared = 0, count = 0;
  for (int64_t first = 0; first < t.numel(); first += kChunk) {
    const auto chunk = as_double(t.narrow(0, first, std::min(kChunk, t.numel() - first)));
    const auto finite = at::isfinite(chunk);
    squared += at::where(finite, chunk.square(), 0.0).sum().item().toDouble();
    count += finite.sum().item().toDouble();
  }
  return count > 0 ? std::sqrt(squared / count) : 0;
}

OutputComparison compare(const OutputTensors& tensors, const Tolerance& tolerance) {
  return Comparer(tensors, tolerance).run();
}

}  // namespace nereid::replay
