// Sums of products on tensor cores: matrix products of every layout, and convolutions as the products that
// they are. A program makes one tile, or (`persistent`) one a processor goes on from tile to tile.
#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>

#include "nereid/compiler/codegen/contraction_tile.h"
#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/factor_block.h"
#include "nereid/compiler/codegen/few_rows.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/codegen/tap_limits.h"
#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/codegen/tiles/product_results.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"
#include "nereid/compiler/transforms/products/split_factors.h"

namespace nereid::compiler {
namespace {

constexpr double kLargeProduct = 1 << 24;
// Terms of a sum in the tensor cores, which cut off where they add, and sums so long that this shows.
constexpr int64_t kTf32Segment = 1024, kLongSum = 8192;
constexpr int64_t kTogether = 8;                       // tiles of a strip, one after another
constexpr int kWarpsOfTwo = 8, kRegistersOfTwo = 128;  // two programs a processor
constexpr int kStagesOfSingles = 4;  // of loads of single elements, of which many must be under way

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
        processors_(target.multiprocessors),
        limits_(graph, kernel, contraction) {
    out_.name = name;
    const DType result =
        graph.tensors[static_cast<size_t>(graph.nodes[static_cast<size_t>(kernel.members[0].node)].out)].type;
    split_ = !first().low.empty();
    DType factors = factor_type(graph_, of_.left);
    if (factors != factor_type(graph_, of_.right)) factors = result;
    const auto half = [](DType type) { return type == DType::kF16 || type == DType::kBF16; };
    operand_ = split_ ? DType::kF16 : half(result) ? result : half(factors) ? factors : DType::kF32;
    narrow_ = operand_ != DType::kF32;
    ContractionShape shape{.m = m_, .n = n_, .batch = batch_, .k = k_, .narrow = narrow_, .split = split_};
    shape.terms = kernel.column_count();
    shape.taps = first().taps || first().direct;
    shape.direct = first().direct;
    shape.gathered = kernel.columns.size() > 1;
    for (const Member& member : kernel.members) {
      if (member.across.empty()) continue;
      (std::ranges::find(of_.n, member.across[0]) != of_.n.end() ? shape.whole_n : shape.whole_m) = true;
    }
    out_.whole_m = shape.whole_m, out_.whole_n = shape.whole_n;
    if (first().window_factor) {
      const auto length = [&](ExprId factor) { return graph.exprs.below(factor).size(); };
      shape.window = length(of_.right) > length(of_.left) ? ContractionShape::Window::kRight
                                                          : ContractionShape::Window::kLeft;
    }
    shape.few_rows = few_rows_ = has_few_rows();
    choice_ = contraction_tile(shape, choice, target);
    block_m_ = choice_.m, block_n_ = choice_.n, block_k_ = choice_.k;
  }

