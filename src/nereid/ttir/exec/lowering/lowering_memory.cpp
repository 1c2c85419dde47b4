// Memory, descriptors and matrix products.
#include "nereid/ttir/exec/atomic.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/lowering/lowering_impl.h"

namespace nereid::ttir {

void Lowering::lower_descriptor(const Op& op) {
  if (op.kind == OpKind::kMakeTensorDescriptor) {
    Instruction& i = emit(handlers::make_descriptor, &op);
    Extra& e = extra(i);
    e.inputs = slots(op.operands);
    e.numbers = {op.segments[1]};
    if (op.text("padding").find("nan") != std::string::npos) i.flags |= kPropagateNan;
    i.out = slot_of(op.results[0]);
    return;
  }
  const Type& d = type(op.operands[0]);
  const auto indices = static_cast<size_t>(op.segments[1]);
  const bool loads = op.kind == OpKind::kDescriptorLoad || op.kind == OpKind::kDescriptorGather;
  const bool rows = op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter;
  Instruction& i = emit(op.kind == OpKind::kDescriptorLoad      ? handlers::descriptor_load
                        : op.kind == OpKind::kDescriptorStore   ? handlers::descriptor_store
                        : op.kind == OpKind::kDescriptorGather  ? handlers::descriptor_gather
                        : op.kind == OpKind::kDescriptorScatter ? handlers::descriptor_scatter
                                                                : handlers::descriptor_reduce,
                        &op);
  Extra& e = extra(i);
  e.in_shape = d.shape;
  i.in[0] = slot_of(op.operands[0]);
  if (rows) {
    i.in[1] = slot_of(op.operands[1]);
    i.in[2] = slot_of(op.operands[2]);
    if (!loads) i.in[3] = slot_of(op.operands[3]);
    e.elems = {type(op.operands[1]).elem};
  } else {
    for (size_t k = 0; k < indices; ++k) e.inputs.push_back(slot_of(op.operands[1 + k]));
    if (!loads) input(i, op, 1, op.operands.back());
  }
  if (loads) {
    result(i, op);
  } else {
    i.elem = type(op.operands.back()).elem;
    shape(i, type(op.operands.back()));
  }
  if (op.kind == OpKind::kDescriptorReduce) {
    code_->communicates = true;
    Rmw rmw = rmw_named(op.text("rmw"));
    if (rmw == Rmw::kAdd && is_float(i.elem)) rmw = Rmw::kFadd;
    if (rmw == Rmw::kInvalid) return unsupported(op, "descriptor_reduce " + op.text("rmw"));
    i.axis = static_cast<int8_t>(rmw);
  }
}

void Lowering::lower_dot(const Op& op) {
  Instruction& i = plain(op.kind == OpKind::kDot ? handlers::dot : handlers::dot_scaled, op);
  Extra& e = extra(i);
  const Type &a = type(op.operands[0]), &b = type(op.operands[1]), &c = type(op.results[0]);
  const auto rank = static_cast<size_t>(c.rank());
  e.elems = {a.elem, b.elem};
  const int64_t batch = rank == 3 ? c.shape[0] : 1;
  if (op.kind == OpKind::kDot) {
    e.numbers = {batch, c.shape[rank - 2], c.shape[rank - 1], a.shape[rank - 1]};
    e.text = op.text("inputPrecision");
    return;
  }
  const bool a_along = op.integer("lhs_k_pack", 1) != 0, b_along = op.integer("rhs_k_pack", 1) != 0;
  const int64_t k = a.shape[1] * (op.text("lhs") == "e2m1" && a_along ? 2 : 1);
  e.numbers = {1, c.shape[0], c.shape[1], k, a_along, b_along, 0, 0};
  e.text = op.text("lhs") + " " + op.text("rhs");
  // The scales' places are fixed: 3 is a's, 4 is b's.
  size_t next = 3;
  i.in[3] = i.in[4] = -1;
  i.kills &= 7;
  for (size_t side = 0; side < 2; ++side) {
    if (op.segments[3 + side] == 0) continue;
    const ValueId scale = op.operands[next++];
    i.in[3 + side] = slot_of(scale);
    e.numbers[6 + side] = type(scale).elements();
  }
}

void Lowering::lower_memory(const Op& op) {
  const bool is_load = op.kind == OpKind::kLoad;
  Instruction& i = plain(is_load ? handlers::load : handlers::store, op);
  const size_t n = op.operands.size();
  if (is_load) {
    if (n > 1) i.flags |= kHasMask;
    if (n > 2) i.flags |= kHasOther;
    if (op.integer("isVolatile") != 0) {
      i.flags |= kVolatile;
      code_->synchronizes = code_->communicates = true;  // who reads so waits for another program
    } else if (may_borrow_) {
      i.axis = kMayBorrow;
    }
  } else {
    if (n > 2) i.flags |= kHasMask;
    i.elem = type(op.operands[1]).elem;
    shape(i, type(op.operands[0]));
  }
}

void Lowering::lower_atomic(const Op& op) {
  const bool rmw = op.kind == OpKind::kAtomicRmw;
  Instruction& i = plain(rmw ? handlers::atomic_rmw : handlers::atomic_cas, op);
  if (rmw) {
    const Rmw which = rmw_named(op.text("rmw"));
    if (which == Rmw::kInvalid || (is_float(i.out_elem) && (which == Rmw::kAdd || which == Rmw::kUmax ||
                                                            which == Rmw::kUmin || which <= Rmw::kXor)))
      return unsupported(op, fmt::format("tt.atomic_rmw {} of {}", op.text("rmw"), to_string(i.out_elem)));
    i.axis = static_cast<int8_t>(which);
    if (op.operands.size() > 2) i.flags |= kHasMask;
  }
  const std::string& sem = op.text("sem");
  code_->communicates = true;
  if (sem == "release" || sem == "acq_rel") i.flags |= kReleases;
  if (!used(op.results[0])) {
    i.flags |= kForgotten;
    return;
  }
  code_->synchronizes = true;
  if (sem == "acquire" || sem == "acq_rel") i.flags |= kAcquires;
  if (!type(op.results[0]).tensor) i.flags |= kHandsRound;
}

}  // namespace nereid::ttir
