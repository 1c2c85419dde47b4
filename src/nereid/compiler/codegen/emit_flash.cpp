// Attention in one pass over its keys: the largest score and the sum of exponentials are corrected as keys
// come, so that scores are never stored (flash.h).
#include <algorithm>

#include "nereid/compiler/codegen/contraction_tile.h"
#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/helpers.h"

namespace nereid::compiler {
namespace {

// The dimensions that indices are written in.
struct FlashDim {
  static constexpr int kBatch = 0, kM = 1, kF = 2, kN = 3, kE = 4;
};
constexpr int64_t kFewKeys = 64;
constexpr int64_t kShared = 160 << 10;  // bytes of one program, on the smallest target

class FlashEmitter {
 public:
  FlashEmitter(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
               const KernelChoice& choice, const Target& target)
      : graph_(graph),
        fused_(fused),
        kernel_(kernel),
        node_(graph.nodes[static_cast<size_t>(kernel.members.front().node)]),
        flash_(*node_.flash),
        choice_(choice),
        target_(target),
        processors_(target.multiprocessors),
        batches_(product_of(node_.sizes, flash_.batch)),
        m_(product_of(node_.sizes, flash_.m)),
        f_(product_of(node_.sizes, flash_.f)),
        n_(node_.reduced[0]),
        e_(node_.reduced[1]) {
    out_.name = name;
    const DType stored = graph.tensors[static_cast<size_t>(node_.out)].type;
    type_ = stored == DType::kF16 || stored == DType::kBF16 ? stored : DType::kF32;
    cut();
  }

  Result<KernelText> run() {
    names_.taken.insert({"start", "pid", "tile", "best", "total", "denominator", "product", "score", "weight",
                         "decay", "shift", "larger", "result"});
    ExprWriter query(graph_, names_, dimensions("n", "e")), key(graph_, names_, dimensions("n", "e_key")),
        score(graph_, names_, dimensions("n", "e")), value(graph_, names_, dimensions("n_value", "e"));
    const std::vector<Index> by = coordinates(query.extents());
    const auto flat = [&](ExprId id) { return graph_.exprs.substitute(id, by, query.extents()); };
    const int64_t tiles = (m_ + block_m_ - 1) / block_m_;
    query.line("pid = tl.program_id(0)");
    query.line(tiles == 1 ? "batch = pid.to(tl.int64)"
                          : fmt::format("batch = (pid // {}).to(tl.int64)", tiles));
    // Where later keys are not looked at, the longest tiles come first: they would be waited for.
    query.line(tiles == 1     ? "tile = 0"
               : flash_.ahead ? fmt::format("tile = {} - pid % {}", tiles - 1, tiles)
                              : fmt::format("tile = pid % {}", tiles));
    const std::string rows =
        fmt::format("m = {}tl.arange(0, BLOCK_M)[:, None]", tiles == 1 ? "" : "tile * BLOCK_M + ");
    query.line(rows);
    if (tiles > 1) names_.starts.emplace_back(rows, "tile * BLOCK_M");
    query.line("e = tl.arange(0, BLOCK_E)[None, :]");
    query.line("e_key = tl.arange(0, BLOCK_E)[:, None]");
    query.line("f = tl.arange(0, BLOCK_F)[None, :]");
    const std::string q =
        operand(query, flat(flash_.query), {FlashDim::kE}, FlashDim::kM, "[BLOCK_M, BLOCK_E]", "queries");
    query.line("best = tl.full([BLOCK_M, 1], float(\"-inf\"), tl.float32)");
    query.line("denominator = tl.zeros([BLOCK_M, 1], tl.float32)");
    query.line("total = tl.zeros([BLOCK_M, BLOCK_F], tl.float32)");
    lines_ = query.take_lines();
    over_keys(key, score, value, q, flat);
    // A query that saw no key has a denominator of 0.
    lines_.push_back(flash_.masked_rows_are_zero
                         ? "result = total / tl.where(denominator == 0, 1.0, denominator)"
                         : "result = total / denominator");
    store(query, by);
    out_.constants = {
        {"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_E", block_e_}, {"BLOCK_F", block_f_}};
    out_.programs = tiles * batches_;
    out_.grid = product_text({std::to_string(tiles), batches_.text(Size::Place::kTerm)});
    out_.contraction = true;
    close_kernel(out_, graph_, names_, kernel_, lines_);
    return std::move(out_);
  }

