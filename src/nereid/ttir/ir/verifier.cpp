#include "nereid/ttir/ir/verifier.h"

#include <algorithm>

#include "nereid/ttir/ir/verifier_impl.h"

namespace nereid::ttir {

Status Verifier::run() {
  std::set<std::string> names;
  for (const Function& f : module_.functions) {
    if (!names.insert(f.name).second) return input_error("TTIR: function @{} is defined twice", f.name);
    for (const ValueId p : f.parameters) defined_.insert(p);
    NEREID_TRY_STATUS(region(f.body, OpKind::kReturn, f.results));
    NEREID_TRY_STATUS(no_recursion(f, 0));
  }
  return ok_status();
}

Error Verifier::wrong(const Op& op, const std::string& expected) const {
  std::string where = "?";
  if (op.location >= 0) {
    const SourceLine& line = module_.lines[static_cast<size_t>(op.location)];
    where = fmt::format("{}:{}", line.file, line.line);
  }
  std::string got;
  for (ValueId v : op.operands) got += (got.empty() ? "" : ", ") + to_string(type(v));
  got += " ->";
  for (ValueId v : op.results) got += " " + to_string(type(v));
  return input_error("TTIR: {} at {}: expected {}, got {}", to_string(op.kind), where, expected, got);
}

Status Verifier::no_recursion(const Function& f, int depth) {
  if (depth > 50) return input_error("TTIR: calls nested deeper than 50 (or recursive) at @{}", f.name);
  if (++calls_ > 100000) return input_error("TTIR: too many calls");
  return no_recursion(f.body, depth);
}

Status Verifier::no_recursion(const Region& region, int depth) {
  for (const Block& block : region.blocks)
    for (const Op& op : block.ops) {
      for (const Region& inner : op.regions) NEREID_TRY_STATUS(no_recursion(inner, depth));
      if (op.kind != OpKind::kCall) continue;
      const Function* callee = module_.find(op.text("callee"));
      if (callee == nullptr) return wrong(op, "a function of the module, not @" + op.text("callee"));
      NEREID_TRY_STATUS(no_recursion(*callee, depth + 1));
    }
  return ok_status();
}

Status Verifier::region(const Region& r, OpKind terminator, const std::vector<Type>& results) {
  if (r.blocks.empty()) return input_error("TTIR: a region without a block");
  for (const Block& block : r.blocks) {
    for (ValueId v : block.arguments) defined_.insert(v);
    if (block.ops.empty() || !(traits(block.ops.back().kind) & kTerminator)) {
      // MLIR leaves out a yield that passes nothing.
      if (r.blocks.size() == 1 && terminator == OpKind::kScfYield && results.empty()) {
      } else {
        return input_error("TTIR: a block does not end in {}", to_string(terminator));
      }
    }
    for (size_t k = 0; k < block.ops.size(); ++k) {
      const Op& op = block.ops[k];
      for (ValueId v : op.operands)
        if (defined_.find(v) == defined_.end()) return wrong(op, "operands defined before they are used");
      if ((traits(op.kind) & kTerminator) && k + 1 != block.ops.size()) return wrong(op, "to end its block");
      if (op.kind == OpKind::kBr || op.kind == OpKind::kCondBr) {
        if (terminator != OpKind::kReturn) return wrong(op, "branches only in a function's body");
        for (const Successor& s : op.successors) {
          if (s.block < 1 || s.block >= static_cast<int>(r.blocks.size()))
            return wrong(op, "a block to branch to");
          if (types(s.arguments) != types(r.blocks[static_cast<size_t>(s.block)].arguments))
            return wrong(op, "the block's argument types");
        }
      } else if (traits(op.kind) & kTerminator) {
        if (op.kind != terminator) return wrong(op, fmt::format("{} here", to_string(terminator)));
        if (op.kind != OpKind::kScfCondition && types(op.operands) != results)
          return wrong(op, "the types that are passed on");
      }
      NEREID_TRY_STATUS(check(op));
      for (ValueId v : op.results) defined_.insert(v);
    }
  }
  return ok_status();
}

Status Verifier::check(const Op& op) {
  if (traits(op.kind) & kSameType) return check_same_type(op);
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  const auto out = [&](size_t k) -> const Type& { return type(op.results[k]); };
  switch (op.kind) {
    case OpKind::kConstant:
    case OpKind::kPoison:
      if (out(0).elem == Elem::kDescriptor || out(0).elem == Elem::kPointer) return wrong(op, "a number");
      if (op.kind == OpKind::kConstant && op.constant.size() != 1 &&
          static_cast<int64_t>(op.constant.size()) != out(0).elements())
        return wrong(op, "as many numbers as elements");
      return ok_status();
    case OpKind::kCmpi:
      if (!counts(op, 2, 1) || in(0) != in(1) || !(is_integer(in(0).elem) || in(0).elem == Elem::kPointer))
        return wrong(op, "two integers of one type");
      return ok_status();
    case OpKind::kCmpf:
      if (!counts(op, 2, 1) || in(0) != in(1) || !is_float(in(0).elem))
        return wrong(op, "two floats of one type");
      return ok_status();
    case OpKind::kSelect:
      if (!counts(op, 3, 1) || in(0).elem != Elem::kI1 || in(1) != in(2) || in(1) != out(0) ||
          (in(0).tensor && !same_shape(in(0), in(1))))
        return wrong(op, "a condition and two values of one type");
      return ok_status();
    case OpKind::kIsnan:
    case OpKind::kIsinf:
    case OpKind::kIsfinite:
      return is_float(in(0).elem) ? ok_status() : Status(wrong(op, "a float"));
    case OpKind::kAdduiExtended:
      if (!counts(op, 2, 2) || !is_integer(in(0).elem) || out(0) != in(0) || out(1).elem != Elem::kI1 ||
          !same_shape(out(1), in(0)))
        return wrong(op, "integers and a carry");
      return ok_status();
    case OpKind::kMulsiExtended:
    case OpKind::kMuluiExtended:
      if (!counts(op, 2, 2) || !is_integer(in(0).elem) || out(0) != in(0) || out(1) != in(0))
        return wrong(op, "integers");
      return ok_status();
    case OpKind::kAddptr:
      if (!counts(op, 2, 1) || in(0).elem != Elem::kPointer || !is_integer(in(1).elem) ||
          in(1).elem == Elem::kI1 || !same_shape(in(0), in(1)))
        return wrong(op, "a pointer and an integer of one shape");
      return ok_status();
    default:
      return check_conversion(op);
  }
}

Status Verifier::check_conversion(const Op& op) {
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  const auto out = [&](size_t k) -> const Type& { return type(op.results[k]); };
  switch (op.kind) {
    case OpKind::kExtsi:
    case OpKind::kExtui:
    case OpKind::kTrunci:
    case OpKind::kIndexCast:
    case OpKind::kIndexCastui:
      return check_cast(op, is_integer(in(0).elem) && is_integer(out(0).elem));
    case OpKind::kExtf:
    case OpKind::kTruncf:
    case OpKind::kFpToFp:
      return check_cast(op, is_float(in(0).elem) && is_float(out(0).elem));
    case OpKind::kSitofp:
    case OpKind::kUitofp:
      return check_cast(op, is_integer(in(0).elem) && is_float(out(0).elem));
    case OpKind::kFptosi:
    case OpKind::kFptoui:
      return check_cast(op, is_float(in(0).elem) && is_integer(out(0).elem));
    case OpKind::kArithBitcast:
    case OpKind::kBitcast: {
      const bool pointers = in(0).elem == Elem::kPointer, also = out(0).elem == Elem::kPointer;
      return check_cast(op, pointers == also && elem_bits(in(0).elem) == elem_bits(out(0).elem) &&
                                in(0).elem != Elem::kDescriptor && out(0).elem != Elem::kDescriptor);
    }
    case OpKind::kIntToPtr:
      return check_cast(op, in(0).elem == Elem::kI64 && out(0).elem == Elem::kPointer);
    case OpKind::kPtrToInt:
      return check_cast(op, in(0).elem == Elem::kPointer && out(0).elem == Elem::kI64);
    default:
      return check_effect(op);
  }
}

// What reads the launch, touches memory or calls code of others.
Status Verifier::check_effect(const Op& op) {
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  const auto out = [&](size_t k) -> const Type& { return type(op.results[k]); };
  switch (op.kind) {
    case OpKind::kLoad:
    case OpKind::kStore:
      return check_memory(op);
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return check_atomic(op);
    case OpKind::kGetProgramId:
    case OpKind::kGetNumPrograms:
      if (out(0) != Type{Elem::kI32, Elem::kNone, false, {}} ||
          (op.text("axis") != "x" && op.text("axis") != "y" && op.text("axis") != "z"))
        return wrong(op, "axis x, y or z and an i32");
      return ok_status();
    case OpKind::kMakeRange:
      if (!out(0).tensor || out(0).rank() != 1 || out(0).elem != Elem::kI32 ||
          op.integer("end") - op.integer("start") != out(0).elements())
        return wrong(op, "a tensor of end - start i32");
      return ok_status();
    case OpKind::kAssert:
    case OpKind::kAssume:
      if (!counts(op, 1, 0) || in(0).elem != Elem::kI1) return wrong(op, "a condition");
      return ok_status();
    case OpKind::kInlineAsm:
    case OpKind::kExternElementwise:
      return check_external(op);
    case OpKind::kMakeTensorDescriptor:
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
    case OpKind::kDescriptorReduce:
    case OpKind::kDescriptorGather:
    case OpKind::kDescriptorScatter:
      return check_descriptor(op);
    case OpKind::kDot:
      return check_dot(op);
    case OpKind::kDotScaled:
      return check_dot_scaled(op);
    default:
      return check_control(op);
  }
}

Status Verifier::check_control(const Op& op) {
  const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
  switch (op.kind) {
    case OpKind::kPrint:
    case OpKind::kBarrier:
    case OpKind::kTtgBarrier:
    case OpKind::kReturn:
    case OpKind::kScfYield:
    case OpKind::kReduceReturn:
    case OpKind::kScanReturn:
    case OpKind::kMapElementwiseReturn:
    case OpKind::kBr:
      return ok_status();
    case OpKind::kCondBr:
    case OpKind::kScfCondition:
      if (op.operands.empty() || !scalar(in(0), Elem::kI1)) return wrong(op, "an i1 condition");
      return ok_status();
    case OpKind::kCall:
      return check_call(op);
    case OpKind::kScfIf: {
      if (op.operands.size() != 1 || !scalar(in(0), Elem::kI1) || op.regions.size() != 2)
        return wrong(op, "an i1 condition");
      const auto results = types(op.results);
      NEREID_TRY_STATUS(region(op.regions[0], OpKind::kScfYield, results));
      if (op.regions[1].blocks.empty())
        return results.empty() ? ok_status() : Status(wrong(op, "an else part for the results"));
      return region(op.regions[1], OpKind::kScfYield, results);
    }
    case OpKind::kScfFor:
      return check_for(op);
    case OpKind::kScfWhile:
      return check_while(op);
    case OpKind::kReduce:
    case OpKind::kScan:
      return check_reduction(op);
    case OpKind::kMapElementwise:
      return check_map(op);
    default:
      return check_shape(op);
  }
}

Status Verifier::check_call(const Op& op) {
  const Function* callee = module_.find(op.text("callee"));
  if (callee == nullptr || callee->body.blocks.empty())
    return wrong(op, "a function of the module, not @" + op.text("callee"));
  if (types(op.operands) != types(callee->parameters) || types(op.results) != callee->results)
    return wrong(op, "the function's own types");
  return ok_status();
}

Status Verifier::check_for(const Op& op) {
  if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1 || op.operands.size() < 3)
    return wrong(op, "one block and three bounds");
  const Type& bound = type(op.operands[0]);
  if (bound.tensor || !is_integer(bound.elem) || type(op.operands[1]) != bound ||
      type(op.operands[2]) != bound)
    return wrong(op, "integer bounds of one type");
  const auto results = types(op.results);
  const std::vector<ValueId> inits(op.operands.begin() + 3, op.operands.end());
  std::vector<Type> arguments = {bound};
  arguments.insert(arguments.end(), results.begin(), results.end());
  if (types(inits) != results || types(op.regions[0].blocks[0].arguments) != arguments)
    return wrong(op, "iter_args of the results' types");
  return region(op.regions[0], OpKind::kScfYield, results);
}

