#include "nereid/ttir/analysis/cost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "nereid/ttir/analysis/facts.h"
#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir {
namespace {

constexpr int64_t kMaxSampled = 512;
constexpr int64_t kMaxSampledWork =
    400'000;  // instructions, rows of accesses and blocks of lanes: tens of milliseconds

// A set of bytes, page by page.
class ByteSet {
 public:
  void add(int64_t low, int64_t high) {
    for (int64_t at = low >> kGranule; at <= (high - 1) >> kGranule;) {
      auto& page = pages_[at >> kPage];
      const int64_t end = std::min(((at >> kPage) + 1) << kPage, ((high - 1) >> kGranule) + 1);
      if (page.empty()) page.resize(size_t{1} << (kPage - 6));
      for (; at < end; ++at) {
        auto& word = page[static_cast<size_t>((at & ((1 << kPage) - 1)) >> 6)];
        if ((at & 63) == 0 && at + 64 <= end) {
          count_ += 64 - __builtin_popcountll(word);
          word = ~uint64_t{0};
          at += 63;
          continue;
        }
        const uint64_t bit = uint64_t{1} << (at & 63);
        count_ += (word & bit) == 0;
        word |= bit;
      }
    }
  }
  double bytes() const { return static_cast<double>(count_ << kGranule); }

 private:
  static constexpr int kGranule = 0, kPage = 14;
  std::unordered_map<int64_t, std::vector<uint64_t>> pages_;
  int64_t count_ = 0;
};

// What the counting handlers write to; the machine's context points here through its launch.
struct Tally {
  ByteSet read, written;
  double all_read = 0, all_written = 0;  // each access counted
};
thread_local Tally* tally = nullptr;

Access access_of(Machine& m, const Instruction& i, int bytes, int mask) {
  Access a;
  a.pointers = &m.slot(i.in[0]);
  a.mask = mask >= 0 ? &m.slot(i.in[mask]) : nullptr;
  a.shape = i.shape.data();
  a.rank = i.rank;
  a.lanes = i.lanes;
  a.bytes = bytes;
  return a;
}

void count_access(Machine& m, const Access& a, bool reads, bool writes) {
  for_each_range(m, a, [&](int64_t address, int64_t bytes) {
    if (buffer_of(address) < 0) return;
    m.count_left -= 1 + bytes / 1024;
    if (reads) tally->read.add(address, address + bytes), tally->all_read += static_cast<double>(bytes);
    if (writes)
      tally->written.add(address, address + bytes), tally->all_written += static_cast<double>(bytes);
  });
}

void count_load(Machine& m, const Instruction& i) {
  count_access(m, access_of(m, i, elem_bytes(i.out_elem), i.flags & kHasMask ? 1 : -1), true, false);
  m.set_uniform(i.out, 0);
}
void count_store(Machine& m, const Instruction& i) {
  count_access(m, access_of(m, i, elem_bytes(i.elem), i.flags & kHasMask ? 2 : -1), false, true);
}
void count_atomic(Machine& m, const Instruction& i) {
  const bool masked = i.kind == OpKind::kAtomicRmw && (i.flags & kHasMask);
  count_access(m, access_of(m, i, elem_bytes(i.out_elem), masked ? 2 : -1), true, true);
  m.set_uniform(i.out, 0);
}
void count_descriptor(Machine& m, const Instruction& i) {
  const Value& v = m.slot(i.in[0]);
  if (v.tile != nullptr) {
    const auto& d = *reinterpret_cast<const DescriptorData*>(v.tile->data());
    const bool loads = i.kind == OpKind::kDescriptorLoad || i.kind == OpKind::kDescriptorGather;
    const int bytes = elem_bytes(loads ? i.out_elem : i.elem);
    // The block's rows that are inside the tensor, as ranges.
    const auto& block = i.extra->in_shape;
    const auto rank = static_cast<size_t>(d.rank);
    int64_t address = d.base, columns = 0;
    std::vector<std::pair<int64_t, int64_t>> dims;  // rows, stride in bytes
    for (size_t k = 0; k < rank; ++k) {
      const int64_t first = k < i.extra->inputs.size() ? m.slot(i.extra->inputs[k]).base : 0;
      const int64_t low = std::clamp<int64_t>(first, 0, d.shape[k]),
                    high = std::clamp<int64_t>(first + block[k], low, d.shape[k]);
      address += low * d.strides[k] * bytes;
      if (k + 1 == rank)
        columns = high - low;
      else
        dims.emplace_back(high - low, d.strides[k] * bytes);
    }
    const auto rows = [&](auto&& self, size_t k, int64_t at) -> void {
      if (k == dims.size()) {
        if (columns <= 0) return;
        m.count_left -= 1 + columns * bytes / 1024;
        if (loads || i.kind == OpKind::kDescriptorReduce)
          tally->read.add(at, at + columns * bytes), tally->all_read += static_cast<double>(columns * bytes);
        if (!loads)
          tally->written.add(at, at + columns * bytes),
              tally->all_written += static_cast<double>(columns * bytes);
        return;
      }
      for (int64_t r = 0; r < dims[k].first; ++r) self(self, k + 1, at + r * dims[k].second);
    };
    if (buffer_of(d.base) >= 0) rows(rows, 0, address);
  }
  if (i.out >= 0) m.set_uniform(i.out, 0);
}
void count_result(Machine& m, const Instruction& i) { m.set_uniform(i.out, 0); }
void count_results(Machine& m, const Instruction& i) {
  for (const int32_t slot : i.extra->outputs) m.set_uniform(slot, 0);
}

Handler counting(const Instruction& i) {
  switch (i.kind) {
    case OpKind::kLoad:
      return count_load;
    case OpKind::kStore:
      return count_store;
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return count_atomic;
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
    case OpKind::kDescriptorReduce:
    case OpKind::kDescriptorGather:
    case OpKind::kDescriptorScatter:
      return count_descriptor;
    case OpKind::kDot:
    case OpKind::kDotScaled:
    case OpKind::kHistogram:
      return count_result;
    case OpKind::kReduce:
    case OpKind::kScan:
    case OpKind::kMapElementwise:
      return count_results;
    case OpKind::kAssert:
      return handlers::nothing;
    default:
      return i.run;
  }
}

bool is_flop(OpKind kind) {
  switch (kind) {
    case OpKind::kNegf:
    case OpKind::kAbsf:
    case OpKind::kAbsi:
    case OpKind::kCopysign:
      return false;
    default:
      break;
  }
  return (kind >= OpKind::kAddf && kind <= OpKind::kMinnumf) ||
         (kind >= OpKind::kAbsf && kind <= OpKind::kFma) || kind == OpKind::kClampf ||
         kind == OpKind::kPreciseSqrt || kind == OpKind::kPreciseDivf || kind == OpKind::kExternElementwise ||
         kind == OpKind::kInlineAsm || kind == OpKind::kCmpf;
}

}  // namespace

