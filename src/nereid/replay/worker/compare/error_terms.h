// What one element adds to an error metric. The host's loops and the CUDA kernels include this, so that both
// classify elements and measure errors alike; it includes nothing.
#pragma once

#ifdef __CUDACC__
#define NEREID_ON_BOTH __device__ __forceinline__
#else
#define NEREID_ON_BOTH inline
#endif

namespace nereid::replay::terms {

NEREID_ON_BOTH double infinity() {
#ifdef __CUDACC__
  return __longlong_as_double(0x7FF0000000000000LL);
#else
  return __builtin_inf();
#endif
}
NEREID_ON_BOTH double absolute(double x) {
#ifdef __CUDACC__
  return fabs(x);
#else
  return __builtin_fabs(x);
#endif
}
NEREID_ON_BOTH unsigned long long bits_of(double x) {
#ifdef __CUDACC__
  return static_cast<unsigned long long>(__double_as_longlong(x));
#else
  return __builtin_bit_cast(unsigned long long, x);
#endif
}
NEREID_ON_BOTH double from_bits(unsigned long long bits) {
#ifdef __CUDACC__
  return __longlong_as_double(static_cast<long long>(bits));
#else
  return __builtin_bit_cast(double, bits);
#endif
}

NEREID_ON_BOTH bool is_finite(double x) { return absolute(x) < infinity(); }
NEREID_ON_BOTH bool is_nan(double x) { return x != x; }
NEREID_ON_BOTH bool same(double a, double b) { return a == b || (is_nan(a) && is_nan(b)); }
NEREID_ON_BOTH double larger(double a, double b) { return a > b ? a : b; }

// Undefined: not judged. Odd: an infinity or a NaN, and the answer must be the same. `largest` is the
// dtype's largest finite number: a truth beyond it is infinite.
enum class Standing { kUndefined, kOdd, kFinite };
NEREID_ON_BOTH Standing standing_of(double own, double truth, double largest) {
  const bool own_is_finite = is_finite(own), truth_is_finite = absolute(truth) <= largest;
  if (own_is_finite && truth_is_finite) return Standing::kFinite;
  if (own_is_finite || truth_is_finite) return Standing::kUndefined;
  const bool equal = is_nan(truth) ? is_nan(own) : own == (truth > 0 ? infinity() : -infinity());
  return equal ? Standing::kOdd : Standing::kUndefined;
}
// ... where an element is defined only if other truths agree with this one.
NEREID_ON_BOTH Standing standing_of(double own, double truth, double largest, bool agreed) {
  return agreed && is_finite(own) && absolute(truth) <= largest ? Standing::kFinite : Standing::kUndefined;
}

// |error| in units of max(|truth|, scale).
NEREID_ON_BOTH double in_scale(double error, double truth, double scale) {
  return absolute(error) / larger(absolute(truth), scale);
}

// The distance between adjacent numbers of a dtype, at `x`.
NEREID_ON_BOTH double ulp_at(double x, double epsilon, double smallest) {
  return larger(from_bits(bits_of(x) & 0x7FF0000000000000ULL) * epsilon, smallest);
}

// Which of 2 * count groups `truth` belongs to: by its binary exponent below that of `scale`, from `above`
// over it downwards, and by its sign.
NEREID_ON_BOTH int exponent_group(double truth, double scale, int count, int above) {
  const int below =
      static_cast<int>(bits_of(scale) >> 52 & 0x7FF) - static_cast<int>(bits_of(truth) >> 52 & 0x7FF) + above;
  const int group = below < 0 ? 0 : below >= count ? count - 1 : below;
  return group + (bits_of(truth) >> 63 != 0 ? count : 0);
}

}  // namespace nereid::replay::terms
