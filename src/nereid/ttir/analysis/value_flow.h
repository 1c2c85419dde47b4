// Which value becomes which through control flow: a fixed point over it says where a value may come from.
#pragma once

#include <cstddef>
#include <vector>

#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Calls flow(from, to) for each value that `op`, one of `region`'s own, hands on as it is: to the blocks that
// it may go to, into and out of an if or a loop, to a callee's parameters and from what it returns. False:
// `op` is none of these, and its results are its own.
template <class Flow>
bool flow_through_control(const Module& module, const Region& region, const Op& op, Flow&& flow) {
  using Values = std::vector<ValueId>;
  const auto pass = [&](const Values& from, size_t first, const Values& to, size_t skip) {
    for (size_t k = 0; first + k < from.size() && skip + k < to.size(); ++k)
      flow(from[first + k], to[skip + k]);
  };
  // From what a region ends with.
  const auto yield = [&](const Region& inner, size_t first, const Values& to, size_t skip) {
    if (!inner.blocks.empty() && !inner.blocks[0].ops.empty())
      pass(inner.blocks[0].ops.back().operands, first, to, skip);
  };
  for (const Successor& s : op.successors)
    pass(s.arguments, 0, region.blocks[static_cast<size_t>(s.block)].arguments, 0);
  switch (op.kind) {
    case OpKind::kScfIf:
      for (const Region& inner : op.regions) yield(inner, 0, op.results, 0);
      return true;
    case OpKind::
        kScfFor: {  // operands: from, to, step, what is carried; arguments: the index, what is carried
      const Values& arguments = op.regions[0].blocks[0].arguments;
      pass(op.operands, 3, arguments, 1);
      yield(op.regions[0], 0, arguments, 1);
      pass(arguments, 1, op.results, 0);
      return true;
    }
    case OpKind::kScfWhile:  // region 0 ends with the condition and the values passed on
      pass(op.operands, 0, op.regions[0].blocks[0].arguments, 0);
      yield(op.regions[1], 0, op.regions[0].blocks[0].arguments, 0);
      yield(op.regions[0], 1, op.regions[1].blocks[0].arguments, 0);
      yield(op.regions[0], 1, op.results, 0);
      return true;
    case OpKind::kCall: {
      const Function* callee = module.find(op.text("callee"));
      if (callee == nullptr) return true;
      pass(op.operands, 0, callee->parameters, 0);
      for (const Block& block : callee->body.blocks)
        if (!block.ops.empty() && block.ops.back().kind == OpKind::kReturn)
          pass(block.ops.back().operands, 0, op.results, 0);
      return true;
    }
    default:
      return false;
  }
}

}  // namespace nereid::ttir
