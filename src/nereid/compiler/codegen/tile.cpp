#include "nereid/compiler/codegen/tile.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kMaxColumns = 8192;    // of one block; a longer row is gone over in a loop
constexpr int64_t kTileElements = 2048;  // elements of a block
// Where rows are adjacent in memory: of a block of many, and columns that are read but once.
constexpr int64_t kMaxRows = 256, kMinColumns = 8, kWholeColumns = 256;
// Where a row is read in several turns, of a block that holds it: columns, and rows that are whole sectors.
// Of a block of windows that are gone over element by element.
constexpr int64_t kWindowRows = 1024, kMinWindowRows = 128;
// Columns of a block of a plane, its elements of a warp, and how many lanes of all may be without one.
constexpr int64_t kPlaneColumns = 512, kMinPlaneColumns = 128, kPlaneByWarp = 128;
constexpr double kPlaneWaste = 1.25;
constexpr size_t kMinWeights = 4;  // of a window's: fewer are as well loaded for each element
constexpr int64_t kHeldInnerColumns = 2048, kHeldInnerElements = 8192, kSectorRows = 8;
// Of a block of a scan along columns: what a thread goes over in its own registers; and elements a thread of
// a scan along a row, for every warp adds what all before it have.
constexpr int64_t kScannedRows = 512, kScannedColumns = 4, kScannedByThread = 32;

// Loads of a map's element that are not of aligned vectors: with more of them single elements a thread are
// faster. A vector's worth of such a load costs the first-level cache four turns instead of one.
constexpr int kVector = 4, kUnalignedLoads = 3;

// What a kernel of a few programs takes, which is neither bytes nor FLOPs. Fitted to tuned kernels of sampled
// programs on an H200 whose caches are cold: an instruction that is fetched for the first time costs as much
// as hundreds that are there, so that few elements a thread are the best.
constexpr double kColdInstruction = 10e-9, kTurn = 1e-6, kProgram = 0.3e-6;  // s
constexpr double kIssued = 7.2e9;      // instructions of a warp that a processor does a second
constexpr double kCacheBytes = 4e12;   // a second, of all processors
constexpr int64_t kMapElements = 512;  // of a map's block: 16 bytes a thread, which the clock took most often
constexpr int64_t kMinBlockElements = 256;  // of a reduction's
constexpr int64_t kFewElements = 256;       // of a map's block where blocks are few
constexpr double kLongCode = 2500;          // instructions
constexpr int64_t kManyWaves = 32;          // after so many the first, in which all is new, does not count
constexpr int kLoadWork = 8, kHardWork = 12, kWork = 2;  // instructions of an expression, about

// Of a part of a row that a program holds: elements, warps and registers of a thread, so that four programs
// are resident on a processor: while one waits for others of its row, three load or store. In all 4 * 256 *
// 64 registers, which a processor has, of which 32 a thread hold the part.
constexpr int64_t kPart = 8192, kPartsOfProcessor = 4;
constexpr int kPartWarps = 8, kPartRegisters = 64;
constexpr int64_t kSharedElements = int64_t{1} << 21;  // of fewer all reads but the first are from the cache
constexpr int64_t kHeldColumns = 16384;                // of a row that one program holds, of 32 registers
constexpr int64_t kSmallOfPart = 2;                    // tensors: a weight and a bias
constexpr int64_t kSmallShare = 64;                    // of all elements: what the first-level cache keeps
constexpr int64_t kShortRun = 1024;  // elements: of 4 KB or more at a time memory is as fast as of rows

// Whether elements that a thread takes together, kVector along the last of the rows, are adjacent in memory
// and aligned.
bool is_vector_load(const Graph& graph, const TileKernel& kernel, const Expr& load) {
  if (!load.args.empty()) return false;
  Index address;
  for (size_t d = 0; d < load.at.size(); ++d)
    address = address + load.at[d] * graph.tensors[static_cast<size_t>(load.tensor)].strides[d];
  const int last = static_cast<int>(kernel.rows.size()) - 1;
  if (!address.uses(last)) return true;  // one element for all
  if (address.stride(last) != 1 || kernel.rows.back() % kVector != 0 || address.constant() % kVector != 0)
    return false;
  return std::ranges::all_of(address.terms(), [&](const auto& term) {
    return term.second % kVector == 0 || term.first == Index::dimension(last).terms().front().first;
  });
}