  Result<KernelText> run() {
    std::vector<BlockDimension> dimensions{
        {"m", m_, ends_with_blocks(m_, block_m_, choice_.masked), is_wide() && tiles_m() > 1},
        {"n", n_, ends_with_blocks(n_, block_n_, choice_.masked), is_wide() && tiles_n() > 1},
        {"batch", batch_, true},
        {"k", k_, ends_with_blocks(k_, block_k_, choice_.masked)}};
    if (limits_.of.empty()) dimensions.push_back({"tap", taps_, true});
    for (size_t d = 0; d < limits_.of.size(); ++d)
      dimensions.push_back({fmt::format("tap_{}", d), kernel_.columns[d], true});
    names_.taken.insert({"start", "total", "pid", "tile", "tiles_m", "tiles_n", "segment", "part", "step",
                         "k_left", "k_right", "m_left", "n_right", "first_m", "first_n", "begin", "end"});
    ExprWriter write(graph_, names_, dimensions);
    const std::vector<Index> by = coordinates(write.extents());
    const auto flat = [&](ExprId id) { return graph_.exprs.substitute(id, by, write.extents()); };

    program(write);
    start_sums(write, by);
    // A small product takes no time in either precision.
    const bool tf32 = first().tf32 && static_cast<double>(element_count(kernel_.extents())) >= kLargeProduct;
    if (few_rows_) choice_.precision = "ieee";
    if (choice_.precision.empty()) choice_.precision = split_ ? "fp16x3" : tf32 ? "tf32" : "tf32x3";
    const ExprId left = flat(limits_.without_implied(of_.left)),
                 right = flat(limits_.without_implied(of_.right));
    // Those of a short loop are all under way in as many stages as it has turns, and one.
    if (choice_.stages == 0 && (block_of(left, true).flat || block_of(right, false).flat))
      choice_.stages = std::min(kStagesOfSingles, static_cast<int>((k_ + block_k_ - 1) / block_k_) + 1);
    const auto [begin, end] = bounds(write, left, right);
    for (const auto& [l, r] : first().low)
      add_product(write, dimensions, flat(l), flat(r), {.sum = "total", .begin = begin, .end = end});
    add_factors(write, dimensions, left, right, {.sum = "total", .begin = begin, .end = end});
    NEREID_TRY_STATUS(epilogue(write, by));
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_K", block_k_}};
    const int64_t tiles = tiles_m() * tiles_n() * batch_;
    const bool persistent = choice_.persistent && tiles > processors_;
    out_.programs = persistent ? processors_ : tiles;
    if (!persistent)
      out_.grid = product_text({batch_ > 1 ? batch_.text(Size::Place::kTerm) : "", blocks_text(m_, block_m_),
                                blocks_text(n_, block_n_)});
    const bool large =
        block_m_ * block_n_ >= 8192 || has_long_epilogue(graph_, kernel_, block_m_, n_ == 1 ? 1 : block_n_);
    out_.num_warps = choice_.warps > 0 ? choice_.warps : large ? 8 : 4;
    // A window's loads come from memory in each turn: another program's go on while this one waits for them.
    if (first().window_factor && out_.num_warps == kWarpsOfTwo) out_.registers = kRegistersOfTwo;
    if (split_ && choice_.stages == 0) choice_.stages = 3;
    out_.num_stages = choice_.stages;
    out_.contraction = true;
    out_.taps_share = limits_.share;
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
  bool has_few_rows() const {
    const bool sums = std::ranges::any_of(kernel_.members | std::views::drop(1), [](const Member& member) {
      return member.reduction != Reduction::kNone && member.across.empty();
    });
    if (narrow_ || first().taps || first().window_factor || !first().low.empty() || sums ||
        kernel_.columns.size() != 1)
      return false;
    const Extents extents{m_, n_, batch_, k_, taps_};
    const std::vector<Index> by = coordinates(extents);
    return compiler::has_few_rows(graph_, graph_.exprs.substitute(of_.left, by, extents),
                                  graph_.exprs.substitute(of_.right, by, extents), m_, n_, k_);
  }

  const Node& first() const { return graph_.nodes[static_cast<size_t>(kernel_.members[0].node)]; }
  int64_t tiles_m() const { return (m_ + block_m_ - 1) / block_m_; }
  int64_t tiles_n() const { return (n_ + block_n_ - 1) / block_n_; }

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
    if (limits_.of.empty())
      for (auto& index : unravel(Index::dimension(kTap), outer, extents)) by.push_back(std::move(index));
    for (size_t d = 0; d < limits_.of.size(); ++d)
      by.push_back(outer[d] == 1 ? Index() : Index::dimension(kTap + static_cast<int>(d)));
    for (auto& index : unravel(Index::dimension(kK), inner, extents)) by.push_back(std::move(index));
    return by;
  }

  bool is_wide() const {
    return m_ * k_ >= (int64_t{1} << 31) || n_ * k_ >= (int64_t{1} << 31) ||
           batch_ * m_ * n_ >= (int64_t{1} << 31);
  }

