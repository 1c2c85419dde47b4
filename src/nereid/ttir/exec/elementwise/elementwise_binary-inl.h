// Arithmetic on two operands. Text of elementwise.cpp, which includes it once for each instruction set, in
// that one's namespace.

struct AddOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct SubOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct MulOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
};
// Integer division never traps: by zero it gives what the GPU does (all ones), and the handler reports it.
template <class T>
T divide_signed(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if (b == -1) return static_cast<T>(-static_cast<Unsigned<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
T divide_unsigned(T a, T b) {
  return b == 0 ? static_cast<T>(-1)
                : static_cast<T>(static_cast<Unsigned<T>>(a) / static_cast<Unsigned<T>>(b));
}
// Through double where that is exact: it vectorises.
template <class T>
inline constexpr bool kDivideByDouble = sizeof(T) <= 4;
struct DivsiOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kDivideByDouble<T>) {
      const double q = static_cast<double>(a) / static_cast<double>(b == 0 ? T{1} : b);
      return b == 0 ? static_cast<T>(-1) : static_cast<T>(static_cast<int64_t>(q));
    } else {
      return divide_signed(a, b);
    }
  }
};
struct DivuiOp {
  template <class T>
  static T apply(T a, T b) {
    return divide_unsigned(a, b);
  }
};
struct RemsiOp {
  template <class T>
  static T apply(T a, T b) {
    if (b == 0) return a;
    return static_cast<T>(static_cast<uint64_t>(a) -
                          static_cast<uint64_t>(DivsiOp::apply(a, b)) * static_cast<uint64_t>(b));
  }
};
struct RemuiOp {
  template <class T>
  static T apply(T a, T b) {
    return b == 0 ? a : static_cast<T>(static_cast<Unsigned<T>>(a) % static_cast<Unsigned<T>>(b));
  }
};
struct FloordivsiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_signed(a, b);
    return b != 0 && (RemsiOp::apply(a, b) != 0) && ((a < 0) != (b < 0)) ? static_cast<T>(q - 1) : q;
  }
};
struct CeildivsiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_signed(a, b);
    return b != 0 && (RemsiOp::apply(a, b) != 0) && ((a < 0) == (b < 0)) ? static_cast<T>(q + 1) : q;
  }
};
struct CeildivuiOp {
  template <class T>
  static T apply(T a, T b) {
    const T q = divide_unsigned(a, b);
    return b != 0 && RemuiOp::apply(a, b) != 0 ? static_cast<T>(q + 1) : q;
  }
};
struct AndOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct XorOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// Shifts by the width or more clamp, as PTX's do.
struct ShlOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return by >= width ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a) << (by & (width - 1)));
  }
};
struct ShruiOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return by >= width ? T{0} : static_cast<T>(static_cast<Unsigned<T>>(a) >> (by & (width - 1)));
  }
};
struct ShrsiOp {
  template <class T>
  static T apply(T a, T b) {
    constexpr unsigned width = 8 * sizeof(T);
    const auto by = static_cast<Unsigned<T>>(b);
    return static_cast<T>(a >> (by >= width ? width - 1 : by));
  }
};
struct MinsiOp {
  template <class T>
  static T apply(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaxsiOp {
  template <class T>
  static T apply(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinuiOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(a) < static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct MaxuiOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(a) > static_cast<Unsigned<T>>(b) ? a : b;
  }
};
struct MulhiuiOp {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(
          (static_cast<unsigned __int128>(static_cast<uint64_t>(a)) * static_cast<uint64_t>(b)) >> 64);
    } else {
      return static_cast<T>(
          (static_cast<uint64_t>(static_cast<Unsigned<T>>(a)) * static_cast<Unsigned<T>>(b)) >>
          (8 * sizeof(T)));
    }
  }
};
struct MulhisiOp {  // the upper half of a signed product
  template <class T>
  static T apply(T a, T b) {
    if constexpr (sizeof(T) == 8)
      return static_cast<T>((static_cast<__int128>(a) * b) >> 64);
    else
      return static_cast<T>((static_cast<int64_t>(a) * static_cast<int64_t>(b)) >> (8 * sizeof(T)));
  }
};
struct AddCarryOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<Unsigned<T>>(AddOp::apply(a, b)) < static_cast<Unsigned<T>>(a) ? T{1} : T{0};
  }
};
struct DivOp {
  template <class T>
  static T apply(T a, T b) {
    return a / b;
  }
};
struct RemOp {
  template <class T>
  static T apply(T a, T b) {
    return std::fmod(a, b);
  }
};
struct MaxnumOp {
  template <class T>
  static T apply(T a, T b) {
    const T larger = a > b ? a : b;  // b where either is NaN
    return b != b ? a : larger;
  }
};
struct MinnumOp {
  template <class T>
  static T apply(T a, T b) {
    const T smaller = a < b ? a : b;
    return b != b ? a : smaller;
  }
};
struct MaximumOp {
  template <class T>
  static T apply(T a, T b) {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;  // where b is NaN, larger is b
  }
};
struct MinimumOp {
  template <class T>
  static T apply(T a, T b) {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};
struct CopysignOp {
  template <class T>
  static T apply(T a, T b) {
    return std::copysign(a, b);
  }
};
struct Atan2Op {
  template <class T>
  static T apply(T a, T b) {
    return std::atan2(a, b);
  }
};
struct PowOp {
  template <class T>
  static T apply(T a, T b) {
    return std::pow(a, b);
  }
};

template <class Op, class T>
void binary(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  if (uniform == Uniform::kNeither) {
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i], y[i]);
  } else if (uniform == Uniform::kFirst) {
    const T first = *x;
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(first, y[i]);
  } else {
    const T second = *y;
    for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i], second);
  }
}
// An i1 is an integer of one bit: true is -1 to signed operations.
template <class Op>
struct BitOp {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Op::template apply<int8_t>(static_cast<int8_t>(-static_cast<int8_t>(a)),
                                                     static_cast<int8_t>(-static_cast<int8_t>(b))) &
                          1);
  }
};
template <class Op>
BinaryKernel integer_binary(Elem elem) {
  switch (elem) {
    case Elem::kI1:
      return binary<BitOp<Op>, uint8_t>;
    case Elem::kI8:
      return binary<Op, int8_t>;
    case Elem::kI16:
      return binary<Op, int16_t>;
    case Elem::kI32:
      return binary<Op, int32_t>;
    case Elem::kI64:
    case Elem::kPointer:
      return binary<Op, int64_t>;
    default:
      return nullptr;
  }
}
template <class Op>
BinaryKernel float_binary(Elem elem) {
  return elem == Elem::kF32 ? binary<Op, float> : elem == Elem::kF64 ? binary<Op, double> : nullptr;
}

