// What operations make of values: numbers, pointers and conditions as affine expressions.
#include <algorithm>
#include <bit>

#include "nereid/ttir/analysis/cost_walk.h"
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/lowering/lowering.h"

namespace nereid::ttir::cost_walk {

AbstractValue Walk::bound(const Type& type, const BoundArgument& a) {
  if (type.elem == Elem::kDescriptor) {
    if (!a.is_descriptor) return unknown();
    auto d = std::make_shared<DescriptorValue>();
    d->buffer = buffer_of(a.descriptor.base);
    d->base = number(offset_of(a.descriptor.base));
    for (int k = 0; k < a.descriptor.rank; ++k) {
      d->shape.push_back(number(a.descriptor.shape[static_cast<size_t>(k)]));
      d->strides.push_back(a.descriptor.strides[static_cast<size_t>(k)]);
    }
    AbstractValue v;
    v.kind = AbstractValue::Kind::kDescriptor;
    v.descriptor = std::move(d);
    return v;
  }
  if (type.elem == Elem::kPointer)
    return buffer_of(a.bits) < 0 ? one_pointer(-1, number(0))
                                 : one_pointer(buffer_of(a.bits), number(offset_of(a.bits)));
  if (type.elem == Elem::kI1) return one_truth(a.bits != 0 ? Truth::always() : Truth::never());
  if (is_integer(type.elem)) return one_number(number(a.bits));
  return unknown();
}

Expr Walk::grown(const Expr& growth, const Expr& counter) {
  if (growth.constant()) return times(counter, growth.base);
  if (counter.constant()) return times(growth, counter.base);
  throw TooComplex{"a product of variables"};
}

void Walk::split_by_program(const Expr& e) {
  if (!may_cut_) return;
  int axis = -1;
  bool alone = true;
  atoms_.for_each_variable(e, [&](AtomId id) {
    const Atom& a = atoms_[id];
    alone = alone && a.kind == AtomKind::kProgram && (axis < 0 || axis == a.index);
    axis = a.index;
  });
  if (!alone || axis < 0) return;
  const Bounds all = programs_[static_cast<size_t>(axis)];
  const auto holds = [&](int64_t program) {
    const Expr v = atoms_.replaced(e, [&](AtomId) { return number(program - all.low); });
    return v.base >= 0;
  };
  int64_t low = all.low, high = all.high;
  const bool first = holds(low);
  if (holds(high) == first) return;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(middle) == first ? low : high) = middle;
  }
  throw Cut{axis, high};
}

AbstractValue Walk::chosen(const Truth& t, const AbstractValue& a, const AbstractValue& b) {
  if (t.is_always()) return a;
  if (t.is_never()) return b;
  if (a.kind == AbstractValue::Kind::kTruth && b.kind == AbstractValue::Kind::kTruth)
    return one_truth(either(atoms_, both(atoms_, t, a.truth), both(atoms_, negated(atoms_, t), b.truth)));
  const bool numbers =
      (a.is_number() && b.is_number()) || (a.kind == AbstractValue::Kind::kPointer &&
                                           b.kind == AbstractValue::Kind::kPointer && a.buffer == b.buffer);
  if (numbers) {
    if (a.single() != nullptr && b.single() != nullptr && *a.single() == *b.single()) return a;
    if (t.known) {
      for (const Conjunction& c : t.any)
        for (const Expr& e : c) split_by_program(e);
      AbstractValue r = a;
      r.pieces.clear();
      const Truth otherwise = negated(atoms_, t);
      if (otherwise.known) {
        for (const auto& [side, from] : {std::pair{&t, &a}, std::pair{&otherwise, &b}})
          for (const Conjunction& c : side->any)
            for (const Piece& p : from->pieces) add_piece(r, c, p.when, p.value);
        if (!r.pieces.empty() && r.pieces.size() <= kMaxPieces) return r;
      }
    }
  }
  return unknown(t.by_data || a.by_data || b.by_data, a.buffer == b.buffer ? a.buffer : -1);
}

void Walk::add_piece(AbstractValue& to, const Conjunction& when, const Conjunction& also, Expr value) {
  Conjunction c = when;
  c.insert(c.end(), also.begin(), also.end());
  Truth t = simplified(atoms_, {true, false, {std::move(c)}});
  if (t.is_never()) return;
  const Bounds b = atoms_.bounds(value);
  if (b.low == b.high) value = number(b.low);
  to.pieces.push_back({std::move(t.any[0]), std::move(value)});
}