  // Programs that share a strip of the right factor run next to each other.
  void program(ExprWriter& write) {
    const char* cast = is_wide() ? ".to(tl.int64)" : "";
    const bool rows = tiles_m() > 1, columns = tiles_n() > 1;
    if (rows || columns || batch_ > 1) write.line("pid = tl.program_id(0)");
    const bool interleaved = batch_ > 1 && (rows || columns) && batches_interleave(graph_, kernel_, of_);
    if (interleaved) {
      write.line(fmt::format("batch = pid % {}", hole(batch_)));
      write.line(fmt::format("pid = pid // {}", hole(batch_)));
    }
    const bool apart = batch_ > 1 && !interleaved;  // a batch after another
    if (rows && (columns || apart)) write.line(fmt::format("tiles_m = triton.cdiv({}, BLOCK_M)", hole(m_)));
    if (columns && (rows || apart)) write.line(fmt::format("tiles_n = triton.cdiv({}, BLOCK_N)", hole(n_)));
    if (apart) {
      const char* tiles = rows && columns ? " // (tiles_m * tiles_n)" : rows ? " // tiles_m" : " // tiles_n";
      write.line(fmt::format("batch = pid{}", rows || columns ? tiles : ""));
    }
    if (apart && rows && columns) write.line("pid = pid % (tiles_m * tiles_n)");
    std::string m = "0", n = "0";
    if (rows && columns) {
      const bool few = tiles_m() <= kTogether, even = tiles_m() % kTogether == 0;
      if (!few && even)
        write.line(fmt::format("GROUP_M: tl.constexpr = {}  # tiles that share their columns", kTogether));
      m = few    ? "pid % tiles_m"
          : even ? "pid // (GROUP_M * tiles_n) * GROUP_M + pid % GROUP_M"
                 : "pid // tiles_n";
      n = few ? "pid // tiles_m" : even ? "pid % (GROUP_M * tiles_n) // GROUP_M" : "pid % tiles_n";
    } else if (rows) {
      m = apart ? "pid % tiles_m" : "pid";
    } else if (columns) {
      n = apart ? "pid % tiles_n" : "pid";
    }
    const auto start = [&](const std::string& tile, const char* block) {
      const bool simple = tile == "pid";
      return tile == "0" ? tile : fmt::format("{}{} * {}", simple ? tile : "(" + tile + ")", cast, block);
    };
    const auto first = [&](const std::string& name, const std::string& text) {
      write.line(fmt::format("{} = {}", name, text));
      if (text != "0") names_.starts.emplace_back(fmt::format("{} = {}", name, text), name);
    };
    first("first_m", start(m, "BLOCK_M"));
    first("first_n", start(n, "BLOCK_N"));
    write.line(fmt::format("m = {}tl.arange(0, BLOCK_M)[:, None]", m == "0" ? "" : "first_m + "));
    write.line(fmt::format("n = {}tl.arange(0, BLOCK_N)[None, :]", n == "0" ? "" : "first_n + "));
  }

  // The bounds of the loops over k, in blocks.
  std::pair<std::string, std::string> bounds(ExprWriter& write, ExprId left, ExprId right) {
    Reach reach;
    reach_of(graph_, left, {kM, m_, block_m_, "first_m"}, kK, k_, reach);
    reach_of(graph_, right, {kN, n_, block_n_, "first_n"}, kK, k_, reach);
    if (first().taps || (reach.begin.empty() && reach.end.empty())) return {"0", hole(k_)};
    graph_.rewrites.push_back(fmt::format(
        "{} (line {}): a program goes over that part of the sum in which its triangle is not zero", out_.name,
        first().place.line));
    return bounds_of(write, reach, hole(k_));
  }

  struct Loop {
    std::string sum, begin = "0", end = {}, indent = {};
  };
  // `total` with the product of both factors.
  void add_factors(ExprWriter& write, const std::vector<BlockDimension>& dimensions, ExprId left,
                   ExprId right, const Loop& loop) {
    const bool segments = !narrow_ && choice_.precision == "tf32x3" && !first().taps && k_ >= kLongSum;
    // Where a factor is infinite or NaN, the high product alone says what comes of it.
    if (split_)
      write.line(fmt::format("total = tl.where(tl.abs(total) < float(\"inf\"), total * {}, 0.0)",
                             number_text(1 / kLowScale)));
    const int64_t segment = split_ ? kSegment : kTf32Segment;
    if (few_rows_) {
      const bool exact = loop.begin == "0" && ends_with_blocks(k_, kBlocksAhead * block_k_, choice_.masked);
      return write_few_rows(write, graph_, names_, dimensions,
                            {left, right, m_, n_, exact, loop.begin, loop.end});
    }
    // One segment needs no sum of its own: two sums of 128 by 256 are all registers of eight warps.
    if ((!split_ && !segments) || k_ <= segment) return add_product(write, dimensions, left, right, loop);
    write.line(fmt::format("for segment in range(0, {}, {}):", hole(k_), segment));
    write.line("    part = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)");
    add_product(write, dimensions, left, right,
                {.sum = "part",
                 .begin = loop.begin == "0" ? "segment" : "max(segment, begin)",
                 .end = fmt::format("min(segment + {}, {})", segment, loop.end),
                 .indent = "    "});
    write.line("    total += part");
  }

