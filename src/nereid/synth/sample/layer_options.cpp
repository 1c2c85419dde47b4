#include "nereid/synth/sample/layer_options.h"

namespace nereid::synth {
namespace {

// The steps that a tap goes behind: what they take is of the shape of what they give, whatever their windows.
std::vector<bool> tapped_over(const Program& program) {
  std::vector<bool> over(program.steps.size());
  for (const Step& step : program.steps) {
    Ref behind = step.operands[0];
    for (int steps = step.tap; steps > 0; --steps) {
      over[behind.index] = true;
      behind = program.steps[behind.index].operands[0];
    }
  }
  return over;
}

// People choose the sizes of inputs, and what a window makes of them is as it is: so of the last window
// before a result, if nothing but what keeps sizes comes behind it.
void size_by_input(const Program& plain, const Space& space, size_t last, SampledProgram& sampled,
                   ops::Shape& result) {
  for (size_t i = last;; i = step_before(sampled.steps, i)) {
    SampledStep& step = sampled.steps[i];
    ops::Window& window = step.details.window;
    if (window.given()) {
      const bool transposed = ops::is_transposed(*step.op);
      for (size_t d = 2; d < result.rank; ++d) {
        const int32_t in = plain.steps[i].applied.operands[0].dims[d];
        int32_t out = ops::result_size(window, d - 2, transposed, in);
        if (out < 1) return;
        // The last window begins within the operand and its padding.
        if (window.ceil && (out - 1) * window.stride[d - 2] >= in + window.padding[d - 2]) --out;
        result.dims[d] = out;
        window.rest[d - 2] = 0;
        if (!transposed)
          window.rest[d - 2] = static_cast<int8_t>(in - ops::operand_size(window, d - 2, false, out));
      }
      return;
    }
    const Feed feed = step.transition.feed;
    if (feed.a < 0) return;
    const ops::Form& form = space.form(step.transition.form);
    const ops::Slot& slot = form.slot[static_cast<size_t>(feed.a)];
    if (slot.rank != result.rank || form.out_rank != result.rank) return;
    for (uint8_t d = 2; d < slot.rank; ++d)
      if (slot.dims[d] != ops::Term{ops::Term::kOut, d}) return;
  }
}

}  // namespace

void draw_layer_options(Rng& rng, const Program& plain, const Space& space, SampledProgram& sampled) {
  const std::vector<bool> over = tapped_over(plain);
  const auto below = [&](uint32_t n) { return rng.below(n); };
  for (size_t i = 0; i < sampled.steps.size(); ++i)
    sampled.steps[i].details = ops::draw_layer_options(below, plain.steps[i].applied, over[i]);
  if (rng.below(4) == 0) return;
  const size_t last = sampled.steps.size() - 1;
  size_by_input(plain, space, last, sampled, sampled.result);
  if (plain.waiting >= 0)
    size_by_input(plain, space, static_cast<size_t>(plain.waiting), sampled, sampled.waiting);
}

}  // namespace nereid::synth