 private:
  void cut() {
    const bool wide = std::max(e_, f_) > 128, half = type_ != DType::kF32;
    block_e_ = std::max<int64_t>(power_of_two(e_), 16);
    block_f_ = std::max<int64_t>(power_of_two(f_), 16);
    if (!half) precision_ = !choice_.precision.empty() ? choice_.precision : flash_.tf32 ? "tf32" : "tf32x3";
    // Queries are two parts each: next to the sums of 64 rows they are more than the registers of four warps.
    const bool many_registers = precision_ == "tf32x3" && std::max(e_, f_) > 64;
    const bool few_rows = wide || (many_registers && has_operands_in_registers(target_));
    const int64_t max_m = half ? (wide ? 64 : 128) : (few_rows ? 32 : 64);
    const int64_t max_n = half ? (wide ? 32 : 64) : (wide ? 16 : 32);
    block_m_ = std::clamp<int64_t>(power_of_two(m_), 16, max_m);
    if ((m_ + block_m_ - 1) / block_m_ * batches_ < processors_) block_m_ = std::min<int64_t>(block_m_, 64);
    while (block_m_ > 16 && (m_ + block_m_ - 1) / block_m_ * batches_ < processors_ / 2) block_m_ /= 2;
    block_n_ = std::clamp<int64_t>(power_of_two(n_), std::min<int64_t>(max_n, 32), max_n);
    // Few keys in one turn: nothing is corrected, and all loads are under way at once.
    if (!wide && n_ <= kFewKeys) block_n_ = std::clamp<int64_t>(power_of_two(n_), 32, kFewKeys);
    if (choice_.m > 0) block_m_ = std::max<int64_t>(power_of_two(choice_.m), 16);
    if (choice_.n > 0) block_n_ = std::max<int64_t>(power_of_two(choice_.n), 16);
    const int64_t element = half ? 2 : 4, queries = block_m_ * block_e_ * element,
                  turn = block_n_ * (block_e_ + block_f_) * element;
    // One turn loads nothing ahead.
    int stages = n_ <= block_n_ ? 1 : half ? 3 : 2;
    while (stages > 1 && queries + stages * turn > kShared) --stages;
    out_.num_stages = choice_.stages > 0 ? choice_.stages : stages;
    out_.num_warps = choice_.warps > 0                                                 ? choice_.warps
                     : block_m_ >= 128 || (many_registers && target_.name == "sm_100") ? 8
                                                                                       : 4;
    out_.choice = {.m = block_m_,
                   .n = block_n_,
                   .warps = out_.num_warps,
                   .stages = out_.num_stages,
                   .precision = precision_};
  }

  std::vector<BlockDimension> dimensions(const char* n, const char* e) const {
    return {{"batch", batches_, true},
            {"m", m_, m_ % block_m_ == 0},
            {"f", f_, f_ == block_f_},
            {n, n_, n_ % block_n_ == 0},
            {e, e_, e_ == block_e_}};
  }

  // The node's dimensions as those five.
  std::vector<Index> coordinates(const Extents& extents) const {
    std::vector<Index> by(node_.sizes.size());
    spread(by, node_.sizes, flash_.batch, FlashDim::kBatch, extents);
    spread(by, node_.sizes, flash_.m, FlashDim::kM, extents);
    spread(by, node_.sizes, flash_.f, FlashDim::kF, extents);
    for (const int d : {FlashDim::kN, FlashDim::kE}) by.push_back(Index::dimension(d));
    return by;
  }

  // A block as it is multiplied, of `summed` and `own`. What is beyond `summed` is zero; a load that is
  // masked is so already.
  std::string operand(ExprWriter& write, ExprId body, const std::vector<int>& summed, int own,
                      const char* shape, const std::string& wish) {
    const Expr expr = graph_.exprs[body];
    const bool narrow =
        expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast && graph_.exprs[expr.args[0]].type == type_;
    const ExprId made = narrow ? expr.args[0] : body;
    std::string text = write.value(made);
    if (precision_ == "tf32") text = write.let(wish, fmt::format("round_to_tf32({})", text));
    const std::string inside = write.mask_of(summed);
    if (graph_.exprs[made].kind != Expr::Kind::kLoad && !inside.empty())
      text = write.let(wish, fmt::format("tl.where({}, {}, 0.0)", inside, text));
    if (!narrow && type_ != DType::kF32)
      text = write.let(wish, fmt::format("{}.to({})", text, type_text(type_)));
    const bool whole = graph_.exprs.uses(made, own) && graph_.exprs.uses(made, summed.front());
    return whole ? text : write.let(wish, fmt::format("tl.broadcast_to({}, {})", text, shape));
  }

