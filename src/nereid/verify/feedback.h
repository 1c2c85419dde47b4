// A wrong verdict as the next prompt of a conversation: what a model repairs by.
#pragma once

#include <string>
#include <string_view>

#include "nereid/verify/verdict.h"

namespace nereid::verify {

inline constexpr size_t kMaxFeedback = 480;  // bytes: at most some 150 tokens

// The verdict with its first evidence (values, or the failing access), and the line to look at with its
// source: two lines, without seeds and settings, so that equal answers have equal texts. "" where nothing is
// to be repaired: of Verified and Error. The same in `nereid verify --json`, searches, evaluation, repair
// data and reinforcement learning.
//
//   Mismatch: output is wrong at 7 of 32 elements, most at [3, 7]: expected 0.5, got 0.25 (error 0.25, ...
//   Line 23, kernel gate: tl.store(out + i, y, mask=i < 31)
std::string feedback(const Verdict& verdict);

// The lines of the candidate's `source` that the evidence names, as Evidence::source, where they are missing.
void add_source_lines(Verdict& verdict, std::string_view source);

}  // namespace nereid::verify
