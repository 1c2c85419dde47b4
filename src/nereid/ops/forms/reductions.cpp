// Forms of operators that take axes away, or look along them: reductions, norms, losses.
#include "nereid/ops/forms/forms.h"

namespace nereid::ops::families {
namespace {

Form reduction(int rank, int dim) {
  Form form;
  form.dim = static_cast<int8_t>(dim), form.inner = 1;
  form.out_rank = static_cast<uint8_t>(rank - 1);
  for (int d = 0; d < rank; ++d)
    form.slot[0].dims[form.slot[0].rank++] = d == dim ? inner(0) : out(d < dim ? d : d - 1);
  return form;
}

Form kept_reduction(int rank, int dim) {
  Form form = keeping(rank);
  form.slot[0].dims[static_cast<size_t>(dim)] = inner(0);
  form.inner = 1, form.preserving = false, form.keep = true, form.dim = static_cast<int8_t>(dim);
  form.high[static_cast<size_t>(dim)] = 0;
  return form;
}

// Over the last two axes.
Form reduction_of_two(int rank) {
  Form form;
  form.out_rank = static_cast<uint8_t>(rank - 2), form.slot[0].rank = static_cast<uint8_t>(rank),
  form.inner = 2;
  for (int d = 0; d < rank; ++d)
    form.slot[0].dims[static_cast<size_t>(d)] = d < rank - 2 ? out(d) : inner(d - rank + 2);
  form.dim = static_cast<int8_t>(rank - 2), form.dim2 = static_cast<int8_t>(rank - 1);
  return form;
}

Form kept_reduction_of_two(int rank) {
  Form form = reduction_of_two(rank);
  form.out_rank = static_cast<uint8_t>(rank), form.keep = true;
  form.high[static_cast<size_t>(rank) - 2] = form.high[static_cast<size_t>(rank) - 1] = 0;
  return form;
}

// Over all but the channels: [n, c, l] to [c].
Form reduction_to_channels() {
  Form form;
  form.out_rank = 1, form.inner = 2, form.dim = 0, form.dim2 = 2;
  form.slot[0] = slot({inner(0), out(0), inner(1)});
  return form;
}

// Of four axes over all but `left`, the first or the second.
Form reduction_of_three(int left) {
  Form form;
  form.out_rank = 1, form.inner = 3, form.slot[0].rank = 4;
  int8_t* axes[] = {&form.dim, &form.dim2, &form.dim3};
  for (int d = 0, i = 0; d < 4; ++d) {
    form.slot[0].dims[static_cast<size_t>(d)] = d == left ? out(0) : inner(i);
    if (d != left) *axes[i++] = static_cast<int8_t>(d);
  }
  return form;
}

Form kept_reduction_of_three(int left) {
  Form form = reduction_of_three(left);
  form.slot[0].dims[static_cast<size_t>(left)] = out(left);
  form.out_rank = 4, form.keep = true;
  for (size_t d = 0; d < 4; ++d)
    if (d != static_cast<size_t>(left)) form.high[d] = 0;
  return form;
}

Form losing(int rank, int slots, int out_rank) {
  Form form;
  form.out_rank = static_cast<uint8_t>(out_rank);
  form.slots = static_cast<uint8_t>(slots), form.inner = static_cast<uint8_t>(rank - out_rank);
  for (int s = 0; s < slots; ++s) {
    for (int d = 0; d < out_rank; ++d) form.slot[s].dims[form.slot[s].rank++] = out(d);
    for (int d = 0; d < rank - out_rank; ++d) form.slot[s].dims[form.slot[s].rank++] = inner(d);
  }
  return form;
}

}  // namespace

Forms reduce(bool arguments) {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank) {
    for (int dim = 0; dim < rank; ++dim) made.push_back(reduction(rank, dim));
    if (arguments) continue;
    for (int dim = 0; rank > 1 && dim < rank; ++dim) made.push_back(kept_reduction(rank, dim));
    if (rank > 2) made.push_back(reduction_of_two(rank)), made.push_back(kept_reduction_of_two(rank));
    if (rank == 3) made.push_back(reduction_to_channels());
    for (int left = 0; rank == 4 && left < 2; ++left)
      made.push_back(reduction_of_three(left)), made.push_back(kept_reduction_of_three(left));
    Form all;
    all.all = true, all.inner = static_cast<uint8_t>(rank);
    for (int d = 0; d < rank; ++d) all.slot[0].dims[all.slot[0].rank++] = inner(d);
    made.push_back(all);
  }
  return made;
}

Forms global_pool() {
  Form form;
  form.out_rank = 2, form.inner = 2;
  form.slot[0] = slot({out(0), out(1), inner(0), inner(1)});
  return {form};
}

Forms batch_norm() {
  Forms made;
  for (int rank = 2; rank <= kMaxRank; ++rank) {
    Form form = keeping(rank);
    at_least_two(form, 0), at_least_two(form, 1);
    made.push_back(form);
  }
  return made;
}

Forms spatial_norm(bool groups) {
  Forms made;
  for (int rank = 3; rank <= kMaxRank; ++rank) {
    Form form = keeping(rank);
    at_least_two(form, groups ? 1 : rank - 1);
    made.push_back(form);
  }
  return made;
}

Forms row_norm() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank) {
    Form form = keeping(rank);
    at_least_two(form, rank - 1);
    made.push_back(form);
  }
  return made;
}

Forms pair_loss() { return {losing(2, 2, 0), losing(1, 2, 0), losing(3, 2, 0)}; }

Forms class_loss() {
  Form form = losing(2, 2, 0);
  form.slot[1].rank = 1;
  return {form};
}

Forms triplet_loss() { return {losing(2, 3, 0)}; }

Forms similarity() { return {losing(2, 2, 1), losing(3, 2, 2)}; }

}  // namespace nereid::ops::families
