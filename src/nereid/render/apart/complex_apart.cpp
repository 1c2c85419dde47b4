#include "nereid/render/apart/complex_apart.h"

#include <complex>
#include <map>
#include <optional>
#include <string_view>

namespace nereid::render {
namespace {

using Arg = trace::Arg;
using Dims = std::vector<int64_t>;

constexpr double kSmallest = 1.1754943508222875e-38;  // a normal number of float32

// A tensor's parts, or a number's; `im` is nothing where it is real.
struct Parts {
  Arg re;
  std::optional<Arg> im;
};

// Writes what a call with complex tensors does to their parts.
class Complex {
 public:
  explicit Complex(SimplerSteps& steps) : steps_(steps), sizes_(steps.sizes(steps.call().result)) {}

  bool write() {
    static const std::map<std::string_view, bool (Complex::*)()> kOperators = {
        {"aten::abs", &Complex::absolute},        {"aten::mul.Tensor", &Complex::product},
        {"aten::mul.Scalar", &Complex::product},  {"aten::div.Tensor", &Complex::quotient},
        {"aten::div.Scalar", &Complex::quotient}, {"aten::add.Tensor", &Complex::sum},
        {"aten::sub.Tensor", &Complex::sum},      {"aten::neg", &Complex::negative},
        {"aten::exp", &Complex::exponential},     {"aten::polar", &Complex::polar},
        {"aten::complex", &Complex::pair},        {"aten::sum.dim_IntList", &Complex::total}};
    const auto found = kOperators.find(steps_.call().op);
    return found != kOperators.end() && !sizes_.empty() && (this->*found->second)();
  }

 private:
  // An argument's parts, each of the result's sizes and contiguous.
  std::optional<Parts> parts(size_t at, bool spread = true) {
    const auto& args = steps_.call().args;
    if (at >= args.size()) return std::nullopt;
    const Arg* x = steps_.tensor(at);
    const auto sized = [&](const Arg& part) {
      return spread ? steps_.spread(part, sizes_) : steps_.contiguous(part);
    };
    if (x == nullptr) {
      const auto* both = std::get_if<std::complex<double>>(&args[at].node);
      if (both != nullptr)
        return Parts{steps_.to().filled(both->real(), sizes_), steps_.to().filled(both->imag(), sizes_)};
      const auto number = Canonicalizer::number(args, at);
      if (!number.there) return std::nullopt;
      return Parts{steps_.to().filled(number.is, sizes_), std::nullopt};
    }
    if (steps_.type(*x) == trace::DType::kF32) return Parts{sized(*x), std::nullopt};
    if (steps_.type(*x) != trace::DType::kC64) return std::nullopt;
    const Arg plain = steps_.to().value(*x).conj || steps_.to().value(*x).neg ? steps_.copied(*x) : *x;
    const Arg both = steps_.parts_of_complex(plain);
    const size_t last = steps_.sizes(both).size() - 1;
    return Parts{sized(steps_.select(both, last, 0)), sized(steps_.select(both, last, 1))};
  }
  // The result of these parts; real where there is no second.
  bool give(const Arg& re, const Arg& im) {
    const Arg& result = steps_.call().result;
    Dims both = sizes_;
    both.push_back(2);
    const Arg pairs = steps_.room(result, both);
    steps_.stacked({re, im}, sizes_.size(), &pairs);
    steps_.complex_of_parts(pairs, result);
    return true;
  }
  Arg mul(const Arg& x, const Arg& y) { return steps_.binary("mul", x, y); }
  Arg add(const Arg& x, const Arg& y) { return steps_.binary("add", x, y); }
  Arg sub(const Arg& x, const Arg& y) { return steps_.binary("sub", x, y); }
  Arg div(const Arg& x, const Arg& y) { return steps_.binary("div", x, y); }
  Arg zeros() { return steps_.to().filled(0, sizes_); }

  Arg finite(const Arg& x) { return steps_.binary("minimum", x, steps_.to().one(kLargestNumber)); }

