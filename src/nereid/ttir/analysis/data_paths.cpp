#include "nereid/ttir/analysis/data_paths.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "nereid/ttir/analysis/value_flow.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {
namespace {

bool carries_address(const Type& type) {
  return type.elem == Elem::kPointer || type.elem == Elem::kDescriptor;
}

bool stores_data(OpKind kind) {
  return kind == OpKind::kStore || kind == OpKind::kAtomicRmw || kind == OpKind::kAtomicCas ||
         kind == OpKind::kDescriptorStore || kind == OpKind::kDescriptorReduce ||
         kind == OpKind::kDescriptorScatter;
}

// What a store writes: the operands [first, last).
std::pair<size_t, size_t> stored_operands(const Op& op) {
  const size_t count = op.operands.size();
  switch (op.kind) {
    case OpKind::kStore:
    case OpKind::kAtomicRmw:
      return {1, 2};
    case OpKind::kAtomicCas:
      return {1, count};
    default:  // descriptors: the value comes last
      return {count - 1, count};
  }
}

// Constants that are one number, as (value, number).
void collect_constants(const Module& module, const Region& r,
                       std::vector<std::pair<ValueId, double>>& found) {
  for (const Block& block : r.blocks)
    for (const Op& op : block.ops) {
      for (const Region& inner : op.regions) collect_constants(module, inner, found);
      if (op.kind != OpKind::kConstant || op.constant.size() != 1 || op.results.empty()) continue;
      const uint64_t bits = op.constant[0];
      const Elem elem = module.type(op.results[0]).elem;
      double number = 0;
      if (elem == Elem::kF64) {
        number = std::bit_cast<double>(bits);
      } else if (elem == Elem::kF32) {
        number = static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
      } else if (is_integer(elem) && elem != Elem::kI1) {
        const int unused = 64 - 8 * elem_bytes(elem);
        number = static_cast<double>(static_cast<int64_t>(bits << unused) >> unused);
      } else {
        continue;
      }
      found.emplace_back(op.results[0], number);
    }
}

// Of each value: through which parameters it was loaded, or for an address, from which parameters it stems;
// and which constants are part of it. These are numbered after the parameters.
class Sources {
 public:
  Sources(const Module& module, const Function& kernel) : module_(module) {
    for (const Function& f : module.functions) collect_constants(module, f.body, constants_);
    const size_t parameters = kernel.parameters.size();
    words_ = (parameters + constants_.size() + 63) / 64;
    for (size_t k = 0; k < parameters; ++k) add(kernel.parameters[k], std::vector<uint64_t>(words_), k);
    for (size_t k = 0; k < constants_.size(); ++k)
      add(constants_[k].first, std::vector<uint64_t>(words_), parameters + k);
    spread();
    // Where a selection is between numbers that come from nowhere, what decides is the data.
    parameters_ = parameters;
    deciding_ = true;
    spread();
  }

  // Some parameter's data is part of it.
  bool any(ValueId v) const {
    for (size_t k = 0; k < parameters_; ++k)
      if (has(v, k)) return true;
    return false;
  }
  bool unknown() const { return unknown_; }
  const std::vector<std::pair<ValueId, double>>& constants() const { return constants_; }
  bool has(ValueId v, size_t parameter) const {
    const auto found = bits_.find(v);
    return found != bits_.end() && (found->second[parameter / 64] >> (parameter % 64) & 1) != 0;
  }

 private:
  void spread() {
    do {
      changed_ = false;
      for (const Function& f : module_.functions) region(f.body);
    } while (changed_);
  }
  void add(ValueId to, const std::vector<uint64_t>& bits, size_t extra) {
    auto& target = bits_[to];
    target.resize(words_);
    const auto set = [&](size_t word, uint64_t more) {
      changed_ |= (more & ~target[word]) != 0;
      target[word] |= more;
    };
    for (size_t w = 0; w < bits.size(); ++w) set(w, bits[w]);
    if (extra != kNone) set(extra / 64, uint64_t{1} << (extra % 64));
  }
  void flow(ValueId from, ValueId to) {
    const auto found = bits_.find(from);
    if (found == bits_.end()) return;
    const std::vector<uint64_t> bits = found->second;  // the map may grow
    add(to, bits, kNone);
  }
  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        if (!flow_through_control(module_, r, op, [&](ValueId from, ValueId to) { flow(from, to); }))
          step(op);
      }
  }
  void step(const Op& op) {
    size_t first = 0, last = op.operands.size();
    switch (op.kind) {
      case OpKind::kIntToPtr:
        unknown_ = true;
        return;
      case OpKind::kLoad:  // pointer, mask, other
        if (op.operands.size() > 2) flow(op.operands[2], op.results[0]);
        last = 1;
        break;
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorGather:
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
      case OpKind::kGather:  // source, indices
        last = 1;
        break;
      case OpKind::kSelect:
        first = 1;
        if (deciding_ && !carries_address(module_.type(op.results[0])) && bare(op)) first = 0;
        break;
      default:
        break;
    }
    for (const ValueId to : op.results) {
      const bool address = carries_address(module_.type(to));
      const bool loads = op.kind == OpKind::kLoad || op.kind == OpKind::kDescriptorLoad;
      unknown_ |= address && loads;
      for (size_t i = first; i < last; ++i)
        if (!address || carries_address(module_.type(op.operands[i]))) flow(op.operands[i], to);
    }
  }

  static constexpr size_t kNone = ~size_t{0};
  const Module& module_;
  // Once found bare, a selection stays so: its own result does not count.
  bool bare(const Op& op) {
    const auto [at, fresh] = bare_.try_emplace(&op, false);
    if (fresh) at->second = !any(op.operands[1]) && !any(op.operands[2]);
    return at->second;
  }

  std::vector<std::pair<ValueId, double>> constants_;
  std::unordered_map<const Op*, bool> bare_;
  size_t words_ = 0, parameters_ = 0;
  std::unordered_map<ValueId, std::vector<uint64_t>> bits_;
  bool changed_ = false, unknown_ = false, deciding_ = false;
};

