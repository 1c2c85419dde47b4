// Rewrites calls of a trace to their canonical forms, one after the other (render/canonicalize.h says which).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/render/canonicalize.h"

namespace nereid::render {

class Canonicalizer {
 public:
  using Arg = trace::Arg;
  using Call = trace::Call;
  using Dims = std::vector<int64_t>;

  Canonicalizer(const trace::Trace& trace, const trace::Phase& forward);
  void add_canonical(const trace::Call& call);
  // The call as it is.
  void add(Call call);
  CanonicalSteps take() { return std::move(result_); }

  // -- for decompositions --
  struct Number {
    bool there = false;
    double is = 0;
  };
  static Number number(const std::vector<Arg>& args, size_t at);
  static Arg list_of(const Dims& dims);
  const Dims& sizes_of(const Arg& arg) const {
    return value(std::get<trace::TensorRef>(arg.node).value).sizes;
  }
  // A new value, contiguous, in a storage of its own (or a view's).
  Arg made(const Dims& sizes, trace::DType type, std::optional<trace::StorageId> storage = {});
  Arg made(trace::Value value);  // of a storage that there is
  // x as a tensor of these sizes, into `result` where that is given.
  Arg viewed(const Arg& x, const Dims& sizes, const Call& of, const Arg* result = nullptr);
  // A part with a result of its own, of its first argument's sizes, or with that of the whole.
  void part(std::string op, std::vector<Arg> args, Arg result, const Call& of);
  Arg part(std::string op, std::vector<Arg> args, const Call& of);
  Arg one(double x) { return filled(x, {1}); }
  Arg filled(double x, const Dims& sizes);
  static bool is_none(const Arg& arg) { return std::holds_alternative<trace::None>(arg.node); }
  // Until the next value is made.
  const trace::Value& value(trace::ValueId id) const { return result_.trace.values[static_cast<size_t>(id)]; }
  const trace::Value& value(const Arg& x) const { return value(std::get<trace::TensorRef>(x.node).value); }
  const CanonicalSteps& so_far() const { return result_; }

 private:
  using ValueId = trace::ValueId;
  static const trace::TensorRef* tensor(const Call& call, size_t at) {
    return at < call.args.size() ? std::get_if<trace::TensorRef>(&call.args[at].node) : nullptr;
  }
  // Dimensions counted from the front, or nothing where these are no dimensions of the value.
  static std::optional<Dims> dims_of(const Arg& arg, size_t rank);
  void counted_from_the_front(Call& call);
  // Decomposes an operator outside the sampler's catalogue into catalogue operators, each added as any call
  // is. False: not one of these.
  bool in_parts(const Call& call);
  // What has a number for each channel of x (its dimension 1), as x's broadcast reads it.
  Arg by_channels(const Arg& of, const Dims& x, const Call& call);
  // relu(x) + w (x - relu(x))
  bool prelu(const Call& call);
  // The first half along a dimension times the second's sigmoid.
  bool gated(const Call& call);
  // The mean, the sum, or what it is of: a loss's reduction (1, 2, 0).
  void as_reduced(const Arg& of, int64_t how, const std::function<void(Arg)>& each, const Call& call);
  static int64_t reduction_of(const Call& call, size_t at);
  // m (|x - y| - m / 2), m = min(|x - y|, delta): Huber's loss, and beta times the smooth one. One that is
  // both, as the smooth one.
  bool far_or_near(const Call& call);
  // The squares of the differences, summed or one by one; their mean is in the catalogue.
  bool squares(const Call& call);
  // Its slope is always said.
  bool softplus(const Call& call);
  // softplus(x) - x y
  bool cross_entropy_of_logits(const Call& call);
  // A variance is corrected by one; a deviation is its root.
  bool variance(const Call& call);
  // The values alone, where no step reads the indices.
  bool extremum(const Call& call);
  // One of two, by the mask: the number as a tensor.
  bool chosen(const Call& call);
  // An instance norm without weights, then these.
  bool weighed_after(const Call& call);
  // (x - mean) / sqrt(variance + epsilon), then the weights.
  bool by_running_statistics(const Call& call);
  // Weights of ones and a bias of zeros, where a norm of rows has none.
  bool with_weights(const Call& call);
  // A reduction over several dimensions, with `keepdim`, or over one counted from the end.
  bool reduced(Call& call);
  // A number as an operand: a tensor of one element.
  bool with_number(const Call& call);
  // Of two tensors the larger one first; what the smaller one has in several dimensions, all of the larger
  // one's last, as one.
  bool larger_first(const Call& call);
  // A bias of zeros, where there is none.
  bool with_bias(const Call& call);

  CanonicalSteps result_{};
};

// True where a step of the forward, or what it returns, reads this storage.
bool is_read(const CanonicalSteps& steps, trace::StorageId storage);

}  // namespace nereid::render
