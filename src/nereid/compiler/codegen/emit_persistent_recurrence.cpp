// All steps of a recurrent layer in one cooperative launch. A program keeps the weights of its units in
// shared memory, and their cell in registers, from the first step to the last; or, where that would be more
// products than a thread has registers for their addresses, it loads them again in each step. What passes
// between programs
// is the hidden state, in memory: those of the same samples wait for each other after each step, at a counter
// that each of them raises when it has stored its part.
#include <algorithm>
#include <cmath>

#include "nereid/compiler/codegen/recurrence_lines.h"

namespace nereid::compiler {
namespace {

// A warp group's product has 64 rows; its operands are read from shared memory.
constexpr int64_t kWarpGroupRows = 64, kMinRight = 16, kMaxTerms = 128;
constexpr int64_t kMaxElements = 16384;  // of a product
constexpr int64_t kElementsOfAGroup = 4096;
constexpr int kMaxAhead = 3;  // blocks of the state in the registers of two warp groups, which spill of more
// A warp group's product takes 32 bytes of a row of each factor. If the loop over terms is unrolled, ptxas
// computes the addresses of all products before the first step: of 125, a thread spills 140 registers.
constexpr int64_t kProductBytes = 32, kUnrolledProducts = 96;
constexpr int kRolledStages = 4;
constexpr int64_t kSpareBytes = 4096;  // of shared memory, for exchanges between layouts
// Of one processor of an H200: clock, bytes a cycle from shared memory and from the second-level cache, which
// gives all of them so many a second together.
constexpr double kClock = 1.7e9, kSharedBytes = 128, kReadBytes = 64, kAllReadBytes = 5.5e12;
// A store, a fence, an atomic, another program's load of it, and its load of the state: five ways to the
// second-level cache and back.
constexpr double kExchange = 5 * 0.4e-6;
constexpr double kWait = 0.4e-6;   // for what is not loaded ahead
constexpr double kPointwise = 40;  // instructions a lane for an element of a gate

int64_t rows_of_gates(const Recurrence& of) {
  return of.cell == Cell::kLstm || of.cell == Cell::kGru ? 4 : 1;  // of three gates, one is nothing
}

double rate(const Target& target, int64_t bytes) {
  return (bytes == 2 ? target.bf16 : target.tf32) / target.multiprocessors;
}

double as_double(int64_t count) { return static_cast<double>(count); }

// Of a step whose factors come from the second-level cache in these bytes a program; `waits` of them more.
double step_seconds(const Recurrence& of, const PersistentTile& tile, int64_t bytes, int64_t programs,
                    double loaded, double waits, const Target& target) {
  const int64_t rows = rows_of_gates(of) * tile.n;
  const int64_t padded = (of.hidden + tile.k - 1) / tile.k * tile.k;
  const int64_t left = tile.weights_left ? rows : tile.m, right = tile.weights_left ? tile.m : rows;
  const double load = std::max(loaded / (kReadBytes * kClock), as_double(programs) * loaded / kAllReadBytes);
  const double flops = 2 * as_double(left) * as_double(right) * as_double(padded) / rate(target, bytes);
  const double operands =
      as_double((left + left / kWarpGroupRows * right) * padded * bytes) / (kSharedBytes * kClock);
  const double pointwise = as_double(rows * tile.m) * kPointwise / (128 * kClock);
  return kExchange + load + waits * kWait + std::max(flops, operands) + pointwise;
}

// 0 blocks ahead where it does not fit.
PersistentTile tile_of(const Recurrence& of, int64_t m, int64_t n, int64_t bytes, const Target& target) {
  const int64_t rows = rows_of_gates(of) * n;
  PersistentTile tile{.m = m, .n = n};
  // Each 64 rows of the left factor read all of the right one. Of two warp groups each has rows of its own:
  // a factor of 64 rows would be multiplied by both.
  const bool two_groups = rows * m > kElementsOfAGroup;
  const int64_t least = two_groups ? 2 * kWarpGroupRows : kWarpGroupRows;
  tile.weights_left = rows >= least && (m < least || rows <= m);
  const int64_t most = two_groups ? kMaxTerms / bytes : kMaxTerms;
  tile.k = std::clamp<int64_t>(power_of_two(of.hidden), 32, most);
  const int64_t left = tile.weights_left ? rows : m, right = tile.weights_left ? m : rows;
  const int64_t programs = (of.batch + m - 1) / m * ((of.hidden + n - 1) / n);
  if (left < kWarpGroupRows || right < kMinRight || left * right > kMaxElements) return tile;
  if (programs > target.multiprocessors) return tile;
  tile.warps = two_groups ? 8 : 4;
  const int64_t blocks = (of.hidden + tile.k - 1) / tile.k, padded = blocks * tile.k;
  const int64_t block = m * tile.k * bytes;
  tile.rolled = of.hidden * bytes > kUnrolledProducts * kProductBytes;
  if (tile.rolled) {
    if (kRolledStages * (m + rows) * tile.k * bytes > target.shared_bytes - kSpareBytes) return tile;
    tile.ahead = kRolledStages;
    const double loaded = as_double((m + rows) * padded * bytes);
    tile.seconds = step_seconds(of, tile, bytes, programs, loaded, 1, target);
    return tile;
  }
  // Between two products its result is exchanged where the state was.
  const int64_t room = target.shared_bytes - rows * padded * bytes - kSpareBytes;
  if (rows * m * 4 > room) return tile;
  tile.ahead = static_cast<int>(std::clamp<int64_t>(room / block, 0, blocks));
  if (two_groups) tile.ahead = std::min(tile.ahead, kMaxAhead);
  if (tile.ahead < std::min<int64_t>(blocks, 2)) tile.ahead = 0;
  if (tile.ahead == 0) return tile;
  const double waits = std::ceil(as_double(blocks) / tile.ahead) - 1;  // for blocks that are loaded later
  tile.seconds = step_seconds(of, tile, bytes, programs, as_double(m * padded * bytes), waits, target);
  return tile;
}

std::vector<PersistentTile> tiles_of(const Recurrence& of, const Node& node, DType stored,
                                     const Target& target) {
  std::vector<PersistentTile> found;
  const int64_t bytes = trace::element_bytes(stored);
  const bool half = stored == DType::kF16 || stored == DType::kBF16;
  // Without warp groups' products the weights would be registers of every warp; sm_100's are not tried.
  if (target.name != "sm_90" || !(half || (stored == DType::kF32 && node.tf32)) || of.arrived < 0)
    return found;
  for (const int64_t m : {16, 32, 64, 128})
    for (const int64_t n : {8, 16, 32, 64}) {
      if (m > std::max<int64_t>(power_of_two(of.batch), 16) || n > power_of_two(of.hidden)) continue;
      if (const PersistentTile tile = tile_of(of, m, n, bytes, target); tile.ahead > 0) found.push_back(tile);
    }
  return found;
}

class PersistentEmitter : RecurrenceLines {
 public:
  PersistentEmitter(Graph& graph, const TileKernel& kernel, const std::string& name,
                    const PersistentTile& tile)
      : RecurrenceLines(graph, kernel, name),
        tile_(tile),
        rows_(rows_of_gates(of_)),
        blocks_((of_.hidden + tile.k - 1) / tile.k) {
    block_m_ = tile.m, block_n_ = tile.n, block_k_ = tile.k;
    for (const char* taken : {"row", "of_row", "weights", "weight", "arrived", "total", "even", "odd"})
      names_.taken.insert(taken);
    for (int64_t b = 0; b < blocks_; ++b) {
      names_.taken.insert(fmt::format("weight_{}", b));
      names_.taken.insert(fmt::format("h_{}", b));
    }
  }