double flops_of(const Module& module, const Op& op) {
  if (op.kind == OpKind::kDot || op.kind == OpKind::kDotScaled) {
    const Type &a = module.type(op.operands[0]), &c = module.type(op.results[0]);
    double k = static_cast<double>(a.shape.back());
    if (op.kind == OpKind::kDotScaled && op.text("lhs") == "e2m1" && op.integer("lhs_k_pack", 1) != 0) k *= 2;
    return 2 * k * static_cast<double>(c.elements());
  }
  if (op.kind == OpKind::kReduce || op.kind == OpKind::kScan || op.kind == OpKind::kMapElementwise) {
    double one = 0;
    for (const Op& inner : op.regions[0].blocks[0].ops) one += flops_of(module, inner);
    return one * static_cast<double>(module.type(op.operands[0]).elements());
  }
  if (!is_flop(op.kind) || op.results.empty() ||
      (op.kind != OpKind::kCmpf && !is_float(module.type(op.results[0]).elem)))
    return 0;
  return (op.kind == OpKind::kFma ? 2.0 : 1.0) * static_cast<double>(module.type(op.results[0]).elements());
}

namespace {

// A launch whose handlers count. The outer tally comes back when it ends.
class Counting {
 public:
  Counting(const Code& code, const Launch& launch, int64_t buffers) : outer_(tally) {
    counted_.prologue = code.prologue;
    counted_.body = code.body;
    counted_.slots = code.slots;
    counted_.parameter_slots = code.parameter_slots;
    counted_.program_slots = code.program_slots;
    for (auto* list : {&counted_.prologue, &counted_.body})
      for (Instruction& i : *list) i.run = counting(i);
    for (const Instruction& i : counted_.prologue) prologue_flops += static_cast<double>(i.flops);
    storages_.resize(static_cast<size_t>(buffers));
    for (Buffer& b : storages_) b.bytes = int64_t{1} << 45;
    context.launch = &launch;
    context.buffers = &storages_;
    context.code = &counted_;
    context.lines = &lines_;
    context.sanitizer = &sanitizer_;
    tally = &sums;
  }
  ~Counting() { tally = outer_; }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

  // The floating-point operations of one program.
  double program(Machine& m, int64_t linear) {
    const auto& grid = context.launch->grid;
    m.start(linear, {linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]});
    const double flops = prologue_flops + m.count();
    m.reset();
    return flops;
  }

