// What the kernels of a GPU worker are written with: the threads of one block as phases, and elements of any
// floating-point dtype as numbers.
//
// `block.each(f)` calls f(thread) for every thread and then waits for all. replay/cuda/*.cu make CUDA kernels
// of such functions; HostBlock runs one block after the other, which is how they are tested where there is no
// GPU.
#pragma once

#include "nereid/replay/worker/compare/error_terms.h"

namespace nereid::replay::kernels {

using Index = long long;

inline constexpr int kThreads = 256;  // of a block
inline constexpr int kUnroll = 4;     // elements that a thread has in flight

enum ElementType { kFloat64, kFloat32, kFloat16, kBFloat16, kFloat8E4M3FN, kFloat8E5M2 };

struct Elements {
  const void* data;
  int type;  // ElementType
};

struct Inputs {
  Elements answer;  // whose error is measured: a candidate's, the reference's own, another truth
  Elements own, truth;
  const unsigned char* agreed;  // null: every element may be judged
  double largest;
  Index count;
};

// What blocks [0, n) write, one element each.
#ifdef __CUDACC__
template <int kCount>
struct DeviceBlock {
  static constexpr int kSize = kCount;
  template <typename T>
  struct PerThread {
    T value;
    __device__ __forceinline__ T& operator[](int) { return value; }
  };
  __device__ __forceinline__ Index index() const { return blockIdx.x; }
  template <typename F>
  __device__ __forceinline__ void each(F f) const {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  template <typename F>  // waits for the threads of a warp alone
  __device__ __forceinline__ void each_in_warp(F f) const {
    f(static_cast<int>(threadIdx.x));
    __syncwarp();
  }
};
#else
template <int kCount>
struct HostBlock {
  static constexpr int kSize = kCount;
  template <typename T>
  struct PerThread {
    T values[kCount];
    T& operator[](int thread) { return values[thread]; }
  };
  Index at = 0;
  Index index() const { return at; }
  template <typename F>
  void each(F f) const {
    for (int thread = 0; thread < kCount; ++thread) f(thread);
  }
  template <typename F>
  void each_in_warp(F f) const {
    each(f);
  }
};
#endif

// Adds to what other threads of the block or of other blocks add to as well: whole numbers, in any order.
template <typename T>
NEREID_ON_BOTH void increment(T& where, T by) {
#ifdef __CUDACC__
  atomicAdd(&where, by);
#else
  where += by;
#endif
}

// Eight or sixteen bits as a number. e5m2 is half of a float16.
NEREID_ON_BOTH double from_half(unsigned bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  if (exponent == 31) return fraction != 0 ? terms::infinity() - terms::infinity() : sign * terms::infinity();
  if (exponent == 0) return sign * (fraction * 0x1p-24);
  return sign * (1024 + fraction) *
         terms::from_bits(static_cast<unsigned long long>(exponent - 25 + 1023) << 52);
}
NEREID_ON_BOTH double from_e4m3fn(unsigned bits) {
  const double sign = bits & 0x80 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 3 & 15), fraction = static_cast<int>(bits & 7);
  if (exponent == 15 && fraction == 7) return terms::infinity() - terms::infinity();
  if (exponent == 0) return sign * (fraction * 0x1p-9);
  return sign * (8 + fraction) *
         terms::from_bits(static_cast<unsigned long long>(exponent - 10 + 1023) << 52);
}
NEREID_ON_BOTH double from_bfloat16(unsigned bits) {
#ifdef __CUDACC__
  return static_cast<double>(__uint_as_float(bits << 16));
#else
  return static_cast<double>(__builtin_bit_cast(float, bits << 16));
#endif
}
NEREID_ON_BOTH double from_float16(unsigned short bits) {
#ifdef __CUDACC__
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return static_cast<double>(x);
#else
  return from_half(bits);
#endif
}

// Elements first, first + stride, ... before `end`; zeros beyond.
template <int kCount>
NEREID_ON_BOTH void load(const Elements& from, Index first, Index stride, Index end, double (&out)[kCount]) {
  const auto read = [&](auto number_at) {
    for (int k = 0; k < kCount; ++k) {
      const Index i = first + k * stride;
      out[k] = i < end ? number_at(i) : 0.0;
    }
  };
  switch (from.type) {
    case kFloat64:
      return read([&](Index i) { return static_cast<const double*>(from.data)[i]; });
    case kFloat32:
      return read([&](Index i) { return static_cast<double>(static_cast<const float*>(from.data)[i]); });
    case kFloat16:
      return read([&](Index i) { return from_float16(static_cast<const unsigned short*>(from.data)[i]); });
    case kBFloat16:
      return read([&](Index i) { return from_bfloat16(static_cast<const unsigned short*>(from.data)[i]); });
    case kFloat8E4M3FN:
      return read([&](Index i) { return from_e4m3fn(static_cast<const unsigned char*>(from.data)[i]); });
    default:
      return read([&](Index i) { return from_half(static_cast<const unsigned char*>(from.data)[i] * 256U); });
  }
}

template <int kCount>
struct Loaded {
  double answer[kCount], own[kCount], truth[kCount];
  bool agreed[kCount];

  NEREID_ON_BOTH void load_from(const Inputs& in, Index first, Index stride, Index end, bool with_answer) {
    load(in.truth, first, stride, end, truth);
    load(in.own, first, stride, end, own);
    if (with_answer) load(in.answer, first, stride, end, answer);
    if (in.agreed == nullptr) return;
    for (int k = 0; k < kCount; ++k)
      agreed[k] = first + k * stride < end && in.agreed[first + k * stride] != 0;
  }
  NEREID_ON_BOTH terms::Standing standing(const Inputs& in, int k) const {
    return in.agreed != nullptr ? terms::standing_of(own[k], truth[k], in.largest, agreed[k])
                                : terms::standing_of(own[k], truth[k], in.largest);
  }
};

// Calls body(k, index) for a block's elements, thread by thread.
template <typename Block, typename Body>
NEREID_ON_BOTH void for_elements(const Inputs& in, Index first, Index end, int thread, bool with_answer,
                                 Body body) {
  Loaded<kUnroll> x;
  for (Index i = first + thread; i < end; i += Index{Block::kSize} * kUnroll) {
    x.load_from(in, i, Block::kSize, end, with_answer);
    for (int k = 0; k < kUnroll; ++k)
      if (i + k * Index{Block::kSize} < end) body(x, k, i + k * Index{Block::kSize});
  }
}

// Merges all threads' slots into the first, in an order that is always the same.
template <typename Block, typename Slot, typename Merge>
NEREID_ON_BOTH void merge_slots(const Block& block, Slot* slots, Merge merge) {
  for (int half = Block::kSize / 2; half > 0; half /= 2)
    block.each([&](int thread) {
      if (thread < half) merge(slots[thread], slots[thread + half]);
    });
}

NEREID_ON_BOTH Index least(Index a, Index b) { return a < b ? a : b; }

}  // namespace nereid::replay::kernels