  KernelText run() {
    const std::string states = pointer(node_.out);
    begin();
    if (tile_.rolled)
      weight_rows();
    else
      load_weights();
    load_biases();
    const std::string inside = load_mask({sample_mask(), unit_mask()});
    if (of_.cell == Cell::kLstm)
      line(fmt::format("cell = tl.load({}{}).to(tl.float32)", at_unit(of_.cell_start), inside));
    if (of_.cell == Cell::kGru)
      line(fmt::format("hidden = tl.load({}{}).to(tl.float32)", at_unit(of_.start), inside));
    line(fmt::format("arrived = {} + pid // {}", pointer(of_.arrived), unit_tiles()));
    line(fmt::format("for step in range({}):", hole(of_.steps)));
    indent_ = "    ";
    step(states);
    indent_.clear();
    if (of_.cell == Cell::kLstm)
      line(fmt::format("tl.store({}, cell{})", at_unit(of_.cell_state),
                       store_mask({sample_mask(), unit_mask()})));
    finish();
    return std::move(out_);
  }

 private:
  void step(const std::string& states) {
    load_input_gates();
    // The counter is at step * tiles when all have stored what this step reads.
    line(fmt::format("while tl.atomic_add(arrived, 0, sem=\"acquire\") < step * {}:", unit_tiles()));
    line("    pass");
    line(fmt::format("before = {} + (step.to(tl.int64) * {} + sample) * {}", states,
                     hole(of_.batch, Size::Place::kFactor), hole(of_.hidden, Size::Place::kFactor)));
    products();
    part_gates();
    add_biases();
    if (of_.cell == Cell::kLstm) next_cell();
    next_hidden();
    if (is_half() && of_.cell == Cell::kGru)
      line(fmt::format("hidden = hidden.to({}).to(tl.float32)", type_text(stored_)));
    line(fmt::format("tl.store(before + {} + unit, hidden{})",
                     hole(of_.batch * of_.hidden, Size::Place::kTerm),
                     store_mask({sample_mask(), unit_mask()})));
    line("tl.debug_barrier()");
    line("tl.atomic_add(arrived, 1, sem=\"release\")");
  }

