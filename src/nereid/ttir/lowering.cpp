#include "nereid/ttir/lowering.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "nereid/ttir/atomic.h"
#include "nereid/ttir/cost.h"
#include "nereid/ttir/elementwise.h"
#include "nereid/ttir/handlers.h"
#include "nereid/ttir/inline_assembly.h"
#include "nereid/ttir/libdevice.h"
#include "nereid/ttir/liveness.h"

namespace nereid::ttir {
namespace {

constexpr size_t kMaxInstructions = size_t{1} << 21;

// Values whose integers end in an address, so that their overflow matters. Stops where arithmetic forgets
// magnitudes.
std::unordered_set<ValueId> address_values(const Module& module) {
  std::unordered_set<ValueId> found;
  std::unordered_map<ValueId, const Op*> definition;
  std::vector<ValueId> work;
  const auto visit = [&](auto&& self, const Region& region) -> void {
    for (const Block& block : region.blocks)
      for (const Op& op : block.ops) {
        for (ValueId v : op.results) definition[v] = &op;
        if (op.kind == OpKind::kAddptr) work.push_back(op.operands[1]);
        for (const Region& inner : op.regions) self(self, inner);
      }
  };
  for (const Function& f : module.functions) visit(visit, f.body);
  while (!work.empty()) {
    const ValueId v = work.back();
    work.pop_back();
    if (!found.insert(v).second) continue;
    const auto op = definition.find(v);
    if (op == definition.end()) continue;
    switch (op->second->kind) {
      case OpKind::kAddi:
      case OpKind::kSubi:
      case OpKind::kMuli:
      case OpKind::kSplat:
      case OpKind::kBroadcast:
      case OpKind::kExpandDims:
      case OpKind::kReshape:
      case OpKind::kTrans:
      case OpKind::kExtsi:
        for (ValueId operand : op->second->operands) work.push_back(operand);
        break;
      default:
        break;
    }
  }
  return found;
}

class Lowering {
 public:
  Lowering(const Module& module, const Function& kernel)
      : module_(module), kernel_(kernel), addresses_(address_values(module)) {}

  Result<std::unique_ptr<Code>> run() {
    code_ = std::make_unique<Code>();
    out_ = &code_->body;
    for (ValueId p : kernel_.parameters) {
      const int32_t slot = slot_of(p);
      code_->parameter_slots.push_back(slot);
      code_->parameter_types.push_back(type(p));
      mark_prologue(p);
    }
    function(kernel_, {}, /*depth=*/0);
    if (!error_.empty()) return Error{error_, Blame::kInput};
    emit(handlers::finish, nullptr);
    code_->slots = next_slot_;
    for (int32_t s = 0; s < next_slot_; ++s)
      if (prologue_slots_.count(s) == 0) code_->program_slots.push_back(s);
    return std::move(code_);
  }

 private:
  const Type& type(ValueId v) const { return module_.type(v); }

  int32_t slot_of(ValueId v) {
    auto& scope = slots_.back();
    const auto found = scope.find(v);
    if (found != scope.end()) return found->second;
    return scope[v] = next_slot_++;
  }
  void bind(ValueId v, int32_t slot) { slots_.back()[v] = slot; }
  void mark_prologue(ValueId v) {
    prologue_slots_.insert(slot_of(v));
    pinned_.insert(slot_of(v));
  }
  bool in_prologue(ValueId v) { return prologue_slots_.count(slot_of(v)) != 0; }

  void unsupported(const Op& op, const std::string& what) {
    if (!error_.empty()) return;
    std::string where;
    if (op.location >= 0) {
      const SourceLine& line = module_.lines[static_cast<size_t>(op.location)];
      where = fmt::format(" at {}:{}", line.file, line.line);
    }
    error_ = fmt::format("Unsupported: {}{}", what, where);
  }

