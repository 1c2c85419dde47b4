#include "nereid/render/apart/simpler_steps.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "nereid/render/subgraph_source.h"

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

Arg named_type(trace::DType type) { return {trace::Named{"dtype", std::string(trace::to_string(type))}}; }
Arg gpu() { return {trace::Named{"device", "cuda"}}; }
Arg contiguous_format() { return {trace::Named{"memory_format", "contiguous_format"}}; }

}  // namespace

int64_t product(const Dims& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

const Arg* SimplerSteps::tensor(size_t at) const {
  const bool there = at < of_.args.size() && std::holds_alternative<trace::TensorRef>(of_.args[at].node);
  return there ? &of_.args[at] : nullptr;
}

std::optional<Dims> SimplerSteps::integers(size_t at, size_t count, int64_t all) const {
  if (at >= of_.args.size() || Canonicalizer::is_none(of_.args[at])) return Dims(count, all);
  const auto* one = std::get_if<int64_t>(&of_.args[at].node);
  if (one != nullptr) return Dims(count, *one);
  const auto* list = std::get_if<trace::List>(&of_.args[at].node);
  if (list == nullptr) return std::nullopt;
  if (list->items.empty()) return Dims(count, all);
  Dims found;
  for (const auto& item : list->items) {
    const auto* x = std::get_if<int64_t>(&item.node);
    if (x == nullptr) return std::nullopt;
    found.push_back(*x);
  }
  if (found.size() == 1) found.resize(count, found.front());
  if (found.size() != count) return std::nullopt;
  return found;
}

bool SimplerSteps::flag(size_t at, bool otherwise) const {
  const auto* is = at < of_.args.size() ? std::get_if<bool>(&of_.args[at].node) : nullptr;
  return is == nullptr ? otherwise : *is;
}

std::optional<size_t> SimplerSteps::dimension(size_t at) const {
  const auto given = integers(at, 1, 0);
  if (tensor(0) == nullptr || at >= of_.args.size() || Canonicalizer::is_none(of_.args[at]) || !given)
    return std::nullopt;
  if (const auto* list = std::get_if<trace::List>(&of_.args[at].node); list != nullptr && list->items.empty())
    return std::nullopt;
  const auto rank = static_cast<int64_t>(sizes(*tensor(0)).size());
  const int64_t dim = given->front() < 0 ? given->front() + rank : given->front();
  if (dim < 0 || dim >= rank) return std::nullopt;
  return static_cast<size_t>(dim);
}

Arg SimplerSteps::room(const Arg& value, const Dims& sizes) {
  return to_.made(sizes, trace::DType::kF32, to_.value(value).storage);
}

Arg SimplerSteps::made(Dims sizes, trace::DType type) { return to_.made(sizes, type); }

Arg SimplerSteps::step(std::string op, std::vector<Arg> args, std::vector<std::pair<std::string, Arg>> named,
                       Arg result) {
  to_.add({.op = std::move(op),
           .args = std::move(args),
           .kwargs = std::move(named),
           .result = result,
           .parts = {},
           .place = of_.place});
  return result;
}

Arg SimplerSteps::computed(std::string op, std::vector<Arg> args, Arg result) {
  to_.part(std::move(op), std::move(args), result, of_);
  return result;
}

Arg SimplerSteps::view(std::string op, std::vector<Arg> args, const Arg& x, Dims sizes, Dims strides,
                       int64_t more_offset, const Arg* result) {
  if (result != nullptr) return step(std::move(op), std::move(args), {}, *result);
  trace::Value v = to_.value(x);
  v.sizes = std::move(sizes), v.strides = std::move(strides), v.offset += more_offset;
  return step(std::move(op), std::move(args), {}, to_.made(std::move(v)));
}

Arg SimplerSteps::select(const Arg& x, size_t dim, int64_t at) {
  const trace::Value v = to_.value(x);
  Dims sizes = v.sizes, strides = v.strides;
  const auto d = static_cast<std::ptrdiff_t>(dim);
  sizes.erase(sizes.begin() + d), strides.erase(strides.begin() + d);
  return view("aten::select.int", {x, of(d), of(at)}, x, sizes, strides, at * v.strides[dim]);
}

Arg SimplerSteps::slice(const Arg& x, size_t dim, int64_t from, int64_t to, int64_t step) {
  const trace::Value v = to_.value(x);
  Dims sizes = v.sizes, strides = v.strides;
  if (from == 0 && to == sizes[dim] && step == 1) return x;
  sizes[dim] = (to - from + step - 1) / step, strides[dim] *= step;
  return view("aten::slice.Tensor", {x, of(static_cast<int64_t>(dim)), of(from), of(to), of(step)}, x, sizes,
              strides, from * v.strides[dim]);
}

Arg SimplerSteps::windows(const Arg& x, size_t dim, int64_t size, int64_t step) {
  const trace::Value v = to_.value(x);
  Dims sizes = v.sizes, strides = v.strides;
  sizes.push_back(size), strides.push_back(v.strides[dim]);
  sizes[dim] = (v.sizes[dim] - size) / step + 1, strides[dim] *= step;
  return view("aten::unfold", {x, of(static_cast<int64_t>(dim)), of(size), of(step)}, x, sizes, strides, 0);
}

Arg SimplerSteps::permuted(const Arg& x, const Dims& order, const Arg* result) {
  const trace::Value v = to_.value(x);
  Dims sizes, strides;
  for (const int64_t d : order)
    sizes.push_back(v.sizes[static_cast<size_t>(d)]), strides.push_back(v.strides[static_cast<size_t>(d)]);
  return view("aten::permute", {x, Canonicalizer::list_of(order)}, x, sizes, strides, 0, result);
}

Arg SimplerSteps::transposed(const Arg& x, size_t a, size_t b, const Arg* result) {
  Dims order(sizes(x).size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[a], order[b]);
  return permuted(x, order, result);
}

Arg SimplerSteps::unsqueezed(const Arg& x, size_t dim) {
  const trace::Value v = to_.value(x);
  Dims sizes = v.sizes, strides = v.strides;
  const auto d = static_cast<std::ptrdiff_t>(dim);
  const int64_t stride = dim < sizes.size() ? sizes[dim] * strides[dim] : 1;
  sizes.insert(sizes.begin() + d, 1), strides.insert(strides.begin() + d, stride);
  return view("aten::unsqueeze", {x, of(d)}, x, sizes, strides, 0);
}

Arg SimplerSteps::expanded(const Arg& x, const Dims& sizes) {
  const trace::Value v = to_.value(x);
  if (v.sizes == sizes) return x;
  Dims strides(sizes.size() - v.sizes.size(), 0);
  for (size_t d = 0; d < v.sizes.size(); ++d)
    strides.push_back(v.sizes[d] == sizes[strides.size()] ? v.strides[d] : 0);
  return view("aten::expand", {x, Canonicalizer::list_of(sizes)}, x, sizes, strides, 0);
}

Arg SimplerSteps::viewed(const Arg& x, const Dims& sizes, const Arg* result) {
  if (result == nullptr && this->sizes(x) == sizes) return x;
  Dims strides(sizes.size());
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  return view("aten::view", {x, Canonicalizer::list_of(sizes)}, x, sizes, strides, 0, result);
}

Arg SimplerSteps::split(const Arg& x, size_t dim, int64_t outer) {
  const trace::Value v = to_.value(x);
  Dims sizes = v.sizes, strides = v.strides;
  const int64_t inner = sizes[dim] / outer;
  const auto d = static_cast<std::ptrdiff_t>(dim);
  sizes[dim] = inner, sizes.insert(sizes.begin() + d, outer);
  strides.insert(strides.begin() + d, inner * v.strides[dim]);
  return view("aten::view", {x, Canonicalizer::list_of(sizes)}, x, sizes, strides, 0);
}

Arg SimplerSteps::flat(const Arg& x) {
  const Dims sizes = this->sizes(x);
  if (sizes.size() <= 3) return x;
  return viewed(x, {product(sizes) / sizes.back(), sizes.back()});
}

Arg SimplerSteps::parts_of_complex(const Arg& x) {
  trace::Value v = to_.value(x);
  for (int64_t& stride : v.strides) stride *= 2;
  v.sizes.push_back(2), v.strides.push_back(1), v.offset *= 2, v.dtype = trace::DType::kF32;
  return step("aten::view_as_real", {x}, {}, to_.made(std::move(v)));
}

void SimplerSteps::complex_of_parts(const Arg& x, const Arg& result) {
  step("aten::view_as_complex", {x}, {}, result);
}

Arg SimplerSteps::contiguous(const Arg& x) { return is_contiguous(to_.value(x)) ? x : copied(x); }

Arg SimplerSteps::copied(const Arg& x, const Arg* result) {
  const trace::Value v = to_.value(x);
  return step("aten::clone", {x}, {{"memory_format", contiguous_format()}},
              result != nullptr ? *result : made(v.sizes, v.dtype));
}

Arg SimplerSteps::padded(const Arg& x, const std::vector<std::pair<int64_t, int64_t>>& by, double with) {
  if (std::ranges::all_of(by, [](const auto& both) { return both.first == 0 && both.second == 0; }))
    return contiguous(x);
  Dims sizes = this->sizes(x), pads;
  for (size_t d = by.size(); d-- > 0;) {
    sizes[d] += by[d].first + by[d].second;
    pads.push_back(by[d].first), pads.push_back(by[d].second);
  }
  const Arg from = contiguous(x);
  return step("aten::constant_pad_nd", {from, Canonicalizer::list_of(pads), {with}}, {}, made(sizes));
}

Arg SimplerSteps::joined(const std::vector<Arg>& parts, size_t dim, const Arg* result) {
  if (parts.size() == 1 && result == nullptr) return parts[0];
  Dims sizes = this->sizes(parts[0]);
  sizes[dim] = 0;
  for (const Arg& x : parts) sizes[dim] += this->sizes(x)[dim];
  return step("aten::cat", {{trace::List{parts}}, of(static_cast<int64_t>(dim))}, {},
              result != nullptr ? *result : made(sizes, type(parts[0])));
}

Arg SimplerSteps::stacked(const std::vector<Arg>& parts, size_t dim, const Arg* result) {
  Dims sizes = this->sizes(parts[0]);
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(dim), static_cast<int64_t>(parts.size()));
  return step("aten::stack", {{trace::List{parts}}, of(static_cast<int64_t>(dim))}, {},
              result != nullptr ? *result : made(sizes));
}