// Maps of windows: many loads of other alignments than the result's.
bool reads_unaligned(const Graph& graph, const TileKernel& kernel) {
  if (!kernel.columns.empty() || kernel.rows.empty()) return false;
  std::set<ExprId> unaligned;
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body))
      if (graph.exprs[id].kind == Expr::Kind::kLoad && !is_vector_load(graph, kernel, graph.exprs[id]))
        unaligned.insert(id);
  return unaligned.size() > static_cast<size_t>(kUnalignedLoads);
}

// Columns of a block of a plane of so many elements; 0 where too many of its lanes would have none.
int64_t plane_columns(int64_t elements) {
  int64_t best = 0, least = static_cast<int64_t>(kPlaneWaste * static_cast<double>(elements));
  for (int64_t columns = kPlaneColumns; columns >= kMinPlaneColumns; columns /= 2)
    if (const int64_t all = (elements + columns - 1) / columns * columns;
        all < least || (all == least && best == 0))
      best = columns, least = all;
  return best;
}

// Whether the rows' elements are of windows that overlap: where a load is, rows and columns say together, and
// the next row's begins before the last one's ends.
bool is_window(const Graph& graph, const TileKernel& kernel) {
  const auto rank = static_cast<int>(kernel.rows.size());
  const auto overlap = [&](const Index& index) {
    if (rank == 0) return false;
    const int64_t step = std::abs(index.stride(rank - 1).value_or(0).value());
    int64_t reach = 0;
    for (int c = 0; c < static_cast<int>(kernel.columns.size()); ++c)
      reach +=
          std::abs(index.stride(rank + c).value_or(0).value()) * (kernel.columns[static_cast<size_t>(c)] - 1);
    return step > 0 && reach >= step;
  };
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body))
      if (graph.exprs[id].kind == Expr::Kind::kLoad && std::ranges::any_of(graph.exprs[id].at, overlap))
        return true;
  return false;
}

double instructions_of(const Expr& expr) {
  if (expr.kind == Expr::Kind::kLoad) return kLoadWork;
  if (expr.kind != Expr::Kind::kApply) return 0;
  return expr.fn >= Fn::kExp && expr.fn <= Fn::kSigmoid ? kHardWork : kWork;
}

// The tensors other than its own results that a kernel loads elements of for its columns, as far as
// `counts(load, uses)`; uses(from, count): whether the load's place depends on one of these dimensions.
std::set<TensorId> column_loads(const Graph& graph, const TileKernel& kernel, const auto& counts) {
  std::set<TensorId> found;
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body)) {
      const auto uses = [&](size_t from, size_t count) {
        for (size_t d = from; d < from + count; ++d)
          if (graph.exprs.uses(id, static_cast<int>(d))) return true;
        return false;
      };
      const Expr& load = graph.exprs[id];
      if (load.kind == Expr::Kind::kLoad && uses(kernel.rows.size(), kernel.columns.size()) &&
          counts(load, uses))
        found.insert(load.tensor);
    }
  for (const Member& member : kernel.members) found.erase(graph.nodes[static_cast<size_t>(member.node)].out);
  return found;
}

class TileCutter {
 public:
  explicit TileCutter(const Target& target) : target_(target), processors_(target.multiprocessors) {}

  Tile run(const Graph& graph, const TileKernel& kernel, const KernelChoice& choice) {
    if (!choice.masked && (choice.persistent || (choice.rows == 0 && choice.columns == 0)))
      if (const auto tile = in_parts(graph, kernel, choice)) return *tile;
    by_default(graph, kernel);
    if (!kernel.columns.empty() && !only_maps(kernel)) kept_short(graph, kernel);
    if (kernel.planes) {
      columns_ = plane_columns(kernel.column_count()), rows_ = 1;
      warps_ = static_cast<int>(columns_ / kPlaneByWarp);
    }
    if (choice.rows > 0 || choice.columns > 0) warps_ = 0;
    if (choice.rows > 0) rows_ = power_of_two(choice.rows);
    if (choice.columns > 0 && !kernel.columns.empty()) columns_ = power_of_two(choice.columns);
    if (choice.warps > 0) warps_ = choice.warps;
    Tile made{
        .rows = rows_, .columns = columns_, .warps = warps_ > 0 ? warps_ : usual_warps(rows_ * columns_)};
    made.one_a_thread = kernel.planes || reads_unaligned(graph, kernel);
    made.looped = !kernel.columns.empty() && columns_ < kernel.column_count();
    if (made.looped && only_maps(kernel)) {
      made.column_tiles = (kernel.column_count() + columns_ - 1) / columns_;
      made.looped = false;
    }
    return made;
  }