  // A loop over k, from `begin` to `end` (all of it), that adds the product of two factors to `sum`.
  void add_product(ExprWriter& write, std::vector<BlockDimension> dimensions, ExprId left, ExprId right,
                   const Loop& loop) {
    const std::vector<BlockDimension> shared = dimensions;
    const FactorBlock left_block = block_of(left, true), right_block = block_of(right, false);
    dimensions[kK].name = "k_left";
    if (left_block.flat) dimensions[kM].name = "m_left";
    as_far_as_loaded(dimensions[kM], left, kM, block_m_);
    ExprWriter a(graph_, names_, dimensions);
    dimensions = shared;
    dimensions[kK].name = "k_right";
    if (right_block.flat) dimensions[kN].name = "n_right";
    as_far_as_loaded(dimensions[kN], right, kN, block_n_);
    ExprWriter b(graph_, names_, dimensions);
    const std::string x = factor(a, left, left_block), y = factor(b, right, right_block);
    for (const FactorSum& sum : sums_) add_up(sum.left ? a : b, sum, (sum.left ? left_block : right_block));
    // Both bodies belong to one loop: the header comes once, after what does not change from turn to turn.
    const auto [before_a, body_a] = loop_halves(a);
    const auto [before_b, body_b] = loop_halves(b);
    for (const auto* lines : {&before_a, &before_b})
      for (const auto& each : *lines) write.line(loop.indent + each);
    if (first().taps) {
      over_taps(write);
    } else {
      write.line(fmt::format("{}for start in range({}, {}, BLOCK_K):", loop.indent, loop.begin,
                             loop.end.empty() ? hole(k_) : loop.end));
    }
    for (const auto* lines : {&body_a, &body_b})
      for (const auto& each : *lines) write.line(loop.indent + each);
    write.line(loop.indent + "    " + add_dot(loop.sum, x, y, narrow_ ? "" : choice_.precision));
  }

  // The product, and sums of what a factor is made of, which its loop adds up, too (factor_sums.h).
  void start_sums(ExprWriter& write, const std::vector<Index>& by) {
    write.line("total = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)");
    for (const Member& member : kernel_.members | std::views::drop(1)) {
      if (member.reduction == Reduction::kNone || !member.across.empty()) continue;
      const ExprId body = graph_.exprs.substitute(member.body, by, write.extents());
      sums_.push_back({graph_.nodes[static_cast<size_t>(member.node)].out, body, graph_.exprs.uses(body, kM),
                       names_.fresh("sums")});
      write.line(sums_.back().zeros());
    }
  }

  void add_up(ExprWriter& of_factor, const FactorSum& sum, const FactorBlock& block) {
    std::string term = of_factor.value(sum.body);
    if (!ends_with_blocks(k_, block_k_, choice_.masked))
      term = of_factor.let("term", fmt::format("tl.where({}, {}, 0.0)", of_factor.mask_of({kK}), term));
    of_factor.line(fmt::format("{} += {}", sum.block, block.shaped(term, true)));
  }

