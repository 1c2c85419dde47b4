// Names of kernels, after what they do.
#pragma once

#include <string>
#include <vector>

namespace nereid::compiler {

// "layer_norm_gelu" for the words of a kernel's steps, in their order: at most three, those that say most.
// Contractions, norms, losses and their kin come before activations and reductions, these before arithmetic,
// that before copies and fills, which name a kernel only where it does nothing else.
std::string name_of_work(const std::vector<std::string>& words);

}  // namespace nereid::compiler
