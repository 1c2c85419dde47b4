// Forms of operators that move elements: views, joins, slices, lookups.
#include <utility>

#include "nereid/ops/forms/forms.h"

namespace nereid::ops::families {
namespace {

// As many operands as the new axis is long, at most 8; the first may be computed, the others are alike.
// Of every rank and axis: the first operand has the result's axes but that one, and `finish` does the rest.
template <typename Finish>
Forms with_one_axis_more(Finish finish) {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank)
    for (int dim = 0; dim < rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      for (int d = 0; d < rank; ++d)
        if (d != dim) form.slot[0].dims[form.slot[0].rank++] = out(d);
      finish(form, static_cast<size_t>(dim));
      made.push_back(form);
    }
  return made;
}

}  // namespace

Forms transpose() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank)
    for (int first = 0; first < rank; ++first)
      for (int second = first + 1; second < rank; ++second) {
        Form form;
        form.out_rank = static_cast<uint8_t>(rank);
        form.slot[0] = whole(rank);
        std::swap(form.slot[0].dims[static_cast<size_t>(first)],
                  form.slot[0].dims[static_cast<size_t>(second)]);
        form.dim = static_cast<int8_t>(first), form.dim2 = static_cast<int8_t>(second);
        at_least_two(form, first), at_least_two(form, second);
        made.push_back(form);
      }
  return made;
}

// Permutations that no single transpose makes.
Forms permute() {
  Forms made;
  const std::vector<std::vector<int>> orders = {{1, 2, 0},    {2, 0, 1},    {0, 2, 3, 1},
                                                {0, 3, 1, 2}, {2, 3, 0, 1}, {3, 0, 1, 2}};
  for (const auto& order : orders) {
    Form form;
    const size_t rank = order.size();
    form.out_rank = static_cast<uint8_t>(rank);
    form.slot[0].rank = static_cast<uint8_t>(rank);
    for (size_t d = 0; d < rank; ++d) {  // out[d] = in[order[d]]
      form.order[d] = static_cast<int8_t>(order[d]);
      form.slot[0].dims[static_cast<size_t>(order[d])] = out(static_cast<int>(d));
      at_least_two(form, static_cast<int>(d));
    }
    made.push_back(form);
  }
  return made;
}

// `halves`: of the operand's axis; sizes of at most 8 are left alone, for halves of halves.
Forms halved(bool two) {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank)
    for (int dim = 0; dim < rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      form.slots = two ? 2 : 1, form.computed = two ? 3 : 1;
      form.slot[0] = with(rank, dim, {Term::kHalfUp, static_cast<uint8_t>(dim)});
      form.slot[1] = with(rank, dim, {Term::kHalfDown, static_cast<uint8_t>(dim)});
      form.low[static_cast<size_t>(dim)] = 2;
      made.push_back(form);
    }
  return made;
}

Forms stack() {
  return with_one_axis_more([](Form& form, size_t dim) {
    form.slots = 2, form.slot[1] = form.slot[0];
    form.low[dim] = form.high[dim] = 1;
  });
}

Forms view() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank)
    for (int dim = 0; dim + 1 < rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      for (int d = 0; d < rank; ++d)
        if (d != dim + 1)
          form.slot[0].dims[form.slot[0].rank++] =
              d == dim ? Term{Term::kProduct, static_cast<uint8_t>(d)} : out(d);
      at_least_two(form, dim), at_least_two(form, dim + 1);
      made.push_back(form);
    }
  return made;
}

// Axes of which all but the first are one long: `draw_details` gives them factors of it.
Forms flatten() {
  Forms made;
  for (int rank = 1; rank <= 3; ++rank)
    for (int more = 1; more <= 2 && rank + more <= 4; ++more) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(rank - 1);
      form.slot[0] = whole(rank);
      for (int i = 0; i < more; ++i) form.slot[0].dims[form.slot[0].rank++] = kOne;
      form.low[static_cast<size_t>(rank) - 1] = 1;
      made.push_back(form);
    }
  return made;
}

Forms unsqueeze() {
  return with_one_axis_more([](Form& form, size_t dim) { form.high[dim] = 0; });
}

Forms squeeze() {
  Forms made;
  for (int rank = 1; rank <= 3; ++rank)
    for (int dim = 0; dim <= rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      for (int d = 0; d <= rank; ++d)
        form.slot[0].dims[form.slot[0].rank++] = d == dim ? kOne : out(d < dim ? d : d - 1);
      made.push_back(form);
    }
  return made;
}

Forms slice() {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank)
    for (int dim = 0; dim < rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      form.slot[0] = with(rank, dim, {Term::kTwice, static_cast<uint8_t>(dim)});
      made.push_back(form);
    }
  return made;
}

Forms gather(bool whole_index) {
  Forms made;
  for (int rank = 1; rank <= 3; ++rank)
    for (int dim = 0; dim < rank; ++dim) {
      Form form;
      form.out_rank = static_cast<uint8_t>(rank), form.dim = static_cast<int8_t>(dim);
      form.slots = 2, form.inner = 1;
      form.slot[0] = with(rank, dim, inner(0));
      form.slot[1] = whole_index ? whole(rank) : slot({out(dim)});
      made.push_back(form);
    }
  return made;
}

// A table of `inner` rows, which is the operator's own; the operand holds row numbers and is never computed.
Forms embedding() {
  Forms made;
  for (int rank = 2; rank <= 3; ++rank) {
    Form form;
    form.out_rank = static_cast<uint8_t>(rank), form.inner = 1, form.computed = 0;
    form.slot[0] = whole(rank - 1);
    form.parameter = slot({inner(0), out(rank - 1)});
    made.push_back(form);
  }
  return made;
}

}  // namespace nereid::ops::families
