// CRC-32C (Castagnoli, RFC 3720): the checksum of token shards and of TensorBoard's records.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nereid::train {

// Goes on from `before`, the checksum of what came first.
uint32_t crc32c(const void* bytes, size_t size, uint32_t before = 0);

}  // namespace nereid::train
