// Sums of products on tensor cores: matrix products of every layout, and convolutions as the products that
// they are. A program makes one tile, or (`persistent`) one a processor goes on from tile to tile.
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <ranges>

#include "nereid/compiler/codegen/contraction_tile.h"
#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/factor_block.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/codegen/products/few_rows.h"
#include "nereid/compiler/codegen/products/product_place.h"
#include "nereid/compiler/codegen/tap_limits.h"
#include "nereid/compiler/codegen/tile.h"
#include "nereid/compiler/codegen/tiles/product_results.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"
#include "nereid/compiler/transforms/products/split_factors.h"
#include "nereid/compiler/transforms/products/twin_products.h"

namespace nereid::compiler {
namespace {

constexpr double kLargeProduct = 1 << 24;
// Terms of a sum in the tensor cores, which cut off where they add, and sums so long that this shows.
constexpr int64_t kTf32Segment = 1024, kLongSum = 8192;
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
    factors_.push_back({of_.left, of_.right, names_.fresh("total"), kernel.members[0].node});
    for (const Member& member : kernel.members)
      if (member.twin)
        factors_.push_back(
            {of_.left, other_factor(graph_, member.body, of_.left), names_.fresh("total"), member.node});
    out_.products = std::ssize(factors_);
    const DType result =
        graph.tensors[static_cast<size_t>(graph.nodes[static_cast<size_t>(kernel.members[0].node)].out)].type;
    split_ = !first().low.empty();
    DType factors = factor_type(graph_, of_.left);
    if (factors != factor_type(graph_, of_.right)) factors = result;
    const auto half = [](DType type) { return type == DType::kF16 || type == DType::kBF16; };
    operand_ = split_ ? DType::kF16 : half(result) ? result : half(factors) ? factors : DType::kF32;
    narrow_ = operand_ != DType::kF32;
    ContractionShape shape{.m = m_, .n = n_, .batch = batch_, .k = k_, .narrow = narrow_, .split = split_};
    shape.terms = kernel.column_count(), shape.products = out_.products;
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

    const bool apart = batch_ > 1 && (tiles_m() > 1 || tiles_n() > 1);
    write_place(
        write, names_,
        {m_, n_, batch_, tiles_m(), tiles_n(), is_wide(), apart && batches_interleave(graph_, kernel_, of_)});
    start_sums(write, by);
    // A small product takes no time in either precision.
    const bool tf32 = first().tf32 && static_cast<double>(element_count(kernel_.extents())) >= kLargeProduct;
    if (few_rows_) choice_.precision = "ieee";
    if (choice_.precision.empty()) choice_.precision = split_ ? "fp16x3" : tf32 ? "tf32" : "tf32x3";
    std::vector<Factors> all = factors_;
    for (Factors& each : all) {
      each.left = flat(limits_.without_implied(each.left));
      each.right = flat(limits_.without_implied(each.right));
    }
    const ExprId left = all[0].left, right = all[0].right;
    // Those of a short loop are all under way in as many stages as it has turns, and one.
    if (choice_.stages == 0 && (block_of(left, true).flat || block_of(right, false).flat))
      choice_.stages = std::min(kStagesOfSingles, static_cast<int>((k_ + block_k_ - 1) / block_k_) + 1);
    const auto [begin, end] = bounds(write, left, right);
    for (size_t pair = 0; pair < first().low.size(); ++pair) {
      std::vector<Factors> low = factors_;
      for (Factors& each : low) {
        const auto& [l, r] = graph_.nodes[static_cast<size_t>(each.node)].low[pair];
        each.left = flat(l), each.right = flat(r);
      }
      add_product(write, dimensions, low, {.begin = begin, .end = end});
    }
    add_factors(write, dimensions, all, {.begin = begin, .end = end});
    NEREID_TRY_STATUS(epilogue(write, by));
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_K", block_k_}};
    const int64_t tiles = tiles_m() * tiles_n() * batch_;
    const bool persistent = choice_.persistent && tiles > processors_;
    out_.programs = persistent ? processors_ : tiles;
    if (!persistent)
      out_.grid = product_text({batch_ > 1 ? batch_.text(Size::Place::kTerm) : "", blocks_text(m_, block_m_),
                                blocks_text(n_, block_n_)});
    const bool large = block_m_ * block_n_ * out_.products >= 8192 ||
                       has_long_epilogue(graph_, kernel_, block_m_, n_ == 1 ? 1 : block_n_);
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
        out_.products > 1 || kernel_.columns.size() != 1)
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

