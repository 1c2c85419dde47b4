// The kernels that compare outputs on a GPU, each one pass over its tensors in their own dtypes. Sums are
// taken in float64 and in an order that only the sizes decide: the same tensors give the same bits.
//
// A kernel is written as phases of one block: `block.each(f)` calls f(thread) for every thread and then waits
// for all. replay/cuda/error_metrics.cu makes CUDA kernels of them; HostBlock below runs one block after the
// other, which is how they are tested where there is no GPU.
#pragma once

#include "nereid/replay/worker/compare/error_terms.h"

namespace nereid::replay::kernels {

using Index = long long;

inline constexpr int kThreads = 256;       // of a block
inline constexpr int kUnroll = 4;          // elements that a thread has in flight
inline constexpr int kValueThreads = 128;  // of a block of the values kernel
inline constexpr int kWarp = 32;
inline constexpr int kSums = 5;
inline constexpr int kExponents = 64;       // groups of each sign
inline constexpr int kExponentsAbove = 16;  // of these, above the scale's

enum class Kernel { kScale, kOwnError, kGotError, kRuns, kColumns, kValues, kFold, kAgree };
inline constexpr int kKernels = 8;

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
struct ScalePart {
  double squared;
  Index count, undefined;
};
struct OwnPart {
  double largest, squared;
};
struct GotPart {
  double largest, absolute, relative, squared;
  Index wrong, first, worst;
};

enum GotMode { kScaled, kPlain, kPlainOfGot };
struct MetricParameters {
  Inputs in;
  Index span = 0;  // elements of a block
  double scale = 0, limit = 0, rtol = 0, atol = 0;
  int mode = kScaled;  // GotMode
  void* parts = nullptr;
};

// Sums over groups of elements: of the truth (count, t, t^2, ulp^2, 0) or of an error e (e, e^2, et, e^2t,
// e^2t^2).
struct SumParameters {
  Inputs in;
  int of_truth = 0;
  double epsilon = 0, smallest_ulp = 0, scale = 0;
  // Element i is in group (i / inner) % size / per; `length` = inner * per, `period` = inner * size.
  Index length = 0, period = 0, workers = 0, span = 0;
  Index width = 0, rows = 0;  // columns: element i is at column i % width; rows of a worker
  double* sums = nullptr;  // [worker][sum][column]; of runs [sum][group][worker]; of values [block][2][group]
};

// Adds up what those wrote: out[group][kSums].
struct FoldParameters {
  const double* sums = nullptr;
  Index workers = 0, width = 0, period = 0, length = 0;
  int count = 0;      // sums of a column
  int place[2] = {};  // where each goes, if count is 2
  double* out = nullptr;
};

struct AgreeParameters {
  Elements truth, other;
  unsigned char* agreed = nullptr;
  Index count = 0, span = 0;
  double limit = 0;  // of |other - truth| / |truth|
};

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

template <typename Block>
NEREID_ON_BOTH void scale_block(const Block& block, const MetricParameters& p, ScalePart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    ScalePart part{0, 0, 0};
    for_elements<Block>(p.in, first, end, thread, false, [&](const Loaded<kUnroll>& x, int k, Index) {
      const auto standing = x.standing(p.in, k);
      part.undefined += standing == terms::Standing::kUndefined;
      if (standing != terms::Standing::kFinite) return;
      part.squared += x.truth[k] * x.truth[k];
      ++part.count;
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](ScalePart& a, const ScalePart& b) {
    a.squared += b.squared, a.count += b.count, a.undefined += b.undefined;
  });
  block.each([&](int thread) {
    if (thread == 0) static_cast<ScalePart*>(p.parts)[block.index()] = slots[0];
  });
}

template <typename Block>
NEREID_ON_BOTH void own_error_block(const Block& block, const MetricParameters& p, OwnPart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    OwnPart part{0, 0};
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index) {
      if (!terms::is_finite(x.answer[k]) || x.standing(p.in, k) != terms::Standing::kFinite) return;
      const double error = x.answer[k] - x.truth[k];
      part.squared += error * error;
      part.largest = terms::larger(terms::in_scale(error, x.truth[k], p.scale), part.largest);
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](OwnPart& a, const OwnPart& b) {
    a.largest = terms::larger(a.largest, b.largest), a.squared += b.squared;
  });
  block.each([&](int thread) {
    if (thread == 0) static_cast<OwnPart*>(p.parts)[block.index()] = slots[0];
  });
}

