#include "nereid/ttir/parameter_uses.h"

#include <set>
#include <unordered_map>

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
  void pass(const std::vector<ValueId>& from, size_t first, const std::vector<ValueId>& to, size_t skip = 0) {
    for (size_t k = 0; first + k < from.size() && skip + k < to.size(); ++k)
      flow(from[first + k], to[skip + k]);
  }
  void use(ValueId address, bool read, bool written) {
    const auto found = from_.find(address);
    if (found == from_.end()) return;
    for (const int k : found->second) {
      auto& u = uses_[static_cast<size_t>(k)];
      u.read |= read, u.written |= written;
    }
  }

  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        for (const Successor& s : op.successors)
          pass(s.arguments, 0, r.blocks[static_cast<size_t>(s.block)].arguments);
        if (!access(op)) data(op);
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

  void data(const Op& op) {
    switch (op.kind) {
      case OpKind::kScfIf:
        for (const Region& inner : op.regions)
          if (!inner.blocks.empty() && !inner.blocks[0].ops.empty())
            pass(inner.blocks[0].ops.back().operands, 0, op.results);
        return;
      case OpKind::kScfFor: {
        const Block& body = op.regions[0].blocks[0];
        pass(op.operands, 3, body.arguments, 1);
        if (!body.ops.empty()) pass(body.ops.back().operands, 0, body.arguments, 1);
        pass(body.arguments, 1, op.results);
        return;
      }
      case OpKind::kScfWhile: {
        const Block &before = op.regions[0].blocks[0], &after = op.regions[1].blocks[0];
        pass(op.operands, 0, before.arguments);
        if (!after.ops.empty()) pass(after.ops.back().operands, 0, before.arguments);
        pass(before.ops.back().operands, 1, after.arguments);
        pass(before.ops.back().operands, 1, op.results);
        return;
      }
      case OpKind::kCall: {
        const Function* callee = module_.find(op.text("callee"));
        if (callee == nullptr) return;
        pass(op.operands, 0, callee->parameters);
        for (const Block& block : callee->body.blocks)
          if (!block.ops.empty() && block.ops.back().kind == OpKind::kReturn)
            pass(block.ops.back().operands, 0, op.results);
        return;
      }
      default:
        for (const ValueId operand : op.operands)
          for (const ValueId result : op.results) flow(operand, result);
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
