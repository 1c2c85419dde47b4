// Conversions between types, the narrow floats among them. Text of elementwise.cpp, which includes it once
// for each instruction set, in that one's namespace.

template <class From, class To>
void cast(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const From* x = static_cast<const From*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<To>(x[i]);
}
template <class From>
void to_bit(void* out, const void* a, int64_t n) {
  uint8_t* o = static_cast<uint8_t*>(out);
  const From* x = static_cast<const From*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<uint8_t>(x[i] & 1);
}
template <class To>
void from_bit_signed(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<To>(-static_cast<int>(x[i]));
}
// cvt.rzi saturates and makes NaN 0.
template <class From, class To>
void to_integer(void* out, const void* a, int64_t n) {
  To* o = static_cast<To*>(out);
  const From* x = static_cast<const From*>(a);
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From high = static_cast<From>(std::numeric_limits<To>::max());
  for (int64_t i = 0; i < n; ++i) {
    const From v = x[i];
    To r;
    if (v != v)
      r = 0;
    else if (v <= low)
      r = std::numeric_limits<To>::min();
    else if (v >= high)
      r = std::numeric_limits<To>::max();
    else
      r = static_cast<To>(v);
    o[i] = r;
  }
}
template <class From, bool is_signed>
UnaryKernel integer_to(Elem to) {
  switch (to) {
    case Elem::kI8:
      return cast<From, int8_t>;
    case Elem::kI16:
      return cast<From, int16_t>;
    case Elem::kI32:
      return cast<From, int32_t>;
    case Elem::kI64:
      return cast<From, int64_t>;
    case Elem::kF32:
      return cast<From, float>;
    case Elem::kF64:
      return cast<From, double>;
    default:
      return nullptr;
  }
}
template <bool is_signed>
UnaryKernel integer_from(Elem from, Elem to) {
  switch (from) {
    case Elem::kI1:
      if constexpr (is_signed) {
        switch (to) {
          case Elem::kI8:
            return from_bit_signed<int8_t>;
          case Elem::kI16:
            return from_bit_signed<int16_t>;
          case Elem::kI32:
            return from_bit_signed<int32_t>;
          case Elem::kI64:
            return from_bit_signed<int64_t>;
          case Elem::kF32:
            return from_bit_signed<float>;
          case Elem::kF64:
            return from_bit_signed<double>;
          default:
            return nullptr;
        }
      }
      return integer_to<uint8_t, false>(to);
    case Elem::kI8:
      return integer_to<std::conditional_t<is_signed, int8_t, uint8_t>, is_signed>(to);
    case Elem::kI16:
      return integer_to<std::conditional_t<is_signed, int16_t, uint16_t>, is_signed>(to);
    case Elem::kI32:
      return integer_to<std::conditional_t<is_signed, int32_t, uint32_t>, is_signed>(to);
    case Elem::kI64:
      return integer_to<std::conditional_t<is_signed, int64_t, uint64_t>, is_signed>(to);
    default:
      return nullptr;
  }
}
template <class From>
UnaryKernel float_to_integer(OpKind kind, Elem to) {
  const bool is_signed = kind == OpKind::kFptosi;
  switch (to) {
    case Elem::kI1:
    case Elem::kI8:
      return is_signed ? to_integer<From, int8_t> : to_integer<From, uint8_t>;
    case Elem::kI16:
      return is_signed ? to_integer<From, int16_t> : to_integer<From, uint16_t>;
    case Elem::kI32:
      return is_signed ? to_integer<From, int32_t> : to_integer<From, uint32_t>;
    case Elem::kI64:
      return is_signed ? to_integer<From, int64_t> : to_integer<From, uint64_t>;
    default:
      return nullptr;
  }
}
UnaryKernel FindTrunci(Elem from, Elem to) {
  if (to == Elem::kI1) {
    switch (from) {
      case Elem::kI8:
        return to_bit<int8_t>;
      case Elem::kI16:
        return to_bit<int16_t>;
      case Elem::kI32:
        return to_bit<int32_t>;
      case Elem::kI64:
        return to_bit<int64_t>;
      default:
        return nullptr;
    }
  }
  return integer_from<true>(from, to);
}
UnaryKernel FindConvert(OpKind kind, Elem from, Elem to) {
  switch (kind) {
    case OpKind::kExtsi:
    case OpKind::kSitofp:
    case OpKind::kIndexCast:
      return from == to ? nullptr : integer_from<true>(from, to);
    case OpKind::kExtui:
    case OpKind::kUitofp:
    case OpKind::kIndexCastui:
      return from == to ? nullptr : integer_from<false>(from, to);
    case OpKind::kTrunci:
      return FindTrunci(from, to);
    case OpKind::kFptosi:
    case OpKind::kFptoui:
      return from == Elem::kF32   ? float_to_integer<float>(kind, to)
             : from == Elem::kF64 ? float_to_integer<double>(kind, to)
                                  : nullptr;
    case OpKind::kExtf:
      return from == Elem::kF32 && to == Elem::kF64 ? cast<float, double> : nullptr;
    case OpKind::kTruncf:
      return from == Elem::kF64 && to == Elem::kF32 ? cast<double, float> : nullptr;
    default:
      return nullptr;
  }
}

