#include "nereid/ttir/facts.h"

#include <algorithm>
#include <set>
#include <unordered_set>

namespace nereid::ttir {
namespace {

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

// Values that depend on floating-point data read from memory, through data alone.
class FloatTaint {
 public:
  explicit FloatTaint(const Module& module) : module_(module) {
    do {
      changed_ = false;
      for (const Function& f : module.functions) region(f.body);
    } while (changed_);
  }
  bool has(ValueId v) const { return tainted_.count(v) != 0; }

 private:
  void taint(ValueId v) { changed_ = tainted_.insert(v).second || changed_; }
  void pass(const std::vector<ValueId>& from, size_t first, const std::vector<ValueId>& to, size_t skip = 0) {
    for (size_t k = 0; first + k < from.size() && skip + k < to.size(); ++k)
      if (has(from[first + k])) taint(to[skip + k]);
  }
  void region(const Region& r) {
    for (const Block& block : r.blocks)
      for (const Op& op : block.ops) {
        for (const Region& inner : op.regions) region(inner);
        step(r, op);
      }
  }
  void step(const Region& r, const Op& op) {
    for (const Successor& s : op.successors)
      pass(s.arguments, 0, r.blocks[static_cast<size_t>(s.block)].arguments);
    switch (op.kind) {
      case OpKind::kLoad:
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorGather:
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
        if (is_float(module_.type(op.results[0]).elem)) taint(op.results[0]);
        return;
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
        if (std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return has(v); }))
          for (ValueId v : op.results) taint(v);
    }
  }

  const Module& module_;
  std::unordered_set<ValueId> tainted_;
  bool changed_ = false;
};

}  // namespace

bool uses_int_to_ptr(const Module& module) {
  bool found = false;
  for_each_op(module, [&](const Op& op) { found = found || op.kind == OpKind::kIntToPtr; });
  return found;
}

std::vector<std::string> inline_assembly(const Module& module) {
  std::set<std::string> all;
  for_each_op(module, [&](const Op& op) {
    if (op.kind == OpKind::kInlineAsm) all.insert(op.text("asm"));
  });
  return {all.begin(), all.end()};
}

bool branches_on_float_data(const Module& module) {
  const FloatTaint taint(module);
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
