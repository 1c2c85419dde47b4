#include "nereid/compiler/codegen/contraction_tile.h"

#include <algorithm>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/products/few_rows.h"

namespace nereid::compiler {
namespace {

constexpr int64_t kGatheredWaves = 8;
constexpr int64_t kShortLoop = 2, kShortGather = 8;  // turns
constexpr int64_t kLongRows = 1024;   // terms of a product that does little else than read a matrix
constexpr int64_t kRowsUnderWay = 2;  // programs a processor that then keep its memory busy
constexpr int64_t kLargeTile = 128;   // in either direction
// Of n, in a loop of so many turns, and of its programs so many waves, so that the last one is short.
constexpr int64_t kWideTile = 256, kWideTurns = 32, kWideWaves = 4;
constexpr int64_t kMostResults = 32768;  // of a program: 128 registers of a thread of eight warps
constexpr int64_t kWindowTile = 16384;   // results of a program that computes a window for its product

class ContractionTile {
 public:
  ContractionTile(const ContractionShape& shape, const Target& target)
      : of_(shape),
        processors_(target.multiprocessors),
        wide_(!shape.narrow && !shape.taps),
        in_registers_(has_operands_in_registers(target)) {}

  KernelChoice run(const KernelChoice& choice) {
    usual();
    if (of_.window != ContractionShape::Window::kNone) {
      own_window();
    } else if (of_.few_rows) {
      own_rows();
    } else {
      fill_processors();
      read_once();
    }
    if (of_.products > 1 && n_ > 16 && m_ * n_ * of_.products > kMostResults) n_ /= 2;
    KernelChoice made = choice;
    const auto chosen = [](int64_t wish, int64_t& block) {
      if (wish > 0) block = std::max<int64_t>(power_of_two(wish), std::min<int64_t>(block, 16));
    };
    chosen(choice.m, m_), chosen(choice.n, n_), chosen(choice.k, k_);
    if (of_.whole_m) have_all(of_.m, m_, n_);
    if (of_.whole_n) have_all(of_.n, n_, m_);
    made.m = m_, made.n = n_, made.k = k_;
    // A window's loads are not kept in shared memory. A short loop of a few programs is over before its
    // instructions are there: they are not made longer by loads ahead.
    const int64_t turns = (of_.k + k_ - 1) / k_;
    const bool is_short =
        wide_ && turns <= (gathered() ? kShortGather : kShortLoop) && programs() <= 2 * processors_;
    if (made.stages == 0 && (is_short || of_.few_rows || of_.window != ContractionShape::Window::kNone))
      made.stages = 1;
    return made;
  }

 private:
  int64_t programs() const { return (of_.m + m_ - 1) / m_ * ((of_.n + n_ - 1) / n_) * of_.batch; }
  // What is gathered takes many instructions an element, and large tiles of it many that are new.
  bool gathered() const { return wide_ && of_.gathered; }
  // Its tiles wait for the second-level cache.
  bool is_long() const {
    return wide_ && !of_.gathered && of_.k >= kLongRows && std::min(of_.m, of_.n) >= kLargeTile;
  }

  void usual() {
    const int64_t most = of_.narrow || of_.taps || is_long() ? kLargeTile : 64;
    m_ = std::clamp<int64_t>(power_of_two(of_.m), 16, most);
    n_ = std::clamp<int64_t>(power_of_two(of_.n), 16, most);
    k_ = std::clamp<int64_t>(power_of_two(of_.k), 16, of_.narrow ? 64 : 32);
    if (of_.split && of_.n >= 512 && !in_registers_) n_ = 256;
    // In a long loop both warp groups read a right factor for twice as many products, unless the last of the
    // wide tiles is half empty, of few.
    const auto padded = [&](int64_t block) { return (of_.n + block - 1) / block * block; };
    if ((of_.taps || of_.narrow) && !of_.split && !of_.direct && of_.n >= kWideTile &&
        padded(kWideTile) * 8 <= padded(kLargeTile) * 9 && m_ == kLargeTile && of_.terms >= kWideTurns * k_) {
      n_ = kWideTile;
      if (programs() < kWideWaves * processors_) n_ = kLargeTile;
    }
    // What is read for a few rows is read once.
    int64_t &few = of_.m < of_.n ? m_ : n_, rows = std::min(of_.m, of_.n);
    if (wide_ && !of_.gathered && rows > 64 && rows <= kLargeTile && of_.k >= kLongRows) few = kLargeTile;
    // A row that ends in a second block is shorter in one.
    if (of_.taps && of_.k > 32 && of_.k < 64) k_ = 64;
    if (of_.direct) m_ = std::max(m_, kWarpGroupTile);
  }

  static void have_all(int64_t count, int64_t& whole, int64_t& other) {
    whole = std::max<int64_t>(power_of_two(count), 16);
    other = std::clamp<int64_t>(other, 16, std::max<int64_t>(kWholeTile / whole, 16));
  }

  // Rather small tiles than idle processors.
  void fill_processors() {
    const int64_t least = of_.split ? 64 : 32;
    // The parts of a long sum (split_sum.h) leave a few processors without a program.
    const int64_t wanted = gathered()  ? kGatheredWaves * processors_
                           : is_long() ? processors_ * 3 / 4
                                       : processors_;
    while (programs() < wanted && std::max(m_, n_) > least) (m_ > n_ ? m_ : n_) /= 2;
    // Narrower ones of float32 take more instructions for less, which counts where they are fetched but once.
    if (wide_ && programs() <= processors_) n_ = std::max<int64_t>(n_, 32);
    if (!of_.split && m_ == 32 && programs() < processors_) m_ = 16;
  }

  // A product with a few rows takes as long as the other factor is read: long rows of it by many programs.
  void read_once() {
    if (!wide_ || std::min(of_.m, of_.n) > 16 || of_.k < kLongRows) return;
    int64_t& side = of_.m > of_.n ? m_ : n_;
    while (side > 32 && programs() < kRowsUnderWay * processors_) side /= 2;
    k_ = programs() < 3 * processors_ ? 128 : programs() < 6 * processors_ ? 64 : k_;
  }

  // The factor that is computed takes registers for a window's loads, and none is computed twice: the other
  // factor's own dimensions fit one tile.
  void own_window() {
    const bool right = of_.window == ContractionShape::Window::kRight;
    int64_t &computed = right ? n_ : m_, &other = right ? m_ : n_;
    other = std::max<int64_t>(power_of_two(right ? of_.m : of_.n), right ? kWarpGroupTile : 16);
    computed = std::clamp<int64_t>(kWindowTile / other, 16, kLargeTile);
    while (computed > 16 && programs() < processors_) computed /= 2;
    k_ = 16;
  }

  // Rather few rows of the matrix a program than idle processors.
  void own_rows() {
    int64_t &few = of_.m < of_.n ? m_ : n_, &many = of_.m < of_.n ? n_ : m_;
    k_ = kElementsOfARow, many = kManyRows, few = power_of_two(std::min(of_.m, of_.n));
    while (many > 8 && programs() < kRowsUnderWay * processors_) many /= 2;
  }

  const ContractionShape& of_;
  const int64_t processors_;
  const bool wide_;  // factors of float32, in one loop
  const bool in_registers_;
  int64_t m_ = 16, n_ = 16, k_ = 16;
};

}  // namespace

KernelChoice contraction_tile(const ContractionShape& shape, const KernelChoice& choice,
                              const Target& target) {
  return ContractionTile(shape, target).run(choice);
}

}  // namespace nereid::compiler