  // m sqrt(1 + (n / m)^2) of the larger part m and the smaller one n: their squares may overflow.
  bool absolute() {
    const auto z = parts(0);
    if (!z || !z->im) return false;
    const Arg a = steps_.unary("abs", z->re), b = steps_.unary("abs", *z->im);
    const Arg larger = steps_.binary("maximum", a, b), smaller = steps_.binary("minimum", a, b);
    const Arg divisor = finite(steps_.binary("maximum", larger, steps_.to().one(kSmallest)));
    const Arg ratio = div(finite(smaller), divisor);
    const Arg root = steps_.unary("sqrt", steps_.shifted(mul(ratio, ratio), 1));
    steps_.binary("mul", larger, root, &steps_.call().result);
    return true;
  }
  bool product() {
    const auto x = parts(0), y = parts(1);
    if (!x || !y) return false;
    if (x->im && y->im)
      return give(sub(mul(x->re, y->re), mul(*x->im, *y->im)), add(mul(x->re, *y->im), mul(*x->im, y->re)));
    if (!x->im && !y->im) return false;
    const Arg& real = x->im ? y->re : x->re;
    const Parts& z = x->im ? *x : *y;
    return give(mul(z.re, real), mul(*z.im, real));
  }
  // By (c + d i): both over the larger of |c| and |d|, s; (a + b i) (c - d i) / (s (c^2 + d^2)).
  bool quotient() {
    const auto x = parts(0), y = parts(1);
    if (!x || !y || steps_.call().kwargs.size() > 0) return false;
    if (!y->im) return x->im && give(div(x->re, y->re), div(*x->im, y->re));
    const Arg s = steps_.binary("maximum", steps_.unary("abs", y->re), steps_.unary("abs", *y->im));
    const Arg c = div(y->re, s), d = div(*y->im, s), squares = add(mul(c, c), mul(d, d));
    Arg re = mul(x->re, c), im = steps_.scaled(mul(x->re, d), -1);
    if (x->im) re = add(re, mul(*x->im, d)), im = add(im, mul(*x->im, c));
    return give(div(div(re, squares), s), div(div(im, squares), s));
  }
  bool sum() {
    const auto x = parts(0), y = parts(1);
    const bool minus = steps_.call().op == "aten::sub.Tensor";
    if (!x || !y || (!x->im && !y->im) || !steps_.call().kwargs.empty() || steps_.call().args.size() > 2)
      return false;
    const Arg re = minus ? sub(x->re, y->re) : add(x->re, y->re);
    if (!y->im) return give(re, *x->im);
    if (!x->im) return give(re, minus ? steps_.scaled(*y->im, -1) : *y->im);
    return give(re, minus ? sub(*x->im, *y->im) : add(*x->im, *y->im));
  }
  bool negative() {
    const auto z = parts(0);
    return z && z->im && give(steps_.scaled(z->re, -1), steps_.scaled(*z->im, -1));
  }
  bool exponential() {
    const auto z = parts(0);
    if (!z || !z->im) return false;
    const Arg size = steps_.unary("exp", z->re);
    return give(mul(size, steps_.unary("cos", *z->im)), mul(size, steps_.unary("sin", *z->im)));
  }
  bool polar() {
    const auto size = parts(0), angle = parts(1);
    if (!size || !angle) return false;
    return give(mul(size->re, steps_.unary("cos", angle->re)), mul(size->re, steps_.unary("sin", angle->re)));
  }
  bool pair() {
    const auto re = parts(0), im = parts(1);
    return re && im && give(re->re, im->re);
  }
  bool total() {
    const auto z = parts(0, false);
    const auto given = steps_.dimension(1);
    if (!z || !z->im || !given || steps_.flag(2, false) || !steps_.call().kwargs.empty()) return false;
    const auto dim = static_cast<int64_t>(*given);
    return give(steps_.reduced("sum.dim_IntList", z->re, dim),
                steps_.reduced("sum.dim_IntList", *z->im, dim));
  }

  SimplerSteps& steps_;
  const Dims sizes_;
};

}  // namespace

bool complex_apart(SimplerSteps& steps) {
  const auto is_complex = [&](const Arg& arg) {
    for (const trace::ValueId id : trace::tensors_in(arg))
      if (steps.to().value(id).dtype == trace::DType::kC64) return true;
    return false;
  };
  bool any = is_complex(steps.call().result);
  for (const Arg& arg : steps.call().args) any |= is_complex(arg);
  return any && std::holds_alternative<trace::TensorRef>(steps.call().result.node) && Complex(steps).write();
}

}  // namespace nereid::render
