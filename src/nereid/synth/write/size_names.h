// Sizes as names or literals. A size is named when it is first written.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/ops/applied.h"
#include "nereid/synth/write/code_style.h"

namespace nereid::synth {

class SizeNames {
 public:
  explicit SizeNames(const CodeStyle& style);

  const std::string& name(int32_t size);
  // As a global, where the style has such, else as a number.
  void global(std::string& to, int32_t size);
  void shape(std::string& to, const ops::Shape& shape);
  bool is_listed(std::string_view name) const;

  // Names in the order in which they are given, and the sizes that have one.
  const std::vector<std::string>& listed() const { return listed_; }
  const std::vector<std::pair<int32_t, std::string>>& used() const { return used_; }

 private:
  const CodeStyle& style_;
  std::vector<std::string> listed_;
  std::vector<std::pair<int32_t, std::string>> used_;
};

}  // namespace nereid::synth
