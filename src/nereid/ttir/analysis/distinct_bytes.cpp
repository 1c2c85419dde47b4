// Unions of lattices, as boxes of digits over all their strides.
#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "nereid/ttir/analysis/footprint.h"

namespace nereid::ttir::symbolic {
namespace {

constexpr size_t kMaxUnionBoxes = 3000;
constexpr int64_t kMaxUnionSteps = 2'000'000;

struct Interval {
  int64_t low = 0, high = 0;  // the end not included
};
using Cell = std::vector<Interval>;

class Union {
 public:
  explicit Union(std::vector<int64_t> strides) : strides_(std::move(strides)) {}  // falling

  void add(const Lattice& l) {
    Cell cell(strides_.size() + 1);
    int64_t rest = l.low;
    for (size_t k = 0; k < strides_.size(); ++k) {
      const int64_t q = floor_div(rest, strides_[k]);
      rest -= q * strides_[k];
      cell[k] = {q, q + 1};
    }
    cell.back() = {rest, rest + l.run};
    for (const auto& [stride, size] : l.steps) {
      const auto at = std::find(strides_.begin(), strides_.end(), stride);
      cell[static_cast<size_t>(at - strides_.begin())].high += size - 1;
    }
    carry(std::move(cell), strides_.size());
  }
  double volume() {
    std::sort(cells_.begin(), cells_.end(), [](const Cell& a, const Cell& b) { return a[0].low < b[0].low; });
    std::vector<const Cell*> all;
    for (const Cell& c : cells_) all.push_back(&c);
    return volume(all, 0);
  }

 private:
  // Digits from `level` down fit; those above may not.
  void carry(Cell cell, size_t level) {
    if (level == 0) {
      if (cells_.size() >= kMaxUnionBoxes) throw TooComplex{"too many pieces"};
      cells_.push_back(std::move(cell));
      return;
    }
    const int64_t unit = level == strides_.size() ? 1 : strides_[level];
    const int64_t above = strides_[level - 1];
    const int64_t limit = above / unit;
    Interval& d = cell[level];
    int64_t reach = 0;  // of this digit and those below
    for (size_t k = level; k < cell.size(); ++k)
      reach += (cell[k].high - 1) * (k == strides_.size() ? 1 : strides_[k]);
    if (d.high <= limit && reach < above) return carry(std::move(cell), level - 1);
    if (above % unit != 0) throw TooComplex{"strides that do not nest"};
    const int64_t first = floor_div(d.low, limit), last = floor_div(d.high - 1, limit);
    const auto part = [&](int64_t from, int64_t to, int64_t low, int64_t high) {
      Cell c = cell;
      c[level] = {low, high};
      c[level - 1] = {cell[level - 1].low + from, cell[level - 1].high + to};
      carry(std::move(c), level - 1);
    };
    if (first == last) return part(first, first, d.low - first * limit, d.high - first * limit);
    const int64_t head = d.low - first * limit, tail = d.high - last * limit;
    part(first, first, head, limit);
    if (last - first > 1) part(first + 1, last - 1, 0, limit);
    part(last, last, 0, tail);
  }

  double volume(const std::vector<const Cell*>& cells, size_t dim) {
    steps_ += static_cast<int64_t>(cells.size());
    if (steps_ > kMaxUnionSteps) throw TooComplex{"too many pieces"};
    if (cells.empty()) return 0;
    if (cells.size() == 1) {
      double v = 1;
      for (size_t k = dim; k < cells[0]->size(); ++k)
        v *= static_cast<double>((*cells[0])[k].high - (*cells[0])[k].low);
      return v;
    }
    std::vector<int64_t> ends;
    for (const Cell* c : cells) ends.push_back((*c)[dim].low), ends.push_back((*c)[dim].high);
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    double sum = 0, inner = 0;
    std::vector<const Cell*> before;
    for (size_t k = 0; k + 1 < ends.size(); ++k) {
      std::vector<const Cell*> active;
      for (const Cell* c : cells)
        if ((*c)[dim].low <= ends[k] && (*c)[dim].high >= ends[k + 1]) active.push_back(c);
      steps_ += static_cast<int64_t>(cells.size());
      if (active != before) {
        inner = active.empty() ? 0 : dim + 1 == active[0]->size() ? 1 : volume(active, dim + 1);
        before = active;
      }
      sum += inner * static_cast<double>(ends[k + 1] - ends[k]);
    }
    return sum;
  }

  const std::vector<int64_t> strides_;
  std::vector<Cell> cells_;
  int64_t steps_ = 0;
};

}  // namespace

BytesBetween distinct_bytes(std::vector<Lattice> all) {
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.empty()) return {};
  if (all.size() == 1) return {all[0].bytes(), all[0].bytes()};
  std::set<int64_t, std::greater<>> strides;
  for (const Lattice& l : all)
    for (const auto& step : l.steps) strides.insert(step.stride);
  try {
    Union u({strides.begin(), strides.end()});
    for (const Lattice& l : all) u.add(l);
    const double exact = u.volume();
    return {exact, exact};
  } catch (const TooComplex&) {
  }
  double largest = 0, sum = 0;
  std::vector<Interval> hulls;
  for (const Lattice& l : all) {
    largest = std::max(largest, l.bytes());
    sum += l.bytes();
    hulls.push_back({l.low, l.high()});
  }
  std::sort(hulls.begin(), hulls.end(), [](const Interval& a, const Interval& b) { return a.low < b.low; });
  double hull = 0;
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const Interval& h : hulls) {
    if (h.high <= end) continue;
    hull += static_cast<double>(h.high - std::max(h.low, end));
    end = h.high;
  }
  return {largest, std::min(sum, hull)};
}

}  // namespace nereid::ttir::symbolic
