#include "nereid/ttir/liveness.h"

#include <algorithm>
#include <unordered_set>

namespace nereid::ttir {
namespace {

void collect_uses(const Region& region, std::unordered_set<ValueId>& uses) {
  for (const Block& block : region.blocks)
    for (const Op& op : block.ops) {
      uses.insert(op.operands.begin(), op.operands.end());
      for (const Successor& s : op.successors) uses.insert(s.arguments.begin(), s.arguments.end());
      for (const Region& inner : op.regions) collect_uses(inner, uses);
    }
}

}  // namespace

bool Liveness::has(const Map& map, const Op& op, ValueId value) {
  const auto found = map.find(&op);
  return found != map.end() &&
         std::find(found->second.begin(), found->second.end(), value) != found->second.end();
}

void Liveness::scan(const Region& region) {
  for (const Block& block : region.blocks) {
    std::unordered_set<ValueId> here(block.arguments.begin(), block.arguments.end());
    for (const Op& op : block.ops) here.insert(op.results.begin(), op.results.end());
    if (region.blocks.size() > 1) {  // what another block uses lives on
      for (const Block& other : region.blocks) {
        if (&other == &block) continue;
        Region one;
        std::unordered_set<ValueId> uses;
        for (const Op& op : other.ops) {
          uses.insert(op.operands.begin(), op.operands.end());
          for (const Successor& s : op.successors) uses.insert(s.arguments.begin(), s.arguments.end());
          for (const Region& inner : op.regions) collect_uses(inner, uses);
        }
        for (ValueId v : uses) here.erase(v);
      }
    }
    std::unordered_set<ValueId> seen;
    for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
      std::unordered_set<ValueId> inside;
      for (const Region& inner : op->regions) {
        collect_uses(inner, inside);
        scan(inner);
      }
      for (ValueId v : inside)
        if (here.count(v) != 0 && seen.insert(v).second) nested_[&*op].push_back(v);
      std::vector<ValueId> direct(op->operands);
      for (const Successor& s : op->successors)
        direct.insert(direct.end(), s.arguments.begin(), s.arguments.end());
      std::vector<ValueId> dying;
      for (ValueId v : direct)
        if (here.count(v) != 0 && seen.count(v) == 0) dying.push_back(v);
      for (ValueId v : dying) seen.insert(v);
      if (!dying.empty()) direct_[&*op] = std::move(dying);
    }
  }
}

}  // namespace nereid::ttir