 private:
  static int usual_warps(int64_t elements) { return elements >= kMaxColumns ? 16 : elements >= 4096 ? 8 : 4; }
  static bool only_maps(const TileKernel& kernel) {
    return std::ranges::all_of(kernel.members,
                               [](const Member& m) { return m.reduction == Reduction::kNone && !m.scan; });
  }

  static bool only_scans(const TileKernel& kernel) {
    return std::ranges::all_of(kernel.members,
                               [](const Member& m) { return m.scan || m.reduction == Reduction::kNone; });
  }

  // Its sums and extrema are of float32, and there are no others.
  static bool exchanges(const Graph& graph, const TileKernel& kernel) {
    bool any = false;
    for (const Member& member : kernel.members) {
      if (member.reduction == Reduction::kNone && !member.scan) continue;
      const bool known = member.reduction == Reduction::kSum || member.reduction == Reduction::kMax ||
                         member.reduction == Reduction::kMin;
      if (!known || member.scan || graph.exprs[member.body].type != DType::kF32) return false;
      any = true;
    }
    return any;
  }

  static bool has_short_runs(const Graph& graph, const TileKernel& kernel, const Target& target) {
    return std::ranges::any_of(kernel.members, [&](const Member& member) {
      return compiler::has_short_runs(graph, member.body, kernel.rows, kernel.columns, target);
    });
  }

  // A long row that would be read again, and of which nothing else is held.
  static bool is_held(const Graph& graph, const TileKernel& kernel) {
    return exchanges(graph, kernel) && wide_loads(graph, kernel) == 1 && work_of(graph, kernel).turns > 1;
  }

  std::optional<Tile> in_parts(const Graph& graph, const TileKernel& kernel,
                               const KernelChoice& choice) const {
    const int64_t rows = kernel.row_count(), columns = kernel.column_count();
    if (kernel.columns.empty() || !is_shared_row(rows, columns, target_) || !exchanges(graph, kernel))
      return {};
    if (rows_are_inner(graph, kernel) > 0 || (rows >= kRowsOfPrograms && work_of(graph, kernel).turns < 2))
      return {};
    const int64_t wide = wide_loads(graph, kernel);
    if (wide < 1 || wide > kSharedTensors) return {};
    if (has_short_runs(graph, kernel, target_)) return {};
    // What is small has a register for each element, too, if it differs along the row.
    const auto all = column_loads(graph, kernel, [](const Expr&, const auto&) { return true; });
    const bool fits = wide == 1 && std::ssize(all) - wide <= kSmallOfPart;
    Tile tile{.columns = fits ? kPart : kPart / 2, .registers = kPartRegisters, .warps = kPartWarps};
    if (choice.columns > 0) tile.columns = power_of_two(choice.columns);
    if (choice.warps > 0) tile.warps = choice.warps;
    if (choice.columns == 0 && wide == 1 && columns <= kHeldColumns && rows >= kRowsOfPrograms) return {};
    // Rather shorter parts than many lanes without an element.
    const auto idle = [&] { return (columns + tile.columns - 1) / tile.columns * tile.columns - columns; };
    if (choice.columns == 0 && idle() > columns / 8) tile.columns /= 2;
    if (tile.columns > 2 * kPart || tile.warps > kPartWarps) return {};
    tile.parts = (columns + tile.columns - 1) / tile.columns;
    const int64_t resident = kPartsOfProcessor * processors_;
    if (tile.parts < 2 || tile.parts > resident) return {};
    tile.groups = std::min(rows, resident / tile.parts);
    return tile;
  }

  // Its reductions need no finished result of each other, and nothing is written for each column.
  static bool in_one_turn(const Graph& graph, const TileKernel& kernel) {
    return std::ranges::none_of(kernel.members, [&](const Member& m) {
      if (m.reduction == Reduction::kNone) return m.whole;
      const auto reads = graph.reads(graph.nodes[static_cast<size_t>(m.node)]);
      return m.scan || std::ranges::any_of(kernel.members, [&](const Member& other) {
               const TensorId made = graph.nodes[static_cast<size_t>(other.node)].out;
               return std::ranges::find(reads, made) != reads.end();
             });
    });
  }

