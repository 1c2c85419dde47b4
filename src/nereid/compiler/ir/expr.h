// Scalar expressions: what one element of a node's result is, of elements that it loads.
//
// An expression is a number in an arena (`Exprs`) that keeps equal expressions once. Values are computed in
// `type`: f32 for everything narrower that is floating, as PyTorch computes inside an operator; a cast from
// f32 to f16 and back is left out, so a fused chain rounds less often than the operators one by one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/compiler/ir/index.h"
#include "nereid/trace/trace.h"

namespace nereid::compiler {

using trace::DType;
using ExprId = int32_t;
using TensorId = int32_t;

enum class Fn : uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kDivExact,  // of float32, rounded as IEEE 754 says (exact_divisions.h)
  kMax,       // of NaN and a number: NaN
  kMin,
  kPow,
  kAtan2,
  kNeg,
  kAbs,
  kExp,
  kExp2,
  kExpm1,
  kLog,
  kLog2,
  kLog1p,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kErf,
  kErfc,
  kErfcx,  // exp(x * x) erfc(x)
  kErfinv,
  kAcosh,
  kAtanh,
  kLgamma,
  kBesselI0,
  kBesselI1,
  kNextAfter,
  kLogb,   // the exponent, 2^logb <= |x| < 2^(logb + 1)
  kLdexp,  // of a number and an int32: x 2^n
  kSigmoid,
  kFloor,
  kCeil,
  kTrunc,
  kRound,  // half to even
  kIsInf,
  kHalf,    // rounded to float16, as a float32
  kTf32,    // rounded to the ten bits of mantissa that TF32 has
  kFmod,    // with the sign of the dividend
  kIntDiv,  // of integers, towards zero
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kShiftLeft,  // of integers
  kShiftRight,
  kAnd,  // of booleans, or bitwise
  kOr,
  kXor,
  kWhere,  // condition, then, else
  kCast,   // to the expression's type
};
struct FnInfo {
  Fn fn;
  std::string_view name;    // for people
  std::string_view triton;  // with {0}, {1}, {2}; a name of libdevice's begins with "libdevice."
  int arity;
  double flops;
};
const FnInfo& info(Fn fn);

// A number that a size makes: over / under, or over / under ** 0.5.
struct Ratio {
  Size over = 1, under = 1;
  bool root = false;
  double value() const;
  std::string text() const;  // "(1 / {1536*3 * 512})": sizes are holes (size.h)
};

struct Expr {
  enum class Kind : uint8_t {
    kConstant,  // `number`, or `integer` where the type is integral; made of `ratio`, if that is not null
    kIndex,     // the value of `index`, as an i64
    kWithin,    // low <= index < high, as a bool
    kLoad,      // the element of `tensor` at `at`, and further by the i64 values of `args` where it has them
    kApply,
  };
  Kind kind = Kind::kConstant;
  DType type = DType::kF32;
  double number = 0;
  int64_t integer = 0;
  std::shared_ptr<const Ratio> ratio = {};
  Index index = {};
  Size low = 0, high = 0;
  TensorId tensor = -1;
  std::vector<Index> at = {};  // one a dimension of the tensor
  Fn fn = Fn::kAdd;
  std::vector<ExprId> args = {};  // of a load: none, or one a dimension

  friend std::strong_ordering operator<=>(const Expr& a, const Expr& b);
};

class Exprs {
 public:
  const Expr& operator[](ExprId id) const { return exprs_[static_cast<size_t>(id)]; }

  ExprId constant(double value, DType type = DType::kF32);
  // Another expression than the number of that value, which may be the author's and is written as a number.
  ExprId constant(const Ratio& ratio, DType type = DType::kF32);
  ExprId integer(int64_t value, DType type = DType::kI64);
  ExprId index(const Index& index);
  ExprId within(const Index& index, const Size& low, const Size& high, const Extents& extents);
  // `further`: none, or what is added to each index: an i64 that is known only when the kernel runs.
  ExprId load(TensorId tensor, std::vector<Index> at, DType type, std::vector<ExprId> further = {});
  // Of the type of its first value; comparisons are bool. Constants are folded, and what changes nothing
  // (x * 1, x + 0, where of a known condition) is left out.
  ExprId apply(Fn fn, std::vector<ExprId> args);
  ExprId cast(ExprId of, DType type);

  // The dimensions of `of` become `by`, whose dimensions have `extents`.
  ExprId substitute(ExprId of, const std::vector<Index>& by, const Extents& extents);
  // The same where dimension d becomes by[d] + further[d]. Nothing where such a dimension is under a
  // quotient or a remainder.
  std::optional<ExprId> substitute(ExprId of, const std::vector<Index>& by,
                                   const std::vector<ExprId>& further, const Extents& extents);
  // Every load becomes what `by` says of it.
  ExprId replace_loads(ExprId of, const std::function<ExprId(const Expr& load)>& by);
  // Every application computes what `by` says of it. `done`: what was replaced before, by the same `by`.
  ExprId replace_functions(ExprId of, const std::function<Fn(ExprId id, Fn fn)>& by,
                           std::map<ExprId, ExprId>& done);

  // What a person calls the value: the variable or the operator that it was. The first name stays, and goes
  // with the expression when it is rewritten.
  void name(ExprId id, const std::string& name) { names_.emplace(id, name); }
  std::string name_of(ExprId id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? "" : found->second;
  }
  // Of which step of the traced forward the value is the result; -1: of none. As with names.
  void result_of(ExprId id, int step) { steps_.emplace(id, step); }
  int step_of(ExprId id) const {
    const auto found = steps_.find(id);
    return found == steps_.end() ? -1 : found->second;
  }

  // Every expression below `of` and itself, arguments before their users, each once.
  std::vector<ExprId> below(ExprId of) const;
  bool uses(ExprId of, int dimension) const;

 private:
  ExprId intern(Expr expr);
  ExprId* place_of(const Expr& expr, uint64_t hash);
  // What of chains of extrema, roundings and signs changes nothing (each holds for infinities and NaN too).
  std::optional<ExprId> absorbed(Fn fn, const std::vector<ExprId>& args);
  // Between which all its numbers lie.
  std::pair<double, double> range(ExprId id) const;
  std::optional<ExprId> gain(const Index& index, const std::vector<ExprId>& further);
  ExprId rebuild(ExprId of, const std::function<ExprId(const Expr&)>& leaf, std::map<ExprId, ExprId>& done,
                 const std::function<Fn(ExprId id, Fn fn)>& function = {});

  std::vector<Expr> exprs_;
  mutable std::map<ExprId, std::pair<double, double>> ranges_;
  std::vector<uint64_t> hashes_;  // of each expression
  std::vector<ExprId> places_;    // by hash, a power of two of them; -1: free
  std::map<ExprId, std::string> names_;
  std::map<ExprId, int> steps_;
};

// What values of a dtype are computed in.
DType compute_type(DType type);

}  // namespace nereid::compiler