bool Walk::fits_type(const Expr& e, Elem elem) const {
  if (probing_ != 0) return true;
  const int bits = elem_bits(elem);
  if (bits >= 64) return true;
  const Bounds b = atoms_.bounds(e);
  const int64_t limit = int64_t{1} << (bits - 1);
  return b.low >= -limit && b.high < limit;
}

std::optional<Expr> Walk::divided(OpKind kind, const Expr& a, const Expr& b) {
  if (!b.constant() || b.base <= 0) return std::nullopt;
  const bool floors = kind == OpKind::kFloordivsi;
  if (!floors && !never_negative(a)) return std::nullopt;
  switch (kind) {
    case OpKind::kCeildivsi:
    case OpKind::kCeildivui:
      return atoms_.quotient(plus(a, number(b.base - 1)), b.base);
    case OpKind::kRemsi:
    case OpKind::kRemui:
      return atoms_.remainder(a, b.base);
    default:
      return atoms_.quotient(a, b.base);
  }
}

std::optional<Expr> Walk::binary(OpKind kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case OpKind::kAddi:
      return plus(a, b);
    case OpKind::kSubi:
      return plus(a, b, -1);
    case OpKind::kMuli:
      if (b.constant()) return times(a, b.base);
      if (a.constant()) return times(b, a.base);
      return std::nullopt;
    case OpKind::kShli:
      if (b.constant() && b.base >= 0 && b.base < 62) return times(a, int64_t{1} << b.base);
      return std::nullopt;
    case OpKind::kShrui:
      if (!never_negative(a)) return std::nullopt;
      [[fallthrough]];
    case OpKind::kShrsi:
      if (b.constant() && b.base >= 0 && b.base < 62) return atoms_.quotient(a, int64_t{1} << b.base);
      return std::nullopt;
    case OpKind::kAndi: {
      const Expr &x = b.constant() ? a : b, &m = b.constant() ? b : a;
      if (a.constant() && b.constant()) return number(a.base & b.base);
      if (m.constant() && m.base > 0 && std::has_single_bit(static_cast<uint64_t>(m.base) + 1))
        return atoms_.remainder(x, m.base + 1);
      return std::nullopt;
    }
    case OpKind::kOri:
    case OpKind::kXori:
      if (a.constant() && b.constant())
        return number(kind == OpKind::kOri ? a.base | b.base : a.base ^ b.base);
      return std::nullopt;
    default:
      return divided(kind, a, b);
  }
}

AbstractValue Walk::integers(const Op& op) {
  const AbstractValue &a = value(op.operands[0]), &b = value(op.operands[1]);
  const Elem elem = module_.type(op.results[0]).elem;
  if (elem == Elem::kI1) {
    const auto truth = [&](const AbstractValue& k) {
      return k.kind == AbstractValue::Kind::kTruth ? k.truth : Truth::unknown(k.by_data);
    };
    const Truth x = truth(a), y = truth(b);
    if (op.kind == OpKind::kAndi || op.kind == OpKind::kMuli) return one_truth(both(atoms_, x, y));
    if (op.kind == OpKind::kOri) return one_truth(either(atoms_, x, y));
    if (op.kind == OpKind::kXori) {
      if (y.is_always()) return one_truth(negated(atoms_, x));
      if (x.is_always()) return one_truth(negated(atoms_, y));
      if (y.is_never()) return one_truth(x);
      if (x.is_never()) return one_truth(y);
    }
    return unknown(a.by_data || b.by_data);
  }
  switch (op.kind) {
    case OpKind::kMinui:
    case OpKind::kMaxui:
      if (!a.is_number() || !b.is_number()) return unknown(a.by_data || b.by_data);
      for (const AbstractValue* k : {&a, &b})
        for (const Piece& p : k->pieces)
          if (!never_negative(p.value)) return unknown();
      [[fallthrough]];
    case OpKind::kMinsi:
    case OpKind::kMaxsi: {
      const Truth less = compared(Predicate::kSle, a, b);
      const bool least = op.kind == OpKind::kMinsi || op.kind == OpKind::kMinui;
      return least ? chosen(less, a, b) : chosen(less, b, a);
    }
    default:
      return combined(a, b, elem, [&](const Expr& x, const Expr& y) { return binary(op.kind, x, y); });
  }
}