  void by_default(const Graph& graph, const TileKernel& kernel) {
    const int64_t all_rows = kernel.row_count(), all_columns = kernel.column_count();
    if (kernel.columns.empty()) {
      rows_ = std::min<int64_t>(power_of_two(all_rows), kMapElements);
      while (rows_ > kFewElements && all_rows / rows_ < 4 * processors_) rows_ /= 2;
      return;
    }
    const bool maps = only_maps(kernel);
    if (maps || rows_are_inner(graph, kernel) > 0) {
      columns_ = std::min<int64_t>(power_of_two(all_columns), 64);
      rows_ = std::min<int64_t>(power_of_two(all_rows), kTileElements / columns_);
      if (maps) {
        while (rows_ * columns_ > 2 * kFewElements &&
               (all_rows + rows_ - 1) / rows_ * ((all_columns + columns_ - 1) / columns_) < processors_)
          (rows_ > columns_ ? rows_ : columns_) /= 2;
        return;
      }
      if (in_one_turn(graph, kernel) && is_window(graph, kernel)) {
        // One element of all windows at a time: its place is the same number for all.
        columns_ = 1, rows_ = std::min<int64_t>(power_of_two(all_rows), kWindowRows);
        while (rows_ > kMinWindowRows && all_rows / rows_ < 4 * processors_) rows_ /= 2;
      } else if (in_one_turn(graph, kernel)) {
        // Rows in the lanes and columns in the registers of one: nothing is exchanged for a sum.
        for (; rows_ < kMaxRows && columns_ > kMinColumns && all_rows / (2 * rows_) >= 4 * processors_;
             rows_ *= 2)
          columns_ /= 2;
      } else if (only_scans(kernel) && all_rows / kScannedRows >= 4 * processors_) {
        rows_ = kScannedRows, columns_ = std::min<int64_t>(power_of_two(all_columns), kScannedColumns);
      } else if (all_columns <= kWholeColumns) {
        // Else every turn would read it again.
        columns_ = power_of_two(all_columns);
        rows_ = std::min<int64_t>(power_of_two(all_rows), 2 * kTileElements / columns_);
      } else if (all_columns <= kHeldInnerColumns && wide_loads(graph, kernel) == 1 &&
                 work_of(graph, kernel).turns > 1 && all_rows >= kSectorRows * processors_) {
        columns_ = power_of_two(all_columns);
        rows_ = std::max(kHeldInnerElements / columns_, kSectorRows);
      }
    } else {
      // A few hundred programs must have much under way each.
      const int64_t turn = all_rows < 4 * processors_ ? kMaxColumns : kTileElements;
      const int64_t most = all_columns <= kHeldColumns && is_held(graph, kernel) ? kHeldColumns : kMaxColumns;
      columns_ = std::min<int64_t>(power_of_two(all_columns), all_columns > most ? turn : most);
      rows_ = std::clamp<int64_t>(kTileElements / columns_, 1, power_of_two(all_rows));
      if (only_scans(kernel) && rows_ * columns_ > kTileElements && all_rows >= 4 * processors_)
        warps_ = static_cast<int>(std::max<int64_t>(rows_ * columns_ / (32 * kScannedByThread), 4));
    }
  }

  // What a kernel's elements cost, whichever way they are cut.
  struct Work {
    double instructions = 0;  // for one element
    double bytes = 0;         // of all
    int turns = 1;            // over the columns, where they do not fit one block
    bool rows_inner = false;
  };
  static Work work_of(const Graph& graph, const TileKernel& kernel) {
    Work work;
    work.rows_inner = rows_are_inner(graph, kernel) > 0;
    std::set<ExprId> seen;
    std::vector<std::pair<TensorId, int>> finished;  // what a member makes, and after which turn
    for (const Member& member : kernel.members) {
      const Node& node = graph.nodes[static_cast<size_t>(member.node)];
      int turn = 1;
      const auto reads = graph.reads(node);
      for (const auto& [made, after] : finished)
        if (std::ranges::find(reads, made) != reads.end()) turn = std::max(turn, after + 1);
      if (member.reduction != Reduction::kNone || member.whole) work.turns = std::max(work.turns, turn);
      finished.emplace_back(node.out, member.reduction == Reduction::kNone && member.whole ? turn - 1 : turn);
      work.instructions += kLoadWork;
      for (const ExprId id : graph.exprs.below(member.body)) {
        if (!seen.insert(id).second) continue;
        const Expr& expr = graph.exprs[id];
        work.instructions += instructions_of(expr);
        if (expr.kind == Expr::Kind::kLoad)
          work.bytes += static_cast<double>(kernel.row_count() * kernel.column_count() *
                                            trace::element_bytes(expr.type));
      }
    }
    return work;
  }

