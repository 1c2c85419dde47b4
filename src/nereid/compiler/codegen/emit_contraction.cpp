// Sums of products on tensor cores: matrix products of every layout, and convolutions as the products that
// they are. A program makes one tile, or (`persistent`) one a processor goes on from tile to tile.
#include <algorithm>
#include <numeric>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/transforms/split_factors.h"

namespace nereid::compiler {
namespace {

constexpr int kM = 0, kN = 1, kBatch = 2, kK = 3,
              kTap = 4;  // the dimensions that a kernel's indices are written in

constexpr double kLargeProduct = 1 << 24;
constexpr int64_t kGatheredWaves = 8;
constexpr int64_t kShortLoop = 2, kShortGather = 8;  // turns
constexpr int64_t kLongRows = 1024;   // terms of a product that does little else than read a matrix
constexpr int64_t kTogether = 8;      // tiles of a strip, one after another
constexpr int64_t kRowsUnderWay = 2;  // programs a processor that then keep its memory busy

class ContractionEmitter {
 public:
  ContractionEmitter(Graph& graph, const Fused& fused, const TileKernel& kernel,
                     const Contraction& contraction, const std::string& name, const KernelChoice& choice,
                     const Target& target)
      : graph_(graph),
        fused_(fused),
        kernel_(kernel),
        of_(contraction),
        m_(product_of(kernel.rows, of_.m)),
        n_(product_of(kernel.rows, of_.n)),
        batch_(product_of(kernel.rows, of_.batch)),
        k_(first().taps ? kernel.columns.back() : kernel.column_count()),
        taps_(kernel.column_count() / k_),
        processors_(target.multiprocessors) {
    out_.name = name;
    const DType result =
        graph.tensors[static_cast<size_t>(graph.nodes[static_cast<size_t>(kernel.members[0].node)].out)].type;
    split_ = !first().low.empty();
    const DType factors = factor_type(of_.left) == factor_type(of_.right) ? factor_type(of_.left) : result;
    const auto half = [](DType type) { return type == DType::kF16 || type == DType::kBF16; };
    operand_ = split_ ? DType::kF16 : half(result) ? result : half(factors) ? factors : DType::kF32;
    narrow_ = operand_ != DType::kF32;
    block_m_ = std::clamp<int64_t>(power_of_two(m_), 16, narrow_ ? 128 : 64);
    block_n_ = std::clamp<int64_t>(power_of_two(n_), 16, narrow_ ? 128 : 64);
    block_k_ = std::clamp<int64_t>(power_of_two(k_), 16, narrow_ ? 64 : 32);
    if (split_ && n_ >= 512) block_n_ = 256;
    // A row that ends in a second block is shorter in one.
    if (first().taps && k_ > 32 && k_ < 64) block_k_ = 64;
    if (first().taps)
      block_m_ = std::clamp<int64_t>(power_of_two(m_), 16, 128),
      block_n_ = std::clamp<int64_t>(power_of_two(n_), 16, 128);
    // Rather small tiles than idle processors.
    const int64_t least = split_ ? 64 : 32;
    // What is gathered takes many instructions an element, and large tiles of it many that are new.
    const bool gathered = operand_ == DType::kF32 && !first().taps && kernel.columns.size() > 1;
    const int64_t programs = gathered ? kGatheredWaves * processors_ : processors_;
    while (tiles_m() * tiles_n() * batch_ < programs && std::max(block_m_, block_n_) > least)
      (block_m_ > block_n_ ? block_m_ : block_n_) /= 2;
    // Narrower ones of float32 take more instructions for less, which counts where they are fetched but once.
    if (operand_ == DType::kF32 && !first().taps && tiles_m() * tiles_n() * batch_ <= processors_)
      block_n_ = std::max<int64_t>(block_n_, 32);
    if (!split_ && block_m_ == 32 && tiles_m() * tiles_n() * batch_ < processors_) block_m_ = 16;
    read_once();
    if (choice.m > 0) block_m_ = std::max<int64_t>(power_of_two(choice.m), 16);
    if (choice.n > 0) block_n_ = std::max<int64_t>(power_of_two(choice.n), 16);
    if (choice.k > 0) block_k_ = std::max<int64_t>(power_of_two(choice.k), 16);
    choice_ = choice;
    // A short loop of a few programs is over before its instructions are there: they are not made longer by
    // loads ahead.
    const int64_t turns = (k_ + block_k_ - 1) / block_k_;
    if (operand_ == DType::kF32 && !first().taps && choice_.stages == 0 &&
        turns <= (gathered ? kShortGather : kShortLoop) && tiles_m() * tiles_n() * batch_ <= 2 * processors_)
      choice_.stages = 1;
  }