// One element's share in a GotPart. Elements come in ascending order.
NEREID_ON_BOTH void add_got(GotPart& part, const MetricParameters& p, terms::Standing standing, double got,
                            double own, double truth, Index at) {
  double error = 0;
  bool wrong = false;
  if (standing == terms::Standing::kFinite) {
    const double off = got - truth, size = terms::absolute(off);
    part.squared += off * off;
    if (size > part.absolute && size < terms::infinity()) part.absolute = size;
    const double relative = size / terms::absolute(truth);
    if (relative > part.relative && relative < terms::infinity()) part.relative = relative;
    if (p.mode == kScaled) {
      error = size / terms::larger(terms::absolute(truth), p.scale);
      wrong = !(error <= p.limit);
    } else {
      error = terms::absolute(got - own);
    }
    if (terms::is_nan(error)) error = terms::infinity();
  } else if (standing == terms::Standing::kOdd && !terms::same(got, own)) {
    error = terms::infinity();
    wrong = p.mode == kScaled;
  }
  if (p.mode != kScaled && standing != terms::Standing::kUndefined)
    wrong = !(terms::absolute(got - own) <=
              terms::absolute(p.mode == kPlainOfGot ? got : own) * p.rtol + p.atol) &&
            !terms::same(got, own);
  if (part.worst < 0 || error > part.largest) part.largest = error, part.worst = at;
  if (!wrong) return;
  if (part.first < 0) part.first = at;
  ++part.wrong;
}

template <typename Block>
NEREID_ON_BOTH void got_error_block(const Block& block, const MetricParameters& p, GotPart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    GotPart part{0, 0, 0, 0, 0, -1, -1};
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index at) {
      add_got(part, p, x.standing(p.in, k), x.answer[k], x.own[k], x.truth[k], at);
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](GotPart& a, const GotPart& b) {
    if (b.first >= 0 && (a.first < 0 || b.first < a.first)) a.first = b.first;
    const bool earlier = b.largest == a.largest && b.worst < a.worst;
    if (b.worst >= 0 && (a.worst < 0 || b.largest > a.largest || earlier))
      a.worst = b.worst, a.largest = b.largest;
    a.wrong += b.wrong, a.squared += b.squared;
    a.absolute = terms::larger(a.absolute, b.absolute), a.relative = terms::larger(a.relative, b.relative);
  });
  block.each([&](int thread) {
    if (thread == 0) static_cast<GotPart*>(p.parts)[block.index()] = slots[0];
  });
}

struct Sums {
  double of[kSums];
};

// Adds one element's terms.
template <int kCount>
NEREID_ON_BOTH void add_terms(Sums& sums, const SumParameters& p, const Loaded<kCount>& x, int k) {
  if (x.standing(p.in, k) != terms::Standing::kFinite) return;
  const double t = x.truth[k];
  if (p.of_truth != 0) {
    const double ulp = terms::ulp_at(t, p.epsilon, p.smallest_ulp);
    sums.of[0] += 1, sums.of[1] += t, sums.of[2] += t * t, sums.of[3] += ulp * ulp;
    return;
  }
  if (!terms::is_finite(x.answer[k])) return;
  const double e = x.answer[k] - t, et = e * t;
  sums.of[0] += e, sums.of[1] += e * e, sums.of[2] += et, sums.of[3] += e * et, sums.of[4] += et * et;
}

NEREID_ON_BOTH void add_sums(Sums& a, const Sums& b) {
  for (int k = 0; k < kSums; ++k) a.of[k] += b.of[k];
}

// Groups of `length` adjacent elements or more: block `worker` of a group takes `span` of its elements.
template <typename Block>
NEREID_ON_BOTH void runs_block(const Block& block, const SumParameters& p, Sums* slots) {
  const Index group = block.index() / p.workers, worker = block.index() % p.workers;
  const Index begin = group * p.length, length = least(p.length, p.period - begin);
  const Index rows = (p.in.count + p.period - 1) / p.period;
  const Index end = least(rows * length, (worker + 1) * p.span);
  block.each([&](int thread) {
    Sums sums{};
    Loaded<1> x;
    Index q = worker * p.span + thread, row = q / length, at = q % length;
    for (; q < end; q += Block::kSize) {
      const Index i = row * p.period + begin + at;
      if (i < p.in.count) {
        x.load_from(p.in, i, 1, p.in.count, p.of_truth == 0);
        add_terms(sums, p, x, 0);
      }
      at += Block::kSize;
      if (at < length) continue;
      if (length >= Block::kSize) {
        at -= length, ++row;
      } else {
        row += static_cast<unsigned>(at) / static_cast<unsigned>(length);
        at = static_cast<unsigned>(at) % static_cast<unsigned>(length);
      }
    }
    slots[thread] = sums;
  });
  merge_slots(block, slots, [](Sums& a, const Sums& b) { add_sums(a, b); });
  const Index groups = (p.period + p.length - 1) / p.length;
  block.each([&](int thread) {
    if (thread < kSums) p.sums[(thread * groups + group) * p.workers + worker] = slots[0].of[thread];
  });
}

