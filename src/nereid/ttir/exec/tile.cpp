#include "nereid/ttir/exec/tile.h"

#include <cstdlib>
#include <new>

namespace nereid::ttir {

Tile* TilePool::allocate(int size_class) {
  const size_t bytes = sizeof(Tile) + (size_t{1} << size_class);
  if (allocated_ + static_cast<int64_t>(bytes) > kMaxTileBytes) throw TilesExceeded{};
  void* memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  allocated_ += static_cast<int64_t>(bytes);
  Tile* tile = new (memory) Tile;
  tile->references = 1;
  tile->size_class = size_class;
  return tile;
}

TilePool::~TilePool() {
  for (Tile* tile : free_)
    while (tile != nullptr) {
      Tile* next = tile->next;
      std::free(tile);
      tile = next;
    }
}

}  // namespace nereid::ttir
