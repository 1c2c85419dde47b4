// What a set of programs covers: operators, pairs of them, ranks, sizes, costs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/synth/program.h"

namespace nereid::synth {

class Coverage {
 public:
  explicit Coverage(const std::vector<const ops::Operator*>& operators);
  void add(const Program& program);
  // operators{name: steps}, pairs (of a result and the step that uses it) seen, ranks{}, sizes{}, flops and
  // bytes
  nlohmann::json to_json() const;
  // A few lines for people.
  std::string to_text() const;

 private:
  size_t number_of(const ops::Operator* op) const;

  std::vector<const ops::Operator*> operators_;  // in the order of their addresses
  std::vector<uint64_t> steps_, pairs_;          // [operator], [operator before * count + operator]
  std::array<uint64_t, ops::kMaxRank + 1> ranks_{};
  std::array<uint64_t, kClasses> sizes_{};
  std::vector<uint64_t> flops_, bytes_;  // [floor(log10)]: programs
  uint64_t programs_ = 0, taps_ = 0, joins_ = 0, two_results_ = 0, odd_ = 0, dims_ = 0;
};

}  // namespace nereid::synth