// Groups that repeat within `width` columns: a thread takes one column of a worker's rows.
template <typename Block>
NEREID_ON_BOTH void columns_block(const Block& block, const SumParameters& p) {
  const Index blocks = (p.width + Block::kSize - 1) / Block::kSize;
  const Index worker = block.index() / blocks;
  block.each([&](int thread) {
    const Index column = block.index() % blocks * Block::kSize + thread;
    if (column >= p.width) return;
    const Index end = least(p.in.count, (worker + 1) * p.rows * p.width);
    Sums sums{};
    Loaded<kUnroll> x;
    for (Index i = worker * p.rows * p.width + column; i < end; i += kUnroll * p.width) {
      x.load_from(p.in, i, p.width, end, p.of_truth == 0);
      for (int k = 0; k < kUnroll; ++k)
        if (i + k * p.width < end) add_terms(sums, p, x, k);
    }
    for (int k = 0; k < kSums; ++k) p.sums[(worker * kSums + k) * p.width + column] = sums.of[k];
  });
}

// Groups by the truth's sign and exponent: the lanes of a warp share a few tables, and take turns at them.
struct ValueSums {
  double of[2];  // of the truth: count, ulp^2; of an error: e, e^2
};
inline constexpr int kTurns = 8;
inline constexpr int kTables = kValueThreads / kTurns;
template <typename Block>
NEREID_ON_BOTH void values_block(const Block& block, const SumParameters& p, ValueSums* tables) {
  constexpr int kGroups = 2 * kExponents;
  static_assert(kGroups == kValueThreads, "a thread adds up one group in the end");
  block.each([&](int thread) {
    for (int table = 0; table < kTables; ++table) tables[thread * kTables + table] = ValueSums{};
  });
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  typename Block::template PerThread<ValueSums> mine;
  typename Block::template PerThread<int> group;
  for (Index i = first; i < end; i += Block::kSize) {
    block.each_in_warp([&](int thread) {
      Loaded<1> x;
      x.load_from(p.in, i + thread, 1, end, p.of_truth == 0);
      group[thread] = -1;
      if (i + thread >= end || x.standing(p.in, 0) != terms::Standing::kFinite) return;
      const double t = x.truth[0];
      if (p.of_truth != 0) {
        const double ulp = terms::ulp_at(t, p.epsilon, p.smallest_ulp);
        mine[thread] = {{1, ulp * ulp}};
      } else {
        if (!terms::is_finite(x.answer[0])) return;
        const double e = x.answer[0] - t;
        mine[thread] = {{e, e * e}};
      }
      group[thread] = terms::exponent_group(t, p.scale, kExponents, kExponentsAbove);
    });
    for (int turn = 0; turn < kTurns; ++turn)
      block.each_in_warp([&](int thread) {
        if (thread % kTurns != turn || group[thread] < 0) return;
        auto& sums = tables[group[thread] * kTables + thread / kTurns];
        sums.of[0] += mine[thread].of[0], sums.of[1] += mine[thread].of[1];
      });
  }
  block.each([](int) {});
  block.each([&](int thread) {
    ValueSums sums{};
    for (int table = 0; table < kTables; ++table) {
      sums.of[0] += tables[thread * kTables + table].of[0];
      sums.of[1] += tables[thread * kTables + table].of[1];
    }
    for (int k = 0; k < 2; ++k) p.sums[(block.index() * 2 + k) * kGroups + thread] = sums.of[k];
  });
}

// Block g adds up the columns of group g: [g * length, (g + 1) * length) of every period, of all workers.
template <typename Block>
NEREID_ON_BOTH void fold_block(const Block& block, const FoldParameters& p, Sums* slots) {
  const Index begin = block.index() * p.length, length = least(p.length, p.period - begin);
  const Index columns = p.width / p.period * length;
  block.each([&](int thread) {
    Sums sums{};
    for (Index q = thread; q < p.workers * columns; q += Block::kSize) {
      const Index worker = q / columns, place = q % columns;
      const Index column = place / length * p.period + begin + place % length;
      for (int k = 0; k < p.count; ++k) sums.of[k] += p.sums[(worker * p.count + k) * p.width + column];
    }
    slots[thread] = sums;
  });
  merge_slots(block, slots, [](Sums& a, const Sums& b) { add_sums(a, b); });
  block.each([&](int thread) {
    if (thread != 0) return;
    double* out = p.out + block.index() * kSums;
    for (int k = 0; k < kSums; ++k) out[k] = p.count == kSums ? slots[0].of[k] : 0;
    if (p.count == 2) out[p.place[0]] = slots[0].of[0], out[p.place[1]] = slots[0].of[1];
  });
}

template <typename Block>
NEREID_ON_BOTH void agree_block(const Block& block, const AgreeParameters& p) {
  const Index first = block.index() * p.span, end = least(p.count, first + p.span);
  block.each([&](int thread) {
    for (Index i = first + thread; i < end; i += Block::kSize) {
      double truth[1], other[1];
      load(p.truth, i, 1, end, truth);
      load(p.other, i, 1, end, other);
      const bool same = terms::absolute(other[0] - truth[0]) <= terms::absolute(truth[0]) * p.limit;
      if (!same) p.agreed[i] = 0;
    }
  });
}

}  // namespace nereid::replay::kernels
