// Which operators a replay runs: names on two lists, and no other. Those that touch files, processes, other
// libraries' objects or raw memory are on neither: a candidate's trace is hostile.
#pragma once

#include <string_view>
#include <vector>

namespace nereid::trace {

// `name` without namespace and overload: "add_", "_softmax".
bool is_allowed(std::string_view name);
std::vector<std::string_view> allowed_names();

}  // namespace nereid::trace