  double seconds(const Work& work, const TileKernel& kernel, int64_t rows, int64_t columns, int warps) const {
    const auto programs = static_cast<double>((kernel.row_count() + rows - 1) / rows);
    const auto loops = static_cast<double>((kernel.column_count() + columns - 1) / columns);
    const double turns = loops > 1 ? work.turns : 1;
    const double each = std::max(1.0, static_cast<double>(rows * columns) / (32.0 * warps));
    const double in_turn = work.instructions * each;
    const double a_processor = std::ceil(programs / static_cast<double>(processors_));
    const double issue = a_processor * loops * turns * warps * in_turn / kIssued;
    // A sector of 32 bytes has eight adjacent rows.
    const double waste = work.rows_inner ? std::max(1.0, 8.0 / static_cast<double>(rows)) : 1;
    const double share = std::min(1.0, programs / static_cast<double>(processors_));
    const double memory = work.bytes * waste * turns / (kCacheBytes * share);
    const double at_once = std::max(1.0, std::floor(48.0 / warps));
    return turns * in_turn * kColdInstruction + std::max(issue, memory) +
           loops * turns * std::ceil(a_processor / at_once) * kTurn + a_processor * kProgram;
  }

  // Where there are few programs, or the code of one is long, whatever keeps each of them short.
  void kept_short(const Graph& graph, const TileKernel& kernel) {
    const int64_t all_rows = kernel.row_count(), all_columns = kernel.column_count();
    const int64_t programs = (all_rows + rows_ - 1) / rows_;
    const Work work = work_of(graph, kernel);
    const int usual = usual_warps(rows_ * columns_);
    const double each = std::max(1.0, static_cast<double>(rows_ * columns_) / (32.0 * usual));
    const bool long_code = work.instructions * each > kLongCode && programs < kManyWaves * processors_;
    if (programs >= processors_ && !long_code) return;
    if (all_columns > kMaxColumns && !work.rows_inner)
      return;  // long rows: as much under way as there can be
    double best = seconds(work, kernel, rows_, columns_, usual) * 0.95;
    const int64_t whole = power_of_two(all_columns);
    for (int64_t r = 1; r <= power_of_two(all_rows); r *= 2)
      for (int64_t c = std::min<int64_t>(whole, kMaxColumns); c >= std::min<int64_t>(whole, 64); c /= 2)
        for (const int w : {1, 2, 4, 8, 16}) {
          if (r * c < kMinBlockElements && r < power_of_two(all_rows)) continue;
          if (w > 4 && r * c < 512 * w) continue;  // many warps of a few elements wait for each other
          if (r * c > 512 * w || (r * c < 64 * w && w > 1)) continue;
          const double cost = seconds(work, kernel, r, c, w);
          if (cost >= best) continue;
          best = cost, rows_ = r, columns_ = c, warps_ = w;
        }
  }

  const Target& target_;
  const int64_t processors_;
  int64_t rows_ = 1, columns_ = 1;
  int warps_ = 0;  // 0: by the block's size
};

}  // namespace

bool is_long_code(const Graph& graph, const std::set<ExprId>& bodies, double elements) {
  std::set<ExprId> all;
  for (const ExprId body : bodies)
    for (const ExprId id : graph.exprs.below(body)) all.insert(id);
  double instructions = 0;
  for (const ExprId id : all) instructions += instructions_of(graph.exprs[id]);
  return instructions * elements > kLongCode;
}

size_t planes_from(const Graph& graph, ExprId body, const Extents& rows) {
  const size_t rank = rows.size();
  const TileKernel map{.rows = rows, .columns = {}, .members = {{.node = -1, .body = body, .at = {}}}};
  if (!reads_unaligned(graph, map)) return rank;
  std::vector<size_t> firsts;  // of each load: behind the last dimension that it depends on
  for (const ExprId id : graph.exprs.below(body)) {
    if (graph.exprs[id].kind != Expr::Kind::kLoad) continue;
    size_t first = rank;
    while (first > 0 && !graph.exprs.uses(id, static_cast<int>(first) - 1)) --first;
    firsts.push_back(first);
  }
  for (size_t first = 1; first < rank; ++first) {
    const auto weights =
        static_cast<size_t>(std::ranges::count_if(firsts, [&](size_t f) { return f <= first; }));
    if (weights < kMinWeights || firsts.size() - weights < kMinWeights) continue;
    const Extents plane(rows.begin() + static_cast<ptrdiff_t>(first), rows.end());
    return plane_columns(element_count(plane)) > 0 ? first : rank;
  }
  return rank;
}