  Result<KernelText> run() {
    std::vector<BlockDimension> dimensions{{"m", m_, ends_with_blocks(m_, block_m_, choice_.masked)},
                                           {"n", n_, ends_with_blocks(n_, block_n_, choice_.masked)},
                                           {"batch", batch_, true},
                                           {"k", k_, ends_with_blocks(k_, block_k_, choice_.masked)},
                                           {"tap", taps_, true}};
    names_.taken.insert({"start", "total", "pid", "tile", "tiles_m", "tiles_n", "segment", "part", "step",
                         "k_left", "k_right", "first_m", "first_n", "begin", "end"});
    ExprWriter write(graph_, names_, dimensions);
    const std::vector<Index> by = coordinates(write.extents());
    const auto flat = [&](ExprId id) { return graph_.exprs.substitute(id, by, write.extents()); };

    program(write);
    write.line("total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)");
    // A small product takes no time in either precision.
    const bool tf32 = first().tf32 && static_cast<double>(element_count(kernel_.extents())) >= kLargeProduct;
    if (choice_.precision.empty()) choice_.precision = split_ ? "fp16x3" : tf32 ? "tf32" : "tf32x3";
    const auto [begin, end] = bounds(write, flat(of_.left), flat(of_.right));
    for (const auto& [l, r] : first().low)
      add_product(write, dimensions, flat(l), flat(r), {.sum = "total", .begin = begin, .end = end});
    if (split_) {
      // Where a factor is infinite or NaN, the high product alone says what comes of it.
      write.line(fmt::format("total = tl.where(tl.abs(total) < float(\"inf\"), total * {}, 0.0)",
                             number_text(1 / kLowScale)));
      write.line(fmt::format("for segment in range(0, {}, {}):", hole(k_), kSegment));
      write.line("    part = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)");
      add_product(write, dimensions, flat(of_.left), flat(of_.right),
                  {.sum = "part",
                   .begin = begin == "0" ? "segment" : "max(segment, begin)",
                   .end = fmt::format("min(segment + {}, {})", kSegment, end),
                   .indent = "    "});
      write.line("    total += part");
    } else {
      add_product(write, dimensions, flat(of_.left), flat(of_.right),
                  {.sum = "total", .begin = begin, .end = end});
    }
    NEREID_TRY_STATUS(epilogue(write, by));
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_K", block_k_}};
    const int64_t tiles = tiles_m() * tiles_n() * batch_;
    const bool persistent = choice_.persistent && tiles > processors_;
    out_.programs = persistent ? processors_ : tiles;
    if (!persistent)
      out_.grid = product_text({batch_ > 1 ? batch_.text(Size::Place::kTerm) : "", blocks_text(m_, block_m_),
                                blocks_text(n_, block_n_)});
    out_.num_warps = choice_.warps > 0                                ? choice_.warps
                     : block_m_ * block_n_ >= 8192 || long_epilogue() ? 8
                                                                      : 4;
    if (split_ && choice_.stages == 0) choice_.stages = 3;
    out_.num_stages = choice_.stages;
    out_.contraction = true;
    out_.choice = {.m = block_m_,
                   .n = block_n_,
                   .k = block_k_,
                   .warps = out_.num_warps,
                   .stages = choice_.stages,
                   .precision = narrow_ && !split_ ? "" : choice_.precision,
                   .persistent = persistent};
    std::vector<std::string> lines = write.take_lines();
    if (persistent) {
      lines.front() = "pid = tile";
      for (auto& line : lines) line = "    " + line;
      lines.insert(lines.begin(),
                   fmt::format("for tile in range(tl.program_id(0), {}, {}):", tiles, processors_));
    }
    close_kernel(out_, graph_, names_, kernel_, lines);
    return std::move(out_);
  }

 private:
  // What a factor was before it was widened.
  DType factor_type(ExprId factor) const {
    const Expr& cast = graph_.exprs[factor];
    return cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast ? graph_.exprs[cast.args[0]].type
                                                                   : cast.type;
  }

