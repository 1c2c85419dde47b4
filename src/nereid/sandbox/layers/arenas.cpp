#include "nereid/sandbox/layers/arenas.h"

#include <sys/mman.h>

#include <cstdint>

namespace nereid::sandbox {
namespace {

// [begin, next) is in use, [next, end) is not yet. Arenas that are given back are not used again: Python
// gives back few, while modules are imported, and their pages go.
struct Reserve {
  char *begin = nullptr, *next = nullptr, *end = nullptr;
} reserve;

void* allocate(void*, size_t size) {
  if (size <= static_cast<size_t>(reserve.end - reserve.next)) {
    char* arena = reserve.next;
    reserve.next += size;
    return arena;
  }
  void* arena = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return arena == MAP_FAILED ? nullptr : arena;
}

void release(void*, void* arena, size_t size) {
  const bool ours = arena >= reserve.begin && arena < reserve.end;
  if (ours)
    ::madvise(arena, size, MADV_DONTNEED);
  else
    ::munmap(arena, size);
}

}  // namespace

ArenaAllocator reserve_arenas(size_t reserved) {
  void* room = ::mmap(nullptr, reserved + kHugePage, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room != MAP_FAILED) {
    const auto first = (reinterpret_cast<uintptr_t>(room) + kHugePage - 1) / kHugePage * kHugePage;
    reserve.begin = reserve.next = reinterpret_cast<char*>(first);
    reserve.end = reserve.begin + reserved;
    ::madvise(reserve.begin, reserved, MADV_HUGEPAGE);
  }
  return {nullptr, allocate, release};
}

void close_arenas() {
  const auto used = static_cast<size_t>(reserve.next - reserve.begin);
  char* last = reserve.begin + (used + kHugePage - 1) / kHugePage * kHugePage;
  if (last < reserve.end) ::munmap(last, static_cast<size_t>(reserve.end - last));
  if (last < reserve.end) reserve.end = last;
}

}  // namespace nereid::sandbox
