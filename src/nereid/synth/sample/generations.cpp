#include "nereid/synth/sample/generations.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace nereid::synth {
namespace {

// Operators that joined together, oldest first: a new operator of the catalogue is added in a list of its own
// at the end. Lists that are here are never changed.
const std::vector<std::vector<std::string_view>> kLater = {};

}  // namespace

int generation(const ops::Operator& op) {
  for (size_t i = 0; i < kLater.size(); ++i)
    if (std::ranges::find(kLater[i], op.name) != kLater[i].end()) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace nereid::synth
