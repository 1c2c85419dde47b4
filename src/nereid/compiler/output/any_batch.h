// Kernels for any batch.
//
// A task that was traced at two batches is lowered with the batch's name in all sizes that depend on it
// (OtherBatch, ir/graph.h). In forward the name is the size that is read off an input, in a kernel an
// argument that its launches pass. Blocks and the choice of kernels still go by the batch's value. So the
// task is lowered at three batches: the texts must be the same. What differs is an Error that names it: a
// block as large as the batch, a number in the constructor, another order of steps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::compiler {

struct WrittenFor {
  int64_t batch = 0;
  std::string code;  // of a lowered module, without its plan
};

// `input`: forward's argument whose leading size is the batch. The batches are in ascending order, and a
// power of two is between each two of them.
Result<std::string> for_any_batch(const std::array<WrittenFor, 3>& written, const std::string& input);

// Three such batches around this one, none of which is one of the sizes in `taken` (ascending).
std::array<int64_t, 3> batches_around(int64_t batch, const std::vector<int64_t>& taken);

// The task with inputs of so many rows where its own have `from`: rows are taken again, or left out.
std::string with_batch(const std::string& source, int64_t from, int64_t to);

}  // namespace nereid::compiler
