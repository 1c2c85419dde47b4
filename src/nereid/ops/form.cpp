#include "nereid/ops/form.h"

#include <algorithm>
#include <numeric>

#include "nereid/base/check.h"

namespace nereid::ops {
namespace {

Term out(int index) { return {Term::kOut, static_cast<uint8_t>(index)}; }
Term inner(int index) { return {Term::kInner, static_cast<uint8_t>(index)}; }
constexpr Term kOne{Term::kOne, 0};

Slot slot(std::initializer_list<Term> dims) {
  Slot made;
  for (const Term& term : dims) made.dims[made.rank++] = term;
  return made;
}
Slot whole(int rank) {
  Slot made;
  for (int d = 0; d < rank; ++d) made.dims[made.rank++] = out(d);
  return made;
}
// The result's shape with the size of one axis replaced.
Slot with(int rank, int dim, Term term) {
  Slot made = whole(rank);
  made.dims[static_cast<size_t>(dim)] = term;
  return made;
}

Form keeping(int rank, int slots = 1) {
  Form form;
  form.out_rank = static_cast<uint8_t>(rank);
  form.slots = static_cast<uint8_t>(slots);
  for (int s = 0; s < slots; ++s) form.slot[s] = whole(rank);
  form.preserving = true;
  return form;
}
void at_least_two(Form& form, int dim) { form.low[static_cast<size_t>(dim)] = 1; }

using Forms = std::vector<Form>;

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

Forms triangle() {
  Forms made;
  for (int rank = 2; rank <= 4; ++rank) {
    Form form = keeping(rank);
    at_least_two(form, rank - 2), at_least_two(form, rank - 1);
    made.push_back(form);
  }
  return made;
}

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
Forms class_loss() {
  Form form = losing(2, 2, 0);
  form.slot[1].rank = 1;
  return {form};
}
Forms cell() {
  Form form;
  form.out_rank = 2, form.slots = 2, form.inner = 1, form.computed = 1, form.work_is_product = true;
  form.slot[0] = slot({out(0), inner(0)}), form.slot[1] = whole(2);
  form.parameter = slot({out(1), inner(0)}), form.window_classes = 1;  // four gates
  return {form};
}
Forms bmm() { return {batched_product()}; }

Forms make(Rule rule) {
  switch (rule) {
    case Rule::kUnary:
      return unary();
    case Rule::kBinary:
      return binary();
    case Rule::kSelect:
      return select();
    case Rule::kMasked:
      return masked();
    case Rule::kReduce:
      return reduce(false);
    case Rule::kArgReduce:
      return reduce(true);
    case Rule::kAxis:
      return along_axis();
    case Rule::kTriangle:
      return triangle();
    case Rule::kTranspose:
      return transpose();
    case Rule::kPermute:
      return permute();
    case Rule::kMatmul:
      return matmul();
    case Rule::kBmm:
      return bmm();
    case Rule::kLinear:
      return linear();
    case Rule::kConv1d:
      return convolution(1, false);
    case Rule::kConv2d:
      return convolution(2, false);
    case Rule::kConv3d:
      return convolution(3, false);
    case Rule::kConvTranspose1d:
      return convolution(1, true);
    case Rule::kConvTranspose2d:
      return convolution(2, true);
    case Rule::kConvTranspose3d:
      return convolution(3, true);
    case Rule::kPool1d:
      return pool(1);
    case Rule::kPool2d:
      return pool(2);
    case Rule::kPool3d:
      return pool(3);
    case Rule::kGlobalPool:
      return global_pool();
    case Rule::kBatchNorm:
      return batch_norm();
    case Rule::kInstanceNorm:
      return spatial_norm(false);
    case Rule::kGroupNorm:
      return spatial_norm(true);
    case Rule::kRowNorm:
      return row_norm();
    case Rule::kCat:
      return halved(true);
    case Rule::kPad:
      return halved(false);
    case Rule::kStack:
      return stack();
    case Rule::kView:
      return view();
    case Rule::kSlice:
      return slice();
    case Rule::kGather:
      return gather(true);
    case Rule::kIndexSelect:
      return gather(false);
    case Rule::kEmbedding:
      return embedding();
    case Rule::kAttention:
      return attention();
    case Rule::kPairLoss:
      return {losing(2, 2, 0), losing(1, 2, 0), losing(3, 2, 0)};
    case Rule::kClassLoss:
      return class_loss();
    case Rule::kTripletLoss:
      return {losing(2, 3, 0)};
    case Rule::kSimilarity:
      return {losing(2, 2, 1), losing(3, 2, 2)};
    case Rule::kCell:
      return cell();
    case Rule::kRotary:
      return rotary();
    case Rule::kMatmulTransposed:
      return matmul_transposed();
    case Rule::kFlatten:
      return flatten();
    case Rule::kUnsqueeze:
      return unsqueeze();
    case Rule::kSqueeze:
      return squeeze();
    case Rule::kMaskedAttention:
      return masked_attention();
  }
  return {};
}

constexpr size_t kRules = static_cast<size_t>(Rule::kSqueeze) + 1;

}  // namespace

const std::vector<Form>& forms(Rule rule) {
  static const std::array<Forms, kRules> all = [] {
    std::array<Forms, kRules> made;
    for (size_t r = 0; r < kRules; ++r) made[r] = make(static_cast<Rule>(r));
    return made;
  }();
  return all[static_cast<size_t>(rule)];
}

int32_t size_of(Term term, const Shape& out, const std::array<int32_t, kMaxInner>& inner) {
  const int32_t size = out.dims[std::min<size_t>(term.index, kMaxRank - 1)];
  switch (term.kind) {
    case Term::kOut:
      return size;
    case Term::kInner:
      return inner[term.index];
    case Term::kOne:
      return 1;
    case Term::kTwice:
      return 2 * size;
    case Term::kHalfUp:
      return (size + 1) / 2;
    case Term::kHalfDown:
      return size / 2;
    case Term::kProduct:
      return size * out.dims[term.index + 1U];
  }
  return 0;
}

Shape operand_shape(const Slot& slot, const Shape& out, const std::array<int32_t, kMaxInner>& inner) {
  Shape shape;
  shape.rank = slot.rank;
  for (size_t d = 0; d < slot.rank; ++d) shape.dims[d] = size_of(slot.dims[d], out, inner);
  return shape;
}

}  // namespace nereid::ops
