// The kernels that measure the errors of outputs on a GPU, each one pass over its tensors in their own
// dtypes. Sums are taken in float64 and in an order that only the sizes decide: the same tensors give the
// same bits.
#pragma once

#include "nereid/replay/worker/compare/kernel_block.h"

namespace nereid::replay::kernels {

enum class Kernel {
  kScale,
  kReferenceError,
  kCandidateError,
  kErrorPair,
  kTail,
  kClose,
  kAgree,
  kRuns,
  kColumns,
  kValues,
  kAllRuns,
  kAllColumns,
  kAllValues,
  kFold
};
inline constexpr int kKernels = 14;

// What blocks [0, n) write, one element each.
struct ScalePart {
  double squared;
  Index count, undefined;
  Index own_finite;      // of the reference's own numbers, whatever the truth is
  double truth_squared;  // ... and of the truth's, whatever the reference has
  Index truth_finite;
};
struct ReferencePart {
  double largest, squared;
};
struct CandidatePart {
  double largest, absolute, relative, squared;
  Index wrong, first, worst;
};
struct ErrorParts {
  ReferencePart own;
  CandidatePart got;
};

enum ErrorMode { kScaled, kPlain, kPlainOfGot };
struct MetricParameters {
  Inputs in;
  Index span = 0;  // elements of a block
  double scale = 0, limit = 0, rtol = 0, atol = 0;
  int mode = kScaled;  // ErrorMode
  void* parts = nullptr;
};

// counts[k]: the elements whose error in units of max(|truth|, scale) is in [2^-k, 2^(1 - k)), of 0 all from
// one on. errors: each of them, 0 where not finite.
inline constexpr int kPowers = 64;
struct TailParameters {
  Inputs in;
  Index span = 0;
  double scale = 0;
  unsigned long long* counts = nullptr;
  float* errors = nullptr;  // or null
};

// How many elements of `first` are not close to those of `second`, as at::isclose has it; of one element
// where `second_stride` is 0.
struct CloseParameters {
  Elements first, second;
  Index count = 0, span = 0, second_stride = 1;
  double rtol = 0, atol = 0;
  int equal_nan = 0;
  unsigned long long* others = nullptr;
};

struct AgreeParameters {
  Elements truth, other;
  unsigned char* agreed = nullptr;
  Index count = 0, span = 0;
  double limit = 0;  // of |other - truth| / |truth|
};

template <typename Block>
NEREID_ON_BOTH void scale_block(const Block& block, const MetricParameters& p, ScalePart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    ScalePart part{0, 0, 0, 0, 0, 0};
    for_elements<Block>(p.in, first, end, thread, false, [&](const Loaded<kUnroll>& x, int k, Index) {
      const auto standing = x.standing(p.in, k);
      part.own_finite += terms::is_finite(x.own[k]);
      if (terms::is_finite(x.truth[k])) part.truth_squared += x.truth[k] * x.truth[k], ++part.truth_finite;
      part.undefined += standing == terms::Standing::kUndefined;
      if (standing != terms::Standing::kFinite) return;
      part.squared += x.truth[k] * x.truth[k];
      ++part.count;
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](ScalePart& a, const ScalePart& b) {
    a.squared += b.squared, a.count += b.count, a.undefined += b.undefined;
    a.own_finite += b.own_finite, a.truth_finite += b.truth_finite, a.truth_squared += b.truth_squared;
  });
  block.each([&](int thread) {
    if (thread == 0) static_cast<ScalePart*>(p.parts)[block.index()] = slots[0];
  });
}

NEREID_ON_BOTH void add_own(ReferencePart& part, double scale, double answer, double truth) {
  const double error = answer - truth;
  part.squared += error * error;
  part.largest = terms::larger(terms::in_scale(error, truth, scale), part.largest);
}

NEREID_ON_BOTH void merge_own(ReferencePart& a, const ReferencePart& b) {
  a.largest = terms::larger(a.largest, b.largest), a.squared += b.squared;
}

template <typename Block>
NEREID_ON_BOTH void own_error_block(const Block& block, const MetricParameters& p, ReferencePart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    ReferencePart part{0, 0};
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index) {
      if (!terms::is_finite(x.answer[k]) || x.standing(p.in, k) != terms::Standing::kFinite) return;
      add_own(part, p.scale, x.answer[k], x.truth[k]);
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](ReferencePart& a, const ReferencePart& b) { merge_own(a, b); });
  block.each([&](int thread) {
    if (thread == 0) static_cast<ReferencePart*>(p.parts)[block.index()] = slots[0];
  });
}

