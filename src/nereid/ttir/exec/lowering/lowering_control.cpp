// Control flow and regions.
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/lowering/lowering_impl.h"

namespace nereid::ttir {

void Lowering::lower_if(const Op& op) {
  if (in_region_) return lower_if_as_select(op);
  Instruction& branch = emit(handlers::branch_unless, &op);
  branch.in[0] = slot_of(op.operands[0]);
  const size_t to_else = out_->size() - 1;
  const auto results = slots(op.results);
  yields_.push_back(&results);
  block_ops(op.regions[0].blocks[0]);
  const bool has_else = !op.regions[1].blocks.empty();
  const size_t to_end = has_else ? emit_jump(op) : 0;
  patch(to_else);
  if (has_else) {
    block_ops(op.regions[1].blocks[0]);
    patch(to_end);
  }
  yields_.pop_back();
}

void Lowering::lower_if_as_select(const Op& op) {
  std::vector<std::vector<ValueId>> yielded(2);
  for (size_t r = 0; r < 2; ++r) {
    if (op.regions[r].blocks.empty()) continue;
    for (const Op& inner : op.regions[r].blocks[0].ops) {
      if (inner.kind == OpKind::kScfYield)
        yielded[r] = inner.operands;
      else
        operation(inner);
    }
  }
  for (size_t k = 0; k < op.results.size(); ++k) {
    Instruction& i = emit(handlers::select, &op);
    i.in[0] = slot_of(op.operands[0]);
    i.in[1] = slot_of(yielded[0][k]);
    i.in[2] = slot_of(yielded[1][k]);
    i.inputs = 3;
    i.elem = Elem::kI1;
    result(i, op, k);
    i.kernel = erase(select_kernel(elem_bytes(i.out_elem)));
  }
}

void Lowering::lower_for(const Op& op) {
  const Block& body = op.regions[0].blocks[0];
  hoist(body);
  // The results take the slots of the iter_args: the loop leaves them there.
  std::vector<int32_t> carried;
  for (size_t k = 0; k < op.results.size(); ++k) {
    const int32_t s = slot_of(op.results[k]);
    bind(body.arguments[k + 1], s);
    carried.push_back(s);
  }
  const int32_t index = slot_of(body.arguments[0]);
  move_all(op, std::vector<ValueId>(op.operands.begin() + 3, op.operands.end()), carried);
  Instruction& enter = emit(handlers::for_enter, &op);
  enter.in[0] = slot_of(op.operands[0]);
  enter.out = index;
  const auto bounds = [&](Instruction& i) {
    i.in[0] = index;
    i.in[1] = slot_of(op.operands[1]);
    i.in[2] = slot_of(op.operands[2]);
    if (op.has("unsigned")) i.flags |= kUnsigned;
  };
  const auto top = static_cast<int32_t>(out_->size());
  bounds(emit(handlers::for_test, &op));
  yields_.push_back(&carried);
  block_ops(body);
  yields_.pop_back();
  Instruction& next = emit(handlers::for_next, &op);
  bounds(next);
  next.target = top;
  patch(static_cast<size_t>(top));
}

void Lowering::lower_while(const Op& op) {
  const Block &before = op.regions[0].blocks[0], &after = op.regions[1].blocks[0];
  const auto arguments = slots(before.arguments);
  move_all(op, op.operands, arguments);
  const auto top = static_cast<int32_t>(out_->size());
  const auto results = slots(op.results), passed = slots(after.arguments);
  for (const Op& inner : before.ops) {
    if (!error_.empty()) return;
    if (inner.kind != OpKind::kScfCondition) {
      one(inner);
      continue;
    }
    const std::vector<ValueId> values(inner.operands.begin() + 1, inner.operands.end());
    Instruction& branch = emit(handlers::branch_unless, &inner);
    branch.in[0] = slot_of(inner.operands[0]);
    const size_t leave = out_->size() - 1;
    move_all(inner, values, passed);
    yields_.push_back(&arguments);
    block_ops(after);
    yields_.pop_back();
    Instruction& back = emit(handlers::jump, &op);
    back.target = top;
    patch(leave);
    move_all(inner, values, results);
  }
}

void Lowering::lower_branch(const Op& op) {
  const Region& region = *region_of_blocks_.back();
  const auto go = [&](const Successor& s) {
    move_all(op, s.arguments, slots(region.blocks[static_cast<size_t>(s.block)].arguments));
    fixups_.back().emplace_back(emit_jump(op), s.block);
  };
  if (op.kind == OpKind::kBr) return go(op.successors[0]);
  Instruction& branch = emit(handlers::branch_unless, &op);
  branch.in[0] = slot_of(op.operands[0]);
  const size_t at = out_->size() - 1;
  go(op.successors[0]);
  patch(at);
  go(op.successors[1]);
}

void Lowering::lower_call(const Op& op) {
  const Function& callee = *module_.find(op.text("callee"));
  std::vector<int32_t> arguments = slots(op.operands), results = slots(op.results);
  // The callee's values get slots of their own at every call.
  slots_.emplace_back();
  inlined_.push_back(++inlinings_);
  std::vector<int32_t> parameters = slots(callee.parameters);
  if (in_region_) {
    for (size_t k = 0; k < parameters.size(); ++k) bind(callee.parameters[k], arguments[k]);
  } else if (!arguments.empty()) {
    Instruction& i = emit(handlers::moves, &op);
    Extra& e = extra(i);
    e.inputs = arguments;
    e.outputs = parameters;
    e.kills.assign(arguments.size(), false);
  }
  if (in_region_) {
    for (const Op& inner : callee.body.blocks[0].ops) {
      if (inner.kind != OpKind::kReturn) {
        operation(inner);
        continue;
      }
      for (size_t k = 0; k < results.size(); ++k) {
        Instruction& i = emit(handlers::splat, &inner);
        i.in[0] = slot_of(inner.operands[k]);
        i.out = results[k];
      }
    }
  } else {
    function(callee, results, static_cast<int>(slots_.size()));
  }
  slots_.pop_back();
  inlined_.pop_back();
}

void Lowering::lower_return(const Op& op) {
  if (returns_.size() == 1) {
    emit(handlers::finish, &op);
    return;
  }
  if (!op.operands.empty()) {
    Instruction& i = emit(handlers::moves, &op);
    Extra& e = extra(i);
    e.inputs = slots(op.operands);
    e.outputs = *returns_.back().results;
    e.kills.assign(op.operands.size(), false);
  }
  returns_.back().jumps.push_back(emit_jump(op));
}

void Lowering::lower_region(const Op& op, Extra& e) {
  const Block& block = op.regions[0].blocks[0];
  const bool saved = in_region_;
  auto* const saved_out = out_;
  in_region_ = true;
  out_ = &e.body;
  e.body_inputs = slots(block.arguments);
  for (const Op& inner : block.ops) {
    if (traits(inner.kind) & kTerminator)
      e.body_outputs = slots(inner.operands);
    else
      operation(inner);
  }
  in_region_ = saved;
  out_ = saved_out;
}

OpKind Lowering::simple_combine(const Op& op) {
  const Block& block = op.regions[0].blocks[0];
  if (op.operands.size() != 1 || block.ops.size() != 2) return OpKind::kCount;
  const Op& inner = block.ops[0];
  const auto& last = block.ops[1].operands;
  if (inner.operands.size() != 2 || last.size() != 1 || last[0] != inner.results[0]) return OpKind::kCount;
  if (inner.operands[0] == inner.operands[1]) return OpKind::kCount;
  for (ValueId v : inner.operands)
    if (v != block.arguments[0] && v != block.arguments[1]) return OpKind::kCount;
  switch (inner.kind) {
    case OpKind::kAddf:
    case OpKind::kMulf:
    case OpKind::kMaxnumf:
    case OpKind::kMinnumf:
    case OpKind::kMaximumf:
    case OpKind::kMinimumf:
    case OpKind::kAddi:
    case OpKind::kMuli:
    case OpKind::kAndi:
    case OpKind::kOri:
    case OpKind::kXori:
    case OpKind::kMinsi:
    case OpKind::kMaxsi:
    case OpKind::kMinui:
    case OpKind::kMaxui:
      return inner.kind;
    default:
      return OpKind::kCount;
  }
}

void Lowering::lower_reduction(const Op& op) {
  const Type& first = type(op.operands[0]);
  const bool scan = op.kind == OpKind::kScan;
  Instruction& made = emit(scan ? handlers::scan : handlers::reduce, &op);
  const size_t at = out_->size() - 1;
  Extra& e = extra(made);
  made.elem = first.elem;
  made.out_elem = first.elem;
  made.axis = static_cast<int8_t>(op.integer("axis"));
  made.lanes = first.elements();
  if (op.integer("reverse") != 0) made.flags |= kReverse;
  e.in_shape = first.shape;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    e.inputs.push_back(slot_of(op.operands[k]));
    e.outputs.push_back(slot_of(op.results[k]));
    e.elems.push_back(type(op.operands[k]).elem);
    bool last = kill(op, op.operands[k]);
    for (size_t l = k + 1; l < op.operands.size(); ++l) last = last && op.operands[l] != op.operands[k];
    e.kills.push_back(last);
  }
  const OpKind simple = simple_combine(op);
  if (simple != OpKind::kCount) {
    if (const auto kernel = binary_kernel(simple, first.elem)) {
      made.kernel = erase(kernel);
      if (!scan) {
        made.run = handlers::reduce_fast;
        if (first.elem == Elem::kF32 && simple == OpKind::kAddf) e.kernels[0] = erase(sum_f32);
        if (first.elem == Elem::kF32 && simple == OpKind::kMaxnumf) e.kernels[0] = erase(max_f32);
        if (first.elem == Elem::kF32 && simple == OpKind::kMinnumf) e.kernels[0] = erase(min_f32);
      }
    }
  }
  if ((*out_)[at].kernel == nullptr) lower_region(op, e);
}

void Lowering::lower_map(const Op& op) {
  Instruction& i = emit(handlers::map_elementwise, &op);
  Extra& e = extra(i);
  i.lanes = type(op.operands[0]).elements();
  e.in_shape = type(op.operands[0]).shape;
  e.numbers = {op.integer("pack", 1)};
  for (ValueId v : op.operands) {
    e.inputs.push_back(slot_of(v));
    e.elems.push_back(type(v).elem);
    e.kills.push_back(false);
  }
  for (ValueId v : op.results) {
    e.outputs.push_back(slot_of(v));
    e.elems.push_back(type(v).elem);
  }
  lower_region(op, e);
}

}  // namespace nereid::ttir
