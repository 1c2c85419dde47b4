#include "nereid/ttir/analysis/facts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <unordered_set>

#include "nereid/ttir/analysis/value_flow.h"

namespace nereid::ttir {
namespace {

constexpr int kMaxPasses = 100;  // over the whole module, until nothing changes; real kernels need a few

template <class F>
void for_each_op(const Region& region, F& f) {
  for (const Block& block : region.blocks)
    for (const Op& op : block.ops) {
      f(op);
      for (const Region& inner : op.regions) for_each_op(inner, f);
    }
}
template <class F>
void for_each_op(const Module& module, F f) {
  for (const Function& function : module.functions) for_each_op(function.body, f);
}

// Values that depend on data read from memory (floating-point data alone, or any), through data alone.
class Taint {
 public:
  Taint(const Module& module, bool floats_only) : module_(module), floats_only_(floats_only) {
    for (int pass = 0; changed_; ++pass) {
      changed_ = false;
      if (pass == kMaxPasses) {
        everything_ = true;
        return;
      }
      for (const Function& f : module.functions) region(f.body);
    }
  }
  bool has(ValueId v) const { return everything_ || tainted_.count(v) != 0; }

 private:
  void taint(ValueId v) { changed_ = tainted_.insert(v).second || changed_; }
  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        step(r, op);
      }
  }
  void step(const Region& r, const Op& op) {
    const auto flow = [&](ValueId from, ValueId to) {
      if (has(from)) taint(to);
    };
    if (flow_through_control(module_, r, op, flow)) return;
    switch (op.kind) {
      case OpKind::kLoad:
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorGather:
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
        if (!floats_only_ || is_float(module_.type(op.results[0]).elem)) taint(op.results[0]);
        return;
      default:
        if (std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return has(v); }))
          for (ValueId v : op.results) taint(v);
    }
  }

  const Module& module_;
  const bool floats_only_;
  std::unordered_set<ValueId> tainted_;
  bool changed_ = true, everything_ = false;
};

// Which parameters a pointer (or descriptor) may come from: a set for each value, grown until nothing
// changes.
class PointerSources {
 public:
  PointerSources(const Module& module, const Function& kernel)
      : module_(module), words_((kernel.parameters.size() + 63) / 64) {
    for (size_t k = 0; k < kernel.parameters.size(); ++k) sources_[kernel.parameters[k]].resize(words_);
    for (size_t k = 0; k < kernel.parameters.size(); ++k)
      sources_[kernel.parameters[k]][k / 64] |= uint64_t{1} << (k % 64);
    for (int pass = 0; changed_ && pass < kMaxPasses; ++pass) {
      changed_ = false;
      for (const Function& f : module.functions) region(f.body);
    }
  }
  bool complete() const { return !changed_; }
  template <class F>
  void for_each(ValueId v, size_t parameters, F f) const {
    const auto found = sources_.find(v);
    if (found == sources_.end()) return;
    for (size_t k = 0; k < parameters; ++k)
      if (found->second[k / 64] >> (k % 64) & 1) f(k);
  }

 private:
  bool relevant(ValueId v) const {
    const Elem e = module_.type(v).elem;
    return e == Elem::kPointer || e == Elem::kDescriptor;
  }
  void flow(ValueId from, ValueId to) {
    if (!relevant(to)) return;
    const auto source = sources_.find(from);
    if (source == sources_.end()) return;
    const std::vector<uint64_t> bits = source->second;  // the map may grow
    auto& target = sources_[to];
    target.resize(words_);
    for (size_t w = 0; w < words_; ++w) {
      changed_ = changed_ || (bits[w] & ~target[w]) != 0;
      target[w] |= bits[w];
    }
  }
  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        step(r, op);
      }
  }
  void step(const Region& r, const Op& op) {
    if (flow_through_control(module_, r, op, [&](ValueId from, ValueId to) { flow(from, to); })) return;
    for (ValueId to : op.results)
      for (ValueId from : op.operands)
        if (relevant(from)) flow(from, to);
  }

  const Module& module_;
  const size_t words_;
  std::map<ValueId, std::vector<uint64_t>> sources_;
  bool changed_ = true;
};

}  // namespace

