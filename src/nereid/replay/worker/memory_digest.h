// A digest of memory for equality, computed where the memory lies: which of an autotuner's configurations
// leave the same bytes.
//
// Each half of a word is multiplied by a number that depends on its position and a key, and the products are
// added modulo 2^64. Different memories have equal digests with probability 2^-32 over the keys. A candidate
// does not know the key, and cannot make its configurations' results collide.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nereid::replay {

// `bytes`: of one dimension, contiguous.
uint64_t memory_digest(const at::Tensor& bytes, uint64_t key);
uint64_t mix_digest(uint64_t digest, uint64_t next);  // depends on the order
uint64_t unguessable_key();

}  // namespace nereid::replay
