// Which elements of a float64 result hang on the order in which a float32 program computes it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace nereid::replay {

// Of sums (products of matrices, convolutions, reductions, scans): elements whose terms' sizes add up to more
// than a float32 holds become NaN, for the order of adding decides whether they are infinite, NaN or a
// number; and of products and convolutions those with an infinite term, which a kernel that splits its
// factors makes NaN of. Of prod and cumprod: elements of whose factors some run overflows or underflows in
// float32 (NaN, or zero where the result is NaN), unless the whole does so in every order. Of a transposed
// convolution: all of a channel whose weights are not all finite, since it is the algorithm's choice which of
// them meet a zero of the padding and make NaN of it (PyTorch on the CPU adds up what there is, cuDNN's
// products take in zeros, ordinary convolutions do so everywhere). Of attention: what queries that are no
// numbers find, zeros on the CPU in four dimensions, where in three it is NaN. `arguments`: the operator's,
// before the call.
void invalidate_order_sensitive(const c10::OperatorHandle& op, const torch::jit::Stack& arguments,
                                at::Tensor& result);

}  // namespace nereid::replay
