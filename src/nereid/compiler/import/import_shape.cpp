// The same elements in another order, repeated, concatenated or among zeros: no work but where to read.
#include <algorithm>
#include <numeric>

#include "nereid/compiler/import/import.h"

namespace nereid::compiler {
namespace {

// The result's element is the element of `x` at `at`.
Status moved(Importer& import, trace::ValueId x, const std::vector<Index>& at) {
  return import.define(import.results().at(0), import.read(x, at, import.result().sizes),
                       short_name(import.call().op));
}

using Where = std::function<std::vector<Index>(Importer&, const TracedTensor& x, const Extents& sizes)>;
OperatorImport moves(Where where) {
  return [where](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    if (!x) return import.cannot("expected a tensor");
    return moved(import, *x, where(import, import.value(*x), import.result().sizes));
  };
}

std::vector<Index> flip(Importer& import, const TracedTensor& x, const Extents&) {
  auto at = dimensions(x.sizes.size());
  for (const int64_t axis : import.integers(import.arg(1, "dims"))) {
    const size_t d = axis_of(axis, at.size());
    at[d] = Index(x.sizes[d] - 1) - Index::dimension(static_cast<int>(d));
  }
  return at;
}

std::vector<Index> roll(Importer& import, const TracedTensor& x, const Extents& sizes) {
  const auto shifts = import.integers(import.arg(1, "shifts")), axes = import.integers(import.arg(2, "dims"));
  auto at = dimensions(x.sizes.size());
  if (axes.empty()) {
    Index linear;
    const auto strides = row_major(x.sizes);
    for (size_t d = 0; d < at.size(); ++d) linear = linear + at[d] * strides[d];
    const Size count = max(element_count(x.sizes), 1);
    return unravel(remainder(linear + Index(count - shifts.at(0) % count), count, sizes), x.sizes, sizes);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t d = axis_of(axes[i], at.size());
    const Size size = max(x.sizes[d], 1);
    at[d] = remainder(at[d] + Index(size - shifts.at(i) % size), size, sizes);
  }
  return at;
}

std::vector<Index> repeat(Importer&, const TracedTensor& x, const Extents& sizes) {
  const size_t missing = sizes.size() - x.sizes.size();
  std::vector<Index> at;
  for (size_t d = 0; d < x.sizes.size(); ++d)
    at.push_back(remainder(Index::dimension(static_cast<int>(missing + d)), max(x.sizes[d], 1), sizes));
  return at;
}

// k quarter turns in the plane of two dimensions.
std::vector<Index> rot90(Importer& import, const TracedTensor& x, const Extents&) {
  const int64_t k = (import.integer(import.arg(1, "k"), 1) % 4 + 4) % 4;
  auto axes = import.integers(import.arg(2, "dims"));
  if (axes.size() != 2) axes = {0, 1};
  auto at = dimensions(x.sizes.size());
  const size_t a = axis_of(axes[0], at.size()), b = axis_of(axes[1], at.size());
  const Index i = at[a], j = at[b];
  if (k == 1 || k == 3) std::swap(at[a], at[b]);
  if (k == 1 || k == 2) at[b] = Index(x.sizes[b] - 1) - (k == 1 ? i : j);
  if (k == 2 || k == 3) at[a] = Index(x.sizes[a] - 1) - (k == 3 ? j : i);
  return at;
}

// [..., c r r, h, w] as [..., c, h r, w r], and back.
std::vector<Index> pixel_shuffle(Importer& import, const TracedTensor& x, const Extents& sizes) {
  const int64_t r = import.integer(import.arg(1, "upscale_factor"), 1);
  const size_t rank = x.sizes.size();
  auto at = dimensions(rank);
  const Index h = at[rank - 2], w = at[rank - 1];
  at[rank - 3] = at[rank - 3] * (r * r) + remainder(h, r, sizes) * r + remainder(w, r, sizes);
  at[rank - 2] = quotient(h, r, sizes);
  at[rank - 1] = quotient(w, r, sizes);
  return at;
}

std::vector<Index> pixel_unshuffle(Importer& import, const TracedTensor& x, const Extents& sizes) {
  const int64_t r = import.integer(import.arg(1, "downscale_factor"), 1);
  const size_t rank = x.sizes.size();
  auto at = dimensions(rank);
  const Index c = at[rank - 3];
  at[rank - 3] = quotient(c, r * r, sizes);
  at[rank - 2] = at[rank - 2] * r + remainder(quotient(c, r, sizes), r, sizes);
  at[rank - 1] = at[rank - 1] * r + remainder(c, r, sizes);
  return at;
}

std::vector<Index> channel_shuffle(Importer& import, const TracedTensor& x, const Extents& sizes) {
  const int64_t groups = import.integer(import.arg(1, "groups"), 1);
  const Size each = x.sizes[1] / groups;
  auto at = dimensions(x.sizes.size());
  at[1] = remainder(at[1], groups, sizes) * each + quotient(at[1], groups, sizes);
  return at;
}

// Equal parts that are slices of one tensor at equal distances.
std::optional<ExprId> one_load(Importer& import, const std::vector<trace::ValueId>& parts, size_t axis,
                               bool stacked) {
  if (parts.size() < 2) return std::nullopt;
  const Extents sizes = import.result().sizes, first = import.value(parts[0]).sizes;
  auto at = dimensions(sizes.size());
  if (stacked) at.erase(at.begin() + static_cast<ptrdiff_t>(axis));
  const Size length = stacked ? Size(1) : first.at(axis);
  Extents own = sizes;
  own[axis] = length;
  std::vector<ExprId> elements;
  for (const trace::ValueId id : parts) {
    if (import.value(id).sizes != first || import.value(id).dtype != import.value(parts[0]).dtype)
      return std::nullopt;
    elements.push_back(import.read(id, at, own));
  }
  const ExprId body = import.joined(elements, axis, length, sizes);
  return import.exprs()[body].kind == Expr::Kind::kLoad ? std::optional(body) : std::nullopt;
}

// Several tensors along one dimension: where each begins decides whose element it is.
Status concatenate(Importer& import, const std::vector<trace::ValueId>& parts, size_t axis, bool stacked) {
  const Extents sizes = import.result().sizes;
  const DType type = compute_type(import.result().dtype);
  struct Part {
    ExprId element;
    Size begin, end;
  };
  std::vector<Part> found;
  Size begin = 0;
  if (const auto regular = one_load(import, parts, axis, stacked))
    return import.define(import.results()[0], import.exprs().cast(*regular, type),
                         stacked ? "stack" : "concatenate");
  for (const trace::ValueId id : parts) {
    const TracedTensor& part = import.value(id);
    if (element_count(part.sizes) == 0) continue;
    auto at = dimensions(sizes.size());
    const Size length = stacked ? Size(1) : part.sizes.at(axis);
    if (stacked)
      at.erase(at.begin() + static_cast<ptrdiff_t>(axis));
    else
      at[axis] = at[axis] - Index(begin);
    // Read where it has no element it would be another's: the `where` below throws that away.
    found.push_back({import.exprs().cast(import.read(id, at, sizes), type), begin, begin + length});
    begin += length;
  }
  if (found.empty()) return import.cannot("it is empty");
  ExprId body = found.back().element;
  const Index along = Index::dimension(static_cast<int>(axis));
  for (size_t i = found.size() - 1; i-- > 0;)
    body = import.exprs().apply(
        Fn::kWhere, {import.exprs().within(along, 0, found[i].end, sizes), found[i].element, body});
  return import.define(import.results()[0], body, stacked ? "stack" : "concatenate");
}

OperatorImport cat(bool stacked) {
  return [stacked](Importer& import) -> Status {
    const auto* list = import.arg(0, "tensors");
    if (list == nullptr) return import.cannot("expected tensors");
    const size_t axis = axis_of(import.integer(import.arg(1, "dim"), 0), import.result().sizes.size());
    return concatenate(import, trace::tensors_in(*list), axis, stacked);
  };
}

// The last dimension first: how many before and behind.
Status constant_pad(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto pad = import.integers(import.arg(1, "pad"));
  const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
  auto at = dimensions(sizes.size());
  ExprId inside = import.exprs().integer(1, DType::kBool);
  for (size_t i = 0; i + 1 < pad.size(); i += 2) {
    const size_t d = sizes.size() - 1 - i / 2;
    at[d] = at[d] - Index(pad[i]);
    inside = import.exprs().apply(Fn::kAnd, {inside, import.exprs().within(at[d], 0, in[d], sizes)});
  }
  const ExprId element = import.read(*x, at, sizes);
  const double fill = import.number(import.arg(2, "value"), 0);
  const ExprId other = import.exprs().constant(fill, import.exprs()[element].type);
  return import.define(import.results()[0], import.exprs().apply(Fn::kWhere, {inside, element, other}),
                       "pad");
}

// The index inside a tensor that an index beyond it is a mirror of, or the nearest to. As values: an index's
// normal form has no minimum.
OperatorImport border_pad(bool reflect) {
  return [reflect](Importer& import) -> Status {
    const auto x = import.tensor(import.arg(0, "self"));
    const auto pad = import.integers(import.arg(1, "padding"));
    const Extents sizes = import.result().sizes, in = import.value(x.value()).sizes;
    auto at = dimensions(sizes.size());
    std::vector<ExprId> further(sizes.size(), import.exprs().integer(0));
    for (size_t i = 0; i + 1 < pad.size(); i += 2) {
      const size_t d = sizes.size() - 1 - i / 2;
      const Value from(import.exprs(), import.exprs().index(at[d] - Index(pad[i])));
      const auto last = static_cast<double>(in[d] - 1);
      // |i|, and from the far end the same; or the nearest.
      const Value near = reflect ? from.apply(Fn::kAbs) : maximum(from, 0);
      const Value both = reflect ? near.constant(last) - (near - last).apply(Fn::kAbs) : minimum(near, last);
      at[d] = Index();
      further[d] = both.id();
    }
    return import.define(import.results()[0], import.read(*x, at, further, sizes),
                         reflect ? "reflect" : "replicate");
  };
}

// Elements on one side of a diagonal; `upper`: column - row >= k.
OperatorImport triangle(bool upper) {
  return [upper](Importer& import) -> Status {
    const Extents sizes = import.result().sizes;
    const auto rank = static_cast<int>(sizes.size());
    const int64_t k = import.integer(import.arg(1, "diagonal"), 0);
    constexpr int64_t kFar = int64_t{1} << 40;
    const Index across = Index::dimension(rank - 1) - Index::dimension(rank - 2);
    const ExprId keep = upper ? import.exprs().within(across, k, kFar, sizes)
                              : import.exprs().within(across, -kFar, k + 1, sizes);
    const Value x = import.operand(0);
    const Value kept = Value(import.exprs(), keep).where(x, x.constant(0));
    return import.define(import.results()[0], kept.id(), upper ? "upper_triangle" : "lower_triangle");
  };
}

// A vector on a diagonal of a matrix.
Status diag_embed(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const Extents sizes = import.result().sizes;
  const size_t rank = sizes.size();
  const int64_t offset = import.integer(import.arg(1, "offset"), 0);
  const size_t first = axis_of(import.integer(import.arg(2, "dim1"), -2), rank);
  const size_t second = axis_of(import.integer(import.arg(3, "dim2"), -1), rank);
  std::vector<Index> at;
  for (size_t d = 0; d < rank; ++d)
    if (d != first && d != second) at.push_back(Index::dimension(static_cast<int>(d)));
  const Index row = Index::dimension(static_cast<int>(first)),
              column = Index::dimension(static_cast<int>(second));
  at.push_back(offset >= 0 ? row : column);
  const Value on(import.exprs(), import.exprs().within(column - row, offset, offset + 1, sizes));
  const Value element(import.exprs(), import.read(x.value(), at, sizes));
  return import.define(import.results()[0], on.where(element, element.constant(0)).id(), "diagonal");
}

// self but for a part, which is src at `at` where `inside`.
Status replaced(Importer& import, ExprId inside, const std::vector<Index>& at) {
  const auto src = import.tensor(import.arg(1, "src"));
  if (!src) return import.cannot("expected two tensors");
  const Value self = import.operand(0);
  const Value part = Value(import.exprs(), import.read(*src, at, import.result().sizes)).cast(self.type());
  return import.define(import.results()[0], Value(import.exprs(), inside).where(part, self).id(),
                       short_name(import.call().op));
}

Status select_scatter(Importer& import) {
  const Extents sizes = import.result().sizes;
  const size_t d = axis_of(import.integer(import.arg(2, "dim"), 0), sizes.size());
  const int64_t given = import.integer(import.arg(3, "index"), 0);
  const Size index = given < 0 ? sizes[d] + given : Size(given);
  auto at = dimensions(sizes.size());
  const ExprId inside = import.exprs().within(at[d], index, index + 1, sizes);
  at.erase(at.begin() + static_cast<ptrdiff_t>(d));
  return replaced(import, inside, at);
}

Status slice_scatter(Importer& import) {
  const Extents sizes = import.result().sizes;
  const size_t d = axis_of(import.integer(import.arg(2, "dim"), 0), sizes.size());
  const auto bound = [&](const trace::Arg* arg, int64_t otherwise) {
    const int64_t given = import.integer(arg, otherwise);
    return std::clamp<int64_t>(given < 0 ? given + sizes[d].value() : given, 0, sizes[d].value());
  };
  const int64_t start = bound(import.arg(3, "start"), 0), end = bound(import.arg(4, "end"), sizes[d].value()),
                step = import.integer(import.arg(5, "step"), 1);
  auto at = dimensions(sizes.size());
  const Index from = at[d] - Index(start);
  const ExprId reached = import.exprs().within(remainder(from, step, sizes), 0, 1, sizes);
  const ExprId inside =
      import.exprs().apply(Fn::kAnd, {import.exprs().within(at[d], start, end, sizes), reached});
  at[d] = quotient(from, step, sizes);
  return replaced(import, inside, at);
}

Status diagonal_scatter(Importer& import) {
  const Extents sizes = import.result().sizes;
  const size_t rank = sizes.size();
  const int64_t offset = import.integer(import.arg(2, "offset"), 0);
  const size_t first = axis_of(import.integer(import.arg(3, "dim1"), 0), rank);
  const size_t second = axis_of(import.integer(import.arg(4, "dim2"), 1), rank);
  std::vector<Index> at;
  for (size_t d = 0; d < rank; ++d)
    if (d != first && d != second) at.push_back(Index::dimension(static_cast<int>(d)));
  const Index row = Index::dimension(static_cast<int>(first)),
              column = Index::dimension(static_cast<int>(second));
  at.push_back(offset >= 0 ? row : column);
  return replaced(import, import.exprs().within(column - row, offset, offset + 1, sizes), at);
}

// Matrices along the diagonal of one, among zeros.
Status block_diag(Importer& import) {
  const auto* list = import.arg(0, "tensors");
  if (list == nullptr) return import.cannot("expected tensors");
  const Extents sizes = import.result().sizes;
  Exprs& exprs = import.exprs();
  Value all(exprs, exprs.constant(0, compute_type(import.result().dtype)));
  Size row = 0, column = 0;
  for (const trace::ValueId id : trace::tensors_in(*list)) {
    const Extents own = import.value(id).sizes;
    const Size rows = own.size() < 2 ? Size(1) : own[0], columns = own.empty() ? Size(1) : own.back();
    std::vector<Index> at{Index::dimension(0) - Index(row), Index::dimension(1) - Index(column)};
    const Value inside(exprs, exprs.apply(Fn::kAnd, {exprs.within(at[0], 0, rows, sizes),
                                                     exprs.within(at[1], 0, columns, sizes)}));
    at.erase(at.begin(), at.end() - static_cast<ptrdiff_t>(own.size()));
    all = inside.where(Value(exprs, import.read(id, at, sizes)).cast(all.type()), all);
    row += rows, column += columns;
  }
  return import.define(import.results()[0], all.id(), "block_diag");
}

// x[i + 1] y[i + 2] - x[i + 2] y[i + 1] along a dimension of three.
Status cross(Importer& import) {
  const Extents sizes = import.result().sizes;
  const DType type = compute_type(import.result().dtype);
  size_t axis = axis_of(import.integer(import.arg(2, "dim"), -1), sizes.size());
  if (import.call().op.starts_with("aten::cross") && import.arg(2, "dim") == nullptr)
    axis = static_cast<size_t>(std::ranges::find(sizes, Size(3)) - sizes.begin());
  const auto element = [&](size_t position, int64_t further) {
    const auto id = import.tensor(import.arg(position, ""));
    const Extents own = import.value(id.value()).sizes;
    std::vector<Index> at;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const Index along = Index::dimension(static_cast<int>(d));
      at.push_back(d == axis ? remainder(along + Index(further), 3, sizes) : own[d] == 1 ? Index() : along);
    }
    return Value(import.exprs(), import.read(*id, at, sizes)).cast(type);
  };
  const Value result = element(0, 1) * element(1, 2) - element(0, 2) * element(1, 1);
  return import.define(import.results()[0], result.id(), "cross");
}

// [n, c, area...] as [n, c window..., places]: what a convolution would read.
Status im2col(Importer& import) {
  const auto x = import.tensor(import.arg(0, "self"));
  const auto window = import.integers(import.arg(1, "kernel_size")),
             dilation = import.integers(import.arg(2, "dilation"));
  const auto padding = import.integers(import.arg(3, "padding")),
             stride = import.integers(import.arg(4, "stride"));
  const Extents in = import.value(x.value()).sizes, sizes = import.result().sizes;
  if (in.size() != 4 || window.size() != 2) return import.cannot("expected a batch of images");
  const int64_t across = (in[3] + 2 * padding[1] - dilation[1] * (window[1] - 1) - 1) / stride[1] + 1;
  const Index tap = Index::dimension(1), place = Index::dimension(2);
  const int64_t taps = window[0] * window[1];
  const Index row = quotient(place, across, sizes) * stride[0] - Index(padding[0]) +
                    quotient(remainder(tap, taps, sizes), window[1], sizes) * dilation[0];
  const Index column = remainder(place, across, sizes) * stride[1] - Index(padding[1]) +
                       remainder(tap, window[1], sizes) * dilation[1];
  const Value inside(import.exprs(),
                     import.exprs().apply(Fn::kAnd, {import.exprs().within(row, 0, in[2], sizes),
                                                     import.exprs().within(column, 0, in[3], sizes)}));
  const Value element(import.exprs(),
                      import.read(*x, {Index::dimension(0), quotient(tap, taps, sizes), row, column}, sizes));
  return import.define(import.results()[0], inside.where(element, element.constant(0)).id(), "windows");
}

}  // namespace