void widen_bf16(void* out, const void* a, int64_t n) {
  uint32_t* o = static_cast<uint32_t*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = static_cast<uint32_t>(x[i]) << 16;
}
void narrow_bf16(void* out, const void* a, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(out);
  const uint32_t* x = static_cast<const uint32_t*>(a);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = x[i];
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    o[i] = static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
  }
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define NEREID_F16C
#endif
void widen_f16(void* out, const void* a, int64_t n) {
  float* o = static_cast<float*>(out);
  const uint16_t* x = static_cast<const uint16_t*>(a);
  int64_t i = 0;
#ifdef NEREID_F16C
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(o + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) o[i] = to_float(x[i], Elem::kF16);
}
void narrow_f16(void* out, const void* a, int64_t n) {
  uint16_t* o = static_cast<uint16_t*>(out);
  const float* x = static_cast<const float*>(a);
  int64_t i = 0;
#ifdef NEREID_F16C
  const __m128i canonical = _mm_set1_epi16(0x7fff);
  for (; i + 8 <= n; i += 8) {
    const __m256 v = _mm256_loadu_ps(x + i);
    __m128i h = _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    if (_mm256_movemask_ps(nan) != 0) {
      const __m256i wide = _mm256_castps_si256(nan);
      const __m128i mask = _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
      h = _mm_blendv_epi8(h, canonical, mask);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(o + i), h);
  }
#endif
  for (; i < n; ++i) o[i] = static_cast<uint16_t>(from_float(x[i], Elem::kF16));
}
void copy_f32(void* out, const void* a, int64_t n) {
  std::memmove(out, a, static_cast<size_t>(n) * sizeof(float));
}
template <Elem format>
void widen_f8(void* out, const void* a, int64_t n) {
  static const auto table = [] {
    struct Table {
      float value[256];
    } t;
    for (uint32_t i = 0; i < 256; ++i) t.value[i] = to_float(i, format);
    return t;
  }();
  float* o = static_cast<float*>(out);
  const uint8_t* x = static_cast<const uint8_t*>(a);
  for (int64_t i = 0; i < n; ++i) o[i] = table.value[x[i]];
}
template <Elem format>
void narrow_f8(void* out, const void* a, int64_t n) {
  uint8_t* o = static_cast<uint8_t*>(out);
  const float* x = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; ++i)
    o[i] = static_cast<uint8_t>(from_float(x[i], format, Rounding::kNearestEven, true));
}
UnaryKernel FindWiden(Elem from) {
  switch (from) {
    case Elem::kBF16:
      return widen_bf16;
    case Elem::kF16:
      return widen_f16;
    case Elem::kF32:
      return copy_f32;
    case Elem::kF8E4M3FN:
      return widen_f8<Elem::kF8E4M3FN>;
    case Elem::kF8E5M2:
      return widen_f8<Elem::kF8E5M2>;
    case Elem::kF8E4M3FNUZ:
      return widen_f8<Elem::kF8E4M3FNUZ>;
    case Elem::kF8E5M2FNUZ:
      return widen_f8<Elem::kF8E5M2FNUZ>;
    case Elem::kF8E4M3B11FNUZ:
      return widen_f8<Elem::kF8E4M3B11FNUZ>;
    default:
      return nullptr;
  }
}
UnaryKernel FindNarrow(Elem to) {
  switch (to) {
    case Elem::kBF16:
      return narrow_bf16;
    case Elem::kF16:
      return narrow_f16;
    case Elem::kF32:
      return copy_f32;
    case Elem::kF8E4M3FN:
      return narrow_f8<Elem::kF8E4M3FN>;
    case Elem::kF8E5M2:
      return narrow_f8<Elem::kF8E5M2>;
    case Elem::kF8E4M3FNUZ:
      return narrow_f8<Elem::kF8E4M3FNUZ>;
    case Elem::kF8E5M2FNUZ:
      return narrow_f8<Elem::kF8E5M2FNUZ>;
    case Elem::kF8E4M3B11FNUZ:
      return narrow_f8<Elem::kF8E4M3B11FNUZ>;
    default:
      return nullptr;
  }
}
