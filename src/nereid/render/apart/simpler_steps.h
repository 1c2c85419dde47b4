// Writes the simpler steps of a call: views, copies and calls that compute.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/render/canonicalizer.h"

namespace nereid::render {

inline constexpr double kLargestNumber = 3.4028234663852886e38;  // of float32

int64_t product(const std::vector<int64_t>& sizes);

class SimplerSteps {
 public:
  using Arg = trace::Arg;
  using Call = trace::Call;
  using Dims = std::vector<int64_t>;

  // `call` is what is taken apart.
  SimplerSteps(Canonicalizer& to, const Call& call) : to_(to), of_(call) {}

  const Call& call() const { return of_; }
  Canonicalizer& to() const { return to_; }
  Dims sizes(const Arg& x) const { return to_.value(x).sizes; }
  trace::DType type(const Arg& x) const { return to_.value(x).dtype; }
  // The tensor that is argument `at`; null where it is none.
  const Arg* tensor(size_t at) const;
  // Its integers, one for each of `count` dimensions; nothing where it has others. None, an empty list:
  // `all`.
  std::optional<Dims> integers(size_t at, size_t count, int64_t all) const;
  bool flag(size_t at, bool otherwise) const;
  // The one dimension of argument 0 that argument `at` is, counted from the front; nothing where it is
  // another thing.
  std::optional<size_t> dimension(size_t at) const;
  // A result of these sizes in the storage of a value that is a view of it.
  Arg room(const Arg& value, const Dims& sizes);

  // Views.
  Arg select(const Arg& x, size_t dim, int64_t at);
  Arg slice(const Arg& x, size_t dim, int64_t from, int64_t to, int64_t step = 1);
  Arg windows(const Arg& x, size_t dim, int64_t size, int64_t step);  // as Tensor.unfold: a dimension more
  Arg permuted(const Arg& x, const Dims& order, const Arg* result = nullptr);
  Arg transposed(const Arg& x, size_t a, size_t b, const Arg* result = nullptr);
  Arg unsqueezed(const Arg& x, size_t dim);
  Arg expanded(const Arg& x, const Dims& sizes);
  // Of a contiguous tensor, or one dimension of any as several (`sizes` of all).
  Arg viewed(const Arg& x, const Dims& sizes, const Arg* result = nullptr);
  Arg split(const Arg& x, size_t dim, int64_t outer);
  Arg flat(const Arg& x);  // of a contiguous one with over three dimensions: two, the last and the rest
  Arg parts_of_complex(const Arg& x);
  void complex_of_parts(const Arg& x, const Arg& result);

  // Copies and constants.
  Arg contiguous(const Arg& x);  // x where it is
  Arg copied(const Arg& x, const Arg* result = nullptr);
  Arg padded(const Arg& x, const std::vector<std::pair<int64_t, int64_t>>& by, double with = 0);
  Arg joined(const std::vector<Arg>& parts, size_t dim, const Arg* result = nullptr);   // cat
  Arg stacked(const std::vector<Arg>& parts, size_t dim, const Arg* result = nullptr);  // stack
  Arg flipped(const Arg& x, const Dims& dims);
  Arg cast(const Arg& x, trace::DType type, const Arg* result = nullptr);
  Arg counted(int64_t count, trace::DType type);  // 0, 1, ...
  // Integers and a number: "aten::" and `op`.
  Arg whole(const std::string& op, const Arg& x, int64_t y);
  Arg whole_product(const Arg& x, const Arg& y);
  // Of these sizes, by broadcast, contiguous.
  Arg spread(const Arg& x, const Dims& sizes);

  // What computes, in float32.
  Arg unary(const std::string& op, const Arg& x, const Arg* result = nullptr);
  Arg binary(const std::string& op, const Arg& x, const Arg& y, const Arg* result = nullptr);
  Arg scaled(const Arg& x, double by, const Arg* result = nullptr);
  Arg shifted(const Arg& x, double by, const Arg* result = nullptr);
  Arg linear(const Arg& x, const Arg& weight, const Arg* bias);
  Arg chosen(const Arg& x, const Arg& columns);  // columns of a matrix: index_select
  Arg batched_product(const Arg& x, const Arg& y);
  Arg reduced(const std::string& op, const Arg& x, int64_t dim, const Arg* result = nullptr);

 private:
  Arg made(Dims sizes, trace::DType type = trace::DType::kF32);
  Arg view(std::string op, std::vector<Arg> args, const Arg& x, Dims sizes, Dims strides, int64_t more_offset,
           const Arg* result = nullptr);
  Arg step(std::string op, std::vector<Arg> args, std::vector<std::pair<std::string, Arg>> named, Arg result);
  Arg computed(std::string op, std::vector<Arg> args, Arg result);
  static Arg of(int64_t x) { return {x}; }

  Canonicalizer& to_;
  const Call& of_;
};

}  // namespace nereid::render
