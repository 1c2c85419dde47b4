#include "nereid/compiler/output/size_text.h"

#include <algorithm>

#include "nereid/compiler/ir/graph.h"

namespace nereid::compiler {

std::string element_text(const std::vector<int64_t>& sizes, int64_t offset) {
  return along_strides(offset, row_major(as_dimensions(sizes))).text();
}

std::string strides_text(const std::vector<int64_t>& strides, const std::vector<int64_t>& sizes) {
  std::string text;
  for (const int64_t stride : strides) {
    const std::string product = element_text(sizes, stride);
    const bool plain = std::ranges::find(sizes, stride) != sizes.end() || product.find('+') != product.npos;
    text += (text.empty() ? "" : ", ") + (plain ? std::to_string(stride) : product);
  }
  return text;
}

}  // namespace nereid::compiler
