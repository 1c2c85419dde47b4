// Functions of one operand, and of three. Text of elementwise.cpp, which includes it once for each
// instruction set, in that one's namespace.

#define NEREID_UNARY(name, expression) \
  struct name {                        \
    template <class T>                 \
    static T apply(T a) {              \
      return expression;               \
    }                                  \
  };
NEREID_UNARY(AbsfOp, std::abs(a))
NEREID_UNARY(NegOp, -a)
NEREID_UNARY(CeilOp, std::ceil(a))
NEREID_UNARY(FloorOp, std::floor(a))
NEREID_UNARY(RoundOp, std::round(a))
NEREID_UNARY(RoundevenOp, std::nearbyint(a))
NEREID_UNARY(TruncOp, std::trunc(a))
NEREID_UNARY(SqrtOp, std::sqrt(a))
NEREID_UNARY(RsqrtOp, T(1) / std::sqrt(a))
NEREID_UNARY(exp_Op, std::exp(a))
NEREID_UNARY(exp2_Op, std::exp2(a))
NEREID_UNARY(exp10_Op, std::pow(T(10), a))
NEREID_UNARY(expm1_Op, std::expm1(a))
NEREID_UNARY(log_Op, std::log(a))
NEREID_UNARY(log2_Op, std::log2(a))
NEREID_UNARY(log10_Op, std::log10(a))
NEREID_UNARY(log1p_Op, std::log1p(a))
NEREID_UNARY(sin_Op, std::sin(a))
NEREID_UNARY(cos_Op, std::cos(a))
NEREID_UNARY(tan_Op, std::tan(a))
NEREID_UNARY(asin_Op, std::asin(a))
NEREID_UNARY(acos_Op, std::acos(a))
NEREID_UNARY(atan_Op, std::atan(a))
NEREID_UNARY(sinh_Op, std::sinh(a))
NEREID_UNARY(cosh_Op, std::cosh(a))
NEREID_UNARY(tanh_Op, std::tanh(a))
NEREID_UNARY(asinh_Op, std::asinh(a))
NEREID_UNARY(acosh_Op, std::acosh(a))
NEREID_UNARY(atanh_Op, std::atanh(a))
NEREID_UNARY(erf_Op, std::erf(a))
NEREID_UNARY(erfc_Op, std::erfc(a))
NEREID_UNARY(cbrt_Op, std::cbrt(a))
NEREID_UNARY(AbsiOp, static_cast<T>(a < 0 ? -static_cast<Unsigned<T>>(a) : static_cast<Unsigned<T>>(a)))
NEREID_UNARY(CtlzOp, static_cast<T>(std::countl_zero(static_cast<Unsigned<T>>(a))))
NEREID_UNARY(CttzOp, static_cast<T>(std::countr_zero(static_cast<Unsigned<T>>(a))))
NEREID_UNARY(CtpopOp, static_cast<T>(std::popcount(static_cast<Unsigned<T>>(a))))
#undef NEREID_UNARY

template <class Op, class T>
void unary(void* out, const void* a, int64_t n) {
  T* o = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = Op::apply(x[i]);
}
template <class Op>
UnaryKernel float_unary(Elem elem) {
  return elem == Elem::kF32 ? unary<Op, float> : elem == Elem::kF64 ? unary<Op, double> : nullptr;
}
template <class Op>
UnaryKernel integer_unary(Elem elem) {
  switch (elem) {
    case Elem::kI8:
      return unary<Op, int8_t>;
    case Elem::kI16:
      return unary<Op, int16_t>;
    case Elem::kI32:
      return unary<Op, int32_t>;
    case Elem::kI64:
      return unary<Op, int64_t>;
    default:
      return nullptr;
  }
}

#ifdef NEREID_VECTOR
template <FloatVector (*F)(FloatVector)>
void sleef_unary(void* out, const void* a, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  hn::Vec<decltype(d)> r;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    r.raw = F(hn::LoadU(d, x + i).raw);
    hn::StoreU(r, d, o + i);
  }
  if (i < n) {
    HWY_ALIGN float tail[64] = {};
    std::memcpy(tail, x + i, static_cast<size_t>(n - i) * sizeof(float));
    r.raw = F(hn::Load(d, tail).raw);
    hn::Store(r, d, tail);
    std::memcpy(o + i, tail, static_cast<size_t>(n - i) * sizeof(float));
  }
}
#define NEREID_MATH(name, ulp)                                                    \
  (elem == Elem::kF32 ? sleef_unary<NEREID_CAT3(Sleef_##name, NEREID_LANES, ulp)> \
                      : float_unary<name##_Op>(elem))
#else
#define NEREID_MATH(name, ulp) float_unary<name##_Op>(elem)
#endif

// exp over a whole tile, inlined: x = q ln2 + r, a polynomial for exp(r), 2^q by exponent bits. Within 1 ulp.
void exp_f32(void* out, const void* a, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int32_t, decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* o = static_cast<float*>(out);
  const float* x = static_cast<const float*>(a);
  const auto body = [&](auto v) HWY_ATTR {
    // Beyond these the result is 0 or infinity whatever the rest of the argument; NaN passes through Min and
    // Max's order.
    const auto low = hn::Set(d, -104.0f), high = hn::Set(d, 89.0f);
    const auto clamped = hn::IfThenElse(hn::Gt(v, high), high, hn::IfThenElse(hn::Lt(v, low), low, v));
    const auto q = hn::Round(hn::Mul(clamped, hn::Set(d, 1.4426950408889634f)));
    auto r = hn::NegMulAdd(q, hn::Set(d, 0.693145751953125f), clamped);
    r = hn::NegMulAdd(q, hn::Set(d, 1.42860682030941723212e-6f), r);
    auto p = hn::Set(d, 0.000198527617612853646278381f);
    p = hn::MulAdd(p, r, hn::Set(d, 0.00139304355252534151077271f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.00833336077630519866943359f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.0416664853692054748535156f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.166666671633720397949219f));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
    p = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0f));
    // 2^q in two factors, so that subnormal results and 2^128 come out right.
    const auto qi = hn::ConvertTo(di, q);
    const auto half = hn::ShiftRight<1>(qi);
    const auto bias = hn::Set(di, 127);
    const auto f1 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto f2 = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(qi, half), bias)));
    auto result = hn::Mul(hn::Mul(p, f1), f2);
    return hn::IfThenElse(hn::Ne(v, v), v, result);
  };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(body(hn::LoadU(d, x + i)), d, o + i);
  if (i < n) {
    HWY_ALIGN float tail[64] = {};
    std::memcpy(tail, x + i, static_cast<size_t>(n - i) * sizeof(float));
    hn::Store(body(hn::Load(d, tail)), d, tail);
    std::memcpy(o + i, tail, static_cast<size_t>(n - i) * sizeof(float));
  }
}

