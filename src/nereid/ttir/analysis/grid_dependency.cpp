#include "nereid/ttir/analysis/grid_dependency.h"

#include <algorithm>

#include "nereid/ttir/parse/parser.h"

namespace nereid::ttir {
namespace {

bool is_wait(const Op& op) {
  return op.kind == OpKind::kInlineAsm && op.text("asm").starts_with("griddepcontrol.wait;");
}

bool touches_memory(const Op& op) {
  switch (op.kind) {
    case OpKind::kLoad:
    case OpKind::kStore:
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
    case OpKind::kDescriptorReduce:
    case OpKind::kDescriptorGather:
    case OpKind::kDescriptorScatter:
    case OpKind::kCall:  // what it calls is not followed
      return true;
    default:
      break;
  }
  return std::ranges::any_of(op.regions, [](const Region& region) {
    return std::ranges::any_of(
        region.blocks, [](const Block& block) { return std::ranges::any_of(block.ops, touches_memory); });
  });
}

// The first block runs whatever the others are; a wait in a branch or in a loop may not run.
bool waits_first(const Function& function) {
  for (const Block& block : function.body.blocks)
    for (const Op& op : block.ops) {
      if (is_wait(op) && &block == &function.body.blocks.front()) return true;
      if (touches_memory(op)) return false;
    }
  return true;
}

}  // namespace

bool waits_before_memory(std::string_view ttir) {
  const auto module = parse(ttir);
  return module.ok() && std::ranges::all_of(module->functions, waits_first);
}

}  // namespace nereid::ttir
