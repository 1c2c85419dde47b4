// Forms of operators with multiply-adds: products, convolutions, attention, and pooling windows.
#include "nereid/ops/forms/forms.h"

namespace nereid::ops::families {
namespace {

Form product(Slot left, Slot right, int out_rank) {
  Form form;
  form.out_rank = static_cast<uint8_t>(out_rank), form.slots = 2, form.inner = 1, form.computed = 3;
  form.slot[0] = left, form.slot[1] = right;
  form.work_is_product = true;
  return form;
}

Form batched_product() {
  return product(slot({out(0), out(1), inner(0)}), slot({out(0), inner(0), out(2)}), 3);
}

struct Fixed {
  int kernel, stride, padding;
};

// [n, c, spatial...]; where `channels`, the operand's channels are inner.
Form windowed(int spatial, const Fixed& window, bool channels, Term::Kind scaled) {
  Form form;
  form.out_rank = static_cast<uint8_t>(2 + spatial);
  form.slot[0] = whole(2 + spatial);
  if (channels) form.slot[0].dims[1] = inner(0), form.inner = 1, form.inner_low = 0;
  if (channels) {
    form.work_is_product = true;
    form.parameter = slot({out(1), inner(0)});
    form.window_classes = static_cast<uint8_t>(window.kernel > 1 ? spatial : 0);
  }
  if (window.stride == 2)
    for (int d = 2; d < 2 + spatial; ++d) form.slot[0].dims[static_cast<size_t>(d)].kind = scaled;
  form.kernel = static_cast<uint8_t>(window.kernel), form.stride = static_cast<uint8_t>(window.stride);
  form.padding = static_cast<uint8_t>(window.padding);
  form.preserving = !channels && window.stride == 1;
  return form;
}

}  // namespace

Forms matmul() {
  return {product(slot({out(0), inner(0)}), slot({inner(0), out(1)}), 2), batched_product(),
          product(slot({out(0), out(1), inner(0)}), slot({inner(0), out(2)}), 3),
          product(slot({out(0), out(1), out(2), inner(0)}), slot({out(0), out(1), inner(0), out(3)}), 4),
          product(slot({out(0), inner(0)}), slot({inner(0)}), 1)};
}

// The second operand lies transposed.
Forms matmul_transposed() {
  return {product(slot({out(0), inner(0)}), slot({out(1), inner(0)}), 2),
          product(slot({out(0), out(1), inner(0)}), slot({out(0), out(2), inner(0)}), 3),
          product(slot({out(0), out(1), out(2), inner(0)}), slot({out(0), out(1), out(3), inner(0)}), 4)};
}

Forms bmm() { return {batched_product()}; }

Forms linear() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank) {
    Form form;
    form.out_rank = static_cast<uint8_t>(rank), form.inner = 1, form.work_is_product = true;
    form.slot[0] = with(rank, rank - 1, inner(0));
    form.parameter = slot({out(rank - 1), inner(0)});
    made.push_back(form);
  }
  return made;
}

Forms convolution(int spatial, bool transposed) {
  Forms made;
  const Term::Kind scaled = transposed ? Term::kHalfUp : Term::kTwice;
  for (const Fixed& window : {Fixed{3, 1, 1}, Fixed{1, 1, 0}, Fixed{5, 1, 2}, Fixed{3, 2, 1}}) {
    if (transposed && window.kernel == 1) continue;
    made.push_back(windowed(spatial, window, true, scaled));
  }
  if (transposed) return made;
  Form depthwise = windowed(spatial, {3, 1, 1}, false, scaled);
  depthwise.depthwise = true;
  depthwise.parameter = slot({out(1)});
  depthwise.window_classes = static_cast<uint8_t>(spatial);
  at_least_two(depthwise, 1);
  made.push_back(depthwise);
  return made;
}

Forms pool(int spatial) {
  Forms made;
  for (const Fixed& window : {Fixed{2, 2, 0}, Fixed{3, 2, 1}, Fixed{3, 1, 1}})
    made.push_back(windowed(spatial, window, false, Term::kTwice));
  return made;
}

Forms attention() {
  Form form;
  form.out_rank = 4, form.slots = 3, form.inner = 2, form.computed = 7;
  form.slot[0] = slot({out(0), out(1), out(2), inner(1)});
  form.slot[1] = slot({out(0), out(1), inner(0), inner(1)});
  form.slot[2] = slot({out(0), out(1), inner(0), out(3)});
  form.work_is_product = true;
  at_least_two(form, 2);
  Form own = form;  // as many keys as queries
  own.inner = 1, own.high[2] = 3;
  own.slot[0] = own.slot[1] = slot({out(0), out(1), out(2), inner(0)}), own.slot[2] = whole(4);
  return {form, own};
}

// The keys are the values; a number is added for each query and key.
Forms masked_attention() {
  Form form;
  form.out_rank = 4, form.slots = 3, form.inner = 1;
  form.slot[0] = whole(4), form.slot[1] = slot({out(0), out(1), inner(0), out(3)}),
  form.slot[2] = slot({out(2), inner(0)});
  form.preserving = true, form.work_is_product = true;
  at_least_two(form, 2);
  return {form};
}

Forms cell() {
  Form form;
  form.out_rank = 2, form.slots = 2, form.inner = 1, form.computed = 1, form.work_is_product = true;
  form.slot[0] = slot({out(0), inner(0)}), form.slot[1] = whole(2);
  form.parameter = slot({out(1), inner(0)}), form.window_classes = 1;  // four gates
  return {form};
}

}  // namespace nereid::ops::families
