// Rows that several programs share: each holds a part of a row in registers, and they exchange what they
// reduce it to through memory (Tile::parts).
#pragma once

#include "nereid/compiler/codegen/tiles/tile_text.h"

namespace nereid::compiler {

// Writes the kernel's body, and sets its grid and the memory that its programs share.
void write_shared_rows(TileText& text);

}  // namespace nereid::compiler
