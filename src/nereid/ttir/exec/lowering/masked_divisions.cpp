#include "nereid/ttir/exec/lowering/masked_divisions.h"

#include <optional>
#include <unordered_map>
#include <utility>

namespace nereid::ttir {
namespace {

constexpr uint64_t kUndefinedQuotient = 0x5A5A5A5A;

bool is_integer_division(OpKind kind) { return kind >= OpKind::kDivsi && kind <= OpKind::kFloordivsi; }

class Rewriter {
 public:
  explicit Rewriter(Module& module) : module_(module) {}

  void run(Region& region) {
    for (Block& block : region.blocks) run(block);
  }

 private:
  void run(Block& block) {
    std::vector<Op> ops;
    ops.reserve(block.ops.size());
    for (Op& op : block.ops) {
      for (Region& inner : op.regions) run(inner);
      note(op);
      ValueId mask = -1;
      if (is_integer_division(op.kind)) {
        out_ = &ops;
        made_.clear();
        mask = mask_of(op.operands[1]);
      }
      if (mask < 0)
        ops.push_back(std::move(op));
      else
        spare(std::move(op), mask);
    }
    block.ops = std::move(ops);
  }

  // How a value is made, as far as a mask follows it: a load's mask, or the operation's shape.
  struct Made {
    ValueId mask = -1;  // of a load
    Op by;              // else; without regions
  };
  void note(const Op& op) {
    switch (op.kind) {
      case OpKind::kLoad:
        if (op.operands.size() > 1) defined_[op.results[0]].mask = op.operands[1];
        break;
      case OpKind::kSplat:
      case OpKind::kExpandDims:
      case OpKind::kBroadcast:
      case OpKind::kReshape:
      case OpKind::kTrans:
      case OpKind::kExtsi:
      case OpKind::kExtui:
      case OpKind::kTrunci:
      case OpKind::kMuli:
      case OpKind::kShli:
      case OpKind::kAndi:
      case OpKind::kMinui:
        defined_[op.results[0]].by = op;
        break;
      default:
        break;
    }
  }

  // The lanes of a value that loads have read, in its shape; negative: all.
  ValueId mask_of(ValueId value) {
    const auto found = defined_.find(value);
    if (found == defined_.end()) return -1;
    if (found->second.mask >= 0) return found->second.mask;
    if (const auto made = made_.find(value); made != made_.end()) return made->second;
    const Op by = found->second.by;
    ValueId mask = -1;
    for (const ValueId operand : by.operands) {
      const ValueId next = mask_of(operand);
      mask = mask < 0 ? next : next < 0 ? mask : emit(OpKind::kAndi, {mask, next}, module_.type(mask));
    }
    if (mask >= 0 && module_.type(mask).shape != module_.type(value).shape) {
      Type type = module_.type(value);
      type.elem = Elem::kI1;
      mask = emit(by.kind, {mask}, type, by.attributes);
    }
    return made_[value] = mask;
  }

  void spare(Op op, ValueId mask) {
    const Type type = module_.type(op.results[0]);
    Type flags = type;
    flags.elem = Elem::kI1;
    const auto divisor = op.operands[1];
    const auto number = [&](uint64_t bits, const Type& of) {
      const ValueId v = emit(OpKind::kConstant, {}, of);
      out_->back().constant = {bits};
      return v;
    };
    Attribute equal;
    equal.kind = Attribute::Kind::kText;
    equal.text = "eq";
    const ValueId zero = emit(OpKind::kCmpi, {divisor, number(0, type)}, flags, {{"predicate", equal}});
    const ValueId off = emit(OpKind::kXori, {mask, number(1, flags)}, flags);
    const ValueId spared = emit(OpKind::kAndi, {off, zero}, flags);
    op.operands[1] = emit(OpKind::kSelect, {spared, number(1, type), divisor}, type);
    const ValueId result = std::exchange(op.results[0], added(type));
    const ValueId quotient = op.results[0];
    location_ = op.location;
    out_->push_back(std::move(op));
    const ValueId undefined = number(kUndefinedQuotient, type);
    emit(OpKind::kSelect, {spared, undefined, quotient}, type);
    out_->back().results[0] = result;
  }

  ValueId added(const Type& type) {
    module_.values.push_back(type);
    return static_cast<ValueId>(module_.values.size() - 1);
  }
  ValueId emit(OpKind kind, std::vector<ValueId> operands, const Type& type,
               std::map<std::string, Attribute, std::less<>> attributes = {}) {
    const Type own = type;  // `type` may be one of the module's, which move
    Op& op = out_->emplace_back();
    op.kind = kind;
    op.location = location_;
    op.operands = std::move(operands);
    op.attributes = std::move(attributes);
    op.results = {added(own)};
    return op.results[0];
  }

  Module& module_;
  std::vector<Op>* out_ = nullptr;
  LocationId location_ = -1;
  std::unordered_map<ValueId, Made> defined_;
  std::unordered_map<ValueId, ValueId> made_;  // masks, before the division at hand
};

}  // namespace

void spare_masked_divisions(Module& module) {
  for (Function& f : module.functions) Rewriter(module).run(f.body);
}

}  // namespace nereid::ttir