Truth Walk::compared(Predicate p, const AbstractValue& a, const AbstractValue& b) {
  const bool by_data = a.by_data || b.by_data;
  if (!a.is_number() || !b.is_number()) return Truth::unknown(by_data);
  Truth all;
  for (const Piece& x : a.pieces)
    for (const Piece& y : b.pieces) {
      if (p >= Predicate::kUlt && p <= Predicate::kUge &&
          (!never_negative(x.value) || !never_negative(y.value)))
        return Truth::unknown(by_data);
      const Expr d = plus(x.value, y.value, -1);
      const Expr up = d, down = times(d, -1);
      Truth t;
      switch (p) {
        case Predicate::kEq:
        case Predicate::kNe:
          t = simplified(atoms_, {true, false, {{up, down}}});
          if (p == Predicate::kNe) t = negated(atoms_, t);
          break;
        case Predicate::kSlt:
        case Predicate::kUlt:
          t = simplified(atoms_, {true, false, {{plus(down, number(-1))}}});
          break;
        case Predicate::kSle:
        case Predicate::kUle:
          t = simplified(atoms_, {true, false, {{down}}});
          break;
        case Predicate::kSgt:
        case Predicate::kUgt:
          t = simplified(atoms_, {true, false, {{plus(up, number(-1))}}});
          break;
        case Predicate::kSge:
        case Predicate::kUge:
          t = simplified(atoms_, {true, false, {{up}}});
          break;
        default:
          return Truth::unknown(by_data);
      }
      Conjunction when = x.when;
      when.insert(when.end(), y.when.begin(), y.when.end());
      if (!when.empty()) t = both(atoms_, t, simplified(atoms_, {true, false, {when}}));
      if (!t.known) return t;
      all.any.insert(all.any.end(), t.any.begin(), t.any.end());
    }
  return simplified(atoms_, std::move(all));
}

AbstractValue Walk::reshaped(const AbstractValue& k, const std::vector<int64_t>& from,
                             const std::vector<int64_t>& to) {
  // Lane of dimension d: (flat / after) % size, flat in the lanes of the new shape.
  Expr flat = number(0);
  int64_t weight = 1;
  for (size_t d = to.size(); d-- > 0;) {
    flat = plus(flat, atoms_.lane(static_cast<int>(d), to[d]), weight);
    weight *= to[d];
  }
  return with_lanes(k, [&](int dim, int64_t size) {
    int64_t after = 1;
    for (size_t d = static_cast<size_t>(dim) + 1; d < from.size(); ++d) after *= from[d];
    return atoms_.remainder(atoms_.quotient(flat, after), size);
  });
}

AbstractValue Walk::shaped(const Op& op) {
  const AbstractValue& a = value(op.operands[0]);
  const auto &from = module_.type(op.operands[0]).shape, &to = module_.type(op.results[0]).shape;
  switch (op.kind) {
    case OpKind::kExpandDims: {
      const int axis = static_cast<int>(op.integer("axis"));
      return with_lanes(a, [&](int dim, int64_t size) { return atoms_.lane(dim + (dim >= axis), size); });
    }
    case OpKind::kTrans: {
      const auto& order = op.integers("order");
      return with_lanes(a, [&](int dim, int64_t size) {
        const auto at = std::find(order.begin(), order.end(), dim) - order.begin();
        return atoms_.lane(static_cast<int>(at), size);
      });
    }
    case OpKind::kReshape:
      return reshaped(a, from, to);
    default:  // splat, unsplat, broadcast
      return a;
  }
}

AbstractValue Walk::converted(const Op& op) {
  const AbstractValue& a = value(op.operands[0]);
  const Elem elem = module_.type(op.results[0]).elem;
  if (a.kind == AbstractValue::Kind::kTruth && elem != Elem::kI1) {
    if (op.kind == OpKind::kExtui || op.kind == OpKind::kIndexCastui)
      return chosen(a.truth, one_number(number(1)), one_number(number(0)));
    return unknown();
  }
  if (!a.is_number() || elem == Elem::kI1) return unknown(a.by_data);
  for (const Piece& p : a.pieces) {
    if (!fits_type(p.value, elem)) return unknown();
    if ((op.kind == OpKind::kExtui || op.kind == OpKind::kIndexCastui) && probing_ == 0 &&
        !never_negative(p.value))
      return unknown();
  }
  return a;
}

