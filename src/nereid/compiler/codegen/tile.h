// How a kernel of maps, reductions and scans is cut into blocks.
//
// A kernel of many programs takes blocks that memory likes. One of a few is cut by a small model of what such
// kernels wait for: instructions that come for the first time, turns of a loop one after the other.
#pragma once

#include <set>

#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

inline constexpr int64_t kRowsOfPrograms = 128;  // with so many, a program that takes a row is busy
inline constexpr int64_t kSharedTensors = 2;     // of a shared row: what a thread has registers for

struct Tile {
  int64_t rows = 1, columns = 1;  // of a block
  bool looped = false;            // a program goes over its columns in several blocks
  int64_t column_tiles = 1;       // programs that share a row: of maps, which need no whole row
  // Programs that share a row and wait for each other: each holds a part of it in registers, and they
  // exchange what they reduce it to. 1: none do.
  int64_t parts = 1;
  int64_t groups = 1;  // rows at once, then
  int registers = 0;   // a thread may have; 0: as many as the compiler takes
  // Of maps: adjacent elements go to adjacent threads, one each, instead of a vector to a thread. Windows
  // read at places that no vector is aligned at; a warp's loads of single elements are then whole lines.
  bool one_a_thread = false;
  int warps = 4;
};

// Whether rows of so many columns, which are read more than once, are better shared among programs: they are
// long, and a row fits the registers of as many programs as are resident together.
bool is_shared_row(int64_t rows, int64_t columns, const Target& target);
// Whether what programs of shared rows read at a time are short runs, far apart in memory: the rows of
// [32000, 64, 17] reduced to its 64 channels are 32,000 runs of 17 elements, and of these 7 rows are read at
// a time. `body` is over `rows`, then `columns`.
bool has_short_runs(const Graph& graph, ExprId body, const Extents& rows, const Extents& columns,
                    const Target& target);

// Of a map `body` over `rows`: the first of the dimensions that no weight of its window depends on, where it
// has several weights and these dimensions fill the blocks of planes (TileKernel::planes); else their number.
size_t planes_from(const Graph& graph, ExprId body, const Extents& rows);

// Votes of what a kernel loads for its rows (positive) or its columns being adjacent in memory.
int rows_are_inner(const Graph& graph, const TileKernel& kernel);

// Tensors that a kernel reads of which every row has columns of its own; not the weights of a group norm,
// which are few.
int64_t wide_loads(const Graph& graph, const TileKernel& kernel);

// Whether it takes long to fetch the code that computes `bodies` for so many elements a thread.
bool is_long_code(const Graph& graph, const std::set<ExprId>& bodies, double elements);

Tile cut(const Graph& graph, const TileKernel& kernel, const KernelChoice& choice, const Target& target);

}  // namespace nereid::compiler