  Instruction& emit(Handler run, const Op* op) {
    if (code_->body.size() + code_->prologue.size() > kMaxInstructions && error_.empty())
      error_ = "TTIR: the kernel is too long once its calls are inlined";
    out_->emplace_back();
    Instruction& i = out_->back();
    i.run = run;
    if (op != nullptr) {
      i.kind = op->kind;
      i.location = op->location;
      i.flops = static_cast<float>(flops_of(module_, *op));
    }
    return i;
  }
  Extra& extra(Instruction& i) {
    code_->extras.push_back(std::make_unique<Extra>());
    i.extra = code_->extras.back().get();
    return *code_->extras.back();
  }
  bool kill(const Op& op, ValueId v) {
    return !in_region_ && pinned_.count(slot_of(v)) == 0 && live_.back()->dies_at(op, v);
  }
  void input(Instruction& i, const Op& op, size_t which, ValueId v) {
    i.in[which] = slot_of(v);
    if (kill(op, v)) i.kills |= static_cast<uint8_t>(1u << which);
    i.inputs = std::max<uint8_t>(i.inputs, static_cast<uint8_t>(which + 1));
  }
  void shape(Instruction& i, const Type& t) {
    i.lanes = in_region_ ? 0 : t.elements();
    i.rank = static_cast<int8_t>(t.rank());
    for (size_t d = 0; d < t.shape.size() && d < kLazyRank; ++d)
      i.shape[d] = static_cast<int32_t>(t.shape[d]);
  }
  void result(Instruction& i, const Op& op, size_t which = 0) {
    const ValueId v = op.results[which];
    i.out = slot_of(v);
    i.out_elem = type(v).elem;
    shape(i, type(v));
    if (addresses_.count(v) != 0) i.flags |= kAddressFlag;
  }
  // An instruction of `op` with its operands as inputs and its first result.
  Instruction& plain(Handler run, const Op& op) {
    Instruction& i = emit(run, &op);
    for (size_t k = 0; k < op.operands.size() && k < kInputs; ++k) input(i, op, k, op.operands[k]);
    if (!op.operands.empty()) i.elem = type(op.operands[0]).elem;
    if (!op.results.empty()) result(i, op);
    return i;
  }
  template <class F>
  static const void* erase(F* function) {
    return reinterpret_cast<const void*>(function);
  }

  // ---- structure
  // ----------------------------------------------------------------------------------------------
  void function(const Function& f, const std::vector<int32_t>& result_slots, int depth) {
    if (f.body.blocks.empty()) {
      error_ = fmt::format("TTIR: function @{} has no body", f.name);
      return;
    }
    const Liveness live(f.body);
    live_.push_back(&live);
    returns_.push_back({&result_slots, {}, depth});
    blocks(f.body);
    for (const size_t at : returns_.back().jumps) (*out_)[at].target = static_cast<int32_t>(out_->size());
    returns_.pop_back();
    live_.pop_back();
  }

  void blocks(const Region& region) {
    std::vector<int32_t> starts;
    fixups_.emplace_back();
    region_of_blocks_.push_back(&region);
    for (const Block& block : region.blocks) {
      starts.push_back(static_cast<int32_t>(out_->size()));
      block_ops(block);
    }
    for (const auto& [at, target] : fixups_.back()) (*out_)[at].target = starts[static_cast<size_t>(target)];
    region_of_blocks_.pop_back();
    fixups_.pop_back();
  }

  // Whether a load's result is used up by loops over floats before the block writes, branches or calls
  // anything.
  bool may_borrow(const Block& block, const Op& load) {
    const ValueId v = load.results[0];
    if (!type(v).tensor || !is_float(type(v).elem)) return false;
    int64_t left = uses_of(v);
    constexpr int64_t kMostAhead = 64;
    const Op* const end = block.ops.data() + block.ops.size();
    for (const Op* op = &load + 1; left > 0; ++op) {
      if (op == end || op - &load > kMostAhead) return false;
      const bool reads = op->kind == OpKind::kLoad || op->kind == OpKind::kReduce;
      if (!reads && (!(traits(op->kind) & kPure) || !op->regions.empty())) return false;
      const auto here = std::count(op->operands.begin(), op->operands.end(), v);
      if (here == 0) continue;
      const bool loop = (traits(op->kind) & kSameType) || op->kind == OpKind::kExtf ||
                        op->kind == OpKind::kTruncf || op->kind == OpKind::kReduce;
      if (!loop) return false;
      left -= here;
    }
    return true;
  }

