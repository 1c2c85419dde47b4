// Elements of the candidate's outputs that no trial moves: they depend on pinned inputs alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nereid/base/json.h"
#include "nereid/replay/worker/compare/compare.h"

namespace nereid::replay {

class UnmovedElements {
 public:
  void clear() { outputs_.clear(); }
  // Of one more trial, or of the same trial's outputs again.
  void note(const std::vector<OutputTensors>& outputs);
  // {"outputs": [{"elements", "unmoved", "numbers": [...]}...]}, at most 4,096 numbers of each.
  Json found() const;

 private:
  struct Output {
    at::Tensor first, same;  // of the first trial, as float64; bool
  };
  std::vector<Output> outputs_;
};

}  // namespace nereid::replay