  // Of eight warps each has half of what follows the product.
  bool long_epilogue() const {
    std::set<ExprId> bodies;
    for (size_t m = 1; m < kernel_.members.size(); ++m) bodies.insert(kernel_.members[m].body);
    const int64_t width = n_ == 1 ? 1 : block_n_;
    return block_m_ * block_n_ >= 4096 &&
           is_long_code(graph_, bodies, static_cast<double>(block_m_ * width) / 128.0);
  }

  const Node& first() const { return graph_.nodes[static_cast<size_t>(kernel_.members[0].node)]; }
  int64_t tiles_m() const { return (m_ + block_m_ - 1) / block_m_; }
  int64_t tiles_n() const { return (n_ + block_n_ - 1) / block_n_; }

  // A product with a few rows takes as long as the other factor is read: long rows of it by many programs.
  void read_once() {
    if (first().taps || operand_ != DType::kF32 || std::min(m_, n_) > 16 || k_ < kLongRows) return;
    int64_t& wide = m_ > n_ ? block_m_ : block_n_;
    while (wide > 32 && tiles_m() * tiles_n() * batch_ < kRowsUnderWay * processors_) wide /= 2;
    const int64_t programs = tiles_m() * tiles_n() * batch_;
    block_k_ = programs < 3 * processors_ ? 128 : programs < 6 * processors_ ? 64 : block_k_;
  }

  // The kernel's dimensions as m, n, batch and k.
  std::vector<Index> coordinates(const Extents& extents) const {
    std::vector<Index> by(kernel_.rows.size());
    spread(by, kernel_.rows, of_.m, kM, extents);
    spread(by, kernel_.rows, of_.n, kN, extents);
    spread(by, kernel_.rows, of_.batch, kBatch, extents);
    Extents outer = kernel_.columns, inner;
    if (first().taps)
      inner = {outer.back()}, outer.pop_back();
    else
      std::swap(outer, inner);
    for (auto& index : unravel(Index::dimension(kTap), outer, extents)) by.push_back(std::move(index));
    for (auto& index : unravel(Index::dimension(kK), inner, extents)) by.push_back(std::move(index));
    return by;
  }

  // Programs that share a strip of the right factor run next to each other.
  void program(ExprWriter& write) const {
    const bool wide = m_ * k_ >= (int64_t{1} << 31) || n_ * k_ >= (int64_t{1} << 31) ||
                      batch_ * m_ * n_ >= (int64_t{1} << 31);
    const char* cast = wide ? ".to(tl.int64)" : "";
    const bool rows = tiles_m() > 1, columns = tiles_n() > 1;
    if (rows || columns || batch_ > 1) write.line("pid = tl.program_id(0)");
    if (rows && (columns || batch_ > 1))
      write.line(fmt::format("tiles_m = triton.cdiv({}, BLOCK_M)", hole(m_)));
    if (columns && (rows || batch_ > 1))
      write.line(fmt::format("tiles_n = triton.cdiv({}, BLOCK_N)", hole(n_)));
    if (batch_ > 1) {
      const char* tiles = rows && columns ? " // (tiles_m * tiles_n)" : rows ? " // tiles_m" : " // tiles_n";
      write.line(fmt::format("batch = pid{}", rows || columns ? tiles : ""));
    }
    if (batch_ > 1 && rows && columns) write.line("pid = pid % (tiles_m * tiles_n)");
    std::string m = "0", n = "0";
    if (rows && columns) {
      const bool few = tiles_m() <= kTogether, even = tiles_m() % kTogether == 0;
      m = few    ? "pid % tiles_m"
          : even ? fmt::format("pid // ({0} * tiles_n) * {0} + pid % {0}", kTogether)
                 : "pid // tiles_n";
      n = few    ? "pid // tiles_m"
          : even ? fmt::format("pid % ({0} * tiles_n) // {0}", kTogether)
                 : "pid % tiles_n";
    } else if (rows) {
      m = batch_ > 1 ? "pid % tiles_m" : "pid";
    } else if (columns) {
      n = batch_ > 1 ? "pid % tiles_n" : "pid";
    }
    const auto start = [&](const std::string& tile, const char* block) {
      const bool simple = tile == "pid";
      return tile == "0" ? tile : fmt::format("{}{} * {}", simple ? tile : "(" + tile + ")", cast, block);
    };
    write.line("first_m = " + start(m, "BLOCK_M"));
    write.line("first_n = " + start(n, "BLOCK_N"));
    write.line("m = first_m + tl.arange(0, BLOCK_M)[:, None]");
    write.line("n = first_n + tl.arange(0, BLOCK_N)[None, :]");
  }