  void block_ops(const Block& block) {
    for (const Op& op : block.ops) {
      if (!error_.empty()) return;
      may_borrow_ = op.kind == OpKind::kLoad && may_borrow(block, op);
      if (done_.count(key(op)) != 0) continue;  // moved before the loop
      one(op);
      if (!in_region_) {
        std::vector<int32_t> slots;
        for (ValueId v : live_.back()->die_inside(op)) {
          const int32_t s = slot_of(v);
          if (pinned_.count(s) == 0 && (type(v).tensor || type(v).elem == Elem::kDescriptor))
            slots.push_back(s);
        }
        release(slots);
      }
    }
  }
  void release(const std::vector<int32_t>& slots) {
    for (size_t first = 0; first < slots.size(); first += kInputs) {
      Instruction& i = emit(handlers::nothing, nullptr);
      for (size_t k = 0; k < kInputs && first + k < slots.size(); ++k) {
        i.in[k] = slots[first + k];
        i.kills |= static_cast<uint8_t>(1u << k);
      }
    }
  }

  // An operation, in the inlining it belongs to.
  std::pair<const Op*, size_t> key(const Op& op) const { return {&op, inlined_.back()}; }

  bool hoistable(const Op& op) {
    return (traits(op.kind) & kPure) && op.kind != OpKind::kGetProgramId && op.regions.empty() &&
           !in_region_ && op.kind != OpKind::kDot && op.kind != OpKind::kDotScaled;
  }
  bool all_in_prologue(const Op& op) {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return in_prologue(v); });
  }

  void one(const Op& op) {
    // Inlined functions may be lowered several times with different arguments; only the kernel's own values
    // are pinned.
    if (hoistable(op) && all_in_prologue(op)) {
      auto* const saved = out_;
      out_ = &code_->prologue;
      operation(op);
      out_ = saved;
      for (ValueId v : op.results) mark_prologue(v);
      return;
    }
    operation(op);
  }

  // Pure operations of a loop's body whose operands come from outside it, before the loop.
  void hoist(const Block& body) {
    std::unordered_set<ValueId> inside(body.arguments.begin(), body.arguments.end());
    for (const Op& op : body.ops) {
      const bool outside = std::none_of(op.operands.begin(), op.operands.end(),
                                        [&](ValueId v) { return inside.count(v) != 0; });
      if (hoistable(op) && outside && !all_in_prologue(op)) {
        for (ValueId v : op.results) pinned_.insert(slot_of(v));
        operation(op);
        done_.insert(key(op));
      } else if (!(hoistable(op) && outside)) {
        inside.insert(op.results.begin(), op.results.end());
      } else {
        one(op);  // into the prologue
        done_.insert(key(op));
      }
    }
  }

  void move_all(const Op& op, const std::vector<ValueId>& from, const std::vector<int32_t>& to) {
    if (from.empty()) return;
    Instruction& i = emit(handlers::moves, &op);
    Extra& e = extra(i);
    for (size_t k = 0; k < from.size(); ++k) {
      e.inputs.push_back(slot_of(from[k]));
      e.outputs.push_back(to[k]);
      bool last = kill(op, from[k]);
      for (size_t l = k + 1; l < from.size(); ++l) last = last && from[l] != from[k];
      for (size_t l = 0; l < from.size(); ++l) last = last && to[l] != e.inputs[k];
      e.kills.push_back(last);
    }
  }
  size_t emit_jump(const Op& op) {
    emit(handlers::jump, &op);
    return out_->size() - 1;
  }
  void patch(size_t at) { (*out_)[at].target = static_cast<int32_t>(out_->size()); }
  std::vector<int32_t> slots(const std::vector<ValueId>& values) {
    std::vector<int32_t> all;
    for (ValueId v : values) all.push_back(slot_of(v));
    return all;
  }

