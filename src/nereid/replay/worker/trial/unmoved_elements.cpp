#include "nereid/replay/worker/trial/unmoved_elements.h"

#include <algorithm>

#include "nereid/replay/worker/operators.h"

namespace nereid::replay {

void UnmovedElements::note(const std::vector<OutputTensors>& outputs) {
  constexpr double kNear = 0x1p-7;  // relative: what rounding of 16 bits and a decoy of that size may move
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto got =
        outputs[i].got.is_complex() ? at::view_as_real(outputs[i].got.resolve_conj()) : outputs[i].got;
    const auto now = got.reshape({-1}).to(c10::kDouble);
    if (outputs_.size() <= i) {
      outputs_.push_back({now.clone(), at::isfinite(now)});
      continue;
    }
    auto& [first, same] = outputs_[i];
    same.logical_and_(at::isclose(now, first, kNear, 0));
  }
}

Json UnmovedElements::found() const {
  constexpr int64_t kMaxNumbers = 4096;
  Json found = Json::array();
  for (const auto& [first, same] : outputs_) {
    const auto numbers = first.masked_select(same);
    const auto shown = numbers.narrow(0, 0, std::min(numbers.numel(), kMaxNumbers)).contiguous();
    const auto* data = shown.const_data_ptr<double>();
    found.push_back({{"elements", first.numel()},
                     {"unmoved", numbers.numel()},
                     {"numbers", std::vector<double>(data, data + shown.numel())}});
  }
  return {{"outputs", found}};
}

}  // namespace nereid::replay
