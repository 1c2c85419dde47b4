#include "nereid/ops/window.h"

#include <algorithm>
#include <initializer_list>

#include "nereid/ops/applied.h"

namespace nereid::ops {
namespace {

class Drawer {
 public:
  Drawer(const std::function<uint32_t(uint32_t)>& below, const Applied& plain)
      : below_(below), plain_(plain), axes_(static_cast<size_t>(spatial_axes(plain))) {}

  LayerOptions convolution() {
    const bool transposed = is_transposed(*plain_.op), point = plain_.form->kernel == 1;
    LayerOptions made{.window = plain_.window, .bias = below_(3) != 0};
    Window& window = made.window;
    each(window, [&](size_t d) {
      window.kernel[d] = point        ? uint8_t{1}
                         : axes_ == 3 ? one_of({1, 2, 3, 3, 3, 5})
                                      : one_of({1, 2, 3, 3, 3, 3, 4, 5, 5, 7});
      window.stride[d] = point ? one_of({1, 1, 2, 2, 3}) : one_of({1, 1, 1, 1, 1, 2, 2, 2, 3, 4});
      window.dilation[d] = window.kernel[d] == 1 ? uint8_t{1} : one_of({1, 1, 1, 1, 1, 1, 2, 2, 3});
      const int most = window.reach(d) - 1;  // a window sees something
      const auto half = static_cast<uint8_t>(most / 2);
      window.padding[d] = static_cast<uint8_t>(std::min<int>(most, one_of({0, 0, 0, half, half, 1, 2})));
      window.rest[d] = static_cast<int8_t>(transposed ? 0 : below_(window.stride[d]));
    });
    if (!plain_.form->depthwise) window.groups = groups();
    window.same = !transposed && below_(3) == 0 && keeps_sizes(window);
    draw_spelling(window);
    return made;
  }

  LayerOptions pool() {
    const bool maximum = plain_.op->name.starts_with("max");
    LayerOptions made{.window = plain_.window};
    Window& window = made.window;
    window.ceil = below_(5) == 0, window.counts_padding = maximum || below_(4) != 0;
    const uint32_t step = below_(7);  // the window's own size, one, or another
    each(window, [&](size_t d) {
      window.kernel[d] = axes_ == 3 ? one_of({2, 2, 3, 3, 4}) : one_of({2, 2, 2, 3, 3, 3, 3, 4, 5, 7});
      window.stride[d] = step < 3 ? window.kernel[d] : step == 3 ? uint8_t{1} : one_of({1, 2, 2, 3});
      window.dilation[d] = maximum ? one_of({1, 1, 1, 1, 1, 2, 3}) : uint8_t{1};
      const auto half = static_cast<uint8_t>(window.kernel[d] / 2);  // PyTorch allows no more
      window.padding[d] = std::min(half, one_of({0, 0, 0, 1, 1, 2, 3}));
      const int seen = std::min<int>(window.stride[d], window.reach(d) - window.padding[d]);
      window.rest[d] =
          static_cast<int8_t>(window.ceil ? -static_cast<int>(below_(static_cast<uint32_t>(seen)))
                                          : static_cast<int>(below_(window.stride[d])));
    });
    draw_spelling(window);
    return made;
  }

 private:
  uint8_t one_of(std::initializer_list<uint8_t> list) {
    return *(list.begin() + below_(static_cast<uint32_t>(list.size())));
  }
  // Mostly all axes are alike.
  template <typename Draw>
  void each(Window& window, const Draw& draw) {
    const bool alike = below_(4) != 0;
    for (size_t d = 0; d < axes_; ++d) {
      if (d == 0 || !alike) {
        draw(d);
        continue;
      }
      for (auto* list : {&window.kernel, &window.stride, &window.padding, &window.dilation})
        (*list)[d] = (*list)[0];
      window.rest[d] = window.rest[0];
    }
  }
  int32_t groups() {
    if (below_(4) != 0) return 1;
    const int32_t in = plain_.operands[0].dims[1], out = plain_.out.dims[1];
    const int32_t wanted = one_of({2, 2, 3, 4, 4, 8, 16, 32});
    for (const int32_t count : {wanted, in, 4, 2})
      if (in % count == 0 && out % count == 0) return count;
    return 1;
  }
  bool keeps_sizes(const Window& window) const {
    for (size_t d = 0; d < axes_; ++d)
      if (window.stride[d] != 1 || 2 * window.padding[d] != window.reach(d) - 1) return false;
    return true;
  }
  void draw_spelling(Window& window) { window.listed = below_(5) == 0, window.named = below_(4) == 0; }