std::vector<MemoryUse> memory_uses(const Module& module, const Function& kernel) {
  std::vector<MemoryUse> uses(kernel.parameters.size());
  if (uses_int_to_ptr(module)) {
    for (auto& use : uses) use = {true, true, true};
    return uses;
  }
  const PointerSources sources(module, kernel);
  if (!sources.complete()) {
    for (auto& use : uses) use = {true, true, true};
    return uses;
  }
  for_each_op(module, [&](const Op& op) {
    if (op.operands.empty()) return;
    const bool loads = op.kind == OpKind::kLoad || op.kind == OpKind::kDescriptorLoad ||
                       op.kind == OpKind::kDescriptorGather;
    const bool stores = op.kind == OpKind::kStore || op.kind == OpKind::kDescriptorStore ||
                        op.kind == OpKind::kDescriptorScatter;
    const bool atomics = op.kind == OpKind::kAtomicRmw || op.kind == OpKind::kAtomicCas ||
                         op.kind == OpKind::kDescriptorReduce;
    if (!loads && !stores && !atomics) return;
    sources.for_each(op.operands[0], uses.size(), [&](size_t k) {
      uses[k].loads = uses[k].loads || loads;
      uses[k].stores = uses[k].stores || stores;
      uses[k].atomics = uses[k].atomics || atomics;
    });
  });
  return uses;
}

bool uses_int_to_ptr(const Module& module) {
  bool found = false;
  for_each_op(module, [&](const Op& op) { found = found || op.kind == OpKind::kIntToPtr; });
  return found;
}

bool multiplies(const Module& module) {
  bool found = false;
  for_each_op(module, [&](const Op& op) {
    found = found || op.kind == OpKind::kDot || op.kind == OpKind::kDotScaled;
  });
  return found;
}

std::vector<std::string> inline_assembly(const Module& module) {
  std::set<std::string> all;
  for_each_op(module, [&](const Op& op) {
    if (op.kind == OpKind::kInlineAsm) all.insert(op.text("asm"));
  });
  return {all.begin(), all.end()};
}

bool moves_by_data(const Module& module) {
  const Taint taint(module, /*floats_only=*/false);
  const auto tainted = [&](const Op& op, size_t count) {
    return std::count_if(op.operands.begin(), op.operands.begin() + static_cast<ptrdiff_t>(count),
                         [&](ValueId v) { return taint.has(v); });
  };
  const auto moves = [&](const Op& op) {
    switch (op.kind) {
      case OpKind::kScfIf:
      case OpKind::kCondBr:
      case OpKind::kScfCondition:
        return tainted(op, 1) > 0;
      case OpKind::kScfFor:
        return tainted(op, 3) > 0;
      case OpKind::kAssert:
        return tainted(op, 1) > 0;
      case OpKind::kDivsi:
      case OpKind::kDivui:
      case OpKind::kRemsi:
      case OpKind::kRemui:
      case OpKind::kCeildivsi:
      case OpKind::kCeildivui:
      case OpKind::kFloordivsi:
        return taint.has(op.operands[1]);
      case OpKind::kLoad:  // pointer, mask, other
        return tainted(op, std::min<size_t>(op.operands.size(), 2)) > 0;
      case OpKind::kStore:
      case OpKind::kAtomicRmw:  // pointer, value, mask
        return taint.has(op.operands[0]) || (op.operands.size() > 2 && taint.has(op.operands[2]));
      case OpKind::kDescriptorLoad:
        return tainted(op, op.operands.size()) > 0;
      case OpKind::kDescriptorStore:
      case OpKind::kDescriptorReduce:
        return tainted(op, op.operands.size()) > 1;  // the value may be
      case OpKind::kDescriptorGather:
      case OpKind::kDescriptorScatter:
      case OpKind::kAtomicCas:
        return true;
      default:
        return false;
    }
  };
  bool found = false;
  for_each_op(module, [&](const Op& op) { found = found || moves(op); });
  return found;
}

bool branches_on_float_data(const Module& module) {
  const Taint taint(module, /*floats_only=*/true);
  bool found = false;
  // An scf.if in a combine region is a selection between lanes, not a branch: those regions' values are not
  // tainted.
  for_each_op(module, [&](const Op& op) {
    const bool branch =
        op.kind == OpKind::kScfIf || op.kind == OpKind::kCondBr || op.kind == OpKind::kScfCondition;
    found = found || (branch && taint.has(op.operands[0]));
  });
  return found;
}

}  // namespace nereid::ttir
