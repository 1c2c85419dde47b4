// Work on CUDA streams that do not wait for each other: a trace runs it in the order in which it was issued,
// a GPU in any.
#pragma once

#include <optional>

#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// The first step of a forward that touches, on another stream, memory that an earlier step may still be
// writing, or writes what one may still be reading; or work that the caller's stream does not wait for. The
// inputs are written on the caller's stream before the forward. Parts of a storage count as different where
// the views that steps are given do not overlap; two steps that only write the same storage are taken to
// write different parts, which replays check (replay/worker/stream_writes.h).
std::optional<Evidence> unordered_work(const TraceAnalysis& facts);

}  // namespace nereid::verify