ExprId Importer::through_copies(ExprId element, const Extents& extents) {
  while (exprs()[element].kind == Expr::Kind::kLoad) {
    const Expr load = exprs()[element];
    const Node* maker = graph_.maker(load.tensor);
    if (maker == nullptr || maker->special() || maker->reduction != Reduction::kNone || !maker->at.empty() ||
        exprs()[maker->body].kind != Expr::Kind::kLoad || exprs()[maker->body].type != load.type)
      break;
    const auto copied = graph_.inlined(load, extents);
    if (!copied) break;
    element = *copied;
  }
  return element;
}

ExprId Importer::joined(const std::vector<ExprId>& parts, size_t axis, const Size& length,
                        const Extents& sizes) {
  const Index along = Index::dimension(static_cast<int>(axis));
  Extents own = sizes;  // of one part
  own[axis] = length;
  std::vector<ExprId> loads;
  for (const ExprId part : parts) loads.push_back(through_copies(part, own));
  const Expr first = exprs()[loads[0]];
  std::vector<Index> step(first.at.size());
  bool regular = first.kind == Expr::Kind::kLoad && first.args.empty();
  for (size_t i = 1; i < loads.size() && regular; ++i) {
    const Expr& load = exprs()[loads[i]];
    regular = load.kind == Expr::Kind::kLoad && load.tensor == first.tensor && load.args.empty();
    for (size_t d = 0; d < step.size() && regular; ++d) {
      const Index far = load.at[d] - first.at[d];
      if (i == 1) step[d] = far;
      regular = far.is_constant() && far == step[d] * static_cast<int64_t>(i);
    }
  }
  std::vector<Index> by = dimensions(sizes.size());
  if (regular) {
    by[axis] = remainder(along, length, sizes);
    std::vector<Index> at;
    for (size_t d = 0; d < step.size(); ++d)
      at.push_back(substitute(first.at[d], by, sizes) + quotient(along, length, sizes) * step[d].constant());
    return exprs().load(first.tensor, at, first.type);
  }
  ExprId body = -1;
  for (size_t i = parts.size(); i-- > 0;) {
    // Read where it has no element it would be another's: the `where` below throws that away.
    by[axis] = along - Index(length * static_cast<int64_t>(i));
    const ExprId part = exprs().substitute(parts[i], by, sizes);
    const Size end = length * static_cast<int64_t>(i + 1);
    body = body < 0 ? part : exprs().apply(Fn::kWhere, {exprs().within(along, 0, end, sizes), part, body});
  }
  return body;
}

