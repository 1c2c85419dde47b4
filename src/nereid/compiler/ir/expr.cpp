#include "nereid/compiler/ir/expr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "nereid/base/check.h"
#include "nereid/compiler/ir/constant_folding.h"

namespace nereid::compiler {
namespace {

constexpr std::array kFns = {
    FnInfo{Fn::kAdd, "add", "{0} + {1}", 2, 1},
    FnInfo{Fn::kSub, "subtract", "{0} - {1}", 2, 1},
    FnInfo{Fn::kMul, "multiply", "{0} * {1}", 2, 1},
    FnInfo{Fn::kDiv, "divide", "{0} / {1}", 2, 1},
    FnInfo{Fn::kDivExact, "divide", "tl.div_rn({0}, {1})", 2, 1},
    FnInfo{Fn::kMax, "maximum", "tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", 2, 1},
    FnInfo{Fn::kMin, "minimum", "tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", 2, 1},
    FnInfo{Fn::kPow, "power", "libdevice.pow({0}, {1})", 2, 1},
    FnInfo{Fn::kAtan2, "atan2", "libdevice.atan2({0}, {1})", 2, 1},
    FnInfo{Fn::kNeg, "negate", "-{0}", 1, 1},
    FnInfo{Fn::kAbs, "abs", "tl.abs({0})", 1, 1},
    FnInfo{Fn::kExp, "exp", "tl.exp({0})", 1, 1},
    FnInfo{Fn::kExp2, "exp2", "exp2_of({0})", 1, 1},
    FnInfo{Fn::kExpm1, "expm1", "expm1_of({0})", 1, 1},
    FnInfo{Fn::kLog, "log", "tl.log({0})", 1, 1},
    FnInfo{Fn::kLog2, "log2", "tl.log2({0})", 1, 1},
    FnInfo{Fn::kLog1p, "log1p", "log1p_of({0})", 1, 1},
    FnInfo{Fn::kSqrt, "sqrt", "tl.sqrt_rn({0})", 1, 1},
    FnInfo{Fn::kRsqrt, "rsqrt", "rsqrt_of({0})", 1, 1},
    FnInfo{Fn::kSin, "sin", "tl.sin({0})", 1, 1},
    FnInfo{Fn::kCos, "cos", "tl.cos({0})", 1, 1},
    FnInfo{Fn::kTan, "tan", "libdevice.tan({0})", 1, 1},
    FnInfo{Fn::kAsin, "asin", "libdevice.asin({0})", 1, 1},
    FnInfo{Fn::kAcos, "acos", "libdevice.acos({0})", 1, 1},
    FnInfo{Fn::kAtan, "atan", "libdevice.atan({0})", 1, 1},
    FnInfo{Fn::kSinh, "sinh", "libdevice.sinh({0})", 1, 1},
    FnInfo{Fn::kCosh, "cosh", "libdevice.cosh({0})", 1, 1},
    FnInfo{Fn::kTanh, "tanh", "libdevice.tanh({0})", 1, 1},
    FnInfo{Fn::kErf, "erf", "tl.erf({0})", 1, 1},
    FnInfo{Fn::kErfc, "erfc", "libdevice.erfc({0})", 1, 1},
    FnInfo{Fn::kErfcx, "erfcx", "libdevice.erfcx({0})", 1, 1},
    FnInfo{Fn::kErfinv, "erfinv", "libdevice.erfinv({0})", 1, 1},
    FnInfo{Fn::kAcosh, "acosh", "libdevice.acosh({0})", 1, 1},
    FnInfo{Fn::kAtanh, "atanh", "libdevice.atanh({0})", 1, 1},
    FnInfo{Fn::kLgamma, "lgamma", "libdevice.lgamma({0})", 1, 1},
    FnInfo{Fn::kBesselI0, "bessel_i0", "libdevice.cyl_bessel_i0({0})", 1, 1},
    FnInfo{Fn::kBesselI1, "bessel_i1", "libdevice.cyl_bessel_i1({0})", 1, 1},
    FnInfo{Fn::kNextAfter, "next_after", "libdevice.nextafter({0}, {1})", 2, 1},
    FnInfo{Fn::kLogb, "exponent", "libdevice.logb({0})", 1, 1},
    FnInfo{Fn::kLdexp, "scaled", "libdevice.ldexp({0}, {1})", 2, 1},
    FnInfo{Fn::kSigmoid, "sigmoid", "tl.sigmoid({0})", 1, 1},
    FnInfo{Fn::kFloor, "floor", "tl.floor({0})", 1, 1},
    FnInfo{Fn::kCeil, "ceil", "tl.ceil({0})", 1, 1},
    FnInfo{Fn::kTrunc, "trunc", "libdevice.trunc({0})", 1, 1},
    FnInfo{Fn::kRound, "round", "libdevice.rint({0})", 1, 1},
    FnInfo{Fn::kIsInf, "isinf", "tl.abs({0}) == float(\"inf\")", 1, 1},
    FnInfo{Fn::kHalf, "half", "{0}.to(tl.float16).to(tl.float32)", 1, 1},
    FnInfo{Fn::kTf32, "tf32", "round_to_tf32({0})", 1, 2},
    FnInfo{Fn::kFmod, "fmod", "libdevice.fmod({0}, {1})", 2, 4},
    FnInfo{Fn::kIntDiv, "integer divide", "{0} // {1}", 2, 2},
    FnInfo{Fn::kLess, "less", "{0} < {1}", 2, 1},
    FnInfo{Fn::kLessEqual, "less or equal", "{0} <= {1}", 2, 1},
    FnInfo{Fn::kEqual, "equal", "{0} == {1}", 2, 1},
    FnInfo{Fn::kNotEqual, "not equal", "{0} != {1}", 2, 1},
    FnInfo{Fn::kShiftLeft, "shift_left", "{0} << {1}", 2, 1},
    FnInfo{Fn::kShiftRight, "shift_right", "{0} >> {1}", 2, 1},
    FnInfo{Fn::kAnd, "and", "{0} & {1}", 2, 1},
    FnInfo{Fn::kOr, "or", "{0} | {1}", 2, 1},
    FnInfo{Fn::kXor, "exclusive or", "{0} ^ {1}", 2, 1},
    FnInfo{Fn::kWhere, "where", "tl.where({0}, {1}, {2})", 3, 1},
    FnInfo{Fn::kCast, "cast", "{0}", 1, 0},
};

bool is_comparison(Fn fn) {
  return fn == Fn::kLess || fn == Fn::kLessEqual || fn == Fn::kEqual || fn == Fn::kNotEqual ||
         fn == Fn::kIsInf;
}

}  // namespace

const FnInfo& info(Fn fn) {
  const FnInfo& found = kFns[static_cast<size_t>(fn)];
  NEREID_CHECK(found.fn == fn, "the table in the order of the enumeration");
  return found;
}

std::strong_ordering operator<=>(const Expr& a, const Expr& b) {
  const auto is_ratio = [](const Expr& e) { return e.ratio != nullptr; };
  if (const auto order = is_ratio(a) <=> is_ratio(b); order != 0) return order;
  const auto key = [](const Expr& e) {
    return std::tuple(e.kind, e.type, e.fn, e.integer, std::bit_cast<int64_t>(e.number), e.low, e.high,
                      e.tensor);
  };
  if (const auto order = key(a) <=> key(b); order != 0) return order;
  if (const auto order = a.args <=> b.args; order != 0) return order;
  if (const auto order = a.index <=> b.index; order != 0) return order;
  return a.at <=> b.at;
}

DType compute_type(DType type) {
  if (!trace::is_floating(type)) return type;
  return type == DType::kF64 ? DType::kF64 : DType::kF32;
}

namespace {

// Of what is cheap to look at: expressions that differ in indices alone are few.
uint64_t hash_of(const Expr& e) {
  uint64_t hash = 0;
  const auto add = [&](auto value) {
    hash = (hash ^ static_cast<uint64_t>(value)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  };
  add(static_cast<int>(e.kind) * 65536 + static_cast<int>(e.type) * 256 + static_cast<int>(e.fn));
  add(e.integer), add(std::bit_cast<int64_t>(e.number)), add(e.low), add(e.high), add(e.tensor);
  for (const ExprId arg : e.args) add(arg);
  add(e.index.constant());
  for (const Index& index : e.at) add(index.constant());
  return hash;
}

std::optional<double> number_of(const Expr& expr) {
  if (expr.kind != Expr::Kind::kConstant) return std::nullopt;
  return trace::is_floating(expr.type) ? expr.number : static_cast<double>(expr.integer);
}

// Between which all numbers of an expression lie. `range`: the same of an argument.
std::pair<double, double> range_of(const Expr& expr,
                                   const std::function<std::pair<double, double>(ExprId)>& range) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (const auto number = number_of(expr); number && !std::isnan(*number)) return {*number, *number};
  if (expr.kind != Expr::Kind::kApply || !trace::is_floating(expr.type)) return {-kInfinity, kInfinity};
  const auto of = [&](size_t i) { return range(expr.args[i]); };
  switch (expr.fn) {
    case Fn::kExp:
    case Fn::kExp2:
    case Fn::kAbs:
    case Fn::kSqrt:
    case Fn::kRsqrt:
      return {0, kInfinity};
    case Fn::kSigmoid:
      return {0, 1};
    case Fn::kTanh:
    case Fn::kErf:
      return {-1, 1};
    case Fn::kMul:
      return {expr.args[0] == expr.args[1] ? 0 : -kInfinity, kInfinity};
    case Fn::kNeg:
      return {-of(0).second, -of(0).first};
    case Fn::kMax:
      return {std::max(of(0).first, of(1).first), std::max(of(0).second, of(1).second)};
    case Fn::kMin:
      return {std::min(of(0).first, of(1).first), std::min(of(0).second, of(1).second)};
    case Fn::kWhere:
      return {std::min(of(1).first, of(2).first), std::max(of(1).second, of(2).second)};
    default:
      return {-kInfinity, kInfinity};
  }
}

// A boolean compared with a number; x != 0 for not (x == 0).
std::optional<ExprId> compared_boolean(Exprs& exprs, Fn fn, ExprId id, double other) {
  const Expr expr = exprs[id];
  if (expr.type != DType::kBool || (other != 0 && other != 1)) return std::nullopt;
  if ((fn == Fn::kEqual) == (other == 1)) return id;
  if (expr.kind != Expr::Kind::kApply || (expr.fn != Fn::kEqual && expr.fn != Fn::kNotEqual))
    return std::nullopt;
  return exprs.apply(expr.fn == Fn::kEqual ? Fn::kNotEqual : Fn::kEqual, expr.args);
}

}  // namespace

ExprId Exprs::intern(Expr expr) {
  if (2 * exprs_.size() >= places_.size()) {  // at least half of the places are free
    places_.assign(std::max<size_t>(64, 4 * exprs_.size()), -1);
    places_.resize(std::bit_ceil(places_.size()), -1);
    for (size_t id = 0; id < exprs_.size(); ++id)
      *place_of(exprs_[id], hashes_[id]) = static_cast<ExprId>(id);
  }
  const uint64_t hash = hash_of(expr);
  ExprId* const place = place_of(expr, hash);
  if (*place >= 0) return *place;
  *place = static_cast<ExprId>(exprs_.size());
  exprs_.push_back(std::move(expr));
  hashes_.push_back(hash);
  return *place;
}

// Where it stands, or would: the first free place from where its hash points.
ExprId* Exprs::place_of(const Expr& expr, uint64_t hash) {
  for (size_t at = hash & (places_.size() - 1);; at = (at + 1) & (places_.size() - 1)) {
    const ExprId there = places_[at];
    if (there < 0) return &places_[at];
    const auto id = static_cast<size_t>(there);
    if (hashes_[id] == hash && (exprs_[id] <=> expr) == 0) return &places_[at];
  }
}

ExprId Exprs::constant(double value, DType type) {
  if (!trace::is_floating(type)) return integer(static_cast<int64_t>(value), type);
  Expr expr{.kind = Expr::Kind::kConstant, .type = type};
  expr.number = value;
  return intern(std::move(expr));
}

ExprId Exprs::integer(int64_t value, DType type) {
  Expr expr{.kind = Expr::Kind::kConstant, .type = type};
  expr.integer = value;
  return intern(std::move(expr));
}

ExprId Exprs::index(const Index& index) {
  if (index.is_constant()) return integer(index.constant());
  Expr expr{.kind = Expr::Kind::kIndex, .type = DType::kI64};
  expr.index = index;
  return intern(std::move(expr));
}

ExprId Exprs::within(const Index& index, const Size& low, const Size& high, const Extents& extents) {
  const Bounds bounds = index.bounds(extents);
  if (bounds.low >= low && bounds.high < high) return integer(1, DType::kBool);
  if (bounds.high < low || bounds.low >= high) return integer(0, DType::kBool);
  Expr expr{.kind = Expr::Kind::kWithin, .type = DType::kBool};
  expr.index = index;
  expr.low = low;
  expr.high = high;
  return intern(std::move(expr));
}

ExprId Exprs::load(TensorId tensor, std::vector<Index> at, DType type, std::vector<ExprId> further) {
  Expr expr{.kind = Expr::Kind::kLoad, .type = type};
  expr.tensor = tensor;
  // What turns out to be known belongs to the index.
  bool known = true;
  for (size_t d = 0; d < further.size(); ++d) {
    const Expr& each = (*this)[further[d]];
    if (each.kind == Expr::Kind::kConstant)
      at[d] = at[d] + Index(each.integer);
    else if (each.kind == Expr::Kind::kIndex)
      at[d] = at[d] + each.index;
    else {
      known = false;
      continue;
    }
    further[d] = integer(0);
  }
  expr.at = std::move(at);
  if (!known) expr.args = std::move(further);
  return intern(std::move(expr));
}

// Expressions share what they are made of: each is looked at once.
std::pair<double, double> Exprs::range(ExprId id) const {
  const auto known = ranges_.find(id);
  if (known != ranges_.end()) return known->second;
  const auto found = range_of((*this)[id], [this](ExprId arg) { return range(arg); });
  return ranges_[id] = found;
}

std::optional<ExprId> Exprs::absorbed(Fn fn, const std::vector<ExprId>& args) {
  const Expr first = (*this)[args[0]];
  const auto inner = [&](Fn wanted) { return first.kind == Expr::Kind::kApply && first.fn == wanted; };
  switch (fn) {
    case Fn::kMax:
    case Fn::kMin: {
      if (args[0] == args[1]) return args[0];
      const auto number = number_of((*this)[args[1]]);
      if (!number || !trace::is_floating(first.type)) return std::nullopt;
      const auto [low, high] = range(args[0]);
      if (fn == Fn::kMax ? low >= *number : high <= *number) return args[0];
      if (!inner(fn)) return std::nullopt;
      const auto before = number_of((*this)[first.args[1]]);
      if (!before) return std::nullopt;
      const double both = fn == Fn::kMax ? std::max(*before, *number) : std::min(*before, *number);
      return apply(fn, {first.args[0], constant(both, first.type)});
    }
    case Fn::kAbs:
      if (inner(Fn::kAbs)) return args[0];
      return inner(Fn::kNeg) ? std::optional(apply(Fn::kAbs, {first.args[0]})) : std::nullopt;
    case Fn::kNeg:
      return inner(Fn::kNeg) ? std::optional(first.args[0]) : std::nullopt;
    case Fn::kFloor:
    case Fn::kCeil:
    case Fn::kTrunc:
    case Fn::kRound:
      for (const Fn whole : {Fn::kFloor, Fn::kCeil, Fn::kTrunc, Fn::kRound})
        if (inner(whole)) return args[0];
      return std::nullopt;
    case Fn::kWhere: {
      // Under its own condition a condition is known.
      const Expr then = (*this)[args[1]], otherwise = (*this)[args[2]];
      const auto asks = [&](const Expr& expr) {
        return expr.kind == Expr::Kind::kApply && expr.fn == Fn::kWhere && expr.args[0] == args[0];
      };
      if (asks(then)) return apply(fn, {args[0], then.args[1], args[2]});
      if (asks(otherwise)) return apply(fn, {args[0], args[1], otherwise.args[2]});
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

ExprId Exprs::apply(Fn fn, std::vector<ExprId> args) {
  NEREID_CHECK(static_cast<int>(args.size()) == info(fn).arity, "as many arguments as the function takes");
  if (const auto known = absorbed(fn, args)) return *known;
  const double none = std::nan("");  // equal to nothing
  const double a = number_of((*this)[args[0]]).value_or(none);
  const double b = args.size() > 1 ? number_of((*this)[args[1]]).value_or(none) : none;
  const bool first_known = !std::isnan(a), second_known = !std::isnan(b);
  if (fn == Fn::kWhere && first_known) return a != 0 ? args[1] : args[2];
  if (fn == Fn::kWhere && args[1] == args[2]) return args[1];
  if ((fn == Fn::kAdd || fn == Fn::kSub) && b == 0) return args[0];
  if (fn == Fn::kAdd && a == 0) return args[1];
  if ((fn == Fn::kMul || fn == Fn::kDiv) && b == 1) return args[0];
  if (fn == Fn::kMul && a == 1) return args[1];
  if (fn == Fn::kMul && (a == 0 || b == 0) && !trace::is_floating((*this)[args[0]].type))
    return args[a == 0 ? 0 : 1];
  if (fn == Fn::kOr && (*this)[args[0]].type == DType::kBool) {
    if (first_known) return a != 0 ? args[0] : args[1];
    if (second_known) return b != 0 ? args[1] : args[0];
  }
  if (fn == Fn::kAnd && (*this)[args[0]].type == DType::kBool) {
    if (first_known) return a != 0 ? args[1] : args[0];
    if (second_known) return b != 0 ? args[0] : args[1];
  }
  if (fn == Fn::kEqual || fn == Fn::kNotEqual)
    if (const auto known = compared_boolean(*this, fn, args[0], b)) return *known;
  const DType type = is_comparison(fn)  ? DType::kBool
                     : fn == Fn::kWhere ? (*this)[args[1]].type
                                        : (*this)[args[0]].type;
  if (first_known && second_known)
    if (const auto known = compared(fn, a, b)) return constant(*known ? 1 : 0, DType::kBool);
  std::vector<double> numbers;
  for (const ExprId arg : args)
    if (const auto number = number_of((*this)[arg])) numbers.push_back(*number);
  if (numbers.size() == args.size() && (trace::is_floating(type) || fn == Fn::kAdd || fn == Fn::kMul))
    if (const auto number = folded(fn, numbers)) return constant(*number, type);
  Expr expr{.kind = Expr::Kind::kApply, .type = type};
  expr.fn = fn;
  expr.args = std::move(args);
  return intern(std::move(expr));
}

ExprId Exprs::cast(ExprId of, DType type) {
  const Expr from = (*this)[of];
  if (from.type == type) return of;
  if (from.kind == Expr::Kind::kConstant && type != DType::kBool)
    return constant(trace::is_floating(from.type) ? from.number : static_cast<double>(from.integer), type);
  // What was widened and is narrowed again is as it was.
  if (from.kind == Expr::Kind::kApply && from.fn == Fn::kCast && from.type == DType::kF32 &&
      (*this)[from.args[0]].type == type && (type == DType::kF16 || type == DType::kBF16))
    return from.args[0];
  Expr expr{.kind = Expr::Kind::kApply, .type = type};
  expr.fn = Fn::kCast;
  expr.args = {of};
  return intern(std::move(expr));
}

ExprId Exprs::rebuild(ExprId of, const std::function<ExprId(const Expr&)>& leaf,
                      std::map<ExprId, ExprId>& done, const std::function<Fn(ExprId id, Fn fn)>& function) {
  const auto found = done.find(of);
  if (found != done.end()) return found->second;
  const Expr expr = (*this)[of];  // the arena grows below
  ExprId made = of;
  std::vector<ExprId> args;
  for (const ExprId arg : expr.args) args.push_back(rebuild(arg, leaf, done, function));
  if (expr.kind != Expr::Kind::kApply) {
    Expr with_args = expr;
    with_args.args = std::move(args);
    made = leaf(with_args);
  } else {
    const Fn fn = function ? function(of, expr.fn) : expr.fn;
    made = fn == Fn::kCast ? cast(args[0], expr.type) : apply(fn, std::move(args));
  }
  if (const auto named = names_.find(of); named != names_.end()) names_.emplace(made, named->second);
  if (const int step = step_of(of); step >= 0) result_of(made, step);
  return done[of] = made;
}

ExprId Exprs::substitute(ExprId of, const std::vector<Index>& by, const Extents& extents) {
  std::map<ExprId, ExprId> done;
  const auto leaf = [&](const Expr& expr) -> ExprId {
    switch (expr.kind) {
      case Expr::Kind::kIndex:
        return index(compiler::substitute(expr.index, by, extents));
      case Expr::Kind::kWithin:
        return within(compiler::substitute(expr.index, by, extents), expr.low, expr.high, extents);
      case Expr::Kind::kLoad: {
        std::vector<Index> at;
        for (const Index& each : expr.at) at.push_back(compiler::substitute(each, by, extents));
        return load(expr.tensor, std::move(at), expr.type, expr.args);
      }
      default:
        return intern(expr);
    }
  };
  return rebuild(of, leaf, done);
}

// What an index gains where dimension d is further[d] more; nothing where that is no sum.
std::optional<ExprId> Exprs::gain(const Index& index, const std::vector<ExprId>& further) {
  ExprId sum = integer(0);
  for (size_t d = 0; d < further.size(); ++d) {
    const Expr& each = (*this)[further[d]];
    if (each.kind == Expr::Kind::kConstant && each.integer == 0) continue;
    const auto stride = index.stride(static_cast<int>(d));
    if (!stride) return std::nullopt;
    if (*stride == 0) continue;
    sum = apply(Fn::kAdd, {sum, apply(Fn::kMul, {further[d], integer(*stride)})});
  }
  return sum;
}

std::optional<ExprId> Exprs::substitute(ExprId of, const std::vector<Index>& by,
                                        const std::vector<ExprId>& further, const Extents& extents) {
  if (further.empty()) return substitute(of, by, extents);
  std::map<ExprId, ExprId> done;
  bool possible = true;
  const auto gained = [&](const Index& index) {
    const auto found = gain(index, further);
    possible = possible && found.has_value();
    return found.value_or(integer(0));
  };
  const auto leaf = [&](const Expr& expr) -> ExprId {
    if (expr.kind == Expr::Kind::kConstant) return intern(expr);
    if (expr.kind == Expr::Kind::kLoad) {
      std::vector<Index> at;
      std::vector<ExprId> more;
      for (size_t d = 0; d < expr.at.size(); ++d) {
        at.push_back(compiler::substitute(expr.at[d], by, extents));
        const ExprId own = expr.args.empty() ? integer(0) : expr.args[d];
        more.push_back(apply(Fn::kAdd, {own, gained(expr.at[d])}));
      }
      return load(expr.tensor, std::move(at), expr.type, std::move(more));
    }
    const ExprId more = gained(expr.index);
    const ExprId value = apply(Fn::kAdd, {index(compiler::substitute(expr.index, by, extents)), more});
    if (expr.kind == Expr::Kind::kIndex) return value;
    if ((*this)[more].kind == Expr::Kind::kConstant)
      return within(compiler::substitute(expr.index, by, extents), expr.low, expr.high, extents);
    return apply(Fn::kAnd, {apply(Fn::kLessEqual, {integer(expr.low), value}),
                            apply(Fn::kLess, {value, integer(expr.high)})});
  };
  const ExprId made = rebuild(of, leaf, done);
  return possible ? std::optional(made) : std::nullopt;
}

ExprId Exprs::replace_loads(ExprId of, const std::function<ExprId(const Expr& load)>& by) {
  std::map<ExprId, ExprId> done;
  return rebuild(
      of, [&](const Expr& expr) { return expr.kind == Expr::Kind::kLoad ? by(expr) : intern(expr); }, done);
}

ExprId Exprs::replace_functions(ExprId of, const std::function<Fn(ExprId id, Fn fn)>& by,
                                std::map<ExprId, ExprId>& done) {
  const auto leaf = [&](const Expr& load) {
    return load.kind == Expr::Kind::kLoad ? this->load(load.tensor, load.at, load.type, load.args)
                                          : intern(load);
  };
  return rebuild(of, leaf, done, by);
}

std::vector<ExprId> Exprs::below(ExprId of) const {
  std::vector<ExprId> order;
  std::vector<bool> seen(static_cast<size_t>(of) + 1);  // arguments are older than their users
  const auto visit = [&](const auto& self, ExprId id) -> void {
    if (seen[static_cast<size_t>(id)]) return;
    seen[static_cast<size_t>(id)] = true;
    for (const ExprId arg : (*this)[id].args) self(self, arg);
    order.push_back(id);
  };
  visit(visit, of);
  return order;
}

bool Exprs::uses(ExprId of, int dimension) const {
  for (const ExprId id : below(of)) {
    const Expr& expr = (*this)[id];
    if (expr.index.uses(dimension)) return true;
    for (const Index& at : expr.at)
      if (at.uses(dimension)) return true;
  }
  return false;
}

}  // namespace nereid::compiler