  // where(the place is in the tensor, load, 0) is what a load gives whose mask says so.
  std::optional<ExprId> bare_load(ExprId id) const {
    const Expr& padded = graph_.exprs[id];
    if (padded.kind != Expr::Kind::kApply || padded.fn != Fn::kWhere) return std::nullopt;
    const Expr &load = graph_.exprs[padded.args[1]], &otherwise = graph_.exprs[padded.args[2]];
    if (load.kind != Expr::Kind::kLoad || otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0)
      return std::nullopt;
    const Tensor& of = graph_.tensors[static_cast<size_t>(load.tensor)];
    for (const ExprId under : graph_.exprs.below(padded.args[0])) {
      const Expr& condition = graph_.exprs[under];
      if (condition.kind == Expr::Kind::kApply && condition.fn == Fn::kAnd) continue;
      if (condition.kind != Expr::Kind::kWithin) return std::nullopt;
      bool implied = false;
      for (size_t d = 0; d < load.at.size(); ++d)
        implied =
            implied || (load.at[d] == condition.index && condition.low == 0 && condition.high == of.sizes[d]);
      if (!implied) return std::nullopt;
    }
    return padded.args[1];
  }

  // Of k: what is before `begin` or from `end` on is multiplied by zero in every element of this program's
  // tile, as in a product with a triangle. Empty where nothing is known.
  struct Reach {
    std::vector<std::string> begin = {}, end = {};
  };
  // `factor` is where(low <= +-k +- m + c < high, ..., 0), with `rows` (kM or kN) for m.
  void reach_of(ExprId factor, int rows, Reach& reach) const {
    const Expr& cast = graph_.exprs[factor];
    if (cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast) return reach_of(cast.args[0], rows, reach);
    if (cast.kind != Expr::Kind::kApply || cast.fn != Fn::kWhere) return;
    const Expr &condition = graph_.exprs[cast.args[0]], &otherwise = graph_.exprs[cast.args[2]];
    if (otherwise.kind != Expr::Kind::kConstant || otherwise.number != 0 ||
        condition.kind != Expr::Kind::kWithin)
      return;
    const auto of_k = condition.index.stride(kK), of_m = condition.index.stride(rows);
    const size_t terms = (of_k.value_or(0) != 0 ? 1 : 0) + (of_m.value_or(0) != 0 ? 1 : 0);
    if (!of_k || !of_m || std::abs(*of_k) != 1 || std::abs(*of_m) != 1 ||
        condition.index.terms().size() != terms)
      return;
    const bool is_m = rows == kM;
    const int64_t m = is_m ? m_ : n_, block = is_m ? block_m_ : block_n_, c = condition.index.constant();
    const std::string first = is_m ? "first_m" : "first_n";
    // k goes with -+m: the least of it is at one end of the tile, the most at the other.
    const int64_t with = *of_k == 1 ? -*of_m : *of_m;
    const int64_t low = *of_k == 1 ? condition.low - c : c - condition.high + 1,
                  high = *of_k == 1 ? condition.high - c : c - condition.low + 1;
    const auto text = [&](int64_t constant) {
      return fmt::format("{}{} {} {}", with < 0 ? "-" : "", first, constant < 0 ? "-" : "+",
                         std::abs(constant));
    };
    const int64_t least = low + (with < 0 ? -(block - 1) : 0), most = high + (with > 0 ? block - 1 : 0);
    if (least + (with < 0 ? -m : m) > 0) reach.begin.push_back(text(least));
    if (most + (with < 0 ? -m : 0) < k_) reach.end.push_back(text(most));
  }

