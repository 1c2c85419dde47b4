// Checks of Python floats among a forward's inputs, for files whose kernels hold these numbers as constants.
#pragma once

#include <functional>
#include <string>

#include "nereid/trace/trace.h"

namespace nereid::render {

// How a forward's body reaches an input: of a list by its place, of a dictionary by its key; empty where it
// cannot.
struct InputPaths {
  std::function<std::string(size_t place)> by_place;
  std::function<std::string(const std::string& key)> by_key;
};

// Two lines for each float: "if scale != 1.5:" and one that raises a ValueError. Empty without floats.
std::string number_checks(const trace::Arg& inputs, const InputPaths& paths, const std::string& indent);

}  // namespace nereid::render
