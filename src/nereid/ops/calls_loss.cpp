// Losses, which PyTorch composes of smaller operators.
#include "nereid/ops/calls_impl.h"

namespace nereid::ops {
namespace {

std::optional<Tensor> whole(Calling& c) {
  return c.fresh(c.applied.op->name, {arg(c.x[0]), arg(c.x[1])}, {});
}

// 1: the mean, which is the schema's own; 2: the sum.
int64_t how(const Calling& c) { return c.applied.op->name.ends_with("sum") ? 2 : 1; }
std::optional<Tensor> whole_with(Calling& c, double usual) {
  std::vector<Arg> args = {arg(c.x[0]), arg(c.x[1])};
  const bool unusual = !c.applied.op->constants.empty() && std::get<double>(c.constant('a').node) != usual;
  if (how(c) != 1 || unusual) args.push_back(arg(how(c)));
  if (unusual) args.push_back(c.constant('a'));
  return c.fresh(c.applied.op->aten.substr(6), std::move(args), {});
}
std::optional<Tensor> whole_or_sum(Calling& c) { return whole_with(c, 1.0); }
std::optional<Tensor> bce_with_logits(Calling& c) {
  std::vector<Arg> args = {arg(c.x[0]), arg(c.x[1])};
  if (how(c) != 1) args.insert(args.end(), {none(), none(), arg(how(c))});
  return c.fresh("binary_cross_entropy_with_logits", std::move(args), {});
}
std::optional<Tensor> l1(Calling& c) {
  const Tensor far = c.elementwise("abs", {c.elementwise("sub.Tensor", {c.x[0], c.x[1]})});
  return c.fresh(how(c) == 1 ? "mean" : "sum", {arg(far)}, {});
}
std::optional<Tensor> mse_by_hand(Calling& c) {
  const Tensor between = c.elementwise("sub.Tensor", {c.x[0], c.x[1]});
  return c.fresh("mean", {arg(c.elementwise("pow.Tensor_Scalar", {between}, {arg(int64_t{2})}))}, {});
}
std::optional<Tensor> dot(Calling& c) {
  return c.fresh("sum.dim_IntList", {arg(c.elementwise("mul.Tensor", {c.x[0], c.x[1]})), integers({-1})},
                 c.out());
}

std::optional<Tensor> kl_div(Calling& c) {
  const Tensor x = c.x[0], target = c.x[1];
  const Tensor product = c.elementwise("mul.Tensor", {target, x});
  const Tensor entropy = c.elementwise("xlogy.Tensor", {target, target});
  const Tensor each = c.elementwise("sub.Tensor", {entropy, product});
  const Tensor sum = c.fresh("sum", {arg(each)}, {});
  const Sizes sizes = c.laid().sizes;
  return c.elementwise("div.Tensor", {sum}, {arg(sizes.empty() ? int64_t{1} : sizes[0])});
}

std::optional<Tensor> hinge(Calling& c) {
  const Tensor x = c.x[0], target = c.x[1];
  const Sizes sizes = c.laid().sizes;
  const auto format = [](const char* name) {
    return Recording::Named{{"memory_format", named("memory_format", name)}};
  };
  const Tensor zeros = c.fresh("zeros_like", {arg(x)}, sizes, format("contiguous_format"));
  const Laid lies[] = {c.laid()};
  const Tensor margin =
      c.to.call("empty_like", {arg(x)}, c.to.made(elementwise(lies)), format("preserve_format"));
  c.to.call("fill_.Scalar", {arg(margin), arg(1.0)}, margin);
  c.to.call("sub_.Tensor", {arg(margin), arg(x)}, margin);
  c.to.call("clamp_min_", {arg(margin), arg(int64_t{0})}, margin);
  const Tensor not_one = c.elementwise("ne.Scalar", {target}, {arg(int64_t{1})}, DType::kBool);
  const Tensor apart = c.elementwise("where.self", {not_one, margin, zeros});
  const Tensor not_minus = c.elementwise("ne.Scalar", {target}, {arg(int64_t{-1})}, DType::kBool);
  const Tensor alike = c.elementwise("where.self", {not_minus, x, zeros});
  return c.fresh("mean", {arg(c.elementwise("add.Tensor", {apart, alike}))}, {});
}

std::optional<Tensor> cross_entropy(Calling& c) {
  const Tensor scores = c.fresh("_log_softmax", {arg(c.x[0]), arg(int64_t{1}), arg(false)}, c.laid().sizes);
  const Tensor loss = c.to.made(Sizes()), weight = c.to.made(Sizes());
  c.to.call("nll_loss_forward", {arg(scores), arg(c.x[1]), none(), arg(int64_t{1}), arg(int64_t{-100})},
            tensors({loss, weight}, true));
  return loss;
}

Tensor distance(Calling& c, Tensor a, Tensor b) {
  const Tensor between = c.elementwise("sub.Tensor", {a, b});
  const Tensor moved = c.elementwise("add.Scalar", {between}, {arg(1e-6)});
  return c.fresh("norm.ScalarOpt_dim", {arg(moved), arg(2.0), integers({1})}, {c.to.laid(a).sizes[0]});
}
std::optional<Tensor> triplet(Calling& c) {
  const Tensor near = distance(c, c.x[0], c.x[1]), far = distance(c, c.x[0], c.x[2]);
  const Tensor allowed = c.elementwise("add.Scalar", {near}, {arg(1.0)});
  const Tensor beyond = c.elementwise("sub.Tensor", {allowed, far});
  return c.fresh("mean", {arg(c.elementwise("clamp_min", {beyond}, {arg(int64_t{0})}))}, {});
}

std::optional<Tensor> cosine(Calling& c) {
  Sizes rows = c.out();
  rows.push_back(1);
  Tensor lengths[2];
  for (const size_t i : {0, 1}) {
    const Tensor length =
        c.fresh("linalg_vector_norm", {arg(c.x[i]), arg(int64_t{2}), integers({-1}), arg(true)}, rows);
    lengths[i] = c.fresh("clone", {arg(length)}, rows);
  }
  const Tensor least = c.fresh("scalar_tensor", {arg(1e-8)}, {},
                               {{"dtype", named("dtype", "f32")}, {"device", named("device", "cuda")}});
  for (const Tensor length : lengths) c.to.call("clamp_min_.Tensor", {arg(length), arg(least)}, length);
  const Tensor second = c.elementwise("div.Tensor", {c.x[1], lengths[1]});
  const Tensor first = c.elementwise("div.Tensor", {c.x[0], lengths[0]});
  const Tensor product = c.elementwise("mul.Tensor", {first, second});
  return c.fresh("sum.dim_IntList", {arg(product), integers({-1})}, c.out());
}

}  // namespace

void add_loss_records(Records& records) {
  records["mse_loss"] = records["smooth_l1_loss"] = whole;
  for (const char* name : {"mse_loss_sum", "huber_loss", "huber_loss_sum", "smooth_l1_beta"})
    records[name] = whole_or_sum;
  records["bce_with_logits"] = records["bce_with_logits_sum"] = bce_with_logits;
  records["l1_loss"] = records["l1_loss_sum"] = records["l1_by_hand"] = l1;
  records["mse_by_hand"] = mse_by_hand, records["dot"] = dot;
  records["kl_div"] = kl_div, records["hinge_embedding_loss"] = hinge;
  records["cross_entropy"] = cross_entropy, records["triplet_margin_loss"] = triplet;
  records["cosine_similarity"] = cosine;
}

}  // namespace nereid::ops
