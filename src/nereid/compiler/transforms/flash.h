// Attention in one pass over its keys.
//
// softmax(score) v, with a score for each query and key that is made of their product, is a contraction, a
// largest score, a sum of exponentials and another contraction. Written so, the scores go through memory,
// which is most of the time that attention takes. In one pass the largest score and the sum are corrected as
// keys come (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022), and no score is ever stored.
//
// Precondition of the rewrite: the factor of a contraction is exp(score - most) / sum, where `most` and `sum`
// are the same score's largest and the same exponentials' sum over what the contraction sums over, found by
// comparing expressions; the score has one product in it, of factors with at most `kWidestHead` terms; and
// what is no longer made has no other reader.
//
// A few queries of many keys (decoding) are left as they are: a program of one pass goes over all keys of its
// queries, so that 192 batches of 8 queries occupy a processor each with a tile of 16. Their scores are small
// against keys and values: storing them costs less than that, and the products are cut by keys.
#pragma once

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

inline constexpr int64_t kWidestHead = 256;  // a tile of queries, keys and values must fit at the same time

// In place; before maps are taken into their readers.
void one_pass_attention(Graph& graph, const Target& target);

// An expression that loads whatever the node does.
ExprId reads_of(Graph& graph, const Flash& flash);

}  // namespace nereid::compiler
