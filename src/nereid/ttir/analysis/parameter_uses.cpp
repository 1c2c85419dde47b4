#include "nereid/ttir/analysis/parameter_uses.h"

#include <set>
#include <unordered_map>

#include "nereid/ttir/analysis/value_flow.h"

namespace nereid::ttir {
namespace {

bool is_address(const Type& type) { return type.elem == Elem::kPointer || type.elem == Elem::kDescriptor; }

// The parameters that each address may stem from, to a fixed point.
class Origins {
 public:
  Origins(const Module& module, const Function& kernel) : module_(module), uses_(kernel.parameters.size()) {
    for (size_t k = 0; k < kernel.parameters.size(); ++k)
      if (is_address(module.type(kernel.parameters[k])))
        from_[kernel.parameters[k]].insert(static_cast<int>(k));
    do {
      changed_ = false;
      for (const Function& f : module.functions) region(f.body);
    } while (changed_);
    for (auto& use : uses_) use.chosen = use.chosen && !unknown_;
    if (!unknown_) return;
    for (size_t k = 0; k < kernel.parameters.size(); ++k)
      if (is_address(module.type(kernel.parameters[k]))) uses_[k] = {true, true};
  }

  std::vector<ParameterUse> take() { return std::move(uses_); }

 private:
  void flow(ValueId from, ValueId to) {
    if (!is_address(module_.type(to))) return;
    const auto found = from_.find(from);
    if (found == from_.end()) return;
    const std::set<int> origins = found->second;
    for (const int k : origins) changed_ = from_[to].insert(k).second || changed_;
  }
  void use(ValueId address, bool read, bool written) {
    const auto found = from_.find(address);
    if (found == from_.end()) return;
    for (const int k : found->second) {
      auto& u = uses_[static_cast<size_t>(k)];
      if (written) u.chosen = found->second.size() > 1 && (u.chosen || !u.written);
      u.read |= read, u.written |= written;
    }
  }

  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        const auto onward = [&](ValueId from, ValueId to) { flow(from, to); };
        if (access(op) || flow_through_control(module_, r, op, onward)) continue;
        for (const ValueId operand : op.operands)
          for (const ValueId result : op.results) flow(operand, result);
      }
  }

  // Loads, stores and atomics; their operands are no addresses but for the first.
  bool access(const Op& op) {
    switch (op.kind) {
      case OpKind::kLoad:
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorGather:
        use(op.operands[0], true, false);
        unknown_ |= is_address(module_.type(op.results[0]));
        return true;
      case OpKind::kStore:
      case OpKind::kDescriptorStore:
      case OpKind::kDescriptorScatter:
        use(op.operands[0], false, true);
        unknown_ |= op.operands.size() > 1 && is_address(module_.type(op.operands[1]));
        return true;
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
      case OpKind::kDescriptorReduce:
        use(op.operands[0], true, true);
        return true;
      case OpKind::kIntToPtr:
        unknown_ = true;
        return true;
      default:
        return false;
    }
  }

  const Module& module_;
  std::unordered_map<ValueId, std::set<int>> from_;
  std::vector<ParameterUse> uses_;
  bool changed_ = false, unknown_ = false;
};

}  // namespace

std::vector<ParameterUse> parameter_uses(const Module& module, const Function& kernel) {
  return Origins(module, kernel).take();
}

}  // namespace nereid::ttir