#ifdef NEREID_VECTOR
using FloatVector = NEREID_VECTOR;
template <FloatVector (*F)(FloatVector, FloatVector)>
void sleef_binary(void* out, const void* a, const void* b, int64_t n, Uniform uniform) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  const float* y = static_cast<const float*>(b);
  HWY_ALIGN float tail[3][64];
  for (int64_t i = 0; i < n; i += lanes) {
    const auto count = static_cast<size_t>(n - i < lanes ? n - i : lanes);
    const float* px = uniform == Uniform::kFirst ? x : x + i;
    const float* py = uniform == Uniform::kSecond ? y : y + i;
    for (size_t j = 0; j < static_cast<size_t>(lanes); ++j) {
      tail[0][j] = uniform == Uniform::kFirst ? *px : j < count ? px[j] : 1.0f;
      tail[1][j] = uniform == Uniform::kSecond ? *py : j < count ? py[j] : 1.0f;
    }
    using V = hn::Vec<decltype(d)>;
    V r;
    r.raw = F(hn::Load(d, tail[0]).raw, hn::Load(d, tail[1]).raw);
    hn::Store(r, d, tail[2]);
    std::memcpy(o + i, tail[2], count * sizeof(float));
  }
}
#endif

BinaryKernel FindBinary(OpKind kind, Elem elem) {
  switch (kind) {
    case OpKind::kAddi:
      return integer_binary<AddOp>(elem);
    case OpKind::kSubi:
      return integer_binary<SubOp>(elem);
    case OpKind::kMuli:
      return integer_binary<MulOp>(elem);
    case OpKind::kDivsi:
      return integer_binary<DivsiOp>(elem);
    case OpKind::kDivui:
      return integer_binary<DivuiOp>(elem);
    case OpKind::kRemsi:
      return integer_binary<RemsiOp>(elem);
    case OpKind::kRemui:
      return integer_binary<RemuiOp>(elem);
    case OpKind::kCeildivsi:
      return integer_binary<CeildivsiOp>(elem);
    case OpKind::kCeildivui:
      return integer_binary<CeildivuiOp>(elem);
    case OpKind::kFloordivsi:
      return integer_binary<FloordivsiOp>(elem);
    case OpKind::kAndi:
      return integer_binary<AndOp>(elem);
    case OpKind::kOri:
      return integer_binary<OrOp>(elem);
    case OpKind::kXori:
      return integer_binary<XorOp>(elem);
    case OpKind::kShli:
      return integer_binary<ShlOp>(elem);
    case OpKind::kShrsi:
      return integer_binary<ShrsiOp>(elem);
    case OpKind::kShrui:
      return integer_binary<ShruiOp>(elem);
    case OpKind::kMinsi:
      return integer_binary<MinsiOp>(elem);
    case OpKind::kMaxsi:
      return integer_binary<MaxsiOp>(elem);
    case OpKind::kMinui:
      return integer_binary<MinuiOp>(elem);
    case OpKind::kMaxui:
      return integer_binary<MaxuiOp>(elem);
    case OpKind::kMulhiui:
    case OpKind::kMuluiExtended:
      return integer_binary<MulhiuiOp>(elem);
    case OpKind::kMulsiExtended:
      return integer_binary<MulhisiOp>(elem);
    case OpKind::kAdduiExtended:
      return integer_binary<AddCarryOp>(elem);
    case OpKind::kAddf:
      return float_binary<AddOp>(elem);
    case OpKind::kSubf:
      return float_binary<SubOp>(elem);
    case OpKind::kMulf:
      return float_binary<MulOp>(elem);
    case OpKind::kDivf:
    case OpKind::kPreciseDivf:
      return float_binary<DivOp>(elem);
    case OpKind::kRemf:
      return float_binary<RemOp>(elem);
    case OpKind::kMaxnumf:
      return float_binary<MaxnumOp>(elem);
    case OpKind::kMinnumf:
      return float_binary<MinnumOp>(elem);
    case OpKind::kMaximumf:
      return float_binary<MaximumOp>(elem);
    case OpKind::kMinimumf:
      return float_binary<MinimumOp>(elem);
    case OpKind::kCopysign:
      return float_binary<CopysignOp>(elem);
#ifdef NEREID_VECTOR
    case OpKind::kAtan2:
      return elem == Elem::kF32 ? sleef_binary<NEREID_CAT3(Sleef_atan2, NEREID_LANES, u10)>
                                : float_binary<Atan2Op>(elem);
    case OpKind::kPowf:
      return elem == Elem::kF32 ? sleef_binary<NEREID_CAT3(Sleef_pow, NEREID_LANES, u10)>
                                : float_binary<PowOp>(elem);
#else
    case OpKind::kAtan2:
      return float_binary<Atan2Op>(elem);
    case OpKind::kPowf:
      return float_binary<PowOp>(elem);
#endif
    default:
      return nullptr;
  }
}