UnaryKernel FindUnary(OpKind kind, Elem elem) {
  switch (kind) {
    case OpKind::kAbsf:
      return float_unary<AbsfOp>(elem);
    case OpKind::kNegf:
      return float_unary<NegOp>(elem);
    case OpKind::kCeil:
      return float_unary<CeilOp>(elem);
    case OpKind::kFloor:
      return float_unary<FloorOp>(elem);
    case OpKind::kRound:
      return float_unary<RoundOp>(elem);
    case OpKind::kRoundeven:
      return float_unary<RoundevenOp>(elem);
    case OpKind::kTrunc:
      return float_unary<TruncOp>(elem);
    case OpKind::kSqrt:
    case OpKind::kPreciseSqrt:
      return float_unary<SqrtOp>(elem);
    case OpKind::kRsqrt:
      return float_unary<RsqrtOp>(elem);
    case OpKind::kExp:
      return elem == Elem::kF32 ? exp_f32 : float_unary<exp_Op>(elem);
    case OpKind::kExp2:
      return NEREID_MATH(exp2, u10);
    case OpKind::kExpm1:
      return NEREID_MATH(expm1, u10);
    case OpKind::kLog:
      return NEREID_MATH(log, u10);
    case OpKind::kLog2:
      return NEREID_MATH(log2, u10);
    case OpKind::kLog10:
      return NEREID_MATH(log10, u10);
    case OpKind::kLog1p:
      return NEREID_MATH(log1p, u10);
    case OpKind::kSin:
      return NEREID_MATH(sin, u10);
    case OpKind::kCos:
      return NEREID_MATH(cos, u10);
    case OpKind::kTan:
      return NEREID_MATH(tan, u10);
    case OpKind::kAsin:
      return NEREID_MATH(asin, u10);
    case OpKind::kAcos:
      return NEREID_MATH(acos, u10);
    case OpKind::kAtan:
      return NEREID_MATH(atan, u10);
    case OpKind::kSinh:
      return NEREID_MATH(sinh, u10);
    case OpKind::kCosh:
      return NEREID_MATH(cosh, u10);
    case OpKind::kTanh:
      return NEREID_MATH(tanh, u10);
    case OpKind::kAsinh:
      return NEREID_MATH(asinh, u10);
    case OpKind::kAcosh:
      return NEREID_MATH(acosh, u10);
    case OpKind::kAtanh:
      return NEREID_MATH(atanh, u10);
    case OpKind::kErf:
      return NEREID_MATH(erf, u10);
    case OpKind::kErfc:
      return NEREID_MATH(erfc, u15);
    case OpKind::kCbrt:
      return NEREID_MATH(cbrt, u10);
    case OpKind::kAbsi:
      return integer_unary<AbsiOp>(elem);
    case OpKind::kCtlz:
      return integer_unary<CtlzOp>(elem);
    case OpKind::kCttz:
      return integer_unary<CttzOp>(elem);
    case OpKind::kCtpop:
      return integer_unary<CtpopOp>(elem);
    default:
      return nullptr;
  }
}

template <class T>
void fma(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int64_t i = 0; i < n; ++i) o[i] = std::fma(x[i], y[i], z[i]);
}
template <class T, bool propagate>
void clamp(void* out, const void* a, const void* b, const void* c, int64_t n) {
  T* o = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b), *z = static_cast<const T*>(c);
  for (int64_t i = 0; i < n; ++i) {
    const T clamped = MinnumOp::apply(MaxnumOp::apply(x[i], y[i]), z[i]);
    o[i] = propagate && x[i] != x[i] ? x[i] : clamped;
  }
}
TernaryKernel FindTernary(OpKind kind, Elem elem, bool propagate_nan) {
  if (elem != Elem::kF32 && elem != Elem::kF64) return nullptr;
  const bool single = elem == Elem::kF32;
  if (kind == OpKind::kFma) return single ? fma<float> : fma<double>;
  if (kind != OpKind::kClampf) return nullptr;
  if (propagate_nan) return single ? clamp<float, true> : clamp<double, true>;
  return single ? clamp<float, false> : clamp<double, false>;
}
