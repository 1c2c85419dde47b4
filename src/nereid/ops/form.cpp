#include "nereid/ops/form.h"

#include <algorithm>
#include <utility>

#include "nereid/ops/forms/forms.h"

namespace nereid::ops {

namespace {

constexpr size_t kRules = static_cast<size_t>(Rule::kSqueeze) + 1;

std::array<std::vector<Form>, kRules> forms_of_all_rules() {
  const std::pair<Rule, families::Forms> known[] = {
      {Rule::kUnary, families::unary()},
      {Rule::kBinary, families::binary()},
      {Rule::kSelect, families::select()},
      {Rule::kMasked, families::masked()},
      {Rule::kReduce, families::reduce(false)},
      {Rule::kArgReduce, families::reduce(true)},
      {Rule::kAxis, families::along_axis()},
      {Rule::kTriangle, families::triangle()},
      {Rule::kTranspose, families::transpose()},
      {Rule::kPermute, families::permute()},
      {Rule::kMatmul, families::matmul()},
      {Rule::kBmm, families::bmm()},
      {Rule::kLinear, families::linear()},
      {Rule::kConv1d, families::convolution(1, false)},
      {Rule::kConv2d, families::convolution(2, false)},
      {Rule::kConv3d, families::convolution(3, false)},
      {Rule::kConvTranspose1d, families::convolution(1, true)},
      {Rule::kConvTranspose2d, families::convolution(2, true)},
      {Rule::kConvTranspose3d, families::convolution(3, true)},
      {Rule::kPool1d, families::pool(1)},
      {Rule::kPool2d, families::pool(2)},
      {Rule::kPool3d, families::pool(3)},
      {Rule::kGlobalPool, families::global_pool()},
      {Rule::kBatchNorm, families::batch_norm()},
      {Rule::kInstanceNorm, families::spatial_norm(false)},
      {Rule::kGroupNorm, families::spatial_norm(true)},
      {Rule::kRowNorm, families::row_norm()},
      {Rule::kCat, families::halved(true)},
      {Rule::kPad, families::halved(false)},
      {Rule::kStack, families::stack()},
      {Rule::kView, families::view()},
      {Rule::kSlice, families::slice()},
      {Rule::kGather, families::gather(true)},
      {Rule::kIndexSelect, families::gather(false)},
      {Rule::kEmbedding, families::embedding()},
      {Rule::kAttention, families::attention()},
      {Rule::kPairLoss, families::pair_loss()},
      {Rule::kClassLoss, families::class_loss()},
      {Rule::kTripletLoss, families::triplet_loss()},
      {Rule::kSimilarity, families::similarity()},
      {Rule::kCell, families::cell()},
      {Rule::kRotary, families::rotary()},
      {Rule::kMatmulTransposed, families::matmul_transposed()},
      {Rule::kFlatten, families::flatten()},
      {Rule::kUnsqueeze, families::unsqueeze()},
      {Rule::kSqueeze, families::squeeze()},
      {Rule::kMaskedAttention, families::masked_attention()},
  };
  std::array<families::Forms, kRules> made;
  for (const auto& [rule, forms] : known) made[static_cast<size_t>(rule)] = forms;
  return made;
}

}  // namespace

const std::vector<Form>& forms(Rule rule) {
  static const auto all = forms_of_all_rules();
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