// One element's share in a CandidatePart. Elements come in ascending order.
NEREID_ON_BOTH void add_got(CandidatePart& part, const MetricParameters& p, terms::Standing standing,
                            double got, double own, double truth, Index at) {
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

NEREID_ON_BOTH void merge_got(CandidatePart& a, const CandidatePart& b) {
  if (b.first >= 0 && (a.first < 0 || b.first < a.first)) a.first = b.first;
  const bool earlier = b.largest == a.largest && b.worst < a.worst;
  if (b.worst >= 0 && (a.worst < 0 || b.largest > a.largest || earlier))
    a.worst = b.worst, a.largest = b.largest;
  a.wrong += b.wrong, a.squared += b.squared;
  a.absolute = terms::larger(a.absolute, b.absolute), a.relative = terms::larger(a.relative, b.relative);
}

template <typename Block>
NEREID_ON_BOTH void got_error_block(const Block& block, const MetricParameters& p, CandidatePart* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    CandidatePart part{0, 0, 0, 0, 0, -1, -1};
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index at) {
      add_got(part, p, x.standing(p.in, k), x.answer[k], x.own[k], x.truth[k], at);
    });
    slots[thread] = part;
  });
  merge_slots(block, slots, [](CandidatePart& a, const CandidatePart& b) { merge_got(a, b); });
  block.each([&](int thread) {
    if (thread == 0) static_cast<CandidatePart*>(p.parts)[block.index()] = slots[0];
  });
}

// The reference's own error and the answer's.
template <typename Block>
NEREID_ON_BOTH void error_pair_block(const Block& block, const MetricParameters& p, ErrorParts* slots) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    ErrorParts part{{0, 0}, {0, 0, 0, 0, 0, -1, -1}};
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index at) {
      const auto standing = x.standing(p.in, k);
      if (standing == terms::Standing::kFinite) add_own(part.own, p.scale, x.own[k], x.truth[k]);
      add_got(part.got, p, standing, x.answer[k], x.own[k], x.truth[k], at);
    });
    slots[thread] = part;
  });
  merge_slots(block, slots,
              [](ErrorParts& a, const ErrorParts& b) { merge_own(a.own, b.own), merge_got(a.got, b.got); });
  block.each([&](int thread) {
    if (thread == 0) static_cast<ErrorParts*>(p.parts)[block.index()] = slots[0];
  });
}

// The k of the largest 2^-k that is at most `error`; numbers of one and more have 0, zero and what is below
// 2^(1 - kPowers) kPowers.
NEREID_ON_BOTH int power_of(double error) {
  constexpr int kBias = 1023;
  const int power = kBias - static_cast<int>(terms::bits_of(error) >> 52 & 0x7FF);
  return power < 0 ? 0 : power > kPowers ? kPowers : power;
}

// `table`: of each warp one count for each power.
inline constexpr int kTailTables = kThreads / 32;
template <typename Block>
NEREID_ON_BOTH void tail_block(const Block& block, const TailParameters& p, unsigned* table) {
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  block.each([&](int thread) {
    for (int i = thread; i < kTailTables * kPowers; i += Block::kSize) table[i] = 0;
  });
  block.each([&](int thread) {
    unsigned* mine = table + thread / 32 * kPowers;
    for_elements<Block>(p.in, first, end, thread, true, [&](const Loaded<kUnroll>& x, int k, Index at) {
      const bool agreed = p.in.agreed == nullptr || x.agreed[k];
      const bool finite = terms::is_finite(x.own[k]) && terms::absolute(x.truth[k]) <= p.in.largest &&
                          terms::is_finite(x.answer[k]) && agreed;
      const double error = finite ? terms::in_scale(x.answer[k] - x.truth[k], x.truth[k], p.scale) : 0.0;
      if (p.errors != nullptr) p.errors[at] = static_cast<float>(error);
      const int power = finite ? power_of(error) : kPowers;
      if (power < kPowers) increment(mine[power], 1U);
    });
  });
  block.each([&](int thread) {
    if (thread >= kPowers) return;
    unsigned sum = 0;
    for (int t = 0; t < kTailTables; ++t) sum += table[t * kPowers + thread];
    if (sum > 0) increment(p.counts[thread], static_cast<unsigned long long>(sum));
  });
}

template <typename Block>
NEREID_ON_BOTH void close_block(const Block& block, const CloseParameters& p, unsigned* table) {
  const Index first = block.index() * p.span, end = least(p.count, first + p.span);
  block.each([&](int thread) {
    unsigned others = 0;
    for (Index i = first + thread; i < end; i += Index{Block::kSize} * kUnroll) {
      double a[kUnroll], b[kUnroll];
      load(p.first, i, Block::kSize, end, a);
      if (p.second_stride != 0)
        load(p.second, i, Block::kSize, end, b);
      else
        load(p.second, 0, 0, 1, b);
      for (int k = 0; k < kUnroll; ++k) {
        const double off = terms::absolute(a[k] - b[k]), allowed = p.atol + terms::absolute(p.rtol * b[k]);
        const bool both_nan = p.equal_nan != 0 && terms::is_nan(a[k]) && terms::is_nan(b[k]);
        const bool close = a[k] == b[k] || both_nan || (terms::is_finite(off) && off <= allowed);
        others += i + k * Index{Block::kSize} < end && !close;
      }
    }
    table[thread] = others;
  });
  merge_slots(block, table, [](unsigned& a, unsigned b) { a += b; });
  block.each([&](int thread) {
    if (thread == 0 && table[0] > 0) increment(*p.others, static_cast<unsigned long long>(table[0]));
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
