// Element by element, and reductions and scans along axes.
#include <limits>

#include "nereid/ops/calls_impl.h"

namespace nereid::ops {
namespace {

// The operator of ATen that a row names, without its namespace.
std::string_view aten(const Calling& c) { return c.applied.op->aten.substr(6); }

const Laid kNumber = {};

// Of fake tensors these are several operators (torch/_decomp): what the first makes is laid out once more.
std::optional<Tensor> in_steps(Calling& c, std::string_view op, std::vector<Arg> more = {}) {
  const Laid from[] = {c.laid()};
  const Laid first[] = {elementwise(from)};
  std::vector<Arg> args = {arg(c.x[0])};
  for (Arg& one : more) args.push_back(std::move(one));
  return c.to.call(op, std::move(args), c.to.made(elementwise(first)));
}

std::optional<Tensor> unary(Calling& c) { return c.elementwise(aten(c), {c.x[0]}); }
std::optional<Tensor> binary(Calling& c) { return c.elementwise(aten(c), {c.x[0], c.x[1]}); }
std::optional<Tensor> with_constant(Calling& c) {
  return c.elementwise(aten(c), {c.x[0]}, {c.constant('a')});
}
// where(x <= 0, 0, x) of fake tensors.
std::optional<Tensor> relu(Calling& c) {
  const Laid from[] = {c.laid()};
  const Laid chosen[] = {elementwise(from), kNumber, c.laid()};
  return c.to.call(aten(c), {arg(c.x[0])}, c.to.made(elementwise(chosen)));
}
// where(x >= a | isnan(x), x, a), and of that the same with b, where there is one.
std::optional<Tensor> clamp(Calling& c) {
  const bool both = constant_count(*c.applied.op, 'b') > 0 || c.applied.op->name == "relu6";
  Laid x = c.laid();
  for (int bound = 0; bound < (both ? 2 : 1); ++bound) {
    const Laid from[] = {x};
    const Laid compared[] = {elementwise(from), elementwise(from)};
    const Laid chosen[] = {elementwise(compared), x, kNumber};
    x = elementwise(chosen);
  }
  std::vector<Arg> args = {arg(c.x[0])};
  if (c.applied.op->name == "relu6") {
    for (const int64_t bound : {0, 6})
      args.push_back(c.module() ? arg(static_cast<double>(bound)) : arg(bound));
  } else {
    if (c.applied.op->name == "clamp_max") args.push_back(none());
    args.push_back(c.constant('a'));
    if (both) args.push_back(c.constant('b'));
  }
  return c.to.call(aten(c), std::move(args), c.to.made(x));
}
std::optional<Tensor> square(Calling& c) {
  return c.elementwise("pow.Tensor_Scalar", {c.x[0]}, {arg(int64_t{2})});
}
std::optional<Tensor> lerp(Calling& c) {
  return c.elementwise("lerp.Scalar", {c.x[0], c.x[1]}, {c.constant('a')});
}
std::optional<Tensor> where(Calling& c) { return c.elementwise("where.self", {c.x[2], c.x[0], c.x[1]}); }
// where(mask, number, x), with the mask first, made contiguous.
Tensor filled(Calling& c, Tensor mask, Arg value) {
  const Laid lie[] = {c.to.laid(mask), c.laid()};
  const Laid chosen = elementwise(lie);
  return c.to.call("masked_fill.Scalar", {arg(c.x[0]), arg(mask), std::move(value)},
                   is_row_major(chosen) ? c.to.made(chosen) : c.to.made(c.out()));
}
std::optional<Tensor> masked_fill(Calling& c) { return filled(c, c.x[1], c.constant('a')); }
std::optional<Tensor> leaky_relu(Calling& c) {
  const Arg slope = c.constant('a');
  const bool usual = std::get<double>(slope.node) == 0.01;  // what is the schema's own is not passed on
  return c.elementwise("leaky_relu", {c.x[0]}, usual ? std::vector<Arg>() : std::vector<Arg>{slope});
}
std::optional<Tensor> gelu_tanh(Calling& c) {
  const Laid from[] = {c.laid()};
  const Laid first[] = {elementwise(from)};
  return c.to.call("gelu", {arg(c.x[0])}, c.to.made(elementwise(first)),
                   {{"approximate", Arg{trace::Text{"tanh"}}}});
}
std::optional<Tensor> prelu(Calling& c) {
  Sizes sizes(c.out().size(), 1);
  sizes[1] = count_of(c.to.laid(c.own[0]).sizes);
  const Tensor weight = c.to.laid(c.own[0]).sizes == sizes ? c.own[0] : c.look_as("view", c.own[0], sizes);
  // where(x > 0, x, weight * x)
  const Laid x[] = {c.laid()}, factors[] = {c.to.laid(weight), c.laid()};
  const Laid chosen[] = {elementwise(x), c.laid(), elementwise(factors)};
  return c.to.call("_prelu_kernel", {arg(c.x[0]), arg(weight)}, c.to.made(elementwise(chosen)));
}
// A loss for each element.
std::optional<Tensor> each_loss(Calling& c, std::vector<Arg> more) {
  return c.elementwise(aten(c), {c.x[0], c.x[1]}, std::move(more));
}
std::optional<Tensor> plain_each(Calling& c) { return each_loss(c, {arg(int64_t{0})}); }
std::optional<Tensor> huber_each(Calling& c) {
  const Arg delta = c.constant('a');
  return std::get<double>(delta.node) == 1.0 ? each_loss(c, {arg(int64_t{0})})
                                             : each_loss(c, {arg(int64_t{0}), delta});
}
// (1 - target) x - logsigmoid(x): the target is laid out first.
std::optional<Tensor> bce_each(Calling& c) {
  const Laid target[] = {c.laid(1)}, x[] = {c.laid(0)};
  const Laid factors[] = {elementwise(target), c.laid(0)};
  const Laid terms[] = {elementwise(factors), elementwise(x)};
  return c.to.call(aten(c), {arg(c.x[0]), arg(c.x[1]), none(), none(), arg(int64_t{0})},
                   c.to.made(elementwise(terms)));
}
std::optional<Tensor> l1_each(Calling& c) {
  return c.elementwise("abs", {c.elementwise("sub.Tensor", {c.x[0], c.x[1]})});
}

std::optional<Tensor> unary_in_steps(Calling& c) { return in_steps(c, aten(c)); }
std::optional<Tensor> elu(Calling& c) { return in_steps(c, "elu", {c.constant('a')}); }
std::optional<Tensor> selu(Calling& c) {
  return in_steps(c, "elu", {arg(1.6732632423543772), arg(1.0507009873554805)});
}
std::optional<Tensor> softplus(Calling& c) {
  std::vector<Arg> more = {c.constant('a')};
  if (c.module()) more.push_back(arg(20.0));
  return c.elementwise("softplus", {c.x[0]}, std::move(more));
}
std::optional<Tensor> softsign(Calling& c) {
  const Tensor size = c.elementwise("abs", {c.x[0]});
  const Tensor more = c.elementwise("add.Tensor", {size}, {arg(int64_t{1})});
  return c.elementwise("div.Tensor", {c.x[0], more});
}

Sizes written_axes(const Calling& c) {
  Sizes axes = {c.written_dim()};
  for (const int further : {c.applied.form->dim2, c.applied.form->dim3})
    if (further >= 0) axes.push_back(written_axis(c.applied, further));
  return axes;
}
// Over one to three axes, or over all.
std::optional<Tensor> reduction(Calling& c, std::string_view over_all, std::string_view over_axis,
                                std::vector<Arg> before = {}) {
  std::vector<Arg> args = {arg(c.x[0])};
  for (Arg& one : before) args.push_back(std::move(one));
  if (!c.whole()) args.push_back(integers(written_axes(c)));
  if (c.applied.form->keep) args.push_back(arg(true));
  return c.fresh(c.whole() ? over_all : over_axis, std::move(args), c.out());
}
std::optional<Tensor> sum(Calling& c) { return reduction(c, "sum", "sum.dim_IntList"); }
std::optional<Tensor> mean(Calling& c) { return reduction(c, "mean", "mean.dim"); }
std::optional<Tensor> extreme(Calling& c) { return reduction(c, aten(c), aten(c)); }
std::optional<Tensor> norm(Calling& c) {
  // The exponent is the schema's own: it is passed on where something comes after it.
  return reduction(c, aten(c), aten(c), c.whole() ? std::vector<Arg>() : std::vector<Arg>{arg(int64_t{2})});
}
std::optional<Tensor> variance(Calling& c) {
  const bool population = c.applied.op->name.ends_with("population");
  Recording::Named named;
  if (!c.whole() || population) named.emplace_back("correction", arg(int64_t{population ? 0 : 1}));
  if (c.whole()) return c.fresh(aten(c), {arg(c.x[0])}, {}, std::move(named));
  if (c.applied.form->keep) named.emplace_back("keepdim", arg(true));
  return c.fresh(aten(c), {arg(c.x[0]), integers(written_axes(c))}, c.out(), std::move(named));
}
std::optional<Tensor> logsumexp(Calling& c) {
  if (!c.whole()) return reduction(c, "", "logsumexp");
  Sizes over;
  for (int64_t d = 0; d < static_cast<int64_t>(c.laid().sizes.size()); ++d) over.push_back(d);
  return c.fresh("logsumexp", {arg(c.x[0]), integers(over)}, {});
}
std::optional<Tensor> place_of_extreme(Calling& c) {
  return c.fresh(aten(c), {arg(c.x[0]), arg(c.written_dim())}, c.out(), {}, DType::kI64);
}
std::optional<Tensor> value_of_extreme(Calling& c) {
  const Tensor values = c.to.made(c.out()), places = c.to.made(c.out(), DType::kI64);
  c.to.call(aten(c), {arg(c.x[0]), arg(c.written_dim())}, tensors({values, places}, true));
  return values;
}
std::optional<Tensor> softmax(Calling& c) {
  return c.fresh(c.applied.op->name == "log_softmax" ? "_log_softmax" : "_softmax",
                 {arg(c.x[0]), arg(c.written_dim()), arg(false)}, c.laid().sizes);
}
std::optional<Tensor> scan(Calling& c) {
  return c.fresh(aten(c), {arg(c.x[0]), arg(c.written_dim())}, c.laid().sizes);
}
std::optional<Tensor> scan_with_places(Calling& c) {
  const Tensor values = c.to.made(c.laid().sizes), places = c.to.made(c.laid().sizes, DType::kI64);
  c.to.call(aten(c), {arg(c.x[0]), arg(c.written_dim())}, tensors({values, places}, true));
  return values;
}
Tensor flipped(Calling& c, Tensor tensor) {
  return c.elementwise("flip", {tensor}, {integers({c.written_dim()})});
}
Tensor summed_up(Calling& c, Tensor tensor) {
  return c.fresh("cumsum", {arg(tensor), arg(c.written_dim())}, c.out());
}
std::optional<Tensor> cumsum_exclusive(Calling& c) {
  return c.elementwise("sub.Tensor", {summed_up(c, c.x[0]), c.x[0]});
}
std::optional<Tensor> cumsum_reversed(Calling& c) { return flipped(c, summed_up(c, flipped(c, c.x[0]))); }
std::optional<Tensor> where_positive(Calling& c) {
  const Tensor positive = c.elementwise("gt.Scalar", {c.x[0]}, {arg(int64_t{0})}, DType::kBool);
  const Tensor scaled = c.elementwise("mul.Tensor", {c.x[0]}, {c.constant('a')});
  return c.elementwise("where.self", {positive, c.x[0], scaled});
}
Tensor compared(Calling& c, Tensor tensor, std::string_view op, Arg bound) {
  return c.elementwise(op, {tensor}, {std::move(bound)}, DType::kBool);
}
std::optional<Tensor> where_above(Calling& c) {
  return c.elementwise("where.self", {compared(c, c.x[2], "gt.Scalar", arg(int64_t{0})), c.x[0], c.x[1]});
}
std::optional<Tensor> where_larger(Calling& c) {
  const Tensor larger = c.elementwise("gt.Tensor", {c.x[0], c.x[1]}, {}, DType::kBool);
  return c.elementwise("where.self", {larger, c.x[0], c.x[1]});
}
std::optional<Tensor> masked_fill_below(Calling& c) {
  return filled(c, compared(c, c.x[1], "lt.Scalar", arg(int64_t{0})), c.constant('a'));
}
std::optional<Tensor> fill_negative(Calling& c) {
  return filled(c, compared(c, c.x[0], "lt.Scalar", arg(int64_t{0})), c.constant('a'));
}
std::optional<Tensor> keep_above(Calling& c) {
  const Tensor above = compared(c, c.x[1], "gt.Scalar", c.constant('a'));
  const Laid lies[] = {c.to.laid(above)};
  const Tensor number =
      c.to.call("_to_copy", {arg(above)}, c.to.made(elementwise(lies)), {{"dtype", named("dtype", "f32")}});
  return c.elementwise("mul.Tensor", {c.x[0], number});
}
std::optional<Tensor> positive_by_mask(Calling& c) {
  return c.elementwise("mul.Tensor", {c.x[0], compared(c, c.x[0], "gt.Scalar", arg(int64_t{0}))});
}
std::optional<Tensor> swish_by_hand(Calling& c) {
  return c.elementwise("mul.Tensor", {c.x[0], c.elementwise("sigmoid", {c.x[0]})});
}
std::optional<Tensor> squared_relu(Calling& c) {
  const Laid from[] = {c.laid()};
  const Laid chosen[] = {elementwise(from), kNumber, c.laid()};
  const Tensor positive = c.to.call("relu", {arg(c.x[0])}, c.to.made(elementwise(chosen)));
  return c.elementwise("pow.Tensor_Scalar", {positive}, {arg(int64_t{2})});
}
// Over what an elementwise operator has made of the operand.
std::optional<Tensor> reduced(Calling& c, Tensor made, std::string_view over_all,
                              std::string_view over_axis) {
  Calling then = c;
  const Tensor only[] = {made};
  then.x = only;
  return reduction(then, over_all, over_axis);
}
Tensor squares(Calling& c) { return c.elementwise("pow.Tensor_Scalar", {c.x[0]}, {arg(int64_t{2})}); }
std::optional<Tensor> mean_square(Calling& c) { return reduced(c, squares(c), "mean", "mean.dim"); }
std::optional<Tensor> sum_square(Calling& c) { return reduced(c, squares(c), "sum", "sum.dim_IntList"); }
std::optional<Tensor> mean_abs(Calling& c) {
  return reduced(c, c.elementwise("abs", {c.x[0]}), "mean", "mean.dim");
}
// Ones where a causal mask lets look.
Tensor lower_ones(Calling& c) {
  const Sizes sizes = c.out(), last(sizes.end() - 2, sizes.end());
  const Tensor ones = c.fresh("ones", {integers(last)}, last,
                              {{"device", named("device", "cuda")}, {"pin_memory", arg(false)}});
  return c.fresh("tril", {arg(ones)}, last);
}
std::optional<Tensor> tril_by_mask(Calling& c) {
  return c.elementwise("mul.Tensor", {c.x[0], lower_ones(c)});
}
std::optional<Tensor> causal_tril_softmax(Calling& c) {
  const Tensor hidden = compared(c, lower_ones(c), "eq.Scalar", arg(int64_t{0}));
  const Tensor scores =
      c.fresh("masked_fill.Scalar", {arg(c.x[0]), arg(hidden), arg(-std::numeric_limits<double>::infinity())},
              c.out());
  return c.fresh("_softmax", {arg(scores), arg(int64_t{-1}), arg(false)}, c.out());
}
std::optional<Tensor> causal_softmax(Calling& c) {
  const Sizes sizes = c.out(), last(sizes.end() - 2, sizes.end());
  const Tensor ones = c.fresh(
      "ones", {integers(last)}, last,
      {{"dtype", named("dtype", "bool")}, {"device", named("device", "cuda")}, {"pin_memory", arg(false)}},
      DType::kBool);
  const Tensor hidden = c.fresh("triu", {arg(ones), arg(int64_t{1})}, last, {}, DType::kBool);
  const Tensor scores = c.fresh(
      "masked_fill.Scalar", {arg(c.x[0]), arg(hidden), arg(-std::numeric_limits<double>::infinity())}, sizes);
  return c.fresh("_softmax", {arg(scores), arg(int64_t{-1}), arg(false)}, sizes);
}
std::optional<Tensor> flip(Calling& c) {
  return c.elementwise("flip", {c.x[0]}, {integers({c.written_dim()})});
}
// where(mask, x, 0), made contiguous.
std::optional<Tensor> triangle(Calling& c) {
  const Sizes sizes = c.laid().sizes, last(sizes.end() - 2, sizes.end());
  const Laid lie[] = {{last, row_major(last)}, c.laid()};
  const Laid chosen = elementwise(lie);
  return c.to.call(aten(c), {arg(c.x[0])}, is_row_major(chosen) ? c.to.made(chosen) : c.to.made(sizes));
}

}  // namespace

void add_pointwise_records(Records& records) {
  for (const Operator& op : catalogue()) {
    if (op.rule == Rule::kUnary && op.constants.empty()) records[op.name] = unary;
    if (op.rule == Rule::kBinary) records[op.name] = binary;
    if (op.rule == Rule::kTriangle) records[op.name] = triangle;
  }
  for (const char* name : {"gelu", "hardswish", "hardsigmoid", "logsigmoid"}) records[name] = unary_in_steps;
  records["elu"] = elu;
  records["gelu_tanh"] = gelu_tanh, records["prelu"] = records["prelu_channels"] = prelu;
  records["mse_loss_none"] = records["smooth_l1_none"] = plain_each, records["huber_loss_none"] = huber_each;
  records["bce_with_logits_none"] = bce_each, records["l1_loss_none"] = l1_each;
  for (const char* name :
       {"pow", "pow_positive", "add_scalar", "sub_scalar", "mul_scalar", "div_scalar", "rsub"})
    records[name] = with_constant;
  for (const char* name : {"hardtanh", "relu6", "clamp", "clamp_min", "clamp_max"}) records[name] = clamp;
  records["where_positive"] = where_positive;
  records["where_above"] = where_above, records["where_larger"] = where_larger;
  records["masked_fill_below"] = masked_fill_below, records["fill_negative"] = fill_negative;
  records["keep_above"] = keep_above, records["positive_by_mask"] = positive_by_mask;
  records["swish_by_hand"] = swish_by_hand, records["squared_relu"] = squared_relu;
  records["tril_by_mask"] = tril_by_mask;
  records["square"] = square;
  records["relu"] = relu;
  records["lerp"] = lerp;
  records["where"] = where;
  records["masked_fill"] = masked_fill;
  records["leaky_relu"] = leaky_relu;
  records["selu"] = selu;
  records["softplus"] = softplus;
  records["softsign"] = softsign;
}

void add_reduction_records(Records& records) {
  records["sum"] = sum, records["mean"] = mean;
  records["max"] = records["min"] = extreme;
  for (const char* name : {"var", "var_population", "std", "std_population"}) records[name] = variance;
  records["max_values"] = records["min_values"] = value_of_extreme;
  records["norm"] = norm, records["logsumexp"] = logsumexp;
  records["argmax"] = records["argmin"] = place_of_extreme;
  records["softmax"] = records["log_softmax"] = softmax;
  records["cumsum"] = records["cumprod"] = scan;
  records["cummax"] = records["cummin"] = scan_with_places;
  records["cumsum_exclusive"] = cumsum_exclusive, records["cumsum_reversed"] = cumsum_reversed;
  records["causal_softmax"] = causal_softmax, records["causal_tril_softmax"] = causal_tril_softmax;
  records["mean_square"] = mean_square, records["sum_square"] = sum_square, records["mean_abs"] = mean_abs;
  records["torch_softmax"] = softmax;
  records["flip"] = flip;
}

}  // namespace nereid::ops