  // The header of a loop over taps and blocks of k.
  void over_taps(ExprWriter& write) {
    const int64_t blocks = (k_ + block_k_ - 1) / block_k_;
    const std::vector<Index> by = coordinates(write.extents());
    std::vector<std::string> counts;  // of taps along each of the window's dimensions
    for (size_t d = 0; d < limits_.of.size(); ++d) {
      const auto& [before, step, end] = limits_.of[d];
      std::string count = hole(kernel_.columns[d], Size::Place::kFactor);
      if (step > 0) {
        const Index left = Index(end + step - 1) - substitute(before, by, write.extents());
        const std::string exact =
            step == 1 ? write.text(left) : fmt::format("({}) // {}", write.text(left), step);
        count = write.let(fmt::format("taps_{}", d), fmt::format("min({}, {})", count, exact));
      }
      counts.push_back(count);
    }
    const std::string all = product_text({product_text(counts), std::to_string(blocks)});
    write.line(fmt::format("for step in range({}):", counts.empty() ? hole(taps_ * blocks) : all));
    const bool one_tap = counts.empty() && taps_ == 1;
    write.line(blocks == 1 ? "    tap = step" : fmt::format("    tap = step // {}", blocks));
    write.line(blocks == 1 ? "    start = 0"
               : one_tap   ? "    start = step * BLOCK_K"
                           : fmt::format("    start = step % {} * BLOCK_K", blocks));
    std::string rest = "tap";
    for (size_t d = counts.size(); d-- > 0;) {
      write.line(d == 0 ? fmt::format("    tap_0 = {}", rest)
                        : fmt::format("    tap_{} = {} % {}", d, rest, counts[d]));
      rest = fmt::format("{} // {}", d + 1 < counts.size() ? "(" + rest + ")" : rest, counts[d]);
    }
  }

  FactorBlock block_of(ExprId factor, bool left) const {
    // A tap's channels are adjacent.
    if (!left && !narrow_ && !first().taps && first().low.empty() && of_.right_along_n &&
        block_m_ >= kWarpGroupTile)
      return {.left = false, .flat = true, .along_k = false, .single = true};
    if (narrow_ || first().taps || first().window_factor || kernel_.columns.size() != 1)
      return {.left = left};
    // What is multiplied as it is loaded goes where the tensor cores read it from.
    const bool as_loaded = graph_.exprs[bare_load(graph_, factor).value_or(factor)].kind == Expr::Kind::kLoad;
    if (left && as_loaded && choice_.precision != "tf32") return {.left = left};
    return factor_block(graph_, factor, left, left ? kM : kN, kK);
  }

  // What is loaded beyond the last m or n is multiplied for results that are not stored. So a mask may go to
  // the end of padded rows (split_factors.h), where it ends with a vector.
  void as_far_as_loaded(BlockDimension& dimension, ExprId factor, int own, int64_t block) const {
    const auto reach = loaded_extent(graph_, factor, own);
    if (!reach || *reach <= dimension.extent) return;
    dimension.extent = *reach;
    dimension.exact = ends_with_blocks(*reach, block, choice_.masked);
  }

  // One block of a factor, in the type that is multiplied.
  std::string factor(ExprWriter& write, ExprId body, const FactorBlock& block) {
    const std::string side = block.left ? "left" : "right";
    if (block.flat)
      write.line(fmt::format("{0}_{1} = first_{0} + {2}", block.left ? "m" : "n", side, block.range(false)));
    std::vector<int> inner{kK, kTap};
    for (size_t d = 1; d < limits_.of.size(); ++d) inner.push_back(kTap + static_cast<int>(d));
    write.begin_loop(inner);
    write.line(fmt::format("k_{} = start + {}", side, block.range(true)));
    ExprId narrow = body;
    const Expr expr = graph_.exprs[body];
    if (narrow_ && expr.kind == Expr::Kind::kApply && expr.fn == Fn::kCast &&
        graph_.exprs[expr.args[0]].type == operand_)
      narrow = expr.args[0];
    if (const auto bare = bare_load(graph_, narrow)) narrow = *bare;
    std::string value = write.value(narrow);
    // A load at k is zero beyond the last of them by its mask.
    const Expr& load = graph_.exprs[narrow];
    const bool plain = load.kind == Expr::Kind::kLoad &&
                       std::any_of(load.at.begin(), load.at.end(),
                                   [](const Index& at) { return at.stride(kK).value_or(1) != 0; });
    if (choice_.precision == "tf32" && !first().taps && operand_ == DType::kF32)
      value = write.let(side, fmt::format("round_to_tf32({})", value));
    // Beyond the last k both factors are nothing.
    if (!plain && !ends_with_blocks(k_, block_k_, choice_.masked))
      value = write.let(side, fmt::format("tl.where({}, {}, 0.0)", write.mask_of({kK}), value));
    if (graph_.exprs[narrow].type != operand_)
      value = write.let(side, fmt::format("{}.to({})", value, type_text(operand_)));
    // A factor that does not depend on one of its block's dimensions is as wide as the block all the same.
    const bool whole = graph_.exprs.uses(narrow, kK) && graph_.exprs.uses(narrow, block.left ? kM : kN);
    const std::string shaped = block.shaped(value, whole);
    return shaped == value ? value : write.let(side, shaped);
  }