  // The bounds of the loops over k, in blocks.
  std::pair<std::string, std::string> bounds(ExprWriter& write, ExprId left, ExprId right) {
    Reach reach;
    reach_of(left, kM, reach);
    reach_of(right, kN, reach);
    std::string begin = "0", end = hole(k_);
    if (first().taps || (reach.begin.empty() && reach.end.empty())) return {begin, end};
    write.line("# Beyond these a triangle has nothing but zeros.");
    graph_.rewrites.push_back(fmt::format(
        "{} (line {}): a program goes over that part of the sum in which its triangle is not zero", out_.name,
        first().place.line));
    if (!reach.begin.empty()) {
      for (const auto& each : reach.begin) begin = fmt::format("max({}, {})", begin, each);
      write.line(fmt::format("begin = {} // BLOCK_K * BLOCK_K", begin));
      begin = "begin";
    }
    if (!reach.end.empty()) {
      for (const auto& each : reach.end) end = fmt::format("min({}, {})", end, each);
      write.line(fmt::format("end = {}", end));
      end = "end";
    }
    return {begin, end};
  }

  struct Loop {
    std::string sum, begin = "0", end = {}, indent = {};
  };
  // A loop over k, from `begin` to `end` (all of it), that adds the product of two factors to `sum`.
  void add_product(ExprWriter& write, std::vector<BlockDimension> dimensions, ExprId left, ExprId right,
                   const Loop& loop) {
    dimensions[kK].name = "k_left";
    ExprWriter a(graph_, names_, dimensions);
    dimensions[kK].name = "k_right";
    ExprWriter b(graph_, names_, dimensions);
    const std::string x =
        factor(a, left, "k_left = start + tl.arange(0, BLOCK_K)[None, :]", "[BLOCK_M, BLOCK_K]", "left");
    const std::string y =
        factor(b, right, "k_right = start + tl.arange(0, BLOCK_K)[:, None]", "[BLOCK_K, BLOCK_N]", "right");
    // Both bodies belong to one loop: the header comes once, after what does not change from turn to turn.
    const auto [before_a, body_a] = halves(a);
    const auto [before_b, body_b] = halves(b);
    for (const auto* lines : {&before_a, &before_b})
      for (const auto& each : *lines) write.line(loop.indent + each);
    if (first().taps) {
      const int64_t blocks = (k_ + block_k_ - 1) / block_k_;
      write.line(fmt::format("for step in range({}):", hole(taps_ * blocks)));
      write.line(blocks == 1 ? "    tap = step" : fmt::format("    tap = step // {}", blocks));
      write.line(blocks == 1 ? "    start = 0" : fmt::format("    start = step % {} * BLOCK_K", blocks));
    } else {
      write.line(fmt::format("{}for start in range({}, {}, BLOCK_K):", loop.indent, loop.begin,
                             loop.end.empty() ? hole(k_) : loop.end));
    }
    for (const auto* lines : {&body_a, &body_b})
      for (const auto& each : *lines) write.line(loop.indent + each);
    const std::string precision = narrow_ ? "" : fmt::format(", input_precision=\"{}\"", choice_.precision);
    write.line(fmt::format("{0}    {1} = tl.dot({2}, {3}, {1}{4})", loop.indent, loop.sum, x, y, precision));
  }

  // One block of a factor, in the type that is multiplied.
  std::string factor(ExprWriter& write, ExprId body, const std::string& range, const char* shape,
                     const std::string& wish) {
    write.begin_loop({kK, kTap});
    write.line(range);
    ExprId narrow = body;
    const Expr expr = graph_.exprs[body];
    if (narrow_ && expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast &&
        graph_.exprs[expr.args[0]].type == operand_)
      narrow = expr.args[0];
    if (const auto bare = bare_load(narrow)) narrow = *bare;
    std::string value = write.value(narrow);
    // A load at k is zero beyond the last of them by its mask.
    const Expr& load = graph_.exprs[narrow];
    const bool plain = load.kind == Expr::Kind::kLoad &&
                       std::any_of(load.at.begin(), load.at.end(),
                                   [](const Index& at) { return at.stride(kK).value_or(1) != 0; });
    if (choice_.precision == "tf32" && !first().taps && operand_ == DType::kF32)
      value = write.let(wish, fmt::format("round_to_tf32({})", value));
    // Beyond the last k both factors are nothing.
    if (!plain && !ends_with_blocks(k_, block_k_, choice_.masked))
      value = write.let(wish, fmt::format("tl.where({}, {}, 0.0)", write.mask_of({kK}), value));
    if (graph_.exprs[narrow].type != operand_)
      value = write.let(wish, fmt::format("{}.to({})", value, type_text(operand_)));
    // A factor that does not depend on one of its block's dimensions is as wide as the block all the same.
    return write.let(wish, fmt::format("tl.broadcast_to({}, {})", value, shape));
  }

