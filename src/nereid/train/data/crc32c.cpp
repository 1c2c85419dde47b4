#include "nereid/train/data/crc32c.h"

#include <array>
#include <cstring>

namespace nereid::train {
namespace {

// Eight bytes a turn: table k gives what a byte becomes that has k bytes after it.
constexpr auto crc_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xff];
  return tables;
}
constexpr auto kCrcTables = crc_tables();

}  // namespace

uint32_t crc32c(const void* bytes, size_t size, uint32_t before) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  uint32_t crc = ~before;
  for (; size >= 8; size -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) crc ^= kCrcTables[7 - k][(word >> (8 * k)) & 0xff];
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8) ^ kCrcTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

}  // namespace nereid::train