  // What a writer wrote: what no turn changes before the loop, the rest in it.
  void take(ExprWriter& write) {
    write.end_loop("#");
    bool inside = false;
    for (auto& line : write.take_lines()) {
      if (line == "#")
        inside = true;
      else
        (inside ? turn_ : lines_).push_back(std::move(line));
    }
  }

  template <typename Flat>
  void over_keys(ExprWriter& key, ExprWriter& score, ExprWriter& value, const std::string& q,
                 const Flat& flat) {
    const auto turn = [&](const std::string& text) { turn_.push_back("    " + text); };
    turn("n = start + tl.arange(0, BLOCK_N)[None, :]");
    turn("n_value = start + tl.arange(0, BLOCK_N)[:, None]");
    key.begin_loop({FlashDim::kN});
    const std::string k =
        operand(key, flat(flash_.key), {FlashDim::kE}, FlashDim::kN, "[BLOCK_E, BLOCK_N]", "keys");
    take(key);
    turn("product = " + dot_text(q, k, "", precision_));
    score.begin_loop({FlashDim::kN});
    score.set_result(flash_.product, "product");
    const std::string made = score.value(flat(flash_.score));
    take(score);
    turn(n_ % block_n_ == 0 ? fmt::format("score = {}", made)
                            : fmt::format("score = tl.where(n < {}, {}, float(\"-inf\"))", hole(n_), made));
    // While nothing was seen there is no distance from the largest.
    turn("larger = tl.maximum(best, tl.max(score, axis=1)[:, None])");
    turn("shift = tl.where(larger == float(\"-inf\"), 0.0, larger)");
    turn("weight = tl.exp(score - shift)");
    turn("decay = tl.exp(best - shift)");
    turn("denominator = denominator * decay + tl.sum(weight, axis=1)[:, None]");
    value.begin_loop({FlashDim::kN});
    const std::string v =
        operand(value, flat(flash_.value), {FlashDim::kN}, FlashDim::kF, "[BLOCK_N, BLOCK_F]", "values");
    take(value);
    std::string weight = type_ == DType::kF32 ? "weight" : fmt::format("weight.to({})", type_text(type_));
    if (precision_ == "tf32") weight = "round_to_tf32(weight)";
    turn(fmt::format("total = {}", dot_text(weight, v, "total * decay", precision_)));
    turn("best = larger");
    std::string end = hole(n_);
    if (flash_.ahead)  // no query of the tile sees a later key
      end = fmt::format("tl.minimum({}, (tile + 1) * BLOCK_M{})", hole(n_),
                        *flash_.ahead == 1 ? "" : fmt::format(" + {}", *flash_.ahead - 1));
    lines_.push_back(fmt::format("for start in range(0, {}, BLOCK_N):", end));
    for (auto& line : turn_) lines_.push_back(std::move(line));
  }

  void store(ExprWriter& write, const std::vector<Index>& by) {
    std::vector<Index> at;
    for (const Index& index : kernel_.members.front().at)
      at.push_back(substitute(index, by, write.extents()));
    const std::string where = write.mask_of({FlashDim::kM, FlashDim::kF});
    const std::string place = write.place(names_.pointer(graph_, node_.out), write.address(node_.out, at));
    lines_.push_back(where.empty() ? fmt::format("tl.store({}, result)", place)
                                   : fmt::format("tl.store({}, result, mask={})", place, where));
  }

  Graph& graph_;
  const Fused& fused_;
  const TileKernel& kernel_;
  const Node node_;
  const Flash flash_;
  const KernelChoice choice_;
  const Target& target_;
  const int64_t processors_;
  const Size batches_, m_, f_, n_, e_;
  int64_t block_m_ = 16, block_n_ = 16, block_e_ = 16, block_f_ = 16;
  DType type_ = DType::kF32;
  std::string precision_;
  KernelNames names_;
  std::vector<std::string> lines_, turn_;
  KernelText out_;
};

}  // namespace

Result<KernelText> emit_flash(Graph& graph, const Fused& fused, const TileKernel& kernel,
                              const std::string& name, const KernelChoice& choice, const Target& target) {
  return FlashEmitter(graph, fused, kernel, name, choice, target).run();
}

}  // namespace nereid::compiler