  LaunchContext context;
  Tally sums;
  double prologue_flops = 0;

 private:
  Tally* const outer_;
  Code counted_;
  std::vector<Buffer> storages_;
  Sanitizer sanitizer_;
  std::vector<SourceLine> lines_;
};

double programs_of(const Launch& launch) {
  double all = 1;
  for (const int64_t g : launch.grid) all *= static_cast<double>(g);
  return all;
}

// Some programs stand for all. Stated are two standard errors of the operations.
Cost sampled_cost(const Code& code, const Launch& launch, int64_t buffers,
                  const std::function<void(Machine&)>& set_parameters) {
  Cost cost;
  cost.exact = false;
  cost.error = 1;
  const double all = programs_of(launch);
  if (all == 0) return cost;
  try {
    TilePool pool;
    Counting counting(code, launch, buffers);
    Machine m(counting.context, pool);
    set_parameters(m);
    m.run_prologue();
    m.count_left = kMaxSampledWork;
    const auto wanted = static_cast<int64_t>(std::min(all, static_cast<double>(kMaxSampled)));
    double flops = 0, squares = 0;
    int64_t programs = 0;
    for (; programs < wanted && m.count_left > 0; ++programs) {
      // Evenly, whenever it ends, and not in step with the grid's own periods.
      double at = static_cast<double>(programs) * 0.6180339887498949;
      at -= std::floor(at);
      const int64_t linear = wanted == static_cast<int64_t>(all) ? programs : static_cast<int64_t>(at * all);
      const double one = counting.program(m, linear);
      flops += one, squares += one * one;
    }
    const auto n = static_cast<double>(programs);
    const double scale = all / n, mean = flops / n;
    cost.flops = flops * scale;
    // Bytes that the sampled programs share are shared by the others, too; what each has to itself grows with
    // the grid.
    const auto extrapolate = [&](double distinct, double total) {
      return total == 0 ? 0 : distinct * (1 + (scale - 1) * (distinct / total));
    };
    cost.bytes_read = extrapolate(counting.sums.read.bytes(), counting.sums.all_read);
    cost.bytes_written = extrapolate(counting.sums.written.bytes(), counting.sums.all_written);
    if (programs > 1 && mean > 0 && m.count_left > 0)
      cost.error = std::min(1.0, 2 * std::sqrt(std::max(0.0, squares / n - mean * mean) / n) / mean);
  } catch (const TilesExceeded&) {
    cost = {.exact = false, .unknown = {}, .error = 1};
  }
  return cost;
}

}  // namespace

Cost walk_cost(const Module& module, const Code& code, const Launch& launch, int64_t buffers,
               const std::function<void(Machine&)>& set_parameters) {
  TilePool pool;
  Counting counting(code, launch, buffers);
  Machine m(counting.context, pool);
  set_parameters(m);
  m.run_prologue();
  Cost cost;
  const auto all = static_cast<int64_t>(programs_of(launch));
  for (int64_t linear = 0; linear < all; ++linear) cost.flops += counting.program(m, linear);
  cost.bytes_read = counting.sums.read.bytes();
  cost.bytes_written = counting.sums.written.bytes();
  cost.exact = !moves_by_data(module);
  return cost;
}

Cost count_cost(const Module& module, const Function& kernel, const Code& code, const Launch& launch,
                const std::vector<BoundArgument>& arguments, const std::vector<int64_t>& buffer_bytes,
                const std::function<void(Machine&)>& set_parameters) {
  const CostAnalysis found = analyze_cost(module, kernel, launch, arguments);
  if (!found.unknown.empty()) {
    Cost sampled = sampled_cost(code, launch, static_cast<int64_t>(buffer_bytes.size()), set_parameters);
    sampled.unknown = found.unknown;
    return sampled;
  }
  Cost cost;
  cost.flops = found.flops;
  double certain = 0, possible = 0;
  for (const auto& [buffer, t] : found.buffers) {
    const auto at = static_cast<size_t>(buffer);
    const double size = at < buffer_bytes.size() && buffer_bytes[at] > 0
                            ? static_cast<double>(buffer_bytes[at])
                            : std::numeric_limits<double>::infinity();
    const double read = std::min(size, t.read.high + t.unknown_read),
                 written = std::min(size, t.written.high + t.unknown_written);
    cost.bytes_read += read, cost.bytes_written += written;
    certain += std::min(size, t.read.low) + std::min(size, t.written.low);
    possible += read + written;
  }
  if (possible > certain) cost.error = (possible - certain) / possible;
  cost.exact = certain == possible && !moves_by_data(module);
  return cost;
}

}  // namespace nereid::ttir
