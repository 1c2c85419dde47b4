// Memory for an interpreter that will fork: Python takes its own memory from the system in arenas of 1 MiB,
// which come to lie wherever there is a hole between libraries, where no 2 MiB page fits. Given from one
// piece, they are in huge pages from the start (compaction.h says what for).
#pragma once

#include <cstddef>

namespace nereid::sandbox {

inline constexpr size_t kHugePage = size_t{2} << 20;

// What PyObject_SetArenaAllocator takes.
struct ArenaAllocator {
  void* context;
  void* (*allocate)(void* context, size_t size);
  void (*free)(void* context, void* arena, size_t size);
};

// One for the process's whole life, called with the interpreter's lock held. Past `reserved` bytes arenas
// come from the system, as without it.
ArenaAllocator reserve_arenas(size_t reserved);

// Gives back what was not used; later allocations come from the system, where limits count them.
void close_arenas();

}  // namespace nereid::sandbox
