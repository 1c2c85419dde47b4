// Attention as the products and the softmax that it is.
#include <cmath>

#include "nereid/lower/reduce.h"

namespace nereid::lower {
namespace {

// q [..., h, l, e], k [..., g, s, e], v [..., g, s, f], with h a multiple of g where heads share keys.
struct Attention {
  trace::ValueId q, k, v;
  Extents sizes;  // of the result: [..., h, l, f]
  int64_t length, depth, shared;
  double scale;
};

// An index of a key or a value's own dimensions, of the batch dimensions in front of `rows`, `column`.
std::vector<Index> at_key(const Attention& a, Importer& import, trace::ValueId id, Index row, Index column,
                          const Extents& extents) {
  const Extents& own = import.value(id).sizes;
  std::vector<Index> at;
  for (size_t d = 0; d + 2 < own.size(); ++d) {
    Index batch = own[d] == 1 ? Index() : Index::dimension(static_cast<int>(d));
    if (a.shared > 1 && d + 3 == own.size())
      batch = quotient(Index::dimension(static_cast<int>(d)), a.shared, extents);
    at.push_back(batch);
  }
  at.push_back(std::move(row));
  at.push_back(std::move(column));
  return at;
}

// What is added to a score, or -inf where a mask says no. Over [..., l, s].
Value masked_score(Importer& import, Value score, const Extents& scores) {
  const double never = -std::numeric_limits<double>::infinity();
  const auto rank = static_cast<int>(scores.size());
  if (import.flag(import.arg(5, "is_causal"), false)) {
    const Index ahead = Index::dimension(rank - 1) - Index::dimension(rank - 2);
    const Value seen(import.exprs(), import.exprs().within(ahead, -(int64_t{1} << 40), 1, scores));
    score = seen.where(score, score.constant(never));
  }
  const auto mask = import.tensor(import.arg(3, "attn_mask"));
  if (!mask) return score;
  const bool chooses = import.value(*mask).dtype == DType::kBool;
  const Value other(import.exprs(), import.operand(*mask, scores, chooses ? DType::kBool : score.type()));
  return chooses ? other.where(score, score.constant(never)) : score + other;
}

Status attention(Importer& import) {
  const auto q = import.tensor(import.arg(0, "query")), k = import.tensor(import.arg(1, "key")),
             v = import.tensor(import.arg(2, "value"));
  if (!q || !k || !v || import.number(import.arg(4, "dropout_p"), 0) != 0)
    return import.cannot("it drops elements at random");
  const Extents sizes = import.result().sizes, of_q = import.value(*q).sizes, of_k = import.value(*k).sizes;
  const size_t rank = sizes.size();
  if (rank < 2 || of_q.size() != rank || of_k.size() != rank)
    return import.cannot("its operands have different ranks");
  const int64_t heads = rank > 2 ? of_q[rank - 3] : 1, shared = rank > 2 ? heads / of_k[rank - 3] : 1;
  Attention a{*q, *k, *v, sizes, of_k[rank - 2], of_q[rank - 1], shared, 0};
  a.scale = import.number(import.arg(6, "scale"), 1 / std::sqrt(static_cast<double>(a.depth)));
  const DType stored = import.value(*q).dtype, type = compute_type(stored);
  import.contraction_under("matmul.allow_tf32");
  Extents scores = sizes;
  scores[rank - 1] = a.length;
  Extents extents = scores;
  extents.push_back(a.depth);
  auto at_q = dimensions(rank);
  const Index column = at_q[rank - 1];
  at_q[rank - 1] = Index::dimension(static_cast<int>(rank));
  const Value x(import.exprs(), import.read(*q, at_q, extents));
  const Value y(import.exprs(),
                import.read(*k, at_key(a, import, *k, column, at_q[rank - 1], extents), extents));
  const TensorId product = import.temporary(Reduction::kSum, scores, {a.depth}, (x * y).id(), type, "scores");
  const Value raw(import.exprs(), import.load(product, dimensions(rank)));
  const Value score = masked_score(import, raw * a.scale, scores);
  const Extents rows(scores.begin(), scores.end() - 1);
  const TensorId most = import.temporary(Reduction::kMax, rows, {a.length}, score.id(), type, "score_max");
  const Value largest(import.exprs(), import.load(most, dimensions(rank - 1)));
  // A row that sees nothing has no distance from its largest, and gives zeros.
  const Value blind = equal(largest, -std::numeric_limits<double>::infinity());
  const Value weight = (score - blind.where(largest.constant(0), largest)).apply(Fn::kExp);
  const TensorId sum = import.temporary(Reduction::kSum, rows, {a.length}, weight.id(), type, "weight_sum");
  const Value total(import.exprs(), import.load(sum, dimensions(rank - 1)));
  const Value share = equal(total, 0).where(total.constant(0), weight / total);
  const TensorId shares =
      import.temporary(Reduction::kNone, scores, {}, share.id(), type, "attention_weights");
  Extents last = sizes;
  last.push_back(a.length);
  auto at_weight = dimensions(rank);
  at_weight[rank - 1] = Index::dimension(static_cast<int>(rank));
  const Value w(import.exprs(), import.load(shares, at_weight));
  const Value z(import.exprs(), import.read(*v,
                                            at_key(a, import, *v, at_weight[rank - 1],
                                                   Index::dimension(static_cast<int>(rank) - 1), last),
                                            last));
  return import.define_reduction(import.results()[0], Reduction::kSum, sizes, {a.length}, (w * z).id(),
                                 "attention");
}

}  // namespace

void add_attention(OperatorTable& table) { table["aten::scaled_dot_product_attention"] = attention; }

}  // namespace nereid::lower
