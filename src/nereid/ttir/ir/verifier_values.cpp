// What each operation takes and gives.
#include <algorithm>

#include "nereid/ttir/ir/verifier_impl.h"

namespace nereid::ttir {

Status Verifier::check_same_type(const Op& op) {
  static constexpr OpKind kUnary[] = {
      OpKind::kPreciseSqrt, OpKind::kNegf,  OpKind::kAbsf,      OpKind::kAbsi,  OpKind::kCeil,
      OpKind::kFloor,       OpKind::kRound, OpKind::kRoundeven, OpKind::kTrunc, OpKind::kSqrt,
      OpKind::kRsqrt,       OpKind::kCbrt,  OpKind::kExp,       OpKind::kExp2,  OpKind::kExpm1,
      OpKind::kLog,         OpKind::kLog2,  OpKind::kLog10,     OpKind::kLog1p, OpKind::kSin,
      OpKind::kCos,         OpKind::kTan,   OpKind::kAsin,      OpKind::kAcos,  OpKind::kAtan,
      OpKind::kSinh,        OpKind::kCosh,  OpKind::kTanh,      OpKind::kAsinh, OpKind::kAcosh,
      OpKind::kAtanh,       OpKind::kErf,   OpKind::kErfc,      OpKind::kCtlz,  OpKind::kCttz,
      OpKind::kCtpop};
  size_t operands = 2;
  if (std::find(std::begin(kUnary), std::end(kUnary), op.kind) != std::end(kUnary)) operands = 1;
  if (op.kind == OpKind::kFma || op.kind == OpKind::kClampf) operands = 3;
  if (op.operands.size() != operands || op.results.size() != 1)
    return wrong(op, fmt::format("{} operands", operands));
  const Type& t = type(op.results[0]);
  for (ValueId v : op.operands)
    if (type(v) != t) return wrong(op, "operands and result of one type");
  const bool integers = (op.kind >= OpKind::kAddi && op.kind <= OpKind::kMaxui) ||
                        op.kind == OpKind::kMulhiui || op.kind == OpKind::kAbsi ||
                        (op.kind >= OpKind::kCtlz && op.kind <= OpKind::kCtpop);
  if (integers ? !is_integer(t.elem) : !is_float(t.elem)) return wrong(op, integers ? "integers" : "floats");
  return ok_status();
}

Status Verifier::check_cast(const Op& op, bool elems) {
  if (!counts(op, 1, 1) || !elems || !same_shape(type(op.operands[0]), type(op.results[0])))
    return wrong(op, "one shape and types that convert");
  const Elem from = type(op.operands[0]).elem, to = type(op.results[0]).elem;
  const bool wider = elem_bits(to) > elem_bits(from), narrower = elem_bits(to) < elem_bits(from);
  if (((op.kind == OpKind::kExtsi || op.kind == OpKind::kExtui) && !wider) ||
      (op.kind == OpKind::kTrunci && !narrower))
    return wrong(op, "a type of another width");
  return ok_status();
}

Status Verifier::check_memory(const Op& op) {
  const bool load = op.kind == OpKind::kLoad;
  const Type& p = type(op.operands[0]);
  Type value = p;
  value.elem = p.pointee;
  value.pointee = Elem::kNone;
  Type mask = value;
  mask.elem = Elem::kI1;
  if (p.elem != Elem::kPointer || value.elem == Elem::kPointer || value.elem == Elem::kDescriptor ||
      value.elem == Elem::kNone)
    return wrong(op, "a pointer to numbers");
  if (!op.integers("boundaryCheck").empty())
    return input_error("Unsupported: {} of a block pointer", to_string(op.kind));
  const size_t n = op.operands.size();
  const size_t first = load ? 1 : 2;
  if (n < first || n > 3 || (!load && type(op.operands[1]) != value))
    return wrong(op, "pointers, a value of their type and a mask");
  if (n > first && type(op.operands[first]) != mask) return wrong(op, "a mask of i1");
  if (load && n > 2 && type(op.operands[2]) != value) return wrong(op, "another value of the loaded type");
  return ok_status();
}

Status Verifier::check_atomic(const Op& op) {
  const size_t n = op.operands.size();
  const bool cas = op.kind == OpKind::kAtomicCas;
  if (op.results.size() != 1 || n < 2 || n > 3 || (cas && n != 3)) return wrong(op, "pointers and values");
  const Type& p = type(op.operands[0]);
  Type value = p;
  value.elem = p.pointee;
  value.pointee = Elem::kNone;
  Type mask = value;
  mask.elem = Elem::kI1;
  if (p.elem != Elem::kPointer || !(is_integer(value.elem) || is_float(value.elem)) ||
      value.elem == Elem::kI1 || type(op.results[0]) != value || type(op.operands[1]) != value)
    return wrong(op, "pointers and values of their type");
  if (n == 3 && type(op.operands[2]) != (cas ? value : mask))
    return wrong(op, cas ? "two values of one type" : "a mask of i1");
  return ok_status();
}

Status Verifier::check_external(const Op& op) {
  const size_t most = op.kind == OpKind::kInlineAsm ? 32 : 4;
  const bool none = op.operands.empty() && (op.kind != OpKind::kInlineAsm || op.results.size() != 1);
  if (op.operands.size() > most || none || op.results.empty() || op.results.size() > most)
    return wrong(op, fmt::format("one to {} operands and a result", most));
  for (ValueId v : op.operands)
    if (!same_shape(type(v), type(op.results[0])) || !(is_integer(type(v).elem) || is_float(type(v).elem)))
      return wrong(op, "numbers of one shape");
  for (ValueId v : op.results)
    if (!same_shape(type(v), type(op.results[0])) || !(is_integer(type(v).elem) || is_float(type(v).elem)))
      return wrong(op, "numbers of one shape");
  return ok_status();
}

Status Verifier::check_descriptor(const Op& op) {
  const bool makes = op.kind == OpKind::kMakeTensorDescriptor;
  const Type& d = makes ? type(op.results[0]) : type(op.operands[0]);
  if (d.elem != Elem::kDescriptor || d.rank() < 1 || d.rank() > kLazyDescriptorRank)
    return wrong(op, "a descriptor of one to five dimensions");
  const auto rank = static_cast<size_t>(d.rank());
  if (makes) {
    const Type& base = type(op.operands[0]);
    if (base.tensor || base.elem != Elem::kPointer || elem_bytes(base.pointee) != elem_bytes(d.pointee) ||
        op.operands.size() != 1 + 2 * rank)
      return wrong(op, "a pointer, shapes and strides");
    for (size_t k = 1; k < op.operands.size(); ++k)
      if (type(op.operands[k]).tensor || !is_integer(type(op.operands[k]).elem))
        return wrong(op, "integers for shape and strides");
    return ok_status();
  }
  const auto indices = static_cast<size_t>(op.segments[1]);
  const bool loads = op.kind == OpKind::kDescriptorLoad || op.kind == OpKind::kDescriptorGather;
  const bool rows = op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter;
  if (op.operands.size() != 1 + indices + (loads ? 0 : 1)) return wrong(op, "indices");
  const Type& value = loads ? type(op.results[0]) : type(op.operands.back());
  if (!value.tensor || elem_bytes(value.elem) != elem_bytes(d.pointee) || value.elem == Elem::kPointer ||
      (value.elem != d.pointee && (is_float(value.elem) != is_float(d.pointee))))
    return wrong(op, "a tensor of the descriptor's elements");
  if (rows) {
    const Type& index = type(op.operands[1]);
    if (rank != 2 || indices != 2 || d.shape[0] != 1 || !index.tensor || index.rank() != 1 ||
        !is_integer(index.elem) || index.elem == Elem::kI1 ||
        value.shape != std::vector<int64_t>{index.shape[0], d.shape[1]} || type(op.operands[2]).tensor ||
        !is_integer(type(op.operands[2]).elem))
      return wrong(op, "rows, a column and a tensor of them");
    return ok_status();
  }
  Type block = d;
  if (indices != rank || value.elements() != block.elements())
    return wrong(op, "an index for each dimension and a block of the descriptor's size");
  for (size_t k = 1; k <= indices; ++k)
    if (type(op.operands[k]).tensor || !is_integer(type(op.operands[k]).elem))
      return wrong(op, "integer indices");
  return ok_status();
}

Status Verifier::check_dot(const Op& op) {
  if (!counts(op, 3, 1)) return wrong(op, "three operands");
  const Type &a = type(op.operands[0]), &b = type(op.operands[1]), &c = type(op.operands[2]);
  const int r = a.rank();
  if (c != type(op.results[0]) || !a.tensor || !b.tensor || (r != 2 && r != 3) || b.rank() != r ||
      c.rank() != r)
    return wrong(op, "matrices");
  const auto at = [r](const Type& t, int k) { return t.shape[static_cast<size_t>(r - k)]; };
  if (at(a, 1) != at(b, 2) || at(c, 2) != at(a, 2) || at(c, 1) != at(b, 1))
    return wrong(op, "shapes m x k, k x n, m x n");
  if (r == 3 && (a.shape[0] != b.shape[0] || a.shape[0] != c.shape[0])) return wrong(op, "one batch size");
  const bool doubles = a.elem == Elem::kF64 && b.elem == Elem::kF64 && c.elem == Elem::kF64;
  const bool bytes = a.elem == Elem::kI8 && b.elem == Elem::kI8 && c.elem == Elem::kI32;
  const auto narrow = [](Elem e) { return is_float(e) && e != Elem::kF64; };
  if (!doubles && !bytes && !(narrow(a.elem) && narrow(b.elem) && narrow(c.elem))) {
    return input_error("Unsupported: tt.dot of {} and {} into {}", to_string(a), to_string(b), to_string(c));
  }
  const std::string& precision = op.text("inputPrecision");
  if (!precision.empty() && precision != "ieee" && precision != "tf32" && precision != "tf32x3" &&
      precision != "bf16x3" && precision != "bf16x6")
    return input_error("Unsupported: tt.dot with input precision {}", precision);
  return ok_status();
}

Status Verifier::check_dot_scaled(const Op& op) {
  if (op.results.size() != 1 || op.segments.size() != 5)
    return wrong(op, "two operands, their scales and an accumulator");
  const Type &a = type(op.operands[0]), &b = type(op.operands[1]), &c = type(op.operands[2]);
  if (c != type(op.results[0]) || a.rank() != 2 || b.rank() != 2 || c.rank() != 2 || !is_float(c.elem) ||
      c.elem == Elem::kF64)
    return wrong(op, "matrices");
  const bool a_rows = op.integer("lhs_k_pack", 1) == 0, b_rows = op.integer("rhs_k_pack", 1) == 0;
  const auto check_side = [&](const std::string& format, const Type& t) {
    if (format == "e2m1" || format == "e4m3" || format == "e5m2")
      return elem_bytes(t.elem) == 1 && t.elem != Elem::kI1;
    if (format == "bf16") return t.elem == Elem::kBF16;
    if (format == "fp16") return t.elem == Elem::kF16;
    return false;
  };
  const std::string &lhs = op.text("lhs"), &rhs = op.text("rhs");
  if (!check_side(lhs, a) || !check_side(rhs, b))
    return wrong(op, "operands of the formats " + lhs + " and " + rhs);
  const int64_t m = a.shape[0] * (lhs == "e2m1" && a_rows ? 2 : 1),
                ka = a.shape[1] * (lhs == "e2m1" && !a_rows ? 2 : 1);
  const int64_t kb = b.shape[0] * (rhs == "e2m1" && !b_rows ? 2 : 1),
                n = b.shape[1] * (rhs == "e2m1" && b_rows ? 2 : 1);
  if (m != c.shape[0] || n != c.shape[1] || ka != kb) return wrong(op, "shapes m x k, k x n, m x n");
  size_t next = 3;
  for (int side = 0; side < 2; ++side) {
    if (op.segments[static_cast<size_t>(3 + side)] == 0) continue;
    const Type& s = type(op.operands[next++]);
    const int64_t rows = side == 0 ? m : n;
    if (s.rank() != 2 || s.elem != Elem::kI8 || s.shape[0] != rows || s.shape[1] < 1 ||
        ka % s.shape[1] != 0) {
      return input_error("Unsupported: tt.dot_scaled with scales of type {}", to_string(s));
    }
  }
  return ok_status();
}

Status Verifier::check_shape(const Op& op) {
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  const bool two = op.kind == OpKind::kCat || op.kind == OpKind::kJoin || op.kind == OpKind::kGather;
  const bool maybe = op.kind == OpKind::kHistogram;
  if (op.operands.size() != (two ? 2u : 1u) && !(maybe && op.operands.size() == 2))
    return wrong(op, "operands");
  if (op.results.size() != (op.kind == OpKind::kSplit ? 2u : 1u)) return wrong(op, "results");
  const Type &a = in(0), &r = type(op.results[0]);
  if (a.elem == Elem::kDescriptor) return wrong(op, "numbers or pointers");
  const bool same_elem = a.elem == r.elem && a.pointee == r.pointee;
  const auto rank = static_cast<size_t>(a.rank());
  switch (op.kind) {
    case OpKind::kSplat:
      return !a.tensor && r.tensor && same_elem ? ok_status()
                                                : Status(wrong(op, "a scalar to a tensor of it"));
    case OpKind::kUnsplat:
      return a.tensor && a.elements() == 1 && !r.tensor && same_elem
                 ? ok_status()
                 : Status(wrong(op, "a tensor of one element"));
    case OpKind::kExpandDims: {
      const int64_t axis = op.integer("axis", -1);
      if (!a.tensor || axis < 0 || axis > a.rank() || a.rank() >= kMaxRank) return wrong(op, "an axis");
      Type expected = a;
      expected.shape.insert(expected.shape.begin() + static_cast<int64_t>(axis), 1);
      return r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
    }
    case OpKind::kBroadcast:
      if (!a.tensor || !same_elem || r.rank() != a.rank()) return wrong(op, "tensors of one rank");
      for (size_t d = 0; d < rank; ++d)
        if (a.shape[d] != r.shape[d] && a.shape[d] != 1) return wrong(op, "dimensions that are equal or 1");
      return ok_status();
    case OpKind::kReshape:
      return a.tensor && r.tensor && same_elem && a.elements() == r.elements()
                 ? ok_status()
                 : Status(wrong(op, "as many elements"));
    case OpKind::kTrans: {
      const auto& order = op.integers("order");
      std::vector<bool> seen(rank, false);
      if (order.size() != rank || !same_elem || r.rank() != a.rank())
        return wrong(op, "an order of the dimensions");
      for (size_t d = 0; d < rank; ++d) {
        if (order[d] < 0 || order[d] >= a.rank() || seen[static_cast<size_t>(order[d])])
          return wrong(op, "an order of the dimensions");
        seen[static_cast<size_t>(order[d])] = true;
        if (r.shape[d] != a.shape[static_cast<size_t>(order[d])])
          return wrong(op, "the dimensions in that order");
      }
      return ok_status();
    }
    default:
      return check_resized(op);
  }
}

// Results that have other elements than the operand, or more or fewer of them.
Status Verifier::check_resized(const Op& op) {
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  const Type &a = in(0), &r = type(op.results[0]);
  const auto rank = static_cast<size_t>(a.rank());
  switch (op.kind) {
    case OpKind::kCat: {
      Type expected = a;
      if (!a.tensor || a.rank() != 1) return wrong(op, "one dimension");
      expected.shape[0] *= 2;
      return in(1) == a && r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
    }
    case OpKind::kJoin: {
      Type expected = a;
      if (a.rank() >= kMaxRank) return wrong(op, "fewer dimensions");
      expected.tensor = true;
      expected.shape.push_back(2);
      return in(1) == a && r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
    }
    case OpKind::kSplit: {
      if (!a.tensor || rank == 0 || a.shape.back() != 2) return wrong(op, "a last dimension of 2");
      Type expected = a;
      expected.shape.pop_back();
      if (expected.shape.empty()) expected.tensor = false;
      return r == expected && type(op.results[1]) == expected ? ok_status()
                                                              : Status(wrong(op, to_string(expected)));
    }
    case OpKind::kGather: {
      const int64_t axis = op.integer("axis", -1);
      if (!a.tensor || axis < 0 || axis >= a.rank() || a.elem != r.elem || a.pointee != r.pointee ||
          !is_integer(in(1).elem) || elem_bytes(in(1).elem) < 4 || in(1).rank() != a.rank() ||
          r.shape != in(1).shape)
        return wrong(op, "an axis and indices of i32 or i64");
      for (size_t d = 0; d < rank; ++d)
        if (static_cast<int64_t>(d) != axis && a.shape[d] != r.shape[d])
          return wrong(op, "the other dimensions unchanged");
      return ok_status();
    }
    case OpKind::kHistogram:
      if (a.rank() != 1 || r.rank() != 1 || !is_integer(a.elem) ||
          (r.elem != Elem::kI32 && r.elem != Elem::kI64))
        return wrong(op, "a vector of integers to counts");
      if (op.operands.size() == 2 && (in(1).elem != Elem::kI1 || in(1).shape != a.shape))
        return wrong(op, "a mask of i1");
      return ok_status();
    default:
      return input_error("Unsupported: operation {}", to_string(op.kind));
  }
}

}  // namespace nereid::ttir