Arg SimplerSteps::flipped(const Arg& x, const Dims& dims) {
  return step("aten::flip", {x, Canonicalizer::list_of(dims)}, {}, made(sizes(x)));
}

Arg SimplerSteps::cast(const Arg& x, trace::DType to, const Arg* result) {
  if (result == nullptr && type(x) == to) return x;
  return step("aten::_to_copy", {x}, {{"dtype", named_type(to)}},
              result != nullptr ? *result : made(sizes(x), to));
}

Arg SimplerSteps::counted(int64_t count, trace::DType type) {
  return step("aten::arange", {of(count)}, {{"dtype", named_type(type)}, {"device", gpu()}},
              made({count}, type));
}

Arg SimplerSteps::whole(const std::string& op, const Arg& x, int64_t y) {
  return step("aten::" + op, {x, of(y)}, {}, made(sizes(x), type(x)));
}

Arg SimplerSteps::whole_product(const Arg& x, const Arg& y) {
  return step("aten::mul.Tensor", {x, y}, {}, made(sizes(x), type(x)));
}

Arg SimplerSteps::spread(const Arg& x, const Dims& to) {
  return sizes(x) == to ? contiguous(x) : copied(expanded(x, to));
}

Arg SimplerSteps::unary(const std::string& op, const Arg& x, const Arg* result) {
  return computed("aten::" + op, {x}, result != nullptr ? *result : made(sizes(x)));
}

