#include "nereid/ttir/analysis/liveness.h"

#include <algorithm>
#include <unordered_set>

namespace nereid::ttir {
namespace {

void collect_uses(const Block& block, std::unordered_set<ValueId>& uses) {
  for (const Op& op : block.ops) {
    uses.insert(op.operands.begin(), op.operands.end());
    for (const Successor& s : op.successors) uses.insert(s.arguments.begin(), s.arguments.end());
    for (const Region& inner : op.regions)
      for (const Block& inside : inner.blocks) collect_uses(inside, uses);
  }
}

}  // namespace

bool Liveness::has(const Map& map, const Op& op, ValueId value) {
  const auto found = map.find(&op);
  return found != map.end() &&
         std::find(found->second.begin(), found->second.end(), value) != found->second.end();
}

void Liveness::scan(const Region& region) {
  // With several blocks, what more than one of them uses lives on: the only block that uses a value, else -1.
  std::unordered_map<ValueId, int> user;
  if (region.blocks.size() > 1) {
    for (size_t b = 0; b < region.blocks.size(); ++b) {
      std::unordered_set<ValueId> uses;
      collect_uses(region.blocks[b], uses);
      for (ValueId v : uses) {
        const auto [entry, is_new] = user.try_emplace(v, static_cast<int>(b));
        if (!is_new) entry->second = -1;
      }
    }
  }
  for (size_t b = 0; b < region.blocks.size(); ++b) {
    const Block& block = region.blocks[b];
    std::unordered_set<ValueId> here(block.arguments.begin(), block.arguments.end());
    for (const Op& op : block.ops) here.insert(op.results.begin(), op.results.end());
    for (auto v = here.begin(); !user.empty() && v != here.end();) {
      const auto found = user.find(*v);
      v = found != user.end() && found->second != static_cast<int>(b) ? here.erase(v) : std::next(v);
    }
    std::unordered_set<ValueId> seen;
    for (auto op = block.ops.rbegin(); op != block.ops.rend(); ++op) {
      std::unordered_set<ValueId> inside;
      for (const Region& inner : op->regions) {
        for (const Block& inner_block : inner.blocks) collect_uses(inner_block, inside);
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
