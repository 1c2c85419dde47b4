// Attention as the products and the softmax that it is.
#include <cmath>

#include "nereid/compiler/ir/reduce.h"

namespace nereid::compiler {
namespace {

// q [..., h, l, e], k [..., g, s, e], v [..., g, s, f], with h a multiple of g where heads share keys.
struct Attention {
  trace::ValueId q, k, v;
  Extents sizes;  // of the result: [..., h, l, f]
  Size length, depth, shared;
  std::optional<double> scale;  // given; else by the root of the depth
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

// exp(score - largest) / their sum, over [..., l, s].
TensorId shares_of(Importer& import, Value score, const Extents& scores) {
  const size_t rank = scores.size();
  const DType type = score.type();
  const Extents rows(scores.begin(), scores.end() - 1), keys{scores.back()};
  const TensorId most = import.temporary(Reduction::kMax, rows, keys, score.id(), type, "score_max");
  const Value largest(import.exprs(), import.load(most, dimensions(rank - 1)));
  // A row that sees nothing has no distance from its largest, and gives zeros.
  const Value blind = equal(largest, -std::numeric_limits<double>::infinity());
  const Value weight = (score - blind.where(largest.constant(0), largest)).apply(Fn::kExp);
  const TensorId sum = import.temporary(Reduction::kSum, rows, keys, weight.id(), type, "weight_sum");
  const Value total(import.exprs(), import.load(sum, dimensions(rank - 1)));
  const Value share = equal(total, 0).where(total.constant(0), weight / total);
  return import.temporary(Reduction::kNone, scores, {}, share.id(), type, "attention_weights");
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
  const Size heads = rank > 2 ? of_q[rank - 3] : Size(1),
             shared = rank > 2 ? heads / of_k[rank - 3] : Size(1);
  Attention a{*q, *k, *v, sizes, of_k[rank - 2], of_q[rank - 1], shared, {}};
  if (const double given = import.number(import.arg(6, "scale"), NAN); !std::isnan(given)) a.scale = given;
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
  const Value scaled = a.scale ? raw * *a.scale : raw * Ratio{.over = 1, .under = a.depth, .root = true};
  const TensorId shares = shares_of(import, masked_score(import, scaled, scores), scores);
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

// The encoder layer of eval mode, which is one operator: x [b, l, e].
class EncoderLayer {
 public:
  explicit EncoderLayer(Importer& import)
      : import_(import),
        sizes_(import.result().sizes),
        stored_(import.result().dtype),
        heads_(import.integer(import.arg(2, "num_heads"), 1)),
        depth_(sizes_.back() / heads_),
        epsilon_(import.number(import.arg(9, "eps"), 1e-5)) {}

  Status run() {
    const auto mask = import_.tensor(import_.arg(18, "mask"));
    const auto source = import_.tensor(import_.arg(0, "src"));
    if (mask || !source || sizes_.size() != 3 || heads_ * depth_ != sizes_[2])
      return import_.cannot("it has a mask, or its heads are of several sizes");
    const bool first = import_.flag(import_.arg(8, "norm_first"), false);
    const TensorId x = import_.in_memory(*source, "source");
    if (first) {
      const TensorId h = kept(element(x) + element(attended(normal(x, 10, 11))), sizes_, "attended");
      return import_.define(import_.results()[0], (element(h) + through_layers(normal(h, 12, 13))).id(),
                            "encoder_layer");
    }
    const TensorId h = normal(kept(element(x) + element(attended(x)), sizes_, "attended"), 10, 11);
    const TensorId sum = kept(element(h) + through_layers(h), sizes_, "through_layers");
    return import_.define(import_.results()[0], normalised(sum, 12, 13).id(), "encoder_layer");
  }

 private:
  Value at(TensorId id, std::vector<Index> index) {
    return {import_.exprs(), import_.load(id, std::move(index))};
  }
  Value element(TensorId id) { return at(id, dimensions(import_.sizes_of(id).size())); }
  // An argument's element, over `extents`.
  Value given(size_t position, const std::vector<Index>& index, const Extents& extents) {
    const auto id = import_.tensor(import_.arg(position, ""));
    return {import_.exprs(), import_.exprs().cast(import_.read(id.value(), index, extents),
                                                  compute_type(import_.value(*id).dtype))};
  }
  TensorId kept(Value body, const Extents& sizes, const char* name) {
    return import_.temporary(Reduction::kNone, sizes, {}, body.id(), stored_, name);
  }
  TensorId sum(const Extents& sizes, int64_t terms, Value body, const char* name) {
    import_.contraction_under("matmul.allow_tf32");
    const TensorId made =
        import_.temporary(Reduction::kSum, sizes, {terms}, body.id(), compute_type(stored_), name);
    import_.contraction_under("");
    return made;
  }
  static Index d(int dimension) { return Index::dimension(dimension); }

  // x [b, l, k] times the weights [n, k] at `position`, and the bias after them.
  Value linear(TensorId x, size_t position, const char* name) {
    const auto weight = import_.tensor(import_.arg(position, ""));
    const Extents of = import_.value(weight.value()).sizes, sizes{sizes_[0], sizes_[1], of[0]};
    Extents extents = sizes;
    extents.push_back(of[1]);
    const TensorId total =
        sum(sizes, of[1], at(x, {d(0), d(1), d(3)}) * given(position, {d(2), d(3)}, extents), name);
    return element(total) + given(position + 1, {d(2)}, sizes);
  }

  Value normalised(TensorId x, size_t weight, size_t bias) {
    const Axes axes(sizes_, {2});
    Reducer reduce(import_);
    const auto found = reduce.moments(axes, element(x).id());
    const Value variance = element(found.variance);
    const TensorId scale = reduce.map(axes, (variance + epsilon_).apply(Fn::kRsqrt).id(), "layer_norm_scale");
    const auto of_row = [&](TensorId id) { return at(id, {d(0), d(1)}); };
    const Value distance = element(x) - of_row(found.rough) - of_row(found.rest);
    return distance * of_row(scale) * given(weight, {d(2)}, sizes_) + given(bias, {d(2)}, sizes_);
  }
  TensorId normal(TensorId x, size_t weight, size_t bias) {
    return kept(normalised(x, weight, bias), sizes_, "layer_norm");
  }

  TensorId attended(TensorId x) {
    const Extents all{sizes_[0], sizes_[1], 3 * sizes_[2]};
    const TensorId heads = kept(linear(x, 3, "heads"), all, "heads");
    // Query, key or value `which` of a head: [b, h, l, e] of [b, l, 3 h e].
    const auto part = [&](int which, const Index& row, const Index& column) {
      return at(heads, {d(0), row, d(1) * depth_ + column + Index(which * sizes_[2])});
    };
    const Extents scores{sizes_[0], heads_, sizes_[1], sizes_[1]};
    const TensorId products = sum(scores, depth_, part(0, d(2), d(4)) * part(1, d(3), d(4)), "scores");
    const Value score = element(products) * Ratio{.over = 1, .under = depth_, .root = true};
    const TensorId shares = shares_of(import_, score, scores);
    const Extents apart{sizes_[0], heads_, sizes_[1], depth_};
    const Value weight = at(shares, {d(0), d(1), d(2), d(4)});
    import_.contraction_under("matmul.allow_tf32");
    const TensorId seen =
        import_.temporary_at(Reduction::kSum, apart, {sizes_[1]}, {d(0), d(2), d(1) * depth_ + d(3)}, sizes_,
                             (weight * part(2, d(4), d(3))).id(), stored_, "attention");
    return kept(linear(seen, 5, "projection"), sizes_, "projection");
  }

  Value through_layers(TensorId x) {
    const Value inner = linear(x, 14, "linear");
    const Extents wide = import_.sizes_of(x);
    const int64_t hidden = import_.value(import_.tensor(import_.arg(14, "")).value()).sizes[0];
    const Value active = import_.flag(import_.arg(7, "use_gelu"), false)
                             ? inner * 0.5 * ((inner * std::sqrt(0.5)).apply(Fn::kErf) + 1)
                             : maximum(inner, 0);
    return linear(kept(active, {wide[0], wide[1], hidden}, "activation"), 16, "linear");
  }

  Importer& import_;
  const Extents sizes_;
  const DType stored_;
  const int64_t heads_;
  const Size depth_;
  const double epsilon_;
};

}  // namespace

void add_attention(OperatorTable& table) {
  table["aten::scaled_dot_product_attention"] = attention;
  table["aten::_transformer_encoder_layer_fwd"] = [](Importer& import) { return EncoderLayer(import).run(); };
}

}  // namespace nereid::compiler
