// Forms of operators that keep the shape of their first operand.
#include "nereid/ops/forms/forms.h"

namespace nereid::ops::families {

Forms unary() {
  Forms made;
  for (int rank = 1; rank <= kMaxRank; ++rank) made.push_back(keeping(rank));
  made.push_back(keeping(0));
  return made;
}

// The second operand: of the same shape, one row, one number, or with its first or last axis of size 1; and
// the first operand one row or one number where the second is whole.
Forms binary() {
  Forms made;
  for (int rank = 0; rank <= kMaxRank; ++rank) {
    Form same = keeping(rank, 2);
    same.computed = 3;
    made.push_back(same);
    if (rank == 0) continue;
    std::vector<Slot> narrow = {slot({})};
    if (rank >= 2) {
      narrow.push_back(slot({out(rank - 1)}));
      narrow.push_back(with(rank, rank - 1, kOne));
      narrow.push_back(with(rank, 0, kOne));
    }
    for (const Slot& operand : narrow) {
      Form form = same;
      form.slot[1] = operand;
      for (int d = 0; d < operand.rank; ++d)
        if (operand.dims[static_cast<size_t>(d)] == kOne) {
          form.computed = 1;      // what was computed has axes of size 1 but rarely
          at_least_two(form, d);  // else the two operands would be of one shape
        }
      made.push_back(form);
    }
  }
  return made;
}

Forms select() {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank) {
    Form form = keeping(rank, 3);
    form.computed = 3;
    made.push_back(form);
  }
  return made;
}

Forms masked() {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank) made.push_back(keeping(rank, 2));
  return made;
}

Forms triangle() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank) {
    Form form = keeping(rank);
    at_least_two(form, rank - 2), at_least_two(form, rank - 1);
    made.push_back(form);
  }
  return made;
}

Forms along_axis() {
  Forms made;
  for (int rank = 1; rank <= 4; ++rank)
    for (int dim = 0; dim < rank; ++dim) {
      Form form = keeping(rank);
      form.dim = static_cast<int8_t>(dim);
      at_least_two(form, dim);
      made.push_back(form);
    }
  return made;
}

Forms rotary() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank) {
    Form form = keeping(rank, 3);
    form.slot[1] = form.slot[2] = slot({out(rank - 2), out(rank - 1)});
    at_least_two(form, rank - 1);
    made.push_back(form);
  }
  return made;
}

}  // namespace nereid::ops::families