  void lower_if(const Op& op) {
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
  // In a combine region every lane has a condition of its own: both branches are run, results selected.
  void lower_if_as_select(const Op& op) {
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

  void lower_for(const Op& op) {
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

  void lower_while(const Op& op) {
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

  void lower_branch(const Op& op) {
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

  void lower_call(const Op& op) {
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

  void lower_return(const Op& op) {
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

  // ---- regions that run on lanes
  // ----------------------------------------------------------------------------------
  void lower_region(const Op& op, Extra& e) {
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

  // The one operation that a combine region consists of, if it is so simple; kCount otherwise.
  OpKind simple_combine(const Op& op) {
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

  void lower_reduction(const Op& op) {
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

  void lower_map(const Op& op) {
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

  // ---- elementwise
  // -------------------------------------------------------------------------------------------------- What a
  // narrow float's lanes are widened by; null when the kernel takes the type itself.
  void narrow_kernels(Instruction& i, Elem elem, Elem result) {
    Extra& e = extra(i);
    e.kernels[0] = erase(widen_kernel(elem));
    if (is_float(result)) e.kernels[1] = erase(narrow_kernel(result));
  }
  static bool narrow(Elem e) { return is_float(e) && e != Elem::kF32 && e != Elem::kF64; }

  void lower_same_type(const Op& op) {
    const Type& t = type(op.results[0]);
    const bool small = narrow(t.elem);
    const Elem compute = small ? Elem::kF32 : t.elem;
    const size_t operands = op.operands.size();
    if (operands == 1) {
      const auto kernel = unary_kernel(op.kind, compute);
      if (kernel == nullptr)
        return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
      Instruction& i = plain(small ? handlers::unary_narrow : handlers::unary, op);
      i.kernel = erase(kernel);
      if (small) narrow_kernels(i, t.elem, t.elem);
    } else if (operands == 3) {
      const auto kernel = ternary_kernel(op.kind, compute, op.text("propagateNan") == "all");
      if (kernel == nullptr)
        return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
      Instruction& i = plain(small ? handlers::ternary_narrow : handlers::ternary, op);
      i.kernel = erase(kernel);
      if (small) narrow_kernels(i, t.elem, t.elem);
    } else {
      const auto kernel = binary_kernel(op.kind, compute);
      if (kernel == nullptr)
        return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
      Handler run = small ? handlers::binary_narrow : handlers::binary;
      if (is_integer(t.elem) && t.tensor) run = handlers::integer_binary;
      if (is_integer(t.elem) && !t.tensor && !in_region_ && t.elem != Elem::kI1 && fast_scalar(op.kind))
        run = handlers::scalar_integer;
      Instruction& i = plain(run, op);
      i.kernel = erase(kernel);
      if (small) narrow_kernels(i, t.elem, t.elem);
    }
  }
  static bool fast_scalar(OpKind kind) {
    switch (kind) {
      case OpKind::kAddi:
      case OpKind::kSubi:
      case OpKind::kMuli:
      case OpKind::kAndi:
      case OpKind::kOri:
      case OpKind::kXori:
      case OpKind::kMinsi:
      case OpKind::kMaxsi:
      case OpKind::kDivsi:
      case OpKind::kRemsi:
      case OpKind::kDivui:
      case OpKind::kRemui:
        return true;
      default:
        return false;
    }
  }

  void lower_compare(const Op& op) {
    const Type& t = type(op.operands[0]);
    const Predicate predicate = predicate_named(op.text("predicate"), is_float(t.elem));
    const bool small = narrow(t.elem);
    const auto kernel = compare_kernel(predicate, small ? Elem::kF32 : t.elem);
    if (kernel == nullptr)
      return unsupported(op,
                         fmt::format("{} {} of {}", to_string(op.kind), op.text("predicate"), to_string(t)));
    Handler run = small ? handlers::compare_narrow : handlers::binary;
    if (!is_float(t.elem) && t.tensor) run = handlers::integer_compare;
    if (is_integer(t.elem) && !t.tensor && !in_region_ && t.elem != Elem::kI1) run = handlers::scalar_compare;
    Instruction& i = plain(run, op);
    i.kernel = erase(kernel);
    i.axis = static_cast<int8_t>(predicate);
    if (small) narrow_kernels(i, t.elem, Elem::kI1);
  }

  void lower_convert(const Op& op) {
    const Elem from = type(op.operands[0]).elem, to = type(op.results[0]).elem;
    const bool tensor = type(op.operands[0]).tensor;
    const bool floats = is_float(from) && is_float(to);
    const std::string& rounding = op.text("rounding");
    if (floats && (rounding == "rtz" || (from == Elem::kF64 && narrow(to)))) {
      plain(handlers::narrow_toward_zero, op).axis = rounding == "rtz";
      return;
    }
    if (floats && from == to) {
      plain(handlers::bitcast, op);
      return;
    }
    if (floats && from != Elem::kF64 && to != Elem::kF64) {
      // One side may be f32: then a single loop does it.
      const auto direct = from == Elem::kF32 ? narrow_kernel(to)
                          : to == Elem::kF32 ? widen_kernel(from)
                                             : nullptr;
      if (direct != nullptr) {
        plain(handlers::unary, op).kernel = erase(direct);
        return;
      }
      Instruction& i = plain(handlers::convert_narrow, op);
      Extra& e = extra(i);
      e.kernels[0] = erase(widen_kernel(from));
      e.kernels[1] = erase(narrow_kernel(to));
      return;
    }
    // A narrow float on either side of an integer or an f64 goes through f32.
    const OpKind kind = floats ? (to == Elem::kF64 ? OpKind::kExtf : OpKind::kTruncf) : op.kind;
    if (narrow(from) && floats) {
      Instruction& i = plain(handlers::convert_narrow, op);
      Extra& e = extra(i);
      e.kernels[0] = erase(widen_kernel(from));
      e.kernels[1] = erase(convert_kernel(OpKind::kExtf, Elem::kF32, Elem::kF64));
      return;
    }
    if (narrow(from) || narrow(to)) {
      Instruction& i = plain(handlers::convert_narrow, op);
      Extra& e = extra(i);
      e.kernels[0] = erase(narrow(from) ? widen_kernel(from) : convert_kernel(op.kind, from, Elem::kF32));
      e.kernels[1] = erase(narrow(to) ? narrow_kernel(to) : convert_kernel(op.kind, Elem::kF32, to));
      if (e.kernels[0] == nullptr || e.kernels[1] == nullptr)
        unsupported(op, fmt::format("{} from {} to {}", to_string(op.kind), to_string(from), to_string(to)));
      return;
    }
    const auto kernel = convert_kernel(kind, from, to);
    if (kernel == nullptr && from != to)
      return unsupported(op,
                         fmt::format("{} from {} to {}", to_string(op.kind), to_string(from), to_string(to)));
    Handler run = handlers::unary;
    if (is_integer(from) && is_integer(to)) run = tensor ? handlers::integer_convert : handlers::unary;
    if (kernel == nullptr) run = handlers::splat;  // between index and i64
    if (is_float(from) && to == Elem::kI1) run = handlers::integer_to_i1;
    plain(run, op).kernel = erase(kernel);
  }

  void lower_extended(const Op& op) {
    const Type& t = type(op.results[0]);
    const OpKind low = op.kind == OpKind::kAdduiExtended ? OpKind::kAddi : OpKind::kMuli;
    for (size_t which = 0; which < 2; ++which) {
      const auto kernel = binary_kernel(which == 0 ? low : op.kind, t.elem);
      if (kernel == nullptr)
        return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
      Instruction& i = emit(handlers::binary, &op);
      i.in[0] = slot_of(op.operands[0]);
      i.in[1] = slot_of(op.operands[1]);
      i.inputs = 2;
      i.elem = t.elem;
      result(i, op, which);
      i.kernel = erase(kernel);
      if (op.kind == OpKind::kAdduiExtended && which == 1 && t.elem != Elem::kI8) {
        // The carry comes out in the operands' type: compare instead, the sum below an operand.
        i.in[0] = slot_of(op.results[0]);
        i.in[1] = slot_of(op.operands[0]);
        i.kernel = erase(compare_kernel(Predicate::kUlt, t.elem));
      }
    }
  }

  void lower_external(const Op& op) {
    std::vector<Elem> elems;
    for (ValueId v : op.operands) elems.push_back(type(v).elem);
    elems.push_back(type(op.results[0]).elem);
    const External found = op.results.size() == 1 ? external_named(op.text("symbol"), elems) : External{};
    if (found.call == nullptr) {
      std::string signature;
      for (Elem e : elems) signature += (signature.empty() ? "" : ", ") + std::string(to_string(e));
      return unsupported(op, fmt::format("external function {} ({})", op.text("symbol"), signature));
    }
    if (found.unary != nullptr) {
      plain(handlers::unary, op).kernel = erase(found.unary);
    } else if (found.binary != nullptr) {
      plain(handlers::binary, op).kernel = erase(found.binary);
    } else {
      Instruction& i = plain(handlers::external, op);
      i.kernel = erase(found.call);
      extra(i).elems = elems;
    }
  }

  void lower_assembly(const Op& op) {
    const std::string &text = op.text("asm"), &constraints = op.text("constraints");
    const int64_t pack = op.integer("packed_element", 1);
    const bool floats = op.operands.size() == 1 && op.results.size() == 1 && pack == 1 &&
                        type(op.operands[0]).elem == Elem::kF32 && type(op.results[0]).elem == Elem::kF32;
    if (const auto kernel = floats ? known_assembly(text, constraints) : nullptr) {
      plain(handlers::unary, op).kernel = erase(kernel);
      return;
    }
    const auto program = PtxProgram::parse(text, constraints);
    if (!program)
      return unsupported(op, fmt::format("inline assembly \"{}\": {}", text, program.error().message));
    Instruction& i = emit(handlers::assembly, &op);
    Extra& e = extra(i);
    e.inputs = slots(op.operands);
    e.outputs = slots(op.results);
    e.numbers = {pack};
    e.assembly = std::make_shared<const PtxProgram>(*program);
    int64_t registers[2] = {};
    const Type& first = type(op.results[0]);
    for (const auto* values : {&op.operands, &op.results})
      for (ValueId v : *values) {
        const Elem elem = type(v).elem;
        if (elem == Elem::kI1 || elem == Elem::kPointer ||
            (pack > 1 && 32 % elem_bits(elem) != 0 && elem_bits(elem) < 32))
          return unsupported(op, fmt::format("inline assembly on {}", to_string(type(v))));
        e.elems.push_back(elem);
        const int64_t shared = std::min<int64_t>(std::max(32 / elem_bits(elem), 1), pack);
        registers[values == &op.results] += pack / shared;
      }
    shape(i, first);
    if (pack < 1 || pack > 64 || (pack & (pack - 1)) != 0 || in_region_ || first.elements() % pack != 0 ||
        registers[0] != program->operands() || registers[1] != program->results())
      return unsupported(
          op,
          fmt::format(
              "inline assembly \"{}\": its constraints \"{}\" name {} results and {} operands, the tensors "
              "take {} and {} registers, {} elements at a time",
              text, constraints, program->results(), program->operands(), registers[1], registers[0], pack));
  }

  // ---- the rest
  // -----------------------------------------------------------------------------------------------------
  Instruction& shaped(Handler run, const Op& op) {
    Instruction& i = plain(run, op);
    Extra& e = extra(i);
    e.in_shape = type(op.operands[0]).shape;
    e.out_shape = type(op.results[0]).shape;
    i.axis = static_cast<int8_t>(op.integer("axis"));
    return i;
  }
  Extra& extra_of(const Instruction& i) { return const_cast<Extra&>(*i.extra); }

  void lower_descriptor(const Op& op) {
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
      Rmw rmw = rmw_named(op.text("rmw"));
      if (rmw == Rmw::kAdd && is_float(i.elem)) rmw = Rmw::kFadd;
      if (rmw == Rmw::kInvalid) return unsupported(op, "descriptor_reduce " + op.text("rmw"));
      i.axis = static_cast<int8_t>(rmw);
    }
  }

  void lower_dot(const Op& op) {
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

  void lower_memory(const Op& op) {
    const bool is_load = op.kind == OpKind::kLoad;
    Instruction& i = plain(is_load ? handlers::load : handlers::store, op);
    const size_t n = op.operands.size();
    if (is_load) {
      if (n > 1) i.flags |= kHasMask;
      if (n > 2) i.flags |= kHasOther;
      if (op.integer("isVolatile") != 0) {
        i.flags |= kVolatile;
        code_->synchronizes = true;  // who reads so waits for another program
      } else if (may_borrow_) {
        i.axis = kMayBorrow;
      }
    } else {
      if (n > 2) i.flags |= kHasMask;
      i.elem = type(op.operands[1]).elem;
      shape(i, type(op.operands[0]));
    }
  }

  void lower_atomic(const Op& op) {
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
    if (sem != "relaxed") i.flags |= kSynchronizes;
    if ((sem == "acquire" || sem == "acq_rel") && used(op.results[0])) code_->synchronizes = true;
  }
  bool used(ValueId v) { return uses_of(v) > 0; }
  int64_t uses_of(ValueId v) {
    if (uses_.empty()) {
      const auto visit = [&](auto&& self, const Region& region) -> void {
        for (const Block& block : region.blocks)
          for (const Op& op : block.ops) {
            for (ValueId operand : op.operands) ++uses_[operand];
            for (const Successor& s : op.successors)
              for (ValueId argument : s.arguments) ++uses_[argument];
            for (const Region& inner : op.regions) self(self, inner);
          }
      };
      for (const Function& f : module_.functions) visit(visit, f.body);
    }
    const auto found = uses_.find(v);
    return found == uses_.end() ? 0 : found->second;
  }

  static int8_t axis_of(const std::string& name) {
    return static_cast<int8_t>(name == "y" ? 1 : name == "z" ? 2 : 0);
  }

  void operation(const Op& op) {
    if (!error_.empty()) return;
    if (traits(op.kind) & kSameType) return lower_same_type(op);
    switch (op.kind) {
      case OpKind::kConstant:
      case OpKind::kPoison: {
        Instruction& i = plain(handlers::constant, op);
        extra(i).constant = op.kind == OpKind::kConstant ? op.constant : std::vector<uint64_t>{0};
        i.lanes = type(op.results[0]).elements();
        return;
      }
      case OpKind::kCmpi:
      case OpKind::kCmpf:
        return lower_compare(op);
      case OpKind::kSelect: {
        Instruction& i = plain(handlers::select, op);
        i.kernel = erase(select_kernel(elem_bytes(i.out_elem)));
        return;
      }
      case OpKind::kExtsi:
      case OpKind::kExtui:
      case OpKind::kTrunci:
      case OpKind::kIndexCast:
      case OpKind::kIndexCastui:
      case OpKind::kExtf:
      case OpKind::kTruncf:
      case OpKind::kSitofp:
      case OpKind::kUitofp:
      case OpKind::kFptosi:
      case OpKind::kFptoui:
      case OpKind::kFpToFp:
        return lower_convert(op);
      case OpKind::kArithBitcast:
      case OpKind::kBitcast:
        plain(handlers::bitcast, op);
        return;
      case OpKind::kIntToPtr:
        plain(handlers::int_to_ptr, op);
        return;
      case OpKind::kPtrToInt:
        plain(handlers::ptr_to_int, op);
        return;
      case OpKind::kIsnan:
      case OpKind::kIsinf:
      case OpKind::kIsfinite:
        plain(handlers::classify, op);
        return;
      case OpKind::kAdduiExtended:
      case OpKind::kMulsiExtended:
      case OpKind::kMuluiExtended:
        return lower_extended(op);
      case OpKind::kExternElementwise:
        return lower_external(op);
      case OpKind::kInlineAsm:
        return lower_assembly(op);
      case OpKind::kAddptr: {
        Instruction& i = plain(handlers::addptr, op);
        i.out_elem = type(op.operands[1]).elem;
        i.axis = static_cast<int8_t>(elem_bytes(type(op.operands[0]).pointee));
        return;
      }
      case OpKind::kGetProgramId:
        plain(handlers::program_id, op).axis = axis_of(op.text("axis"));
        return;
      case OpKind::kGetNumPrograms:
        plain(handlers::num_programs, op).axis = axis_of(op.text("axis"));
        return;
      case OpKind::kMakeRange:
        extra(plain(handlers::make_range, op)).numbers = {op.integer("start")};
        return;
      case OpKind::kSplat:
        plain(handlers::splat, op);
        return;
      case OpKind::kUnsplat:
        shaped(handlers::unsplat, op);
        return;
      case OpKind::kExpandDims:
        shaped(handlers::expand_dims, op);
        return;
      case OpKind::kBroadcast:
        shaped(handlers::broadcast, op);
        return;
      case OpKind::kReshape:
        shaped(handlers::reshape, op);
        return;
      case OpKind::kTrans:
        extra_of(shaped(handlers::trans, op)).numbers = op.integers("order");
        return;
      case OpKind::kCat:
        shaped(handlers::cat, op);
        return;
      case OpKind::kJoin:
        shaped(handlers::join, op);
        return;
      case OpKind::kSplit:
        extra_of(shaped(handlers::split, op)).outputs = slots(op.results);
        return;
      case OpKind::kGather:
        extra_of(shaped(handlers::gather, op)).elems = {type(op.operands[1]).elem};
        return;
      case OpKind::kHistogram: {
        Instruction& i = shaped(handlers::histogram, op);
        if (op.operands.size() > 1) i.flags |= kHasMask;
        return;
      }
      case OpKind::kReduce:
      case OpKind::kScan:
        return lower_reduction(op);
      case OpKind::kMapElementwise:
        return lower_map(op);
      case OpKind::kDot:
      case OpKind::kDotScaled:
        return lower_dot(op);
      case OpKind::kLoad:
      case OpKind::kStore:
        return lower_memory(op);
      case OpKind::kAtomicRmw:
      case OpKind::kAtomicCas:
        return lower_atomic(op);
      case OpKind::kMakeTensorDescriptor:
      case OpKind::kDescriptorLoad:
      case OpKind::kDescriptorStore:
      case OpKind::kDescriptorReduce:
      case OpKind::kDescriptorGather:
      case OpKind::kDescriptorScatter:
        return lower_descriptor(op);
      case OpKind::kAssert: {
        if (in_region_) return;
        Instruction& i = plain(handlers::assertion, op);
        extra(i).text = op.text("message");
        shape(i, type(op.operands[0]));
        return;
      }
      case OpKind::kPrint:
      case OpKind::kBarrier:
      case OpKind::kTtgBarrier:
      case OpKind::kAssume:
        return;
      case OpKind::kScfIf:
        return lower_if(op);
      case OpKind::kScfFor:
        return lower_for(op);
      case OpKind::kScfWhile:
        return lower_while(op);
      case OpKind::kScfYield:
        return move_all(op, op.operands, *yields_.back());
      case OpKind::kBr:
      case OpKind::kCondBr:
        return lower_branch(op);
      case OpKind::kReturn:
        return lower_return(op);
      case OpKind::kCall:
        return lower_call(op);
      default:
        return unsupported(op, fmt::format("operation {}", to_string(op.kind)));
    }
  }

  struct Return {
    const std::vector<int32_t>* results;
    std::vector<size_t> jumps;
    int depth;
  };
  struct KeyHash {
    size_t operator()(const std::pair<const Op*, size_t>& k) const {
      return std::hash<const Op*>()(k.first) * 31 + k.second;
    }
  };

  const Module& module_;
  const Function& kernel_;
  const std::unordered_set<ValueId> addresses_;
  std::unique_ptr<Code> code_;
  std::vector<Instruction>* out_ = nullptr;
  std::string error_;
  int32_t next_slot_ = 0;
  std::vector<std::unordered_map<ValueId, int32_t>> slots_{1};
  std::unordered_set<int32_t> prologue_slots_, pinned_;
  std::unordered_set<std::pair<const Op*, size_t>, KeyHash> done_;
  std::vector<const Liveness*> live_;
  std::vector<Return> returns_;
  std::vector<const std::vector<int32_t>*> yields_;
  std::vector<std::vector<std::pair<size_t, int>>> fixups_;
  std::vector<const Region*> region_of_blocks_;
  std::unordered_map<ValueId, int64_t> uses_;
  bool may_borrow_ = false;
  std::vector<size_t> inlined_{0};  // which inlining of a function is being lowered
  size_t inlinings_ = 0;
  bool in_region_ = false;
};

}  // namespace

Result<std::unique_ptr<Code>> lower(const Module& module, const Function& kernel) {
  return Lowering(module, kernel).run();
}

}  // namespace nereid::ttir