  // "k < 512" of a block of terms; empty where all of it exists.
  std::string term_mask(int64_t block) const {
    const int64_t left = of_.hidden - block * block_k_;
    return left >= block_k_ ? "" : fmt::format("k < {}", left);
  }

  std::string plus_block(int64_t block) const {
    return block == 0 ? "" : fmt::format(" + {}", block * block_k_);
  }

  // "weights", where the rows of the program begin. Row r of the product is gate r % 4 of unit r // 4, so
  // that a unit's gates are next to each other.
  void weight_rows() {
    const char* place = tile_.weights_left ? "[:, None]" : "[None, :]";
    if (rows_ == 1) {
      line(fmt::format("of_row = pid % {} * BLOCK_N + tl.arange(0, BLOCK_N){}", unit_tiles(), place));
      line(fmt::format("weights = {} + of_row * {}", pointer(of_.weight),
                       hole(of_.hidden, Size::Place::kFactor)));
    } else {
      line(fmt::format("row = tl.arange(0, {} * BLOCK_N){}", rows_, place));
      line(fmt::format("of_row = pid % {} * BLOCK_N + row // {}", unit_tiles(), rows_));
      line(fmt::format("weights = {} + (row % {} * {} + of_row) * {}", pointer(of_.weight), rows_,
                       hole(of_.hidden, Size::Place::kFactor), hole(of_.hidden, Size::Place::kFactor)));
      if (gates_.size() < static_cast<size_t>(rows_))
        row_masks_.push_back(fmt::format("row % {} < {}", rows_, gates_.size()));
    }
    if (of_.hidden % block_n_ != 0) row_masks_.push_back(fmt::format("of_row < {}", hole(of_.hidden)));
  }

  const char* weight_terms() const { return tile_.weights_left ? "[None, :]" : "[:, None]"; }

  void load_weights() {
    weight_rows();
    line(fmt::format("k = tl.arange(0, BLOCK_K){}", weight_terms()));
    for (int64_t b = 0; b < blocks_; ++b) {
      std::vector<std::string> of_block = row_masks_;
      of_block.push_back(term_mask(b));
      const std::string weight = fmt::format("tl.load(weights + k{}{})", plus_block(b), load_mask(of_block));
      // What is cut off of them would have one sign in all steps.
      line(is_half() ? fmt::format("weight_{} = {}", b, weight)
                     : fmt::format("weight_{} = round_to_tf32({})", b, weight));
    }
    if (!tile_.weights_left) line("k = tl.arange(0, BLOCK_K)[None, :]");
  }

  void load_state(int64_t b) {
    // Past the first-level cache: other programs wrote it.
    line(fmt::format("h_{} = tl.load(before + k{}{}, cache_modifier=\".cg\")", b, plus_block(b),
                     load_mask({sample_mask(), term_mask(b)})));
  }

  void products() {
    if (tile_.rolled)
      rolled_products();
    else
      unrolled_products();
  }

  void rolled_products() {
    const std::string inside = of_.hidden % block_k_ == 0 ? "" : fmt::format("k < {}", hole(of_.hidden));
    std::vector<std::string> masks = row_masks_;
    masks.push_back(inside);
    line(fmt::format("total = tl.zeros([{}], tl.float32)",
                     tile_.weights_left ? rows_text() + ", BLOCK_M" : "BLOCK_M, " + rows_text()));
    line(fmt::format("for start in range(0, {}, BLOCK_K):", hole(of_.hidden)));
    line("    k = start + tl.arange(0, BLOCK_K)[None, :]");
    line(fmt::format("    h = tl.load(before + k{}, cache_modifier=\".cg\")",
                     load_mask({sample_mask(), inside})));
    if (!tile_.weights_left) line("    k = start + tl.arange(0, BLOCK_K)[:, None]");
    line(fmt::format("    weight = tl.load(weights + k{})", load_mask(masks)));
    const std::string weight = is_half() ? "weight" : "round_to_tf32(weight)";
    line(fmt::format("    total = tl.dot({}, total{})",
                     tile_.weights_left ? weight + ", tl.trans(h)" : "h, " + weight,
                     is_half() ? "" : ", input_precision=\"tf32\""));
  }

  std::string rows_text() const { return rows_ == 1 ? "BLOCK_N" : fmt::format("{} * BLOCK_N", rows_); }

