// Which inline assembly a kernel may hold: known elementwise PTX instructions on its own operands, nothing
// that touches memory, control flow or special registers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nereid::verify {

// The first instruction that is not on the list, nullopt where all are.
std::optional<std::string> forbidden_instruction(std::string_view assembly);

}  // namespace nereid::verify
