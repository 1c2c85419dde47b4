// Convolutions of a few channels (an image's three) as products of rows of pixels.
//
// x is written once with its channels last, filled up to a power of two, with the zeros of the padding around
// it, and rounded to TF32; the weights likewise. What a window reads of one line is then one row of memory,
// window width x channels long, and needs no mask: the sum goes over the window's lines one by one, over the
// row in one block (Node::taps).
//
// Precondition: a large contraction that PyTorch's flags let round to TF32, or of halves, each factor one
// load, x's where it is inside and else zero; one reduced dimension is a channel of both and shorter than
// kMinChannels, another goes along a dimension of x in steps of one; and what is filled up with zeros is
// not much more than what there is. An infinite pixel meets no zero that it did not meet before: where the
// row ends, x is masked.
#pragma once

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

// In place; before maps are taken into their readers, before channels_last.
void thin_channels(Graph& graph);

}  // namespace nereid::compiler