Status Verifier::check_while(const Op& op) {
  if (op.regions.size() != 2 || op.regions[0].blocks.size() != 1 || op.regions[1].blocks.size() != 1)
    return wrong(op, "two regions of one block");
  const auto& before = op.regions[0].blocks[0];
  const auto& after = op.regions[1].blocks[0];
  if (types(before.arguments) != types(op.operands) || types(after.arguments) != types(op.results))
    return wrong(op, "the regions' argument types");
  NEREID_TRY_STATUS(region(op.regions[0], OpKind::kScfCondition, {}));
  const auto& passed = before.ops.back().operands;
  if (types(std::vector<ValueId>(passed.begin() + 1, passed.end())) != types(op.results))
    return wrong(op, "scf.condition to pass the results' types");
  return region(op.regions[1], OpKind::kScfYield, types(op.operands));
}

Status Verifier::only_elementwise(const Op& outer, const Block& block) {
  for (const Op& op : block.ops) {
    for (ValueId v : op.operands)
      if (type(v).tensor || type(v).elem == Elem::kPointer || type(v).elem == Elem::kDescriptor)
        return wrong(op, "numbers in the region of " + std::string(to_string(outer.kind)));
    if (op.kind == OpKind::kScfIf) {
      for (const Region& r : op.regions) {
        if (r.blocks.size() > 1) return wrong(op, "one block");
        if (!r.blocks.empty()) NEREID_TRY_STATUS(only_elementwise(outer, r.blocks[0]));
      }
      continue;
    }
    if (op.kind == OpKind::kCall) {
      const Function* callee = module_.find(op.text("callee"));
      if (callee == nullptr || callee->body.blocks.size() != 1) return wrong(op, "a function of one block");
      continue;
    }
    const bool known =
        (traits(op.kind) & (kSameType | kTerminator)) || op.kind == OpKind::kCmpi ||
        op.kind == OpKind::kCmpf || op.kind == OpKind::kSelect || op.kind == OpKind::kConstant ||
        op.kind == OpKind::kPoison || (op.kind >= OpKind::kExtsi && op.kind <= OpKind::kArithBitcast) ||
        op.kind == OpKind::kBitcast || op.kind == OpKind::kFpToFp || op.kind == OpKind::kExternElementwise ||
        op.kind == OpKind::kInlineAsm ||
        (op.kind >= OpKind::kAdduiExtended && op.kind <= OpKind::kMuluiExtended) ||
        (op.kind >= OpKind::kIsnan && op.kind <= OpKind::kIsfinite) || op.kind == OpKind::kAssert;
    if (!known)
      return input_error("Unsupported: {} in the region of {}", to_string(op.kind), to_string(outer.kind));
  }
  return ok_status();
}

