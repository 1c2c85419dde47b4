// The state of a lowering and its steps, by the file that holds them: lowering.cpp (functions, blocks, what
// moves before a loop, and the operations that need no more than a line), lowering_control.cpp,
// lowering_elementwise.cpp and lowering_memory.cpp.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/ttir/analysis/liveness.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/lowering/lowering.h"
#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// Values whose integers end in an address, so that their overflow matters. Stops where arithmetic forgets
// magnitudes.
std::unordered_set<ValueId> address_values(const Module& module);

class Lowering {
 public:
  Lowering(const Module& module, const Function& kernel)
      : module_(module), kernel_(kernel), addresses_(address_values(module)) {}
  Result<std::unique_ptr<Code>> run();

 private:
  // ---- values and their slots
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

  // ---- instructions
  void unsupported(const Op& op, const std::string& what);
  Instruction& emit(Handler run, const Op* op);
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
  Instruction& plain(Handler run, const Op& op);
  template <class F>
  static const void* erase(F* function) {
    return reinterpret_cast<const void*>(function);
  }

  // ---- functions and blocks
  void function(const Function& f, const std::vector<int32_t>& result_slots, int depth);
  void blocks(const Region& region);
  // Whether a load's result is used up by loops over floats before the block writes, branches or calls
  // anything.
  bool may_borrow(const Block& block, const Op& load);
  void block_ops(const Block& block);
  void release(const std::vector<int32_t>& slots);
  // An operation, in the inlining it belongs to.
  std::pair<const Op*, size_t> key(const Op& op) const { return {&op, inlined_.back()}; }
  bool hoistable(const Op& op) { return !in_region_ && ttir::hoistable(op); }
  bool all_in_prologue(const Op& op) {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return in_prologue(v); });
  }
  void one(const Op& op);
  // Pure operations of a loop's body whose operands come from outside it, before the loop.
  void hoist(const Block& body);
  void move_all(const Op& op, const std::vector<ValueId>& from, const std::vector<int32_t>& to);
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

  // ---- lowering_control.cpp
  void lower_if(const Op& op);
  // In a combine region every lane has a condition of its own: both branches are run, results selected.
  void lower_if_as_select(const Op& op);
  void lower_for(const Op& op);
  void lower_while(const Op& op);
  void lower_branch(const Op& op);
  void lower_call(const Op& op);
  void lower_return(const Op& op);
  void lower_region(const Op& op, Extra& e);
  // The one operation that a combine region consists of, if it is so simple; kCount otherwise.
  OpKind simple_combine(const Op& op);
  void lower_reduction(const Op& op);
  void lower_map(const Op& op);

  // ---- lowering_elementwise.cpp
  // What a narrow float's lanes are widened by, and what its results are narrowed by.
  void narrow_kernels(Instruction& i, Elem elem, Elem result);
  static bool narrow(Elem e) { return is_float(e) && e != Elem::kF32 && e != Elem::kF64; }
  void lower_same_type(const Op& op);
  static bool fast_scalar(OpKind kind);
  void lower_compare(const Op& op);
  void lower_convert(const Op& op);
  void lower_extended(const Op& op);
  void lower_external(const Op& op);
  void lower_assembly(const Op& op);

  // ---- operations that need no more than a line
  Instruction& shaped(Handler run, const Op& op);
  Extra& extra_of(const Instruction& i) { return const_cast<Extra&>(*i.extra); }
  static int8_t axis_of(const std::string& name) {
    return static_cast<int8_t>(name == "y" ? 1 : name == "z" ? 2 : 0);
  }
  // Each leaves the kinds that it does not know to the next.
  void operation(const Op& op);
  void by_kind(const Op& op);
  void check_hint(ValueId v, LocationId location, std::vector<int64_t> divisibility,
                  const std::vector<int64_t>& contiguity);
  void lower_conversion(const Op& op);
  void lower_shape(const Op& op);
  void lower_control(const Op& op);

  // ---- lowering_memory.cpp
  void lower_descriptor(const Op& op);
  void lower_dot(const Op& op);
  void lower_memory(const Op& op);
  void lower_atomic(const Op& op);

  bool used(ValueId v) { return uses_of(v) > 0; }
  int64_t uses_of(ValueId v);
  // Whether all that becomes of it are histograms and reductions of nothing else.
  bool only_reduced(ValueId v);

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
  std::unordered_map<ValueId, int64_t> uses_, reduced_;  // by value: all, and by reductions
  bool may_borrow_ = false;
  std::vector<size_t> inlined_{0};  // which inlining of a function is being lowered
  size_t inlinings_ = 0;
  bool in_region_ = false;
};

}  // namespace nereid::ttir
