// Which operators a replay runs. Those that touch files, processes, other libraries' objects or raw memory,
// and those that trust their arguments, are refused: a candidate's trace is hostile.
#pragma once

#include <string_view>

namespace nereid::replay {

// `name` without namespace and overload: "add_", "_softmax".
bool is_allowed(std::string_view name);

}  // namespace nereid::replay