namespace {

// Votes of the loads of a kernel, of tensors of at least so many elements.
int votes_for_rows(const Graph& graph, const TileKernel& kernel, int64_t least) {
  int votes = 0;
  const auto rank = static_cast<int>(kernel.rows.size());
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body)) {
      const Expr& expr = graph.exprs[id];
      if (expr.kind != Expr::Kind::kLoad ||
          element_count(graph.tensors[static_cast<size_t>(expr.tensor)].sizes) < least)
        continue;
      bool of_columns = false;  // else it is read once a row, whichever way that is cut
      for (size_t c = 0; c < kernel.columns.size(); ++c)
        of_columns = of_columns || graph.exprs.uses(id, rank + static_cast<int>(c));
      if (!of_columns) continue;
      Index address;
      for (size_t d = 0; d < expr.at.size(); ++d)
        address = address + expr.at[d] * graph.tensors[static_cast<size_t>(expr.tensor)].strides[d];
      const int64_t rows = rank == 0 ? 0 : address.stride(rank - 1).value_or(0).value();
      const int64_t columns = address.stride(rank + static_cast<int>(kernel.columns.size()) - 1).value_or(0);
      // Of a window both: then the longer.
      const bool window = rows == 1 && columns == 1 && kernel.rows.back() > kernel.columns.back();
      // What is the same for all adjacent rows is read once for them.
      const int weight = rows == 0 ? 1 : 2;
      votes += weight * ((rows == 1 && (columns != 1 || window) ? 1 : 0) - (columns == 1 && !window ? 1 : 0));
    }
  return votes;
}

}  // namespace

int rows_are_inner(const Graph& graph, const TileKernel& kernel) {
  // What is small next to all that is read comes from a cache.
  const int votes = votes_for_rows(graph, kernel, kernel.row_count() * kernel.column_count() / kSmallShare);
  return votes != 0 ? votes : votes_for_rows(graph, kernel, 0);
}

int64_t wide_loads(const Graph& graph, const TileKernel& kernel) {
  return std::ssize(column_loads(graph, kernel, [&](const Expr& load, const auto& uses) {
    return element_count(graph.tensors[static_cast<size_t>(load.tensor)].sizes) >=
               kernel.row_count() * kernel.column_count() / kSmallShare &&
           (kernel.row_count() == 1 || uses(0, kernel.rows.size()));
  }));
}

bool is_shared_row(int64_t rows, int64_t columns, const Target& target) {
  return columns > kPart && rows * columns >= kSharedElements &&
         columns <= kPartsOfProcessor * target.multiprocessors * kPart;
}

bool has_short_runs(const Graph& graph, ExprId body, const Extents& rows, const Extents& columns,
                    const Target& target) {
  const int64_t all = element_count(columns), parts = std::max<int64_t>((all + kPart - 1) / kPart, 1);
  const int64_t at_once =
      std::clamp<int64_t>(kPartsOfProcessor * target.multiprocessors / parts, 1, element_count(rows));
  const auto rank = static_cast<int>(rows.size());
  return std::ranges::any_of(graph.exprs.below(body), [&](ExprId id) {
    const Expr& load = graph.exprs[id];
    if (load.kind != Expr::Kind::kLoad || !load.args.empty() ||
        element_count(graph.tensors[static_cast<size_t>(load.tensor)].sizes) < element_count(rows) * all)
      return false;
    Index address;
    for (size_t d = 0; d < load.at.size(); ++d)
      address = address + load.at[d] * graph.tensors[static_cast<size_t>(load.tensor)].strides[d];
    int64_t run = 1;
    for (size_t c = columns.size(); c-- > 0; run *= columns[c])
      if (columns[c] > 1 && address.stride(rank + static_cast<int>(c)).value_or(0) != run) break;
    return run > 1 && run < all && run * at_once < kShortRun;
  });
}

Tile cut(const Graph& graph, const TileKernel& kernel, const KernelChoice& choice, const Target& target) {
  return TileCutter(target).run(graph, kernel, choice);
}

}  // namespace nereid::compiler
