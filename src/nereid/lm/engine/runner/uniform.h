// Random numbers by counter: the n-th of a seed is a function of both and of nothing else, so that what a
// sequence draws does not depend on which others it is computed with.
#pragma once

#include <array>
#include <cstdint>

namespace nereid::lm {

// Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return counter;
}

// Uniform in [0, 1), of 53 bits.
inline double uniform_at(uint64_t seed, uint64_t index) {
  const auto drawn = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0},
                            {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return static_cast<double>((uint64_t{drawn[0]} << 32 | drawn[1]) >> 11) * 0x1p-53;
}

}  // namespace nereid::lm
