// Views, and what copies elements to other places.
#include <algorithm>
#include <limits>

#include "nereid/ops/calls_impl.h"

namespace nereid::ops {
namespace {

std::optional<Tensor> transpose(Calling& c) {
  const auto a = static_cast<size_t>(c.dim()), b = static_cast<size_t>(c.applied.form->dim2);
  if (c.applied.short_transpose && c.laid().sizes.size() == 2) return c.transpose(c.x[0], a, b, "t", {});
  return c.transpose(
      c.x[0], a, b, "transpose.int",
      {arg(c.written_dim()), arg(static_cast<int64_t>(written_axis(c.applied, c.applied.form->dim2)))});
}
std::optional<Tensor> permute(Calling& c) {
  const Laid from = c.laid();
  Laid lies;
  Sizes order;
  for (size_t d = 0; d < from.sizes.size(); ++d) {
    const auto axis = static_cast<size_t>(c.applied.form->order[d]);
    order.push_back(static_cast<int64_t>(axis));
    lies.sizes.push_back(from.sizes[axis]), lies.strides.push_back(from.strides[axis]);
  }
  return c.to.call("permute", {arg(c.x[0]), integers(order)}, c.to.look(c.x[0], std::move(lies)));
}
std::optional<Tensor> view(Calling& c) {
  Sizes dim = c.out();
  const bool reshapes =
      c.applied.op->name == "merge" ? !c.module() : c.applied.op->name == "view" && c.method();
  for (size_t d = 0; d < dim.size(); ++d)
    if (reshapes && is_inferred(c.applied, d)) dim[d] = -1;
  return c.reshape(c.x[0], c.out(), dim);
}

std::optional<Tensor> unsqueeze(Calling& c) {
  Laid lies = c.laid();
  const auto d = static_cast<size_t>(c.dim());
  const int64_t stride = d < lies.sizes.size() ? lies.sizes[d] * lies.strides[d] : 1;
  lies.sizes.insert(lies.sizes.begin() + c.dim(), 1),
      lies.strides.insert(lies.strides.begin() + c.dim(), stride);
  return c.to.call("unsqueeze", {arg(c.x[0]), arg(c.dim())}, c.to.look(c.x[0], std::move(lies)));
}
std::optional<Tensor> squeeze(Calling& c) {
  Laid lies = c.laid();
  lies.sizes.erase(lies.sizes.begin() + c.dim()), lies.strides.erase(lies.strides.begin() + c.dim());
  return c.to.call("squeeze.dim", {arg(c.x[0]), arg(c.dim())}, c.to.look(c.x[0], std::move(lies)));
}

// As much of the axis as the result has.
Tensor part(Calling& c, int64_t from) {
  Laid lies = c.laid();
  const auto axis = static_cast<size_t>(c.dim());
  lies.sizes[axis] = c.out()[axis];
  const int64_t further = from * lies.strides[axis];
  return c.to.look(c.x[0], std::move(lies), further);
}
std::optional<Tensor> slice(Calling& c) {
  const Cut& cut = c.applied.cut;
  const int64_t size = c.out()[static_cast<size_t>(c.dim())], begin = cut.before;
  if (!c.method())
    return c.to.call("narrow", {arg(c.x[0]), arg(c.written_dim()), arg(begin), arg(size)}, part(c, begin));
  const int64_t end = begin != 0 && cut.behind == 0 ? std::numeric_limits<int64_t>::max() : begin + size;
  return c.to.call("slice.Tensor", {arg(c.x[0]), arg(c.dim()), arg(begin), arg(end)}, part(c, begin));
}
std::vector<Tensor> all_parts(Calling& c, std::string_view op, int64_t dim, int64_t count) {
  const int64_t size = c.out()[static_cast<size_t>(c.dim())];
  std::vector<Tensor> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(part(c, i * size));
  std::vector<Arg> args = {arg(c.x[0]), arg(dim)};
  if (c.written_dim() != 0) args.push_back(arg(c.written_dim()));
  c.to.call(op, std::move(args), tensors(all));
  return all;
}
std::optional<Tensor> parts(Calling& c, std::string_view op, int64_t dim, int64_t count, int64_t which) {
  return all_parts(c, op, dim, count)[static_cast<size_t>(which)];
}
std::optional<Tensor> split(Calling& c) {
  return parts(c, "split.Tensor", c.out()[static_cast<size_t>(c.dim())], c.applied.cut.parts,
               c.applied.cut.part);
}
std::optional<Tensor> chunk(Calling& c) {
  return parts(c, "chunk", c.applied.cut.parts, c.applied.cut.parts, c.applied.cut.part);
}

// The chunks of an operand, dim twice but where they are given names: f of one times the other.
std::optional<Tensor> gated(Calling& c, std::string_view op) {
  const std::vector<Tensor> halves = all_parts(c, "chunk", 2, 2);
  const Laid lies[] = {c.to.laid(halves[0])};
  const Tensor gate = c.to.call(op, {arg(halves[0])}, c.to.made(elementwise(lies)));
  return c.elementwise("mul.Tensor", {gate, c.method() ? halves[1] : *parts(c, "chunk", 2, 2, 1)});
}
std::optional<Tensor> swiglu(Calling& c) { return gated(c, "silu"); }
std::optional<Tensor> geglu(Calling& c) { return gated(c, "gelu"); }
std::optional<Tensor> glu(Calling& c) {
  std::vector<Arg> args = {arg(c.x[0])};
  if (c.written_dim() != -1) args.push_back(arg(c.written_dim()));
  const Laid lies[] = {c.to.laid(part(c, 0))};
  return c.to.call("glu", std::move(args), c.to.made(elementwise(lies)));
}

// Of a concatenation: channels last where all operands look so.
Sizes joined(const Sizes& sizes, std::span<const Laid> operands) {
  return std::ranges::all_of(operands, suggests_channels_last) ? channels_last(sizes) : row_major(sizes);
}
std::vector<Arg> listed(const Calling& c) {
  std::vector<Arg> args = {tensors({c.x.begin(), c.x.end()})};
  const int64_t dim = c.written_dim();
  if (dim != 0) args.push_back(arg(dim));
  return args;
}
std::optional<Tensor> cat(Calling& c) {
  const Laid lie[] = {c.laid(0), c.laid(1)};
  return c.to.call("cat", listed(c), c.to.made({c.out(), joined(c.out(), lie)}));
}
// Before the last axis it is a concatenation that is seen otherwise, after it one of operands with an axis
// more.
std::optional<Tensor> stack(Calling& c) {
  const auto axis = static_cast<size_t>(c.dim());
  std::vector<Laid> lie;
  for (size_t i = 0; i < c.x.size(); ++i) lie.push_back(c.laid(i));
  Laid made{c.out(), {}};
  if (axis < lie[0].sizes.size()) {
    Sizes sizes = lie[0].sizes;
    sizes[axis] *= static_cast<int64_t>(lie.size());
    made.strides = strides_after_view({sizes, joined(sizes, lie)}, c.out());
  } else {
    for (Laid& each : lie) each.sizes.push_back(1), each.strides.push_back(1);
    made.strides = joined(c.out(), lie);
  }
  return c.to.call("stack", listed(c), c.to.made(std::move(made)));
}

// The second part of the last axis, negated, before the first.
Tensor rotated(Calling& c) {
  const auto last = static_cast<int64_t>(c.out().size()) - 1;
  const int64_t size = c.out().back(), middle = size / 2;
  const auto between = [&](int64_t from, int64_t to, int64_t dim) {
    Laid lies = c.laid();
    lies.sizes.back() = to - from;
    const int64_t further = from * lies.strides.back();
    return c.to.call("slice.Tensor", {arg(c.x[0]), arg(last), arg(from), arg(dim)},
                     c.to.look(c.x[0], std::move(lies), further));
  };
  const Tensor second = c.elementwise("neg", {between(middle, size, std::numeric_limits<int64_t>::max())});
  const Tensor first = between(0, middle, middle);
  const Laid lie[] = {c.to.laid(second), c.to.laid(first)};
  return c.to.call("cat", {tensors({second, first}), arg(int64_t{-1})},
                   c.to.made({c.out(), joined(c.out(), lie)}));
}
std::optional<Tensor> rotate_half(Calling& c) { return rotated(c); }
std::optional<Tensor> rope(Calling& c) {
  const Tensor plain = c.elementwise("mul.Tensor", {c.x[0], c.x[1]});
  const Tensor turned = c.elementwise("mul.Tensor", {rotated(c), c.x[2]});
  return c.elementwise("add.Tensor", {plain, turned});
}

std::optional<Tensor> pad(Calling& c) {
  const Sizes made = c.out();
  Sizes pads;
  for (size_t d = made.size(); d-- > static_cast<size_t>(c.dim());) {
    const bool own = d == static_cast<size_t>(c.dim());
    pads.push_back(own ? c.applied.cut.before : 0);
    pads.push_back(own ? c.applied.cut.behind : 0);
  }
  const Laid lies{made, suggests_channels_last(c.laid()) ? channels_last(made) : row_major(made)};
  return c.to.call("constant_pad_nd", {arg(c.x[0]), integers(pads), arg(0.0)}, c.to.made(lies));
}

std::optional<Tensor> by_index(Calling& c) {
  return c.fresh(c.applied.op->name, {arg(c.x[0]), arg(c.dim()), arg(c.x[1])}, c.out(), {},
                 c.to.type(c.x[0]));
}
std::optional<Tensor> embedding(Calling& c) {
  return c.fresh("embedding", {arg(c.own[0]), arg(c.x[0])}, c.out());
}

}  // namespace

void add_layout_records(Records& records) {
  records["flatten"] = records["merge"] = view, records["unsqueeze"] = unsqueeze,
  records["squeeze"] = squeeze;
  records["glu"] = glu, records["swiglu"] = swiglu, records["geglu"] = geglu;
  records["rotate_half"] = rotate_half, records["rope"] = rope;
  records["transpose"] = transpose, records["permute"] = permute, records["view"] = view;
  records["slice"] = slice, records["split"] = split, records["chunk"] = chunk;
  records["cat"] = cat, records["stack"] = stack, records["pad"] = pad;
  records["gather"] = records["index_select"] = by_index;
  records["embedding"] = embedding;
}

}  // namespace nereid::ops