Status Verifier::check_reduction(const Op& op) {
  const bool scan = op.kind == OpKind::kScan;
  if (op.operands.empty() || op.operands.size() != op.results.size())
    return wrong(op, "as many results as operands");
  const Type& first = type(op.operands[0]);
  const int64_t axis = op.integer("axis", -1);
  if (!first.tensor || axis < 0 || axis >= first.rank()) return wrong(op, "an axis of the operands");
  const int64_t size = first.shape[static_cast<size_t>(axis)];
  if (size & (size - 1)) return wrong(op, "an axis of a power of two");
  std::vector<Type> elements;
  for (size_t k = 0; k < op.operands.size(); ++k) {
    const Type& t = type(op.operands[k]);
    if (!same_shape(t, first) || !(is_integer(t.elem) || is_float(t.elem)))
      return wrong(op, "operands of one shape");
    Type result = t;
    if (!scan) result.shape.erase(result.shape.begin() + static_cast<int64_t>(axis));
    if (!scan && result.shape.empty()) result.tensor = false;
    if (type(op.results[k]) != result) return wrong(op, "results without the axis");
    elements.push_back(Type{t.elem, Elem::kNone, false, {}});
  }
  std::vector<Type> arguments = elements;
  arguments.insert(arguments.end(), elements.begin(), elements.end());
  return combine_region(op, arguments, scan ? OpKind::kScanReturn : OpKind::kReduceReturn, elements);
}

Status Verifier::check_map(const Op& op) {
  const int64_t pack = op.integer("pack", 1);
  if (op.operands.empty() || op.results.empty()) return wrong(op, "operands and results");
  const Type& first = type(op.operands[0]);
  if (pack < 1 || pack > 64 || !first.tensor || first.elements() % pack != 0)
    return wrong(op, "a pack that divides the elements");
  std::vector<Type> arguments, results;
  const auto add = [&](const std::vector<ValueId>& values, std::vector<Type>& to) {
    for (ValueId v : values) {
      if (!same_shape(type(v), first) || !(is_integer(type(v).elem) || is_float(type(v).elem))) return false;
      for (int64_t p = 0; p < pack; ++p) to.push_back(Type{type(v).elem, Elem::kNone, false, {}});
    }
    return true;
  };
  if (!add(op.operands, arguments) || !add(op.results, results)) return wrong(op, "tensors of one shape");
  return combine_region(op, arguments, OpKind::kMapElementwiseReturn, results);
}

Status verify(const Module& module) { return Verifier(module).run(); }

}  // namespace nereid::ttir
