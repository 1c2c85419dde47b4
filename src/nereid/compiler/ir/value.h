// Expressions with the operators of arithmetic, for importers: x * 2 + y.
#pragma once

#include "nereid/compiler/ir/expr.h"

namespace nereid::compiler {

class Value {
 public:
  Value(Exprs& exprs, ExprId id) : exprs_(&exprs), id_(id) {}
  ExprId id() const { return id_; }
  DType type() const { return (*exprs_)[id_].type; }
  Value constant(double number) const { return {*exprs_, exprs_->constant(number, type())}; }
  Value constant(const Ratio& ratio) const { return {*exprs_, exprs_->constant(ratio, type())}; }
  Value apply(Fn fn) const { return {*exprs_, exprs_->apply(fn, {id_})}; }
  Value apply(Fn fn, Value other) const { return {*exprs_, exprs_->apply(fn, {id_, other.id_})}; }
  Value where(Value then, Value otherwise) const {
    return {*exprs_, exprs_->apply(Fn::kWhere, {id_, then.id_, otherwise.id_})};
  }
  Value cast(DType type) const { return {*exprs_, exprs_->cast(id_, type)}; }

  friend Value operator+(Value a, Value b) { return a.apply(Fn::kAdd, b); }
  friend Value operator-(Value a, Value b) { return a.apply(Fn::kSub, b); }
  friend Value operator*(Value a, Value b) { return a.apply(Fn::kMul, b); }
  friend Value operator/(Value a, Value b) { return a.apply(Fn::kDiv, b); }
  friend Value operator+(Value a, double b) { return a + a.constant(b); }
  friend Value operator-(Value a, double b) { return a - a.constant(b); }
  friend Value operator*(Value a, double b) { return a * a.constant(b); }
  friend Value operator*(Value a, const Ratio& b) { return a * a.constant(b); }
  friend Value operator/(Value a, double b) { return a / a.constant(b); }
  friend Value operator<(Value a, double b) { return a.apply(Fn::kLess, a.constant(b)); }
  friend Value operator>(Value a, double b) { return a.constant(b).apply(Fn::kLess, a); }
  friend Value operator<(Value a, Value b) { return a.apply(Fn::kLess, b); }
  friend Value operator>(Value a, Value b) { return b.apply(Fn::kLess, a); }
  friend Value operator-(Value a) { return a.apply(Fn::kNeg); }
  // Of booleans.
  friend Value operator&(Value a, Value b) { return a.apply(Fn::kAnd, b); }
  friend Value operator|(Value a, Value b) { return a.apply(Fn::kOr, b); }

 private:
  Exprs* exprs_;
  ExprId id_;
};

inline Value maximum(Value a, Value b) { return a.apply(Fn::kMax, b); }
inline Value minimum(Value a, Value b) { return a.apply(Fn::kMin, b); }
inline Value maximum(Value a, double b) { return maximum(a, a.constant(b)); }
inline Value minimum(Value a, double b) { return minimum(a, a.constant(b)); }
inline Value clamp(Value a, double low, double high) { return minimum(maximum(a, low), high); }
inline Value equal(Value a, Value b) { return a.apply(Fn::kEqual, b); }
inline Value equal(Value a, double b) { return equal(a, a.constant(b)); }
inline Value is_nan(Value a) { return a.apply(Fn::kNotEqual, a); }
// Of a boolean.
inline Value negated(Value a) { return equal(a, 0); }

}  // namespace nereid::compiler
