// Rows that are longer than a block: a program goes over its columns in loops. Members that need no finished
// result of each other share a loop.
#pragma once

#include "nereid/compiler/codegen/tiles/tile_text.h"

namespace nereid::compiler {

Status write_column_loops(TileText& text);

}  // namespace nereid::compiler