// Values that depend on anything loaded, as data or as the way to it.
class Loaded {
 public:
  explicit Loaded(const Module& module) : module_(module) {
    do {
      changed_ = false;
      for (const Function& f : module.functions) region(f.body);
    } while (changed_);
  }
  bool has(ValueId v) const { return loaded_.contains(v); }

 private:
  void mark(ValueId v) { changed_ |= loaded_.insert(v).second; }
  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        const auto onward = [&](ValueId from, ValueId to) {
          if (has(from)) mark(to);
        };
        if (flow_through_control(module_, r, op, onward)) {
          // What leaves an if or a loop depends on the way that was gone.
          const size_t deciding = op.kind == OpKind::kScfIf ? 1 : op.kind == OpKind::kScfFor ? 3 : 0;
          for (size_t i = 0; i < std::min(deciding, op.operands.size()); ++i)
            if (has(op.operands[i]))
              for (const ValueId v : op.results) mark(v);
          continue;
        }
        bool any = op.kind == OpKind::kLoad || op.kind == OpKind::kDescriptorLoad ||
                   op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kAtomicRmw ||
                   op.kind == OpKind::kAtomicCas;
        for (const ValueId v : op.operands) any = any || has(v);
        if (any)
          for (const ValueId v : op.results) mark(v);
      }
  }

  const Module& module_;
  std::unordered_set<ValueId> loaded_;
  bool changed_ = false;
};

class Finder {
 public:
  Finder(const Module& module, const Function& kernel)
      : sources_(module, kernel), loaded_(module), count_(kernel.parameters.size()) {
    paths_.sources.assign(count_, std::vector<bool>(count_));
    paths_.placed_by_data.assign(count_, false);
    paths_.repeats.assign(count_, false);
    for (const Function& f : module.functions) region(f.body, false);
    if (everywhere_) paths_.placed_by_data.assign(count_, true);
    paths_.constants.assign(constants_.begin(), constants_.end());
    paths_.repeating_constants.assign(repeating_constants_.begin(), repeating_constants_.end());
    if (!sources_.unknown()) return;
    paths_.sources.assign(count_, std::vector<bool>(count_, true));
    paths_.placed_by_data.assign(count_, true);
  }
  DataPaths take() { return std::move(paths_); }

 private:
  void region(const Region& r, bool by_data) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        if (stores_data(op.kind)) store(op, by_data);
        paths_.counts_programs |= op.kind == OpKind::kAtomicRmw || op.kind == OpKind::kAtomicCas ||
                                  op.kind == OpKind::kDescriptorReduce || op.kind == OpKind::kGetNumPrograms;
        bool inner_by_data = by_data;
        switch (op.kind) {
          case OpKind::kScfIf:
            inner_by_data |= loaded_.has(op.operands[0]);
            break;
          case OpKind::kScfFor:
            for (size_t i = 0; i < 3; ++i) inner_by_data |= loaded_.has(op.operands[i]);
            for (size_t i = 0; i < 3; ++i) repeat(op.operands[i]);
            break;
          case OpKind::kScfWhile:  // its condition is inside
            inner_by_data = true;
            repeat(op.regions[0].blocks[0].ops.back().operands[0]);
            break;
          case OpKind::kCondBr:
            everywhere_ |= loaded_.has(op.operands[0]);
            break;
          case OpKind::kCall:  // what is called may store
            everywhere_ |= by_data;
            break;
          default:
            break;
        }
        for (const Region& inner : op.regions) region(inner, inner_by_data);
      }
  }
  void repeat(ValueId bound) {
    for (size_t k = 0; k < count_; ++k)
      if (sources_.has(bound, k)) paths_.repeats[k] = true;
    const auto& constants = sources_.constants();
    for (size_t k = 0; k < constants.size(); ++k)
      if (sources_.has(bound, count_ + k)) repeating_constants_.insert(constants[k].second);
  }
  void store(const Op& op, bool by_data) {
    const auto [first, last] = stored_operands(op);
    for (size_t i = 0; i < op.operands.size(); ++i)
      if (i < first || i >= last) by_data |= loaded_.has(op.operands[i]);
    by_data |= op.kind == OpKind::kAtomicCas;
    const auto& constants = sources_.constants();
    for (size_t k = 0; k < constants.size(); ++k)
      for (size_t i = first; i < last; ++i)
        if (sources_.has(op.operands[i], count_ + k)) constants_.insert(constants[k].second);
    // What is stored under a mask and comes from nowhere says what the mask says.
    const bool bare = op.kind == OpKind::kStore && op.operands.size() > 2 && !sources_.any(op.operands[1]);
    const size_t end = bare ? 3 : last;
    for (size_t k = 0; k < count_; ++k) {
      if (!sources_.has(op.operands[0], k)) continue;
      if (by_data) paths_.placed_by_data[k] = true;
      for (size_t source = 0; source < count_; ++source)
        for (size_t i = first; i < end; ++i)
          if (sources_.has(op.operands[i], source)) paths_.sources[k][source] = true;
    }
  }

  const Sources sources_;
  const Loaded loaded_;
  const size_t count_;
  DataPaths paths_;
  std::set<double> constants_, repeating_constants_;
  bool everywhere_ = false;
};

}  // namespace

DataPaths data_paths(const Module& module, const Function& kernel) { return Finder(module, kernel).take(); }

}  // namespace nereid::ttir