void add_shapes(OperatorTable& table) {
  table["aten::flip"] = moves(flip);
  table["aten::roll"] = moves(roll);
  table["aten::repeat"] = moves(repeat);
  table["aten::tile"] = moves(repeat);
  table["aten::rot90"] = moves(rot90);
  table["aten::pixel_shuffle"] = moves(pixel_shuffle);
  table["aten::pixel_unshuffle"] = moves(pixel_unshuffle);
  table["aten::channel_shuffle"] = moves(channel_shuffle);
  table["aten::native_channel_shuffle"] = moves(channel_shuffle);
  table["aten::cat"] = cat(false);
  table["aten::stack"] = cat(true);
  table["aten::constant_pad_nd"] = constant_pad;
  for (const char* rank : {"1d", "2d", "3d"}) {
    table[std::string("aten::reflection_pad") + rank] = border_pad(true);
    table[std::string("aten::replication_pad") + rank] = border_pad(false);
  }
  table["aten::triu"] = triangle(true);
  table["aten::tril"] = triangle(false);
  table["aten::diag_embed"] = diag_embed;
  table["aten::im2col"] = im2col;
  table["aten::select_scatter"] = select_scatter;
  table["aten::slice_scatter"] = slice_scatter;
  table["aten::diagonal_scatter"] = diagonal_scatter;
  table["aten::block_diag"] = block_diag;
  table["aten::cross"] = cross;
  table["aten::linalg_cross"] = cross;
}

}  // namespace nereid::compiler