AbstractValue Walk::moved(const Op& op) {
  const AbstractValue &p = value(op.operands[0]), &o = value(op.operands[1]);
  if (p.kind != AbstractValue::Kind::kPointer || !o.is_number())
    return unknown(p.by_data || o.by_data, p.buffer);
  const int64_t bytes = elem_bytes(module_.type(op.operands[0]).pointee);
  AbstractValue r = p;
  r.pieces.clear();
  for (const Piece& x : p.pieces)
    for (const Piece& y : o.pieces) add_piece(r, x.when, y.when, plus(x.value, y.value, bytes));
  if (r.pieces.empty() || r.pieces.size() > kMaxPieces) return unknown(false, p.buffer);
  return r;
}

AbstractValue Walk::constant(const Op& op) {
  const Elem elem = module_.type(op.results[0]).elem;
  if (op.constant.size() != 1) return unknown();
  const int64_t bits = canonical_bits(&op.constant[0], elem);
  if (elem == Elem::kI1) return one_truth(bits != 0 ? Truth::always() : Truth::never());
  return is_integer(elem) ? one_number(number(bits)) : unknown();
}

AbstractValue Walk::made_descriptor(const Op& op) {
  const AbstractValue& base = value(op.operands[0]);
  const auto rank = static_cast<size_t>(op.segments[1]);
  auto d = std::make_shared<DescriptorValue>();
  if (base.single() == nullptr) return unknown(base.by_data);
  d->buffer = base.buffer, d->base = *base.single();
  for (size_t k = 0; k < rank; ++k) {
    const Expr *size = value(op.operands[1 + k]).single(),
               *stride = value(op.operands[1 + rank + k]).single();
    if (size == nullptr || stride == nullptr || !stride->constant()) return unknown();
    d->shape.push_back(*size), d->strides.push_back(stride->base);
  }
  AbstractValue v;
  v.kind = AbstractValue::Kind::kDescriptor;
  v.descriptor = std::move(d);
  return v;
}

AbstractValue Walk::pure(const Op& op) {
  const auto by_data = [&] {
    return std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return value(v).by_data; });
  };
  const Type& type = module_.type(op.results[0]);
  if (is_float(type.elem)) return unknown(by_data());
  switch (op.kind) {
    case OpKind::kConstant:
      return constant(op);
    case OpKind::kGetProgramId:
      return one_number(program_[static_cast<size_t>(axis_of(op))]);
    case OpKind::kGetNumPrograms:
      return one_number(number(launch_.grid[static_cast<size_t>(axis_of(op))]));
    case OpKind::kMakeRange:
      return one_number(plus(number(op.integer("start")), atoms_.lane(0, type.shape[0])));
    case OpKind::kSplat:
    case OpKind::kUnsplat:
    case OpKind::kBroadcast:
    case OpKind::kExpandDims:
    case OpKind::kTrans:
    case OpKind::kReshape:
      return shaped(op);
    case OpKind::kAddptr:
      return moved(op);
    case OpKind::kBitcast:
    case OpKind::kArithBitcast:
      if (type.elem == module_.type(op.operands[0]).elem) return value(op.operands[0]);
      return unknown(by_data());
    case OpKind::kExtsi:
    case OpKind::kExtui:
    case OpKind::kTrunci:
    case OpKind::kIndexCast:
    case OpKind::kIndexCastui:
      return converted(op);
    case OpKind::kCmpi:
      if (module_.type(op.operands[0]).elem == Elem::kI1) return unknown(by_data());
      return one_truth(compared(predicate_named(op.text("predicate"), false), value(op.operands[0]),
                                value(op.operands[1])));
    case OpKind::kSelect: {
      const AbstractValue& c = value(op.operands[0]);
      const Truth t = c.kind == AbstractValue::Kind::kTruth ? c.truth : Truth::unknown(c.by_data);
      return chosen(t, value(op.operands[1]), value(op.operands[2]));
    }
    case OpKind::kMakeTensorDescriptor:
      return made_descriptor(op);
    default:
      if (op.operands.size() == 2 && op.results.size() == 1 && is_integer(type.elem) &&
          op.kind >= OpKind::kAddi && op.kind <= OpKind::kMaxui)
        return integers(op);
      return unknown(by_data());
  }
}

}  // namespace nereid::ttir::cost_walk