  // The bounds of the loops over k, in blocks.
  std::pair<std::string, std::string> bounds(ExprWriter& write, ExprId left, ExprId right) {
    Reach reach;
    reach_of(graph_, left, {kM, m_, block_m_, "first_m"}, kK, k_, reach);
    reach_of(graph_, right, {kN, n_, block_n_, "first_n"}, kK, k_, reach);
    if (first().taps || factors_.size() > 1 || (reach.begin.empty() && reach.end.empty()))
      return {"0", hole(k_)};
    graph_.rewrites.push_back(fmt::format(
        "{} (line {}): a program goes over that part of the sum in which its triangle is not zero", out_.name,
        first().place.line));
    return bounds_of(write, reach, hole(k_));
  }

  // Of a product: its factors, and the name of its sum.
  struct Factors {
    ExprId left = -1, right = -1;
    std::string sum = {};
    NodeId node = -1;
  };
  struct Loop {
    std::string begin = "0", end = {}, indent = {};
  };
  // Adds to each sum the product of its factors.
  void add_factors(ExprWriter& write, const std::vector<BlockDimension>& dimensions, std::vector<Factors> all,
                   const Loop& loop) {
    const bool segments = !narrow_ && choice_.precision == "tf32x3" && !first().taps && k_ >= kLongSum;
    // Where a factor is infinite or NaN, the high product alone says what comes of it.
    for (const Factors& each : all)
      if (split_)
        write.line(fmt::format("{0} = tl.where(tl.abs({0}) < float(\"inf\"), {0} * {1}, 0.0)", each.sum,
                               number_text(1 / kLowScale)));
    const int64_t segment = split_ ? kSegment : kTf32Segment;
    if (few_rows_) {
      const bool exact = loop.begin == "0" && ends_with_blocks(k_, kBlocksAhead * block_k_, choice_.masked);
      return write_few_rows(write, graph_, names_, dimensions,
                            {all[0].left, all[0].right, m_, n_, exact, loop.begin, loop.end});
    }
    // One segment needs no sum of its own: two sums of 128 by 256 are all registers of eight warps.
    if ((!split_ && !segments) || k_ <= segment) return add_product(write, dimensions, all, loop);
    write.line(fmt::format("for segment in range(0, {}, {}):", hole(k_), segment));
    std::vector<std::string> sums;
    for (Factors& each : all) {
      sums.push_back(std::exchange(each.sum, sums.empty() ? "part" : names_.fresh("part")));
      write.line(fmt::format("    {} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", each.sum));
    }
    add_product(write, dimensions, all,
                {.begin = loop.begin == "0" ? "segment" : "max(segment, begin)",
                 .end = fmt::format("min(segment + {}, {})", segment, loop.end),
                 .indent = "    "});
    for (size_t each = 0; each < all.size(); ++each)
      write.line(fmt::format("    {} += {}", sums[each], all[each].sum));
  }

