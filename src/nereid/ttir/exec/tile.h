// The memory of tiles while a kernel runs: reference-counted blocks from free lists, one pool a thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace nereid::ttir {

// A tile's bytes follow its header at a 64-byte boundary, or are in memory that it borrows and that is
// never written through it.
struct alignas(64) Tile {
  int32_t references = 0;
  int32_t size_class = 0;
  Tile* next = nullptr;  // in a free list
  std::byte* bytes = reinterpret_cast<std::byte*>(this + 1);
  std::byte* data() { return bytes; }
  bool borrowed() const { return bytes != reinterpret_cast<const std::byte*>(this + 1); }
};

// Thrown when a pool would hold more than kMaxTileBytes: a kernel's tiles are bounded, however hostile it
// is.
struct TilesExceeded {};
constexpr int64_t kMaxTileBytes = int64_t{1} << 30;

// Last in, first out, so that what is handed out is still in the cache. Not thread-safe.
class TilePool {
 public:
  TilePool() = default;
  TilePool(const TilePool&) = delete;
  TilePool& operator=(const TilePool&) = delete;
  ~TilePool();

  Tile* take(int64_t bytes) {  // at least `bytes`, one reference
    int size_class = 6;
    if (bytes > 64) size_class = 64 - __builtin_clzll(static_cast<unsigned long long>(bytes - 1));
    Tile*& list = free_[static_cast<size_t>(size_class)];
    Tile* tile = list;
    if (tile == nullptr) [[unlikely]]
      return allocate(size_class);
    list = tile->next;
    tile->references = 1;
    return tile;
  }
  Tile* borrow(std::byte* memory) {
    Tile* tile = take(0);
    tile->bytes = memory;
    return tile;
  }
  void release(Tile* tile) {
    if (--tile->references > 0) return;
    tile->bytes = reinterpret_cast<std::byte*>(tile + 1);
    Tile*& list = free_[static_cast<size_t>(tile->size_class)];
    tile->next = list;
    list = tile;
  }
  int64_t allocated_bytes() const { return allocated_; }

 private:
  Tile* allocate(int size_class);
  std::array<Tile*, 64> free_{};
  int64_t allocated_ = 0;
};

}  // namespace nereid::ttir
