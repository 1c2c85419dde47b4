// TTIR text, as Triton prints it after its `ttir` stage, to a typed SSA program.
#pragma once

#include <string_view>

#include "nereid/base/result.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// The text is hostile: sizes, nesting and counts are bounded. An error says line and column of the TTIR; an
// operation, attribute or type we do not know begins "Unsupported: ". Types written in the text are taken at
// their word: `verify` must check the module before it is run.
Result<Module> parse(std::string_view text);

}  // namespace nereid::ttir
