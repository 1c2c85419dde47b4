// The kernels that add up the errors of an output over its slices on a GPU: sums of one quantity, or in one
// pass those of the truth, of the reference's own error and of the answer's. Taken in float64 and in an order
// that only the sizes decide.
#pragma once

#include "nereid/replay/worker/compare/kernel_block.h"

namespace nereid::replay::kernels {

inline constexpr int kSums = 5;             // of one quantity
inline constexpr int kAllSums = 3 * kSums;  // of the truth, of the own error, of the answer's
inline constexpr int kValueThreads = 128;   // of a block of the values kernel
inline constexpr int kExponents = 64;       // groups of each sign
inline constexpr int kExponentsAbove = 16;  // of these, above the scale's
// Of a group by value: of the truth the count and ulp^2, of an error e and e^2.
inline constexpr int kValueSums = 2, kAllValueSums = 3 * kValueSums;

// Sums over groups of elements: of the truth (count, t, t^2, ulp^2, 0) or of an error e (e, e^2, et, e^2t,
// e^2t^2).
struct SumParameters {
  Inputs in;
  int of_truth = 0;  // where one quantity is summed; else of an error
  double epsilon = 0, smallest_ulp = 0, scale = 0;
  // Element i is in group (i / inner) % size / per; `length` = inner * per, `period` = inner * size.
  Index length = 0, period = 0, workers = 0, span = 0;
  Index width = 0, rows = 0;  // columns: element i is at column i % width; rows of a worker
  double* sums =
      nullptr;  // [worker][sum][column]; of runs [sum][group][worker]; of values [block][sum][group]
};

// Adds up what those wrote: out[group][stride], sum k of a column at place[k].
struct FoldParameters {
  const double* sums = nullptr;
  Index workers = 0, width = 0, period = 0, length = 0;
  int count = 0, stride = 0;  // sums of a column, and of a group
  int place[kAllSums] = {};
  double* out = nullptr;
};

template <int kMany>
struct SumsOf {
  double of[kMany];
};

NEREID_ON_BOTH void add_truth_terms(double* sums, const SumParameters& p, double t) {
  const double ulp = terms::ulp_at(t, p.epsilon, p.smallest_ulp);
  sums[0] += 1, sums[1] += t, sums[2] += t * t, sums[3] += ulp * ulp;
}

NEREID_ON_BOTH void add_error_terms(double* sums, double answer, double t) {
  if (!terms::is_finite(answer)) return;
  const double e = answer - t, et = e * t;
  sums[0] += e, sums[1] += e * e, sums[2] += et, sums[3] += e * et, sums[4] += et * et;
}

// Adds one element's terms.
template <int kMany, int kCount>
NEREID_ON_BOTH void add_terms(SumsOf<kMany>& sums, const SumParameters& p, const Loaded<kCount>& x, int k) {
  if (x.standing(p.in, k) != terms::Standing::kFinite) return;
  if constexpr (kMany == kAllSums) {
    add_truth_terms(sums.of, p, x.truth[k]);
    add_error_terms(sums.of + kSums, x.own[k], x.truth[k]);
    add_error_terms(sums.of + 2 * kSums, x.answer[k], x.truth[k]);
  } else if (p.of_truth != 0) {
    add_truth_terms(sums.of, p, x.truth[k]);
  } else {
    add_error_terms(sums.of, x.answer[k], x.truth[k]);
  }
}

template <int kMany>
NEREID_ON_BOTH void add_sums(SumsOf<kMany>& a, const SumsOf<kMany>& b) {
  for (int k = 0; k < kMany; ++k) a.of[k] += b.of[k];
}

template <int kMany>
NEREID_ON_BOTH bool reads_answer(const SumParameters& p) {
  return kMany == kAllSums || kMany == kAllValueSums || p.of_truth == 0;
}

// Groups of `length` adjacent elements or more: block `worker` of a group takes `span` of its elements.
template <int kMany, typename Block>
NEREID_ON_BOTH void runs_block(const Block& block, const SumParameters& p, SumsOf<kMany>* slots) {
  const Index group = block.index() / p.workers, worker = block.index() % p.workers;
  const Index begin = group * p.length, length = least(p.length, p.period - begin);
  const Index rows = (p.in.count + p.period - 1) / p.period;
  const Index end = least(rows * length, (worker + 1) * p.span);
  block.each([&](int thread) {
    SumsOf<kMany> sums{};
    Loaded<1> x;
    Index q = worker * p.span + thread, row = q / length, at = q % length;
    for (; q < end; q += Block::kSize) {
      const Index i = row * p.period + begin + at;
      if (i < p.in.count) {
        x.load_from(p.in, i, 1, p.in.count, reads_answer<kMany>(p));
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
  merge_slots(block, slots, [](SumsOf<kMany>& a, const SumsOf<kMany>& b) { add_sums(a, b); });
  const Index groups = (p.period + p.length - 1) / p.length;
  block.each([&](int thread) {
    if (thread < kMany) p.sums[(thread * groups + group) * p.workers + worker] = slots[0].of[thread];
  });
}

// Groups that repeat within `width` columns: a thread takes one column of a worker's rows.
template <int kMany, typename Block>
NEREID_ON_BOTH void columns_block(const Block& block, const SumParameters& p) {
  const Index blocks = (p.width + Block::kSize - 1) / Block::kSize;
  const Index worker = block.index() / blocks;
  block.each([&](int thread) {
    const Index column = block.index() % blocks * Block::kSize + thread;
    if (column >= p.width) return;
    const Index end = least(p.in.count, (worker + 1) * p.rows * p.width);
    SumsOf<kMany> sums{};
    Loaded<kUnroll> x;
    for (Index i = worker * p.rows * p.width + column; i < end; i += kUnroll * p.width) {
      x.load_from(p.in, i, p.width, end, reads_answer<kMany>(p));
      for (int k = 0; k < kUnroll; ++k)
        if (i + k * p.width < end) add_terms(sums, p, x, k);
    }
    for (int k = 0; k < kMany; ++k) p.sums[(worker * kMany + k) * p.width + column] = sums.of[k];
  });
}

// Groups by the truth's sign and exponent: the lanes of a warp share a few tables, and take turns at them.
// Shared memory holds 48 KiB, so many quantities have fewer tables.
inline constexpr int value_turns(int many) { return many == kAllValueSums ? 16 : 8; }
inline constexpr int value_tables(int many) { return kValueThreads / value_turns(many); }
// Of a thread: the elements that it has in flight.
template <int kMany>
struct ValueBatch {
  SumsOf<kMany> of[kUnroll];
  int group[kUnroll];  // negative where there is nothing to add
};

template <int kMany>
NEREID_ON_BOTH void take_values(ValueBatch<kMany>& batch, const SumParameters& p, const Loaded<kUnroll>& x,
                                int k) {
  batch.group[k] = -1;
  if (x.standing(p.in, k) != terms::Standing::kFinite) return;
  const double t = x.truth[k], ulp = terms::ulp_at(t, p.epsilon, p.smallest_ulp);
  const double e = terms::is_finite(x.answer[k]) ? x.answer[k] - t : 0.0;
  double* sums = batch.of[k].of;
  if constexpr (kMany == kAllValueSums) {
    const double own = x.own[k] - t;
    sums[0] = 1, sums[1] = ulp * ulp, sums[2] = own, sums[3] = own * own, sums[4] = e, sums[5] = e * e;
  } else if (p.of_truth != 0) {
    sums[0] = 1, sums[1] = ulp * ulp;
  } else {
    sums[0] = e, sums[1] = e * e;
  }
  batch.group[k] = terms::exponent_group(t, p.scale, kExponents, kExponentsAbove);
}

template <int kMany, typename Block>
NEREID_ON_BOTH void values_block(const Block& block, const SumParameters& p, SumsOf<kMany>* tables) {
  constexpr int kGroups = 2 * kExponents, kTurns = value_turns(kMany), kTables = value_tables(kMany);
  static_assert(kGroups == kValueThreads, "a thread adds up one group in the end");
  block.each([&](int thread) {
    for (int table = 0; table < kTables; ++table) tables[thread * kTables + table] = SumsOf<kMany>{};
  });
  const Index first = block.index() * p.span, end = least(p.in.count, first + p.span);
  typename Block::template PerThread<ValueBatch<kMany>> mine;
  for (Index i = first; i < end; i += Index{Block::kSize} * kUnroll) {
    block.each_in_warp([&](int thread) {
      Loaded<kUnroll> x;
      x.load_from(p.in, i + thread, Block::kSize, end, reads_answer<kMany>(p));
      if (!reads_answer<kMany>(p))
        for (int k = 0; k < kUnroll; ++k) x.answer[k] = 0;
      for (int k = 0; k < kUnroll; ++k) {
        take_values(mine[thread], p, x, k);
        if (i + thread + k * Index{Block::kSize} >= end) mine[thread].group[k] = -1;
      }
    });
    for (int turn = 0; turn < kTurns; ++turn)
      block.each_in_warp([&](int thread) {
        if (thread % kTurns != turn) return;
        for (int k = 0; k < kUnroll; ++k)
          if (mine[thread].group[k] >= 0)
            add_sums(tables[mine[thread].group[k] * kTables + thread / kTurns], mine[thread].of[k]);
      });
  }
  block.each([](int) {});
  block.each([&](int thread) {
    SumsOf<kMany> sums{};
    for (int table = 0; table < kTables; ++table) add_sums(sums, tables[thread * kTables + table]);
    for (int k = 0; k < kMany; ++k) p.sums[(block.index() * kMany + k) * kGroups + thread] = sums.of[k];
  });
}

// Block g adds up the columns of group g: [g * length, (g + 1) * length) of every period, of all workers.
template <typename Block>
NEREID_ON_BOTH void fold_block(const Block& block, const FoldParameters& p, SumsOf<kAllSums>* slots) {
  const Index begin = block.index() * p.length, length = least(p.length, p.period - begin);
  const Index columns = (p.width + p.period - 1) / p.period * length;
  block.each([&](int thread) {
    SumsOf<kAllSums> sums{};
    for (Index q = thread; q < p.workers * columns; q += Block::kSize) {
      const Index worker = q / columns, place = q % columns;
      const Index column = place / length * p.period + begin + place % length;
      if (column >= p.width) continue;
      for (int k = 0; k < p.count; ++k) sums.of[k] += p.sums[(worker * p.count + k) * p.width + column];
    }
    slots[thread] = sums;
  });
  merge_slots(block, slots, [](SumsOf<kAllSums>& a, const SumsOf<kAllSums>& b) { add_sums(a, b); });
  block.each([&](int thread) {
    if (thread != 0) return;
    double* out = p.out + block.index() * p.stride;
    for (int k = 0; k < p.count; ++k) out[p.place[k]] = slots[0].of[k];
  });
}

}  // namespace nereid::replay::kernels