  Status epilogue(ExprWriter& write, const std::vector<Index>& by) {
    // Of one column a tensor core makes sixteen: what follows is not computed for all of them.
    const bool column = n_ == 1;
    if (column) write.line("total = tl.sum(tl.where(n == 0, total, 0.0), axis=1)[:, None]");
    for (const Member& member : kernel_.members) {
      const Node& node = graph_.nodes[static_cast<size_t>(member.node)];
      std::string value = "total";
      const auto sum = std::ranges::find(sums_, node.out, &FactorSum::out);
      if (sum != sums_.end()) {
        value = write.let(clear_name(node.name), sum->total());
      } else if (&member != &kernel_.members.front()) {
        const ExprId body = graph_.exprs.substitute(member.body, by, write.extents());
        if (graph_.exprs.uses(body, kK) || graph_.exprs.uses(body, kTap))
          return our_error("{}: {} reads along what was summed", out_.name, node.name);
        value = write.value(body);
        if (member.reduction != Reduction::kNone)
          value = reduced_on_tile(write, graph_, member, body, value, out_);
      }
      write.set_result(node.out, value);
      if (!fused_.stored[static_cast<size_t>(node.out)]) continue;
      std::vector<Index> at;
      for (const Index& index : member.at) at.push_back(substitute(index, by, write.extents()));
      if (sum != sums_.end()) {
        store_sum(write, *sum, at, value);
        continue;
      }
      if (!member.across.empty()) {
        const Index address = write.address(node.out, at);
        const std::string where = write.mask_of({out_.whole_n ? kM : kN}, {write.beyond(node.out, at)});
        const std::string place = write.place(names_.pointer(graph_, node.out), address);
        write.line(where.empty() ? fmt::format("tl.store({}, {})", place, value)
                                 : fmt::format("tl.store({}, {}, mask={})", place, value, where));
        continue;
      }
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

  // By the first of the tiles that add it up.
  void store_sum(ExprWriter& write, const FactorSum& sum, const std::vector<Index>& at,
                 const std::string& value) {
    const bool once = (sum.left ? tiles_n() : tiles_m()) == 1;
    const std::string where = write.mask_of({sum.left ? kM : kN}, {once       ? ""
                                                                   : sum.left ? "(first_n == 0)"
                                                                              : "(first_m == 0)"});
    const std::string place = write.place(names_.pointer(graph_, sum.out), write.address(sum.out, at));
    write.line(where.empty() ? fmt::format("tl.store({}, {})", place, value)
                             : fmt::format("tl.store({}, {}, mask={})", place, value, where));
  }

  Graph& graph_;
  const Fused& fused_;
  const TileKernel& kernel_;
  const Contraction& of_;
  const Size m_, n_, batch_, k_, taps_;  // k_: of one tap
  const int64_t processors_;
  const TapLimits limits_;
  bool narrow_ = false, split_ = false, few_rows_ = false;
  KernelChoice choice_;
  DType operand_ = DType::kF32;
  int64_t block_m_ = 16, block_n_ = 16, block_k_ = 16;
  KernelNames names_;
  std::vector<FactorSum> sums_;
  KernelText out_;
};

}  // namespace

Result<KernelText> emit_contraction(Graph& graph, const Fused& fused, const TileKernel& kernel,
                                    const Contraction& contraction, const std::string& name,
                                    const KernelChoice& choice, const Target& target) {
  return ContractionEmitter(graph, fused, kernel, contraction, name, choice, target).run();
}

}  // namespace nereid::compiler
