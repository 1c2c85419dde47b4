#include "nereid/ttir/exec/lowering/lowering.h"

#include <algorithm>

#include "nereid/ttir/analysis/cost.h"
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/lowering/lowering_impl.h"

namespace nereid::ttir {
namespace {

constexpr size_t kMaxInstructions = size_t{1} << 21;

}  // namespace

bool hoistable(const Op& op) {
  return (traits(op.kind) & kPure) && op.kind != OpKind::kGetProgramId && op.regions.empty() &&
         op.kind != OpKind::kDot && op.kind != OpKind::kDotScaled;
}

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

Result<std::unique_ptr<Code>> Lowering::run() {
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

void Lowering::unsupported(const Op& op, const std::string& what) {
  if (!error_.empty()) return;
  std::string where;
  if (op.location >= 0) {
    const SourceLine& line = module_.lines[static_cast<size_t>(op.location)];
    where = fmt::format(" at {}:{}", line.file, line.line);
  }
  error_ = fmt::format("Unsupported: {}{}", what, where);
}

Instruction& Lowering::emit(Handler run, const Op* op) {
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

Instruction& Lowering::plain(Handler run, const Op& op) {
  Instruction& i = emit(run, &op);
  for (size_t k = 0; k < op.operands.size() && k < kInputs; ++k) input(i, op, k, op.operands[k]);
  if (!op.operands.empty()) i.elem = type(op.operands[0]).elem;
  if (!op.results.empty()) result(i, op);
  return i;
}

void Lowering::function(const Function& f, const std::vector<int32_t>& result_slots, int depth) {
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

void Lowering::blocks(const Region& region) {
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

bool Lowering::may_borrow(const Block& block, const Op& load) {
  const ValueId v = load.results[0];
  if (!type(v).tensor || !is_float(type(v).elem)) return false;
  int64_t left = uses_of(v);
  constexpr int64_t kMaxAhead = 64;
  const Op* const end = block.ops.data() + block.ops.size();
  for (const Op* op = &load + 1; left > 0; ++op) {
    if (op == end || op - &load > kMaxAhead) return false;
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

void Lowering::block_ops(const Block& block) {
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

void Lowering::release(const std::vector<int32_t>& slots) {
  for (size_t first = 0; first < slots.size(); first += kInputs) {
    Instruction& i = emit(handlers::nothing, nullptr);
    for (size_t k = 0; k < kInputs && first + k < slots.size(); ++k) {
      i.in[k] = slots[first + k];
      i.kills |= static_cast<uint8_t>(1u << k);
    }
  }
}

void Lowering::one(const Op& op) {
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

void Lowering::hoist(const Block& body) {
  std::unordered_set<ValueId> inside(body.arguments.begin(), body.arguments.end());
  for (const Op& op : body.ops) {
    const bool outside =
        std::none_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return inside.count(v) != 0; });
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

void Lowering::move_all(const Op& op, const std::vector<ValueId>& from, const std::vector<int32_t>& to) {
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

Instruction& Lowering::shaped(Handler run, const Op& op) {
  Instruction& i = plain(run, op);
  Extra& e = extra(i);
  e.in_shape = type(op.operands[0]).shape;
  e.out_shape = type(op.results[0]).shape;
  i.axis = static_cast<int8_t>(op.integer("axis"));
  return i;
}

int64_t Lowering::uses_of(ValueId v) {
  if (uses_.empty()) {
    const auto visit = [&](auto&& self, const Region& region) -> void {
      for (const Block& block : region.blocks)
        for (const Op& op : block.ops) {
          const bool reduces =
              op.kind == OpKind::kHistogram || (op.kind == OpKind::kReduce && op.operands.size() == 1);
          for (ValueId operand : op.operands) ++uses_[operand], reduced_[operand] += reduces;
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

bool Lowering::only_reduced(ValueId v) {
  const int64_t uses = uses_of(v);
  const auto found = reduced_.find(v);
  return found != reduced_.end() && found->second == uses;
}

void Lowering::operation(const Op& op) {
  if (!error_.empty()) return;
  by_kind(op);
  if (in_region_ || op.results.empty()) return;
  const auto numbers = [&](std::string_view name) {
    std::vector<int64_t> all = op.integers(name);
    if (all.empty()) all = {op.integer(name, 1)};
    const int64_t splat = all.size() == 1 ? all[0] : 1;
    all.resize(std::max<size_t>(1, type(op.results[0]).shape.size()), splat);
    return all;
  };
  if (op.has("tt.divisibility") || op.has("tt.contiguity"))
    check_hint(op.results[0], op.location, numbers("tt.divisibility"), numbers("tt.contiguity"));
}

void Lowering::check_hint(ValueId v, LocationId location, std::vector<int64_t> divisibility,
                          const std::vector<int64_t>& contiguity) {
  const bool pointer = type(v).elem == Elem::kPointer;
  if ((!pointer && !is_integer(type(v).elem)) || type(v).rank() > kLazyRank) return;
  auto* const saved = out_;
  if (in_prologue(v)) out_ = &code_->prologue;
  Instruction& i = emit(handlers::hint, nullptr);
  i.location = location;
  i.in[0] = slot_of(v);
  i.inputs = 1;
  i.elem = type(v).elem;
  i.target = pointer ? elem_bytes(type(v).pointee) : 1;
  shape(i, type(v));
  divisibility.insert(divisibility.end(), contiguity.begin(), contiguity.end());
  extra(i).numbers = std::move(divisibility);
  out_ = saved;
}

void Lowering::by_kind(const Op& op) {
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
    default:
      return lower_conversion(op);
  }
}

void Lowering::lower_conversion(const Op& op) {
  switch (op.kind) {
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
    default:
      return lower_shape(op);
  }
}

void Lowering::lower_shape(const Op& op) {
  switch (op.kind) {
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
      // Triton itself allows it where only reductions follow, also where one has places that it leaves alone.
      shaped(
          op.has("allow_reorder") && !only_reduced(op.results[0]) ? handlers::unordered : handlers::reshape,
          op);
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
    default:
      return lower_control(op);
  }
}

void Lowering::lower_control(const Op& op) {
  switch (op.kind) {
    case OpKind::kAssert: {
      if (in_region_) return;
      Instruction& i = plain(handlers::assertion, op);
      extra(i).text = op.text("message");
      shape(i, type(op.operands[0]));
      return;
    }
    case OpKind::kBarrier:
    case OpKind::kTtgBarrier:
      emit(handlers::barrier, &op);
      return;
    case OpKind::kAssume:
      if (!in_region_) extra(plain(handlers::assertion, op)).text = "tl.assume";
      return;
    case OpKind::kPrint:
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

Result<std::unique_ptr<Code>> lower(const Module& module, const Function& kernel) {
  return Lowering(module, kernel).run();
}

}  // namespace nereid::ttir
