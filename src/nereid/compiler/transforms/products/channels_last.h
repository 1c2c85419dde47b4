// Convolutions as products of rows that are together.
//
// Where PyTorch's flags let a contraction of float32 round its factors to TF32 (convolutions by default),
// each factor is written once with the channels as its last dimension, rounded to TF32: a tensor core reads
// such rows as they are, and cuts off what TF32 does not hold instead of rounding. The sum then goes over the
// window one tap at a time, over the channels in blocks (Node::taps). A node that makes a factor element by
// element, a convolution before it for instance, writes it so at once.
//
// Halves are written so too, as they are. Of a grouped convolution each group's channels are the last
// dimension, the groups stay where the channels were.
//
// A product of one tap reads its factors as they are instead, and rounds them where it reads them
// (Node::direct), where that costs less: rows that only this product reads take two passes over what forward
// is given, and a copy of what is read otherwise, too. A factor that maps make is then computed where it is
// read, if one tile has all products of it. Such reads reach kDirectRate of the tensor cores' rate (assumed,
// not measured).
//
// Precondition: such a contraction, or one of halves over several dimensions, large, each factor one load
// (also where a padding's condition holds, else zero) with one dimension that is a summed one as it stands,
// the same in both and at least kMinChannels long; or, of a grouped convolution, a few long.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

inline constexpr int64_t kMinChannels = 16;

inline constexpr int64_t kMaxDirectProducts = 128;  // of a factor that is computed where it is read
inline constexpr size_t kMaxDirectBody = 48;        // expressions of such a factor

// In place; before maps are taken into their readers.
void channels_last(Graph& graph, const Target& target);

}  // namespace nereid::compiler