Arg SimplerSteps::binary(const std::string& op, const Arg& x, const Arg& y, const Arg* result) {
  const std::string overload = op == "maximum" || op == "minimum" ? "" : ".Tensor";
  return computed("aten::" + op + overload, {x, y}, result != nullptr ? *result : made(sizes(x)));
}

Arg SimplerSteps::scaled(const Arg& x, double by, const Arg* result) {
  return binary("mul", x, to_.one(by), result);
}

Arg SimplerSteps::shifted(const Arg& x, double by, const Arg* result) {
  return binary("add", x, to_.one(by), result);
}

Arg SimplerSteps::linear(const Arg& x, const Arg& weight, const Arg* bias) {
  const int64_t rows = sizes(x)[0], columns = sizes(weight)[0];
  const Arg plus = bias != nullptr ? *bias : to_.filled(0, {columns});
  return computed("aten::linear", {x, weight, plus}, made({rows, columns}));
}

Arg SimplerSteps::chosen(const Arg& x, const Arg& columns) {
  return computed("aten::index_select", {x, of(1), columns}, made({sizes(x)[0], sizes(columns)[0]}));
}

Arg SimplerSteps::batched_product(const Arg& x, const Arg& y) {
  return computed("aten::bmm", {x, y}, made({sizes(x)[0], sizes(x)[1], sizes(y)[2]}));
}

Arg SimplerSteps::reduced(const std::string& op, const Arg& x, int64_t dim, const Arg* result) {
  Dims left = sizes(x);
  left.erase(left.begin() + dim);
  return computed("aten::" + op, {x, Canonicalizer::list_of({dim})},
                  result != nullptr ? *result : made(left));
}

}  // namespace nereid::render
