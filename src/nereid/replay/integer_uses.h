// What a reference's forward does with the integers of an input or of a table.
#pragma once

#include <cstdint>
#include <limits>
#include <set>

#include "nereid/trace/trace.h"

namespace nereid::replay {

struct IntegerUse {
  static constexpr int64_t kNoBound = std::numeric_limits<int64_t>::max();
  // All of [least, bound) is legal as an index: of the smallest dimension that they index as they are, or
  // moved by a number (lengths - 1).
  int64_t least = 0, bound = kNoBound;
  // The smallest row of positions (0, 1, 2, ...) that they are compared with: as lengths, all of [0, length]
  // say something of such a row.
  int64_t positions = kNoBound;
  // Where they go is not all known: an index is computed from them, or an operator that this does not know
  // takes them. Then only the sample's own range is safe.
  bool obscure = false;
  // They are only compared, or make masks.
  bool compared_alone = true;

  // They are compared, or an operator takes them to which not all numbers mean something (a shift, an
  // exponent, a count of repetitions).
  bool limited = false;
  // Integers are multiplied with each other: of large ones the reference's own product may wrap.
  bool multiplied = false;
  // They are brought into a range (a remainder, a clamp) before they are used as anything else: any number
  // is legal whose sign a sample has, for remainders of negative numbers differ between languages.
  bool reduced = false;

  // Some operator writes where they point to.
  bool scattered = false;

  // Negative numbers that the forward asks for (ignore_index, y != -100): any place may hold one.
  std::set<int64_t> marks = {};

  bool indexes() const { return bound != kNoBound; }
  // They say where to read, and nothing else.
  bool gathers_alone() const { return indexes() && !scattered && !obscure && !limited; }
  bool are_lengths() const { return positions != kNoBound && !obscure; }
  // They are numbers that the forward computes with, and nothing else: any number is legal.
  bool numbers_alone() const { return !indexes() && !obscure && !compared_alone && !limited; }
};

// The judged forward names NaNs or infinities (nan_to_num, isnan, x != x, isfinite, nansum, fmax): what it
// makes of them is meant.
bool handles_nans(const trace::Trace& trace);

// Follows a value's integers through the judged forward: views, copies and casts to other integers keep them,
// and what compares them or makes floating-point numbers of them ends the search.
IntegerUse use_of(const trace::Trace& trace, trace::ValueId value);

}  // namespace nereid::replay