  const std::function<uint32_t(uint32_t)>& below_;
  const Applied& plain_;
  size_t axes_;
};

}  // namespace

bool has_window(const Operator& op) {
  return op.lowering == Lowering::kConvolution ||
         (op.lowering == Lowering::kPooling && op.rule != Rule::kGlobalPool);
}
bool is_transposed(const Operator& op) { return op.name.starts_with("conv_transpose"); }

Window window_of(const Form& form, const Operator& op) {
  Window made;
  made.kernel.fill(form.kernel), made.stride.fill(form.stride), made.padding.fill(form.padding);
  made.groups = form.depthwise ? 0 : 1;
  // Without a stride the sizes stay, with one of two they are halved.
  if (!is_transposed(op)) made.rest.fill(static_cast<int8_t>(form.stride - form.kernel + 2 * form.padding));
  return made;
}

int32_t operand_size(const Window& window, size_t axis, bool transposed, int32_t out) {
  const int32_t stride = window.stride[axis], margin = 2 * window.padding[axis] - window.reach(axis);
  if (!transposed) return (out - 1) * stride - margin + window.rest[axis];
  return out + margin < 0 ? 0 : (out + margin) / stride + 1;
}

int32_t result_size(const Window& window, size_t axis, bool transposed, int32_t in) {
  const int32_t stride = window.stride[axis], margin = 2 * window.padding[axis] - window.reach(axis);
  if (transposed) return (in - 1) * stride - margin;
  return in + margin < 0 ? 0 : (in + margin + (window.ceil ? stride - 1 : 0)) / stride + 1;
}

bool sees(const Window& window, size_t axis, bool transposed, int32_t in, int32_t out) {
  if (transposed) {  // then that anything of the operand is seen at all
    for (int32_t i = 0; i < in; ++i)
      for (int32_t tap = 0; tap < window.kernel[axis]; ++tap) {
        const int32_t at = i * window.stride[axis] - window.padding[axis] + tap * window.dilation[axis];
        if (at >= 0 && at < out) return true;
      }
    return false;
  }
  for (int32_t o = 0; o < out; ++o) {
    const int32_t begin = o * window.stride[axis] - window.padding[axis];
    if (begin >= 0) return (out - 1) * window.stride[axis] - window.padding[axis] < in;
    bool any = false;
    for (int32_t tap = 0; tap < window.kernel[axis]; ++tap) {
      const int32_t at = begin + tap * window.dilation[axis];
      any |= at >= 0 && at < in;
    }
    if (!any) return false;
  }
  return true;
}

namespace {

Cut draw_cut(const std::function<uint32_t(uint32_t)>& below, const Applied& plain) {
  const int32_t size = plain.out.dims[static_cast<size_t>(plain.form->dim)];
  const std::string_view name = plain.op->name;
  Cut cut{.given = true};
  const auto some = [&](uint32_t most) { return static_cast<int32_t>(below(most)); };
  if (name == "chunk" || name == "split") {
    cut.parts = 2 + some(3), cut.part = some(static_cast<uint32_t>(cut.parts));
  } else if (name == "slice") {
    const auto margin = [&] {
      const uint32_t kind = below(5);
      return kind < 2    ? 0
             : kind == 2 ? 1 + some(3)
             : kind == 3 ? size
                         : some(static_cast<uint32_t>(size) + 1);
    };
    cut.before = margin(), cut.behind = margin();
    if (cut.before + cut.behind == 0) cut.before = 1;
  } else if (name == "cat" && size > 1) {
    cut.before = 1 + some(static_cast<uint32_t>(size) - 1);
  } else if (name == "pad" && size > 8) {
    cut.before = some(4), cut.behind = some(4);
    if (cut.before + cut.behind == 0) cut.behind = 1;
  } else {
    cut.given = false;  // of a gate both halves are used
  }
  return cut;
}

Cut draw_factors(const std::function<uint32_t(uint32_t)>& below, const Applied& plain) {
  int32_t rest = plain.out.dims[static_cast<size_t>(plain.form->dim)];
  const auto factor = [&] {
    std::array<int32_t, 64> all{};
    size_t count = 0;
    for (int32_t f = 2; f <= 512 && f < rest && count < all.size(); ++f)
      if (rest % f == 0) all[count++] = f;
    const int32_t chosen = count == 0 ? 1 : all[below(static_cast<uint32_t>(count))];
    rest /= chosen;
    return chosen;
  };
  Cut cut{.given = true};
  cut.before = plain.operands[0].rank > plain.out.rank + 1 ? factor() : 1;
  cut.behind = factor();
  return cut;
}

}  // namespace

LayerOptions draw_layer_options(const std::function<uint32_t(uint32_t)>& below, const Applied& plain,
                                bool keeps_shape) {
  const Operator& op = *plain.op;
  if (op.lowering == Lowering::kConvolution && !keeps_shape) return Drawer(below, plain).convolution();
  if (has_window(op) && !keeps_shape) return Drawer(below, plain).pool();
  LayerOptions made;
  if (op.lowering == Lowering::kConvolution || op.rule == Rule::kLinear) made.bias = below(3) != 0;
  if (op.rule == Rule::kGroupNorm) {
    const int32_t channels = plain.out.dims[1], wanted[] = {1, 2, 3, 4, 5, 6, 8, 10, 16, 32, channels, 0};
    const int32_t groups = wanted[below(12)];
    if (groups != 0 && channels % groups == 0) made.groups = groups;
  }
  if (op.rule == Rule::kFlatten) made.cut = draw_factors(below, plain);
  if (op.rule == Rule::kSlice || op.rule == Rule::kCat || op.rule == Rule::kPad)
    made.cut = draw_cut(below, plain);
  return made;
}

}  // namespace nereid::ops
