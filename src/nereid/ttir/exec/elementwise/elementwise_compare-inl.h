// Comparisons, and the choice between two operands. Text of elementwise.cpp, which includes it once for each
// instruction set, in that one's namespace.

template <class T, Predicate p>
struct Compare {
  HWY_INLINE static uint8_t one(T a, T b) {
    if constexpr (p == Predicate::kEq || p == Predicate::kOeq) return a == b;
    if constexpr (p == Predicate::kNe || p == Predicate::kUne) return a != b;
    if constexpr (p == Predicate::kSlt || p == Predicate::kOlt || p == Predicate::kUlt) return a < b;
    if constexpr (p == Predicate::kSle || p == Predicate::kOle || p == Predicate::kUle) return a <= b;
    if constexpr (p == Predicate::kSgt || p == Predicate::kOgt || p == Predicate::kUgt) return a > b;
    if constexpr (p == Predicate::kSge || p == Predicate::kOge || p == Predicate::kUge) return a >= b;
    if constexpr (p == Predicate::kOne) return (a < b) | (a > b);
    if constexpr (p == Predicate::kOrd) return (a == a) & (b == b);
    if constexpr (p == Predicate::kUno) return (a != a) | (b != b);
    if constexpr (p == Predicate::kUeq) return !((a < b) | (a > b));
    if constexpr (p == Predicate::kFUgt) return !(a <= b);
    if constexpr (p == Predicate::kFUge) return !(a < b);
    if constexpr (p == Predicate::kFUlt) return !(a >= b);
    if constexpr (p == Predicate::kFUle) return !(a > b);
    return p == Predicate::kTrue;
  }
  static void run(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
    uint8_t* o = static_cast<uint8_t*>(out);
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    if (uniform == Uniform::kNeither) {
      for (int64_t i = 0; i < n; ++i) o[i] = one(x[i], y[i]);
    } else if (uniform == Uniform::kFirst) {
      const T first = *x;
      for (int64_t i = 0; i < n; ++i) o[i] = one(first, y[i]);
    } else {
      const T second = *y;
      for (int64_t i = 0; i < n; ++i) o[i] = one(x[i], second);
    }
  }
};
template <Predicate p>
BinaryKernel integer_compare(Elem elem) {
  constexpr bool is_unsigned = p >= Predicate::kUlt && p <= Predicate::kUge;
  if constexpr (is_unsigned) {
    switch (elem) {
      case Elem::kI1:
      case Elem::kI8:
        return Compare<uint8_t, p>::run;
      case Elem::kI16:
        return Compare<uint16_t, p>::run;
      case Elem::kI32:
        return Compare<uint32_t, p>::run;
      case Elem::kI64:
      case Elem::kPointer:
        return Compare<uint64_t, p>::run;
      default:
        return nullptr;
    }
  } else {
    switch (elem) {
      case Elem::kI8:
        return Compare<int8_t, p>::run;
      case Elem::kI16:
        return Compare<int16_t, p>::run;
      case Elem::kI32:
        return Compare<int32_t, p>::run;
      case Elem::kI64:
      case Elem::kPointer:
        return Compare<int64_t, p>::run;
      default:
        return nullptr;
    }
  }
}
template <Predicate p>
BinaryKernel float_compare(Elem elem) {
  return elem == Elem::kF32 ? Compare<float, p>::run : elem == Elem::kF64 ? Compare<double, p>::run : nullptr;
}
BinaryKernel FindCompare(Predicate p, Elem elem) {
  if (elem == Elem::kI1) {  // true is -1 when signed: the order of the bytes turns round
    switch (p) {
      case Predicate::kEq:
        return Compare<uint8_t, Predicate::kEq>::run;
      case Predicate::kNe:
        return Compare<uint8_t, Predicate::kNe>::run;
      case Predicate::kSlt:
      case Predicate::kUgt:
        return Compare<uint8_t, Predicate::kUgt>::run;
      case Predicate::kSle:
      case Predicate::kUge:
        return Compare<uint8_t, Predicate::kUge>::run;
      case Predicate::kSgt:
      case Predicate::kUlt:
        return Compare<uint8_t, Predicate::kUlt>::run;
      case Predicate::kSge:
      case Predicate::kUle:
        return Compare<uint8_t, Predicate::kUle>::run;
      default:
        return nullptr;
    }
  }
  switch (p) {
    case Predicate::kEq:
      return integer_compare<Predicate::kEq>(elem);
    case Predicate::kNe:
      return integer_compare<Predicate::kNe>(elem);
    case Predicate::kSlt:
      return integer_compare<Predicate::kSlt>(elem);
    case Predicate::kSle:
      return integer_compare<Predicate::kSle>(elem);
    case Predicate::kSgt:
      return integer_compare<Predicate::kSgt>(elem);
    case Predicate::kSge:
      return integer_compare<Predicate::kSge>(elem);
    case Predicate::kUlt:
      return integer_compare<Predicate::kUlt>(elem);
    case Predicate::kUle:
      return integer_compare<Predicate::kUle>(elem);
    case Predicate::kUgt:
      return integer_compare<Predicate::kUgt>(elem);
    case Predicate::kUge:
      return integer_compare<Predicate::kUge>(elem);
    case Predicate::kFalse:
      return float_compare<Predicate::kFalse>(elem);
    case Predicate::kOeq:
      return float_compare<Predicate::kOeq>(elem);
    case Predicate::kOgt:
      return float_compare<Predicate::kOgt>(elem);
    case Predicate::kOge:
      return float_compare<Predicate::kOge>(elem);
    case Predicate::kOlt:
      return float_compare<Predicate::kOlt>(elem);
    case Predicate::kOle:
      return float_compare<Predicate::kOle>(elem);
    case Predicate::kOne:
      return float_compare<Predicate::kOne>(elem);
    case Predicate::kOrd:
      return float_compare<Predicate::kOrd>(elem);
    case Predicate::kUeq:
      return float_compare<Predicate::kUeq>(elem);
    case Predicate::kFUgt:
      return float_compare<Predicate::kFUgt>(elem);
    case Predicate::kFUge:
      return float_compare<Predicate::kFUge>(elem);
    case Predicate::kFUlt:
      return float_compare<Predicate::kFUlt>(elem);
    case Predicate::kFUle:
      return float_compare<Predicate::kFUle>(elem);
    case Predicate::kUne:
      return float_compare<Predicate::kUne>(elem);
    case Predicate::kUno:
      return float_compare<Predicate::kUno>(elem);
    case Predicate::kTrue:
      return float_compare<Predicate::kTrue>(elem);
    default:
      return nullptr;
  }
}

template <class T>
void select(void* out, const void* mask, const void* a, int a_step, const void* b, int b_step, int64_t n) {
  T* o = static_cast<T*>(out);
  const uint8_t* m = static_cast<const uint8_t*>(mask);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if (a_step != 0 && b_step != 0) {
    for (int64_t i = 0; i < n; ++i) {
      const T v = x[i], w = y[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else if (a_step != 0) {
    const T w = *y;
    for (int64_t i = 0; i < n; ++i) {
      const T v = x[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else if (b_step != 0) {
    const T v = *x;
    for (int64_t i = 0; i < n; ++i) {
      const T w = y[i];
      o[i] = m[i] != 0 ? v : w;
    }
  } else {
    const T v = *x, w = *y;
    for (int64_t i = 0; i < n; ++i) o[i] = m[i] != 0 ? v : w;
  }
}
SelectKernel FindSelect(int bytes) {
  switch (bytes) {
    case 1:
      return select<uint8_t>;
    case 2:
      return select<uint16_t>;
    case 4:
      return select<uint32_t>;
    default:
      return select<uint64_t>;
  }
}
