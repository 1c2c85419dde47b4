// Contractions, convolutions, pools, norms and cells.
#include <utility>

#include "nereid/ops/calls_impl.h"

namespace nereid::ops {
namespace {

std::optional<Tensor> bmm(Calling& c) { return c.fresh("bmm", {arg(c.x[0]), arg(c.x[1])}, c.out()); }

// A matrix times each matrix of a batch is one product where the batch lies row by row, or where a weight
// would have to be repeated (should_fold in aten/src/ATen/native/LinearAlgebra.cpp).
bool folds(const Calling& c, Tensor batch, Tensor matrix) {
  if (c.to.is_learned(matrix)) return true;
  const Laid lies = c.to.laid(batch);
  for (size_t d = 0; d + 2 < lies.sizes.size(); ++d)
    if (lies.strides[d] != lies.strides[d + 1] * lies.sizes[d + 1]) return false;
  return true;
}

Tensor folded(Calling& c, Tensor batch, Tensor matrix) {
  Sizes sizes = c.to.laid(batch).sizes;
  const int64_t columns = c.to.laid(matrix).sizes[1], rows = count_of(sizes) / sizes.back();
  const Tensor flat = c.reshape(batch, {rows, sizes.back()});
  const Tensor product = c.fresh("mm", {arg(flat), arg(matrix)}, {rows, columns});
  sizes.back() = columns;
  return c.look_as("_unsafe_view", product, sizes);
}

// Batches of matrices, as a batch in three dimensions.
Tensor batched(Calling& c, Tensor left, Tensor right, const Sizes& sizes) {
  const Sizes batch(sizes.begin(), sizes.end() - 2);
  const int64_t count = count_of(batch);
  Tensor factors[2];
  for (const size_t i : {0, 1}) {
    const Tensor factor = i == 0 ? left : right;
    const Sizes own = c.to.laid(factor).sizes;
    Sizes wide = batch;
    wide.insert(wide.end(), own.end() - 2, own.end());
    factors[i] = c.reshape(c.expand(factor, wide), {count, wide[batch.size()], wide[batch.size() + 1]});
  }
  const Tensor product =
      c.fresh("bmm", {arg(factors[0]), arg(factors[1])}, {count, sizes[sizes.size() - 2], sizes.back()});
  return c.look_as("_unsafe_view", product, sizes);
}

std::optional<Tensor> matmul(Calling& c) {
  const Sizes a = c.laid(0).sizes, b = c.laid(1).sizes;
  if (b.size() == 1) return c.fresh("mv", {arg(c.x[0]), arg(c.x[1])}, c.out());
  if (a.size() == 2) return c.fresh("mm", {arg(c.x[0]), arg(c.x[1])}, c.out());
  if (b.size() == 2 && folds(c, c.x[0], c.x[1])) return folded(c, c.x[0], c.x[1]);
  return batched(c, c.x[0], c.x[1], c.out());
}

std::optional<Tensor> matmul_transposed(Calling& c) {
  const size_t last = c.out().size() - 1;
  const Tensor turned =
      c.transpose(c.x[1], last - 1, last, "transpose.int", {arg(int64_t{-2}), arg(int64_t{-1})});
  if (last == 1) return c.fresh("mm", {arg(c.x[0]), arg(turned)}, c.out());
  return batched(c, c.x[0], turned, c.out());
}

std::optional<Tensor> attention_by_hand(Calling& c) {
  const Tensor keys = c.transpose(c.x[1], 2, 3, "transpose.int", {arg(int64_t{-2}), arg(int64_t{-1})});
  Sizes sizes = c.out();
  sizes.back() = c.laid(1).sizes[2];
  const Tensor scores = c.elementwise("mul.Tensor", {batched(c, c.x[0], keys, sizes)}, {c.constant('a')});
  const Tensor shares = c.fresh("_softmax", {arg(scores), arg(int64_t{-1}), arg(false)}, sizes);
  return batched(c, shares, c.x[2], c.out());
}

std::optional<Tensor> linear(Calling& c) {
  const Tensor weight = c.own[0];
  if (c.applied.bias && (c.laid().sizes.size() <= 2 || is_row_major(c.laid())))
    return c.fresh("linear", {arg(c.x[0]), arg(weight), arg(c.own[1])}, c.out());
  if (!c.applied.bias && (c.laid().sizes.size() <= 2 || is_row_major(c.laid())))
    return c.fresh("linear", {arg(c.x[0]), arg(weight)}, c.out());
  const Tensor turned = c.transpose(weight, 0, 1, "t", {});
  const Tensor product = folded(c, c.x[0], turned);
  return c.applied.bias ? c.elementwise("add.Tensor", {product, c.own[1]}) : product;
}

// Row by row, or channels last where the input lies so.
Tensor as_input(Calling& c, const Sizes& sizes, DType type = DType::kF32) {
  return c.to.made({sizes, suggests_channels_last(c.laid()) ? channels_last(sizes) : row_major(sizes)}, type);
}

template <typename List>
Arg by_axis(const Calling& c, const List& values) {
  return integers({values.begin(), values.begin() + c.axes()});
}

std::optional<Tensor> convolution(Calling& c) {
  const Window& window = c.applied.window;
  const bool transposed = is_transposed(*c.applied.op);
  return c.to.call(
      "convolution",
      {arg(c.x[0]), arg(c.own[0]), c.applied.bias ? arg(c.own[1]) : none(), by_axis(c, window.stride),
       by_axis(c, window.padding), by_axis(c, window.dilation), arg(transposed),
       transposed ? by_axis(c, window.rest) : integers(c.each_axis(0)), arg(int64_t{groups_of(c.applied)})},
      as_input(c, c.out()));
}

// Kernel, stride, padding and so on, as far as they are written; defaults after the last one are left out.
std::vector<Arg> window(const Calling& c, Tensor x, bool stride_written, bool flat = false) {
  const Window& window = c.applied.window;
  const auto axes = [&](const Window::Each& values, int64_t other) {
    Sizes all(values.begin(), values.begin() + c.axes());
    if (flat) all.insert(all.begin(), other);
    return all;
  };
  const bool maximum = c.applied.op->name.starts_with("max");
  const Sizes kernel = axes(window.kernel, 1), stride = axes(window.stride, 1);
  std::vector<Arg> args = {arg(x), integers(kernel)};
  size_t written = args.size();
  const auto add = [&](Arg value, bool usual) {
    args.push_back(std::move(value));
    if (!usual) written = args.size();
  };
  const bool of_its_own = stride_written || stride != kernel;
  add(integers(of_its_own ? stride : Sizes()), !of_its_own);
  add(integers(axes(window.padding, 0)), axes(window.padding, 0) == axes({}, 0));
  if (maximum) add(integers(axes(window.dilation, 1)), axes(window.dilation, 1) == axes({1, 1, 1}, 1));
  add(arg(window.ceil), !window.ceil);
  if (!maximum) add(arg(window.counts_padding), window.counts_padding);
  args.resize(written);
  return args;
}

std::optional<Tensor> avg_pool(Calling& c) {
  return c.to.call(c.applied.op->name, window(c, c.x[0], c.module()), as_input(c, c.out()));
}
// Pooling in one dimension is pooling of a picture of one line: that picture, and how what comes out lies.
Laid picture(const Calling& c) {
  Laid lies = c.laid();
  lies.strides.insert(lies.strides.begin() + 2, lies.strides[2] * lies.sizes[2]);
  lies.sizes.insert(lies.sizes.begin() + 2, 1);
  return lies;
}
Laid pooled(const Calling& c) {
  Sizes sizes = c.out();
  sizes.insert(sizes.begin() + 2, 1);
  return {sizes, suggests_channels_last(picture(c)) ? channels_last(sizes) : row_major(sizes)};
}
Laid line(Laid picture) {
  picture.sizes.erase(picture.sizes.begin() + 2), picture.strides.erase(picture.strides.begin() + 2);
  return picture;
}
std::optional<Tensor> avg_pool1d(Calling& c) {
  const Tensor wide = c.to.call("unsqueeze", {arg(c.x[0]), arg(int64_t{-2})}, c.to.look(c.x[0], picture(c)));
  const Tensor made = c.to.call("avg_pool2d", window(c, wide, true, true), c.to.made(pooled(c)));
  return c.to.call("squeeze.dim", {arg(made), arg(int64_t{-2})}, c.to.look(made, line(pooled(c))));
}
std::optional<Tensor> max_pool1d(Calling& c) {
  return c.to.call("max_pool1d", window(c, c.x[0], c.module()), c.to.made(line(pooled(c))));
}
std::optional<Tensor> max_pool(Calling& c) {
  const Tensor values = as_input(c, c.out()), places = as_input(c, c.out(), DType::kI64);
  c.to.call(std::string(c.applied.op->name) + "_with_indices", window(c, c.x[0], c.module()),
            tensors({values, places}, true));
  return values;
}
std::optional<Tensor> global_avg_pool(Calling& c) {
  const Sizes wide = {c.out()[0], c.out()[1], 1, 1};
  Tensor mean = c.fresh("mean.dim", {arg(c.x[0]), integers({-1, -2}), arg(true)}, wide);
  if (suggests_channels_last(c.laid())) {
    const Sizes strides = {wide[1], 1, wide[1], wide[1]};
    mean = c.to.call("as_strided_", {arg(mean), integers(wide), integers(strides)},
                     c.to.look(mean, {wide, strides}));
  }
  return c.reshape(mean, c.out());
}

std::optional<Tensor> batch_norm(Calling& c) {
  Arg mean = none(), variance = none();
  if (c.module()) {
    mean = arg(c.own[2]), variance = arg(c.own[3]);
    c.to.call("add_.Tensor", {arg(c.own[4]), arg(int64_t{1})}, c.own[4]);
  }
  // cuDNN's from three dimensions on.
  const Laid flat[] = {c.laid(), c.to.laid(c.own[0])};
  return c.to.call("batch_norm",
                   {arg(c.x[0]), arg(c.own[0]), arg(c.own[1]), std::move(mean), std::move(variance),
                    arg(true), arg(0.1), arg(1e-5), arg(true)},
                   c.out().size() == 2 ? c.to.made(elementwise(flat)) : as_input(c, c.out()));
}
std::optional<Tensor> batch_norm_eval(Calling& c) {
  const Laid flat[] = {c.laid(), c.to.laid(c.own[0])};
  return c.to.call("batch_norm",
                   {arg(c.x[0]), arg(c.own[0]), arg(c.own[1]), arg(c.own[2]), arg(c.own[3]), arg(false),
                    arg(0.1), arg(1e-5), arg(true)},
                   c.out().size() == 2 ? c.to.made(elementwise(flat)) : as_input(c, c.out()));
}
std::optional<Tensor> instance_norm(Calling& c) {
  const bool affine = !c.own.empty();
  return c.fresh("instance_norm",
                 {arg(c.x[0]), affine ? arg(c.own[0]) : none(), affine ? arg(c.own[1]) : none(), none(),
                  none(), arg(true), arg(0.1), arg(1e-5), arg(true)},
                 c.out());
}
std::optional<Tensor> group_norm(Calling& c) {
  const Tensor x = c.contiguous(c.x[0]);
  const Sizes sizes = c.out();
  const int64_t groups = group_count(c.applied), plane = count_of(sizes) / sizes[0] / sizes[1];
  const Tensor made = c.to.made(sizes), mean = c.to.made({sizes[0], groups}),
               scale = c.to.made({sizes[0], groups});
  c.to.call("native_group_norm",
            {arg(x), arg(c.own[0]), arg(c.own[1]), arg(sizes[0]), arg(sizes[1]), arg(plane), arg(groups),
             arg(1e-5)},
            tensors({made, mean, scale}, true));
  return made;
}
std::optional<Tensor> layer_norm(Calling& c) {
  Sizes rows = c.out(), over;
  for (auto d = rows.size() - (c.applied.op->rule == Rule::kTriangle ? 2 : 1); d < rows.size(); ++d)
    over.push_back(std::exchange(rows[d], 1));
  const Tensor made = c.to.made(c.out()), mean = c.to.made(rows), scale = c.to.made(rows);
  c.to.call(
      "native_layer_norm",
      {arg(c.x[0]), integers(over), c.own.empty() ? none() : arg(c.own[0]),
       c.own.empty() ? none() : arg(c.own[1]), c.applied.op->constants.empty() ? arg(1e-5) : c.constant('a')},
      tensors({made, mean, scale}, true));
  return made;
}
std::optional<Tensor> rms_norm(Calling& c) {
  Sizes rows = c.out();
  rows.back() = 1;
  const Laid scaled[] = {c.laid(), {rows, row_major(rows)}};
  const Laid weighted[] = {elementwise(scaled), c.to.laid(c.own[0])};
  const Laid made = elementwise(weighted);
  const bool last = suggests_channels_last(c.laid());
  const bool copied = last ? !is_channels_last(made) : !is_row_major(made);
  std::vector<Arg> args = {arg(c.x[0]), integers({c.out().back()}), arg(c.own[0])};
  if (!c.applied.op->constants.empty()) args.push_back(c.constant('a'));
  return c.to.call("rms_norm", std::move(args), copied ? as_input(c, c.out()) : c.to.made(made));
}

// Of what the last axis has: its size taken out, kept one long.
Tensor over_last(Calling& c, std::string_view op, std::vector<Arg> args, Recording::Named named = {}) {
  Sizes rows = c.out();
  rows.back() = 1;
  return c.fresh(op, std::move(args), rows, std::move(named));
}
std::optional<Tensor> rms_by_hand(Calling& c) {
  const Tensor squares = c.elementwise("pow.Tensor_Scalar", {c.x[0]}, {arg(int64_t{2})});
  const Tensor mean = over_last(c, "mean.dim", {arg(squares), integers({-1}), arg(true)});
  const Tensor more = c.elementwise("add.Tensor", {mean}, {c.constant('a')});
  return c.elementwise("mul.Tensor", {c.x[0], c.elementwise("rsqrt", {more})});
}
std::optional<Tensor> layer_norm_by_hand(Calling& c) {
  const Tensor mean = over_last(c, "mean.dim", {arg(c.x[0]), integers({-1}), arg(true)});
  const Tensor apart = c.elementwise("sub.Tensor", {c.x[0], mean});
  const Tensor variance = over_last(c, "var.correction", {arg(c.x[0]), integers({-1})},
                                    {{"correction", arg(int64_t{0})}, {"keepdim", arg(true)}});
  const Tensor more = c.elementwise("add.Tensor", {variance}, {c.constant('a')});
  return c.elementwise("div.Tensor", {apart, c.elementwise("sqrt", {more})});
}
std::optional<Tensor> normalize(Calling& c) {
  Sizes rows = c.out();
  rows[static_cast<size_t>(c.dim())] = 1;
  const Tensor length =
      c.fresh("linalg_vector_norm", {arg(c.x[0]), arg(2.0), integers({c.written_dim()}), arg(true)}, rows);
  const Tensor least = c.elementwise("clamp_min", {length}, {arg(1e-12)});
  return c.elementwise("div.Tensor", {c.x[0], c.expand(least, c.out())});
}

std::optional<Tensor> attention(Calling& c) {
  const std::string_view name = c.applied.op->name;
  std::vector<Arg> args = {arg(c.x[0]), arg(c.x[1]), arg(c.x[2])};
  if (name == "masked_attention") args.insert(args.begin() + 2, arg(c.x[1]));
  if (name.starts_with("causal")) args.insert(args.end(), {none(), arg(0.0), arg(true)});
  Recording::Named named;
  if (name.find("scaled_attention") != name.npos) named.emplace_back("scale", c.constant('a'));
  return c.fresh("scaled_dot_product_attention", std::move(args), c.out(), std::move(named));
}

std::optional<Tensor> cell(Calling& c) {
  return c.fresh(c.applied.op->aten.substr(6),
                 {arg(c.x[0]), arg(c.x[1]), arg(c.own[0]), arg(c.own[1]), arg(c.own[2]), arg(c.own[3])},
                 c.out());
}
std::optional<Tensor> lstm_cell(Calling& c) {
  const Tensor hidden = c.to.made(c.out()), state = c.to.made(c.out());
  c.to.call(
      "lstm_cell",
      {arg(c.x[0]), tensors({c.x[1], c.x[1]}), arg(c.own[0]), arg(c.own[1]), arg(c.own[2]), arg(c.own[3])},
      tensors({hidden, state}, true));
  return hidden;
}

}  // namespace

void add_contraction_records(Records& records) {
  records["bmm"] = bmm, records["matmul"] = matmul, records["matmul_transposed"] = matmul_transposed,
  records["linear"] = linear;
  for (const Operator& op : catalogue())
    if (op.lowering == Lowering::kConvolution) records[op.name] = convolution;
  for (const char* name : {"scaled_dot_product_attention", "causal_attention", "scaled_attention",
                           "causal_scaled_attention", "masked_attention"})
    records[name] = attention;
  records["attention_by_hand"] = attention_by_hand;
}

void add_layer_records(Records& records) {
  records["avg_pool2d"] = records["avg_pool3d"] = avg_pool, records["avg_pool1d"] = avg_pool1d;
  records["max_pool2d"] = records["max_pool3d"] = max_pool, records["max_pool1d"] = max_pool1d;
  records["global_avg_pool"] = global_avg_pool;
  records["batch_norm"] = batch_norm, records["instance_norm"] = instance_norm;
  records["group_norm"] = group_norm, records["layer_norm"] = layer_norm, records["rms_norm"] = rms_norm;
  records["batch_norm_eval"] = batch_norm_eval;
  records["instance_norm_affine"] = instance_norm,
  records["layer_norm_plain"] = records["layer_norm_eps"] = layer_norm;
  records["layer_norm_of_two"] = layer_norm;
  records["rms_norm_eps"] = rms_norm, records["rms_norm_by_hand"] = rms_by_hand;
  records["layer_norm_by_hand"] = layer_norm_by_hand, records["normalize"] = normalize;
  records["rnn_cell"] = records["gru_cell"] = cell, records["lstm_cell"] = lstm_cell;
}

}  // namespace nereid::ops