  // What comes before the loop, and the loop's body.
  static std::pair<std::vector<std::string>, std::vector<std::string>> halves(ExprWriter& write) {
    write.end_loop("#");
    std::vector<std::string> before, body;
    bool inside = false;
    for (auto& line : write.take_lines()) {
      if (line == "#") {
        inside = true;
        continue;
      }
      (inside ? body : before).push_back(std::move(line));
    }
    return {before, body};
  }

  Status epilogue(ExprWriter& write, const std::vector<Index>& by) {
    // Of one column a tensor core makes sixteen: what follows is not computed for all of them.
    const bool column = n_ == 1;
    if (column) write.line("total = tl.sum(tl.where(n == 0, total, 0.0), axis=1)[:, None]");
    for (const Member& member : kernel_.members) {
      const Node& node = graph_.nodes[static_cast<size_t>(member.node)];
      std::string value = "total";
      if (&member != &kernel_.members.front()) {
        if (member.reduction != Reduction::kNone)
          return input_error("{}: a reduction after a contraction", out_.name);
        const ExprId body = graph_.exprs.substitute(member.body, by, write.extents());
        if (graph_.exprs.uses(body, kK) || graph_.exprs.uses(body, kTap))
          return our_error("{}: {} reads along what was summed", out_.name, node.name);
        value = write.value(body);
      }
      write.set_result(node.out, value);
      if (!fused_.stored[static_cast<size_t>(node.out)]) continue;
      std::vector<Index> at;
      for (const Index& index : member.at) at.push_back(substitute(index, by, write.extents()));
      const std::string where = write.mask_of(column ? std::vector<int>{kM} : std::vector<int>{kM, kN},
                                              {write.beyond(node.out, at)});
      const std::string place =
          fmt::format("{} + tl.zeros([BLOCK_M, {}], tl.int32)",
                      write.place(names_.pointer(graph_, node.out), write.address(node.out, at)),
                      column ? "1" : "BLOCK_N");
      const bool spread =
          write.address(node.out, at).uses(kM) && (column || write.address(node.out, at).uses(kN));
      const std::string target =
          spread ? write.place(names_.pointer(graph_, node.out), write.address(node.out, at)) : place;
      write.line(where.empty() ? fmt::format("tl.store({}, {})", target, value)
                               : fmt::format("tl.store({}, {}, mask={})", target, value, where));
    }
    return ok_status();
  }

  Graph& graph_;
  const Fused& fused_;
  const TileKernel& kernel_;
  const Contraction& of_;
  const Size m_, n_, batch_, k_, taps_;  // k_: of one tap
  const int64_t processors_;
  bool narrow_ = false, split_ = false;
  KernelChoice choice_;
  DType operand_ = DType::kF32;
  int64_t block_m_ = 16, block_n_ = 16, block_k_ = 16;
  KernelNames names_;
  KernelText out_;
};

}  // namespace

std::optional<Contraction> as_contraction(const Graph& graph, const TileKernel& kernel) {
  const Member& first = kernel.members.front();
  if (!is_contraction(graph, graph.nodes[static_cast<size_t>(first.node)])) return std::nullopt;
  const Expr& body = graph.exprs[first.body];
  Contraction found{.left = body.args[0], .right = body.args[1]};
  for (size_t d = 0; d < kernel.rows.size(); ++d) {
    const auto dim = static_cast<int>(d);
    const bool left = graph.exprs.uses(found.left, dim), right = graph.exprs.uses(found.right, dim);
    (left == right ? (left ? found.batch : found.m) : left ? found.m : found.n).push_back(dim);
  }
  return found;
}

Result<KernelText> emit_contraction(Graph& graph, const Fused& fused, const TileKernel& kernel,
                                    const Contraction& contraction, const std::string& name,
                                    const KernelChoice& choice, const Target& target) {
  return ContractionEmitter(graph, fused, kernel, contraction, name, choice, target).run();
}

}  // namespace nereid::compiler