  // A loop over k, from `begin` to `end` (all of it), that adds each product to its sum.
  void add_product(ExprWriter& write, std::vector<BlockDimension> dimensions, const std::vector<Factors>& all,
                   const Loop& loop) {
    const std::vector<BlockDimension> shared = dimensions;
    const FactorBlock left_block = block_of(all[0].left, true), right_block = block_of(all[0].right, false);
    dimensions[kK].name = "k_left";
    if (left_block.flat) dimensions[kM].name = "m_left";
    as_far_as_loaded(dimensions[kM], all, true);
    ExprWriter a(graph_, names_, dimensions);
    dimensions = shared;
    dimensions[kK].name = "k_right";
    if (right_block.flat) dimensions[kN].name = "n_right";
    as_far_as_loaded(dimensions[kN], all, false);
    ExprWriter b(graph_, names_, dimensions);
    begin_factor(a, left_block), begin_factor(b, right_block);
    std::map<ExprId, std::string> x;
    std::vector<std::string> dots;
    for (const Factors& each : all) {
      if (!x.contains(each.left)) x[each.left] = factor(a, each.left, left_block);
      const std::string y = factor(b, each.right, right_block);
      dots.push_back(add_dot(each.sum, x[each.left], y, narrow_ ? "" : choice_.precision));
    }
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
    for (const std::string& dot : dots) write.line(loop.indent + "    " + dot);
  }

  // The product, and sums of what a factor is made of, which its loop adds up, too (factor_sums.h).
  void start_sums(ExprWriter& write, const std::vector<Index>& by) {
    for (const Factors& each : factors_)
      write.line(fmt::format("{} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", each.sum));
    for (const Member& member : kernel_.members | std::views::drop(1)) {
      if (member.reduction == Reduction::kNone || !member.across.empty() || member.twin) continue;
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
  void as_far_as_loaded(BlockDimension& dimension, const std::vector<Factors>& all, bool left) const {
    std::optional<Size> reach;
    for (const Factors& each : all) {
      const auto own = loaded_extent(graph_, left ? each.left : each.right, left ? kM : kN);
      if (!own || *own <= dimension.extent) return;
      reach = reach ? std::min(*reach, *own) : own;
    }
    dimension.extent = *reach;
    dimension.exact = ends_with_blocks(*reach, left ? block_m_ : block_n_, choice_.masked);
  }

  // Where the blocks of a factor are, in the loop that goes over them.
  void begin_factor(ExprWriter& write, const FactorBlock& block) const {
    const std::string side = block.left ? "left" : "right";
    if (block.flat)
      write.line(fmt::format("{0}_{1} = first_{0} + {2}", block.left ? "m" : "n", side, block.range(false)));
    std::vector<int> inner{kK, kTap};
    for (size_t d = 1; d < limits_.of.size(); ++d) inner.push_back(kTap + static_cast<int>(d));
    write.begin_loop(inner);
    write.line(fmt::format("k_{} = start + {}", side, block.range(true)));
  }

  // One block of a factor, in the type that is multiplied.
  std::string factor(ExprWriter& write, ExprId body, const FactorBlock& block) {
    const std::string side = block.left ? "left" : "right";
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
      } else if (member.twin) {
        value = std::ranges::find(factors_, member.node, &Factors::node)->sum;
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
        store(write, write.place(names_.pointer(graph_, node.out), write.address(node.out, at)), value,
              write.mask_of({out_.whole_n ? kM : kN}, {write.beyond(node.out, at)}));
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
      store(write, target, value, where);
    }
    return ok_status();
  }

  static void store(ExprWriter& write, const std::string& place, const std::string& value,
                    const std::string& where) {
    write.line(where.empty() ? fmt::format("tl.store({}, {})", place, value)
                             : fmt::format("tl.store({}, {}, mask={})", place, value, where));
  }

  // By the first of the tiles that add it up.
  void store_sum(ExprWriter& write, const FactorSum& sum, const std::vector<Index>& at,
                 const std::string& value) {
    const bool once = (sum.left ? tiles_n() : tiles_m()) == 1;
    const std::string where = write.mask_of({sum.left ? kM : kN}, {once       ? ""
                                                                   : sum.left ? "(first_n == 0)"
                                                                              : "(first_m == 0)"});
    store(write, write.place(names_.pointer(graph_, sum.out), write.address(sum.out, at)), value, where);
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
  std::vector<Factors> factors_;  // of each of its products, over the kernel's dimensions
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