  void unrolled_products() {
    for (int64_t b = 0; b < std::min<int64_t>(tile_.ahead, blocks_); ++b) load_state(b);
    const std::string precision = is_half() ? "" : ", input_precision=\"tf32\"";
    for (int64_t b = 0; b < blocks_; ++b) {
      const std::string factors = tile_.weights_left ? fmt::format("weight_{0}, tl.trans(h_{0})", b)
                                                     : fmt::format("h_{0}, weight_{0}", b);
      line(fmt::format("total = tl.dot({}{}{})", factors, b == 0 ? "" : ", total", precision));
      if (b + tile_.ahead < blocks_) load_state(b + tile_.ahead);
    }
  }

  // "from_GATE" [BLOCK_M, BLOCK_N] of "total".
  void part_gates() {
    const std::string total = tile_.weights_left ? "tl.trans(total)" : "total";
    if (rows_ == 1) {
      line(fmt::format("from_{} = {}", gates_[0], total));
      return;
    }
    line(fmt::format("even, odd = tl.split(tl.reshape({}, [BLOCK_M, BLOCK_N, 2, 2]))", total));
    line(fmt::format("from_{}, from_{} = tl.split(even)", gates_[0], gates_[2]));
    if (gates_.size() == 4)
      line(fmt::format("from_{}, from_{} = tl.split(odd)", gates_[1], gates_[3]));
    else
      line(fmt::format("from_{}, _ = tl.split(odd)", gates_[1]));
  }

  void finish() {
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_K", block_k_}};
    out_.programs = programs();
    out_.contraction = out_.cooperative = true;
    out_.step_seconds = tile_.seconds;
    out_.num_warps = tile_.warps;
    out_.num_stages = tile_.rolled ? kRolledStages : 1;  // no step begins before the one before is done
    out_.starts = {{node_.out, of_.start, true}, {of_.arrived, -1, false}};
    out_.choice = {.m = block_m_,
                   .n = block_n_,
                   .k = block_k_,
                   .warps = tile_.warps,
                   .stages = out_.num_stages,
                   .precision = is_half() ? "" : "tf32",
                   .persistent = true};
    close_kernel(out_, graph_, names_, kernel_, lines_);
  }

  const PersistentTile tile_;
  const int64_t rows_, blocks_;
  std::vector<std::string> row_masks_;  // of rows of the weights
};

}  // namespace

double step_launch_seconds(const Recurrence& of, int64_t bytes, const Target& target) {
  // Weights and state from the second-level cache, by tiles of 16 samples and 16 units at least, one block of
  // terms after the other.
  const double tiles = static_cast<double>(of.batch) / 16, terms = static_cast<double>(of.hidden);
  const double weights = static_cast<double>(rows_of_gates(of) * of.hidden * of.hidden * bytes);
  const double flops = 2 * weights / static_cast<double>(bytes) * static_cast<double>(of.batch) /
                       (rate(target, bytes) * target.multiprocessors * 0.5);
  return target.cost.launch_seconds + 2e-6 + terms / 64 * 0.15e-6 +
         weights * std::min(tiles, 4.0) / kAllReadBytes + flops;
}

std::optional<PersistentTile> persistent_tile(const Recurrence& of, const Node& node, DType stored,
                                              const KernelChoice& choice, const Target& target) {
  if (choice.masked) return std::nullopt;  // for any batch
  const bool cut = choice.m > 0 || choice.n > 0;
  if (cut && !choice.persistent) return std::nullopt;
  if (!choice.precision.empty() && choice.precision != "tf32") return std::nullopt;
  std::optional<PersistentTile> best;
  for (const PersistentTile& tile : tiles_of(of, node, stored, target)) {
    if ((choice.m > 0 && choice.m != tile.m) || (choice.n > 0 && choice.n != tile.n)) continue;
    if (!best || tile.seconds < best->seconds) best = tile;
  }
  if (best && !cut && best->seconds > step_launch_seconds(of, trace::element_bytes(stored), target))
    return std::nullopt;
  return best;
}

std::vector<KernelChoice> persistent_alternatives(const Recurrence& of, const Node& node, DType stored,
                                                  const Target& target) {
  std::vector<KernelChoice> found;
  for (const PersistentTile& tile : tiles_of(of, node, stored, target))
    found.push_back({.m = tile.m,
                     .n = tile.n,
                     .k = tile.k,
                     .warps = tile.warps,
                     .stages = tile.rolled ? kRolledStages : 1,
                     .precision = stored == DType::kF32 ? "tf32" : "",
                     .persistent = true});
  return found;
}

KernelText emit_persistent_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                      const PersistentTile& tile) {
  return PersistentEmitter(graph, kernel, name, tile).run();
}

}  // namespace nereid::compiler
