#include "nereid/render/decompositions_arithmetic.h"

#include <algorithm>
#include <map>
#include <numbers>
#include <string_view>

#include "nereid/render/canonicalizer.h"

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Call = trace::Call;
using Dims = std::vector<int64_t>;

bool is_tensor(const Call& call, size_t at) {
  return at < call.args.size() && std::holds_alternative<trace::TensorRef>(call.args[at].node);
}

// log(x) times the logarithm of e to base 2 or 10.
bool logarithm(Canonicalizer& to, const Call& call) {
  const double scale = call.op == "aten::log2" ? std::numbers::log2e : std::numbers::log10e;
  to.part("aten::mul.Tensor", {to.part("aten::log", {call.args[0]}, call), to.one(scale)}, call.result, call);
  return true;
}

// (log1p(x) - log1p(-x)) / 2
bool area_tangent(Canonicalizer& to, const Call& call) {
  const Arg x = call.args[0], opposite = to.part("aten::mul.Tensor", {x, to.one(-1)}, call);
  const Arg twice =
      to.part("aten::sub.Tensor",
              {to.part("aten::log1p", {x}, call), to.part("aten::log1p", {opposite}, call)}, call);
  to.part("aten::mul.Tensor", {twice, to.one(0.5)}, call.result, call);
  return true;
}

// max(x, y) + softplus(-|x - y|)
bool sum_of_exponentials(Canonicalizer& to, const Call& call) {
  if (!is_tensor(call, 1) || to.sizes_of(call.args[0]) != to.sizes_of(call.args[1])) return false;
  const Arg apart =
      to.part("aten::abs", {to.part("aten::sub.Tensor", {call.args[0], call.args[1]}, call)}, call);
  const Arg below = to.part("aten::mul.Tensor", {apart, to.one(-1)}, call);
  const Arg more = to.part("aten::softplus", {below, {1.0}}, call);
  to.part("aten::add.Tensor", {to.part("aten::maximum", {call.args[0], call.args[1]}, call), more},
          call.result, call);
  return true;
}

// A product, or a quotient, and then what is added to it; none where `beta` or `alpha` scale these.
bool added_product(Canonicalizer& to, const Call& call) {
  if (call.args.size() != 3 || !is_tensor(call, 1) || !is_tensor(call, 2)) return false;
  double scale = 1;
  for (const auto& [name, arg] : call.kwargs) {
    const auto factor = to.number({arg}, 0);
    if (!factor.there || (name != "value" && factor.is != 1)) return false;
    if (name == "value") scale = factor.is;
  }
  static const std::map<std::string_view, std::string_view> kProducts = {
      {"aten::addmm", "aten::mm"},
      {"aten::baddbmm", "aten::bmm"},
      {"aten::addcmul", "aten::mul.Tensor"},
      {"aten::addcdiv", "aten::div.Tensor"}};
  const std::string op(kProducts.at(call.op));
  const Dims a = to.sizes_of(call.args[1]), b = to.sizes_of(call.args[2]);
  const Dims result = to.sizes_of(call.result);
  const bool contracted = op == "aten::mm" || op == "aten::bmm";
  if (contracted ? a.size() < 2 || a.size() != b.size() : a != result) return false;
  Dims sizes = a;
  if (contracted) sizes.back() = b.back();
  if (sizes != result) return false;
  Arg product = to.made(sizes, trace::DType::kF32);
  to.part(op, {call.args[1], call.args[2]}, product, call);
  if (scale != 1) product = to.part("aten::mul.Tensor", {product, to.one(scale)}, call);
  to.part("aten::add.Tensor", {product, call.args[0]}, call.result, call);
  return true;
}

// The products of a matrix's rows and a vector, summed.
bool matrix_times_vector(Canonicalizer& to, const Call& call) {
  if (!is_tensor(call, 1) || to.sizes_of(call.args[0]).size() != 2) return false;
  const Arg terms = to.part("aten::mul.Tensor", {call.args[0], call.args[1]}, call);
  to.part("aten::sum.dim_IntList", {terms, to.list_of({1})}, call.result, call);
  return true;
}

// Norms of the differences of all pairs of rows.
bool distances(Canonicalizer& to, const Call& call) {
  const auto order = to.number(call.args, 2);
  if (!is_tensor(call, 1) || !order.there) return false;
  Dims a = to.sizes_of(call.args[0]), b = to.sizes_of(call.args[1]);
  const size_t rank = a.size();
  if (rank < 2 || b.size() != rank || !std::equal(a.begin(), a.end() - 2, b.begin())) return false;
  a.insert(a.end() - 1, 1);
  b.insert(b.end() - 2, 1);
  Dims apart_sizes = a;
  apart_sizes[rank - 1] = b[rank - 1];
  const Arg apart = to.made(apart_sizes, trace::DType::kF32);
  to.part("aten::sub.Tensor", {to.viewed(call.args[0], a, call), to.viewed(call.args[1], b, call)}, apart,
          call);
  to.part("aten::linalg_vector_norm", {apart, {order.is}, to.list_of({static_cast<int64_t>(rank)})},
          call.result, call);
  return true;
}

}  // namespace

bool decompose_arithmetic(Canonicalizer& to, const Call& call) {
  static const std::map<std::string_view, bool (*)(Canonicalizer&, const Call&)> kParts = {
      {"aten::log10", logarithm},        {"aten::log2", logarithm},
      {"aten::atanh", area_tangent},     {"aten::logaddexp", sum_of_exponentials},
      {"aten::addmm", added_product},    {"aten::baddbmm", added_product},
      {"aten::addcmul", added_product},  {"aten::addcdiv", added_product},
      {"aten::mv", matrix_times_vector}, {"aten::_cdist_forward", distances}};
  const auto found = kParts.find(call.op);
  return found != kParts.end() && found->second(to, call);
}

}  // namespace nereid::render
