// What a forward cannot do without of its inputs, found by trying.
//
// An element is needed where another number in its place moves some output by more than any tolerance
// forgives: whatever is right on both must have read it. That says nothing about how, and holds for the
// inputs at hand; an element that moves the outputs too little to be seen (one of millions that are summed)
// counts as not needed. Outputs that are views of inputs or of state, which the forward leaves alone, need no
// read.
#pragma once

#include <cstdint>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/replay/worker/replay.h"

namespace nereid::replay {

struct InputSensitivity {
  int64_t bytes = 0;            // of the input
  int tried = 0, mattered = 0;  // elements, drawn at random: any of the bytes is as likely as any other
};

// One for each floating-point input of the judged call that fills its storage. `replay` stands where its
// judged forward begins, and does so again afterwards, the inputs as they were. At most `samples` elements of
// each.
std::vector<InputSensitivity> input_sensitivity(Replay& replay, const RunOptions& options, uint64_t seed,
                                                int samples, Deadline deadline);

}  // namespace nereid::replay
