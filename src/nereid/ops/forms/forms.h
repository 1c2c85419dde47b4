// What the files of this folder share: how forms are put together, and the forms of each family of operators
// (form.h says what a form is). Axes are those of the result.
#pragma once

#include "nereid/ops/form.h"

namespace nereid::ops::families {

using Forms = std::vector<Form>;

inline Term out(int index) { return {Term::kOut, static_cast<uint8_t>(index)}; }
inline Term inner(int index) { return {Term::kInner, static_cast<uint8_t>(index)}; }
inline constexpr Term kOne{Term::kOne, 0};
inline Slot slot(std::initializer_list<Term> dims) {
  Slot made;
  for (const Term& term : dims) made.dims[made.rank++] = term;
  return made;
}
inline Slot whole(int rank) {
  Slot made;
  for (int d = 0; d < rank; ++d) made.dims[made.rank++] = out(d);
  return made;
}
// The result's shape with the size of one axis replaced.
inline Slot with(int rank, int dim, Term term) {
  Slot made = whole(rank);
  made.dims[static_cast<size_t>(dim)] = term;
  return made;
}
inline Form keeping(int rank, int slots = 1) {
  Form form;
  form.out_rank = static_cast<uint8_t>(rank);
  form.slots = static_cast<uint8_t>(slots);
  for (int s = 0; s < slots; ++s) form.slot[s] = whole(rank);
  form.preserving = true;
  return form;
}
inline void at_least_two(Form& form, int dim) { form.low[static_cast<size_t>(dim)] = 1; }

// -- pointwise.cpp
Forms unary();
Forms binary();
Forms select();
Forms masked();
Forms triangle();
Forms along_axis();
Forms rotary();

// -- reductions.cpp
Forms reduce(bool arguments);
Forms global_pool();
Forms batch_norm();
Forms spatial_norm(bool groups);
Forms row_norm();
Forms pair_loss();
Forms class_loss();
Forms triplet_loss();
Forms similarity();

// -- products.cpp
Forms matmul();
Forms matmul_transposed();
Forms bmm();
Forms linear();
Forms convolution(int spatial, bool transposed);
Forms pool(int spatial);
Forms attention();
Forms masked_attention();
Forms cell();

// -- layout.cpp
Forms transpose();
Forms permute();
Forms halved(bool two);
Forms stack();
Forms view();
Forms flatten();
Forms unsqueeze();
Forms squeeze();
Forms slice();
Forms gather(bool whole_index);
Forms embedding();

}  // namespace nereid::ops::families
