#include <algorithm>
#include <cmath>

#include "nereid/replay/worker/inputs/draws.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

bool take_sides(at::Tensor tensor, const DecidingState& state, int64_t first, bool any_sign, bool near_bounds,
                at::Generator generator) {
  const auto type = tensor.scalar_type();
  const bool whole = c10::isIntegralType(type, false);
  if ((!whole && (!c10::isFloatingType(type) || c10::elementSize(type) < 2)) || tensor.numel() == 0)
    return false;
  const int64_t skipped = near_bounds ? first_at_bounds() : 0, choices = state.choices() - skipped;
  const bool positive = !any_sign && tensor.min().item().toDouble() >= 0;
  const double most = whole ? std::exp2(std::min<size_t>(8 * c10::elementSize(type), 40) - 1) - 1
                            : std::min(largest_finite(dtype_of(type)) / 4, 0x1p40);
  const auto chances = at::rand({choices}, generator, at::TensorOptions().dtype(c10::kDouble));
  generator = generator_on(tensor, generator);
  for_parts(tensor, [&](at::Tensor part, int64_t index) {
    const auto options = options_of(part, c10::kLong);
    const auto choice =
        tensor.numel() < choices
            ? at::arange(index + first, index + first + part.numel(), options).remainder_(choices)
            : at::randint(choices, {part.numel()}, generator, options);
    const auto own = part.to(c10::kDouble).reshape({-1});
    const auto base = own.masked_fill(own.eq(0), 1), large = base.abs().clamp_min(1).copysign(base);
    auto made = own;
    for (int64_t c = 0; c < choices; ++c) {
      const auto side = side_of(state, static_cast<int>(c + skipped), chances[c].item().toDouble());
      made =
          at::where(choice.eq(c), (side.at_least_one ? large : base).mul(side.times).add_(side.plus), made);
    }
    made.clamp_(-most, most);
    if (positive) made.abs_();
    if (whole) made.round_();
    part.copy_(at::where(own.isfinite(), made, own).to(type).view(part.sizes()));
  });
  return true;
}

}  // namespace nereid::replay
