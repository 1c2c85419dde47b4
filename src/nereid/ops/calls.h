// The ATen calls that an application of an operator becomes, as the tracer would record them: what PyTorch's
// Python and its composite operators make of each spelling, with the layouts of what comes out.
//
// They are those of PyTorch 2.11. tests compare them with the tracer's own records (dataset/traced_test.cpp).
#pragma once

#include <optional>
#include <span>

#include "nereid/ops/applied.h"
#include "nereid/ops/recording.h"
#include "nereid/ops/spelling.h"

namespace nereid::ops {

// `own`: the operator's own tensors, in the order of `weights_of`; of a module with statistics (batch norm)
// these come after. The result; nothing where no calls are known for this operator so spelled.
std::optional<Tensor> record(Recording& to, const Applied& applied, Spelling spelling,
                             std::span<const Tensor> operands, std::span<const Tensor> own);

}  // namespace nereid::ops
