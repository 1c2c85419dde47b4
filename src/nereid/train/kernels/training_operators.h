// lm::Operators by our own kernels, with their gradients: what training on a GPU has between its matrix
// products.
#pragma once

#include <memory>

#include "nereid/lm/checkpoint/config.h"
#include "nereid/lm/decoder/operators.h"
#include "nereid/lm/engine/runner/kernels.h"

namespace nereid::train {

// What an attention kernel's program takes at once, and how it is compiled.
struct Tiles {
  int64_t queries, keys;
  int warps, stages;
  int registers = 0;       // a thread's, at most; 0: as many as the compiler likes
  bool described = false;  // the kernel is given tensor descriptors, where it can be
};
struct AttentionTiles {
  Tiles forward, of_queries, of_keys;
};
AttentionTiles tiles_of(const lm::Config& config);
// Those of some kernels taken from words like "keys=64,128,8,2,0" (forward, queries, keys: a Tiles in its
// order), which is how others are tried on a GPU without a build: $NEREID_ATTENTION_TILES
// (bench/training_kernels.py writes it).
Result<AttentionTiles> with_tiles(AttentionTiles tiles, const std::string& words);

// `launcher` outlives them.
Result<std::shared_ptr<lm::Operators>> make_training_operators(const lm::Config& config,
                                                               lm::Launcher& launcher,
                                                               const Installation& installation);

}  // namespace nereid::train
