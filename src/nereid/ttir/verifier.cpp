#include "nereid/ttir/verifier.h"

#include <algorithm>
#include <set>

namespace nereid::ttir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Module& module) : module_(module) {}

  Status run() {
    std::set<std::string> names;
    for (const Function& f : module_.functions) {
      if (!names.insert(f.name).second) return input_error("TTIR: function @{} is defined twice", f.name);
      for (const ValueId p : f.parameters) defined_.insert(p);
      NEREID_TRY_STATUS(region(f.body, OpKind::kReturn, f.results));
      NEREID_TRY_STATUS(no_recursion(f, 0));
    }
    return ok_status();
  }

 private:
  const Type& type(ValueId v) const { return module_.type(v); }
  std::vector<Type> types(const std::vector<ValueId>& values) const {
    std::vector<Type> all;
    for (ValueId v : values) all.push_back(type(v));
    return all;
  }

  Error wrong(const Op& op, const std::string& expected) const {
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

  Status no_recursion(const Function& f, int depth) {
    if (depth > 50) return input_error("TTIR: calls nested deeper than 50 (or recursive) at @{}", f.name);
    if (++calls_ > 100000) return input_error("TTIR: too many calls");
    return no_recursion(f.body, depth);
  }
  Status no_recursion(const Region& region, int depth) {
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

  // `results`: the types that the terminator passes on.
  Status region(const Region& r, OpKind terminator, const std::vector<Type>& results) {
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
        if ((traits(op.kind) & kTerminator) && k + 1 != block.ops.size())
          return wrong(op, "to end its block");
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

  static bool same_shape(const Type& a, const Type& b) { return a.tensor == b.tensor && a.shape == b.shape; }
  static bool scalar(const Type& t, Elem e) { return !t.tensor && t.elem == e; }
  bool counts(const Op& op, size_t operands, size_t results) const {
    return op.operands.size() == operands && op.results.size() == results;
  }

  Status check(const Op& op) {
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
        return check_shape(op);
    }
  }

  Status check_same_type(const Op& op) {
    static constexpr OpKind kUnary[] = {
        OpKind::kPreciseSqrt, OpKind::kNegf,  OpKind::kAbsf,      OpKind::kAbsi,  OpKind::kCeil,
        OpKind::kFloor,       OpKind::kRound, OpKind::kRoundeven, OpKind::kTrunc, OpKind::kSqrt,
        OpKind::kRsqrt,       OpKind::kCbrt,  OpKind::kExp,       OpKind::kExp2,  OpKind::kExpm1,
        OpKind::kLog,         OpKind::kLog2,  OpKind::kLog10,     OpKind::kLog1p, OpKind::kSin,
        OpKind::kCos,         OpKind::kTan,   OpKind::kAsin,      OpKind::kAcos,  OpKind::kAtan,
        OpKind::kSinh,        OpKind::kCosh,  OpKind::kTanh,      OpKind::kAsinh, OpKind::kAcosh,
        OpKind::kAtanh,       OpKind::kErf,   OpKind::kErfc,      OpKind::kCtlz,  OpKind::kCttz,
        OpKind::kCtpop};
    size_t operands = 2;
    if (std::find(std::begin(kUnary), std::end(kUnary), op.kind) != std::end(kUnary)) operands = 1;
    if (op.kind == OpKind::kFma || op.kind == OpKind::kClampf) operands = 3;
    if (op.operands.size() != operands || op.results.size() != 1)
      return wrong(op, fmt::format("{} operands", operands));
    const Type& t = type(op.results[0]);
    for (ValueId v : op.operands)
      if (type(v) != t) return wrong(op, "operands and result of one type");
    const bool integers = (op.kind >= OpKind::kAddi && op.kind <= OpKind::kMaxui) ||
                          op.kind == OpKind::kMulhiui || op.kind == OpKind::kAbsi ||
                          (op.kind >= OpKind::kCtlz && op.kind <= OpKind::kCtpop);
    if (integers ? !is_integer(t.elem) : !is_float(t.elem))
      return wrong(op, integers ? "integers" : "floats");
    return ok_status();
  }

  Status check_cast(const Op& op, bool elems) {
    if (!counts(op, 1, 1) || !elems || !same_shape(type(op.operands[0]), type(op.results[0])))
      return wrong(op, "one shape and types that convert");
    const Elem from = type(op.operands[0]).elem, to = type(op.results[0]).elem;
    const bool wider = elem_bits(to) > elem_bits(from), narrower = elem_bits(to) < elem_bits(from);
    if (((op.kind == OpKind::kExtsi || op.kind == OpKind::kExtui) && !wider) ||
        (op.kind == OpKind::kTrunci && !narrower))
      return wrong(op, "a type of another width");
    return ok_status();
  }

  Status check_memory(const Op& op) {
    const bool load = op.kind == OpKind::kLoad;
    const Type& p = type(op.operands[0]);
    Type value = p;
    value.elem = p.pointee;
    value.pointee = Elem::kNone;
    Type mask = value;
    mask.elem = Elem::kI1;
    if (p.elem != Elem::kPointer || value.elem == Elem::kPointer || value.elem == Elem::kDescriptor ||
        value.elem == Elem::kNone)
      return wrong(op, "a pointer to numbers");
    if (!op.integers("boundaryCheck").empty())
      return input_error("Unsupported: {} of a block pointer", to_string(op.kind));
    const size_t n = op.operands.size();
    const size_t first = load ? 1 : 2;
    if (n < first || n > 3 || (!load && type(op.operands[1]) != value))
      return wrong(op, "pointers, a value of their type and a mask");
    if (n > first && type(op.operands[first]) != mask) return wrong(op, "a mask of i1");
    if (load && n > 2 && type(op.operands[2]) != value) return wrong(op, "another value of the loaded type");
    return ok_status();
  }

  Status check_atomic(const Op& op) {
    const size_t n = op.operands.size();
    const bool cas = op.kind == OpKind::kAtomicCas;
    if (op.results.size() != 1 || n < 2 || n > 3 || (cas && n != 3)) return wrong(op, "pointers and values");
    const Type& p = type(op.operands[0]);
    Type value = p;
    value.elem = p.pointee;
    value.pointee = Elem::kNone;
    Type mask = value;
    mask.elem = Elem::kI1;
    if (p.elem != Elem::kPointer || !(is_integer(value.elem) || is_float(value.elem)) ||
        value.elem == Elem::kI1 || type(op.results[0]) != value || type(op.operands[1]) != value)
      return wrong(op, "pointers and values of their type");
    if (n == 3 && type(op.operands[2]) != (cas ? value : mask))
      return wrong(op, cas ? "two values of one type" : "a mask of i1");
    return ok_status();
  }

  Status check_call(const Op& op) {
    const Function* callee = module_.find(op.text("callee"));
    if (callee == nullptr || callee->body.blocks.empty())
      return wrong(op, "a function of the module, not @" + op.text("callee"));
    if (types(op.operands) != types(callee->parameters) || types(op.results) != callee->results)
      return wrong(op, "the function's own types");
    return ok_status();
  }

  Status check_for(const Op& op) {
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

  Status check_while(const Op& op) {
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

  Status combine_region(const Op& op, const std::vector<Type>& arguments, OpKind terminator,
                        const std::vector<Type>& results) {
    if (op.regions.size() != 1 || op.regions[0].blocks.size() != 1) return wrong(op, "a region of one block");
    if (types(op.regions[0].blocks[0].arguments) != arguments)
      return wrong(op, "region arguments of the element types");
    NEREID_TRY_STATUS(region(op.regions[0], terminator, results));
    return only_elementwise(op, op.regions[0].blocks[0]);
  }
  Status only_elementwise(const Op& outer, const Block& block) {
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
          op.kind == OpKind::kBitcast || op.kind == OpKind::kFpToFp ||
          op.kind == OpKind::kExternElementwise || op.kind == OpKind::kInlineAsm ||
          (op.kind >= OpKind::kAdduiExtended && op.kind <= OpKind::kMuluiExtended) ||
          (op.kind >= OpKind::kIsnan && op.kind <= OpKind::kIsfinite) || op.kind == OpKind::kAssert;
      if (!known)
        return input_error("Unsupported: {} in the region of {}", to_string(op.kind), to_string(outer.kind));
    }
    return ok_status();
  }

  Status check_reduction(const Op& op) {
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

  Status check_map(const Op& op) {
    const int64_t pack = op.integer("pack", 1);
    if (op.operands.empty() || op.results.empty()) return wrong(op, "operands and results");
    const Type& first = type(op.operands[0]);
    if (pack < 1 || pack > 64 || !first.tensor || first.elements() % pack != 0)
      return wrong(op, "a pack that divides the elements");
    std::vector<Type> arguments, results;
    const auto add = [&](const std::vector<ValueId>& values, std::vector<Type>& to) {
      for (ValueId v : values) {
        if (!same_shape(type(v), first) || !(is_integer(type(v).elem) || is_float(type(v).elem)))
          return false;
        for (int64_t p = 0; p < pack; ++p) to.push_back(Type{type(v).elem, Elem::kNone, false, {}});
      }
      return true;
    };
    if (!add(op.operands, arguments) || !add(op.results, results)) return wrong(op, "tensors of one shape");
    return combine_region(op, arguments, OpKind::kMapElementwiseReturn, results);
  }

  Status check_external(const Op& op) {
    const size_t most = op.kind == OpKind::kInlineAsm ? 32 : 4;
    if (op.operands.size() > most || op.operands.empty() || op.results.empty() || op.results.size() > most)
      return wrong(op, fmt::format("one to {} operands and a result", most));
    for (ValueId v : op.operands)
      if (!same_shape(type(v), type(op.results[0])) || !(is_integer(type(v).elem) || is_float(type(v).elem)))
        return wrong(op, "numbers of one shape");
    for (ValueId v : op.results)
      if (!same_shape(type(v), type(op.results[0])) || !(is_integer(type(v).elem) || is_float(type(v).elem)))
        return wrong(op, "numbers of one shape");
    return ok_status();
  }

  Status check_descriptor(const Op& op) {
    const bool makes = op.kind == OpKind::kMakeTensorDescriptor;
    const Type& d = makes ? type(op.results[0]) : type(op.operands[0]);
    if (d.elem != Elem::kDescriptor || d.rank() < 1 || d.rank() > kLazyDescriptorRank)
      return wrong(op, "a descriptor of one to five dimensions");
    const auto rank = static_cast<size_t>(d.rank());
    if (makes) {
      const Type& base = type(op.operands[0]);
      if (base.tensor || base.elem != Elem::kPointer || elem_bytes(base.pointee) != elem_bytes(d.pointee) ||
          op.operands.size() != 1 + 2 * rank)
        return wrong(op, "a pointer, shapes and strides");
      for (size_t k = 1; k < op.operands.size(); ++k)
        if (type(op.operands[k]).tensor || !is_integer(type(op.operands[k]).elem))
          return wrong(op, "integers for shape and strides");
      return ok_status();
    }
    const auto indices = static_cast<size_t>(op.segments[1]);
    const bool loads = op.kind == OpKind::kDescriptorLoad || op.kind == OpKind::kDescriptorGather;
    const bool rows = op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter;
    if (op.operands.size() != 1 + indices + (loads ? 0 : 1)) return wrong(op, "indices");
    const Type& value = loads ? type(op.results[0]) : type(op.operands.back());
    if (!value.tensor || elem_bytes(value.elem) != elem_bytes(d.pointee) || value.elem == Elem::kPointer ||
        (value.elem != d.pointee && (is_float(value.elem) != is_float(d.pointee))))
      return wrong(op, "a tensor of the descriptor's elements");
    if (rows) {
      const Type& index = type(op.operands[1]);
      if (rank != 2 || indices != 2 || d.shape[0] != 1 || !index.tensor || index.rank() != 1 ||
          !is_integer(index.elem) || index.elem == Elem::kI1 ||
          value.shape != std::vector<int64_t>{index.shape[0], d.shape[1]} || type(op.operands[2]).tensor ||
          !is_integer(type(op.operands[2]).elem))
        return wrong(op, "rows, a column and a tensor of them");
      return ok_status();
    }
    Type block = d;
    if (indices != rank || value.elements() != block.elements())
      return wrong(op, "an index for each dimension and a block of the descriptor's size");
    for (size_t k = 1; k <= indices; ++k)
      if (type(op.operands[k]).tensor || !is_integer(type(op.operands[k]).elem))
        return wrong(op, "integer indices");
    return ok_status();
  }

  Status check_dot(const Op& op) {
    if (!counts(op, 3, 1)) return wrong(op, "three operands");
    const Type &a = type(op.operands[0]), &b = type(op.operands[1]), &c = type(op.operands[2]);
    const int r = a.rank();
    if (c != type(op.results[0]) || !a.tensor || !b.tensor || (r != 2 && r != 3) || b.rank() != r ||
        c.rank() != r)
      return wrong(op, "matrices");
    const auto at = [r](const Type& t, int k) { return t.shape[static_cast<size_t>(r - k)]; };
    if (at(a, 1) != at(b, 2) || at(c, 2) != at(a, 2) || at(c, 1) != at(b, 1))
      return wrong(op, "shapes m x k, k x n, m x n");
    if (r == 3 && (a.shape[0] != b.shape[0] || a.shape[0] != c.shape[0])) return wrong(op, "one batch size");
    const bool doubles = a.elem == Elem::kF64 && b.elem == Elem::kF64 && c.elem == Elem::kF64;
    const bool bytes = a.elem == Elem::kI8 && b.elem == Elem::kI8 && c.elem == Elem::kI32;
    const auto narrow = [](Elem e) { return is_float(e) && e != Elem::kF64; };
    if (!doubles && !bytes && !(narrow(a.elem) && narrow(b.elem) && narrow(c.elem))) {
      return input_error("Unsupported: tt.dot of {} and {} into {}", to_string(a), to_string(b),
                         to_string(c));
    }
    const std::string& precision = op.text("inputPrecision");
    if (!precision.empty() && precision != "ieee" && precision != "tf32" && precision != "tf32x3" &&
        precision != "bf16x3" && precision != "bf16x6")
      return input_error("Unsupported: tt.dot with input precision {}", precision);
    return ok_status();
  }

  Status check_dot_scaled(const Op& op) {
    if (op.results.size() != 1 || op.segments.size() != 5)
      return wrong(op, "two operands, their scales and an accumulator");
    const Type &a = type(op.operands[0]), &b = type(op.operands[1]), &c = type(op.operands[2]);
    if (c != type(op.results[0]) || a.rank() != 2 || b.rank() != 2 || c.rank() != 2 || !is_float(c.elem) ||
        c.elem == Elem::kF64)
      return wrong(op, "matrices");
    const bool a_rows = op.integer("lhs_k_pack", 1) == 0, b_rows = op.integer("rhs_k_pack", 1) == 0;
    const auto check_side = [&](const std::string& format, const Type& t) {
      if (format == "e2m1" || format == "e4m3" || format == "e5m2")
        return elem_bytes(t.elem) == 1 && t.elem != Elem::kI1;
      if (format == "bf16") return t.elem == Elem::kBF16;
      if (format == "fp16") return t.elem == Elem::kF16;
      return false;
    };
    const std::string &lhs = op.text("lhs"), &rhs = op.text("rhs");
    if (!check_side(lhs, a) || !check_side(rhs, b))
      return wrong(op, "operands of the formats " + lhs + " and " + rhs);
    const int64_t m = a.shape[0] * (lhs == "e2m1" && a_rows ? 2 : 1),
                  ka = a.shape[1] * (lhs == "e2m1" && !a_rows ? 2 : 1);
    const int64_t kb = b.shape[0] * (rhs == "e2m1" && !b_rows ? 2 : 1),
                  n = b.shape[1] * (rhs == "e2m1" && b_rows ? 2 : 1);
    if (m != c.shape[0] || n != c.shape[1] || ka != kb) return wrong(op, "shapes m x k, k x n, m x n");
    size_t next = 3;
    for (int side = 0; side < 2; ++side) {
      if (op.segments[static_cast<size_t>(3 + side)] == 0) continue;
      const Type& s = type(op.operands[next++]);
      const int64_t rows = side == 0 ? m : n;
      if (s.rank() != 2 || s.elem != Elem::kI8 || s.shape[0] != rows || s.shape[1] < 1 ||
          ka % s.shape[1] != 0) {
        return input_error("Unsupported: tt.dot_scaled with scales of type {}", to_string(s));
      }
    }
    return ok_status();
  }

  Status check_shape(const Op& op) {
    const auto in = [&](size_t k) -> const Type& { return type(op.operands[k]); };
    const bool two = op.kind == OpKind::kCat || op.kind == OpKind::kJoin || op.kind == OpKind::kGather;
    const bool maybe = op.kind == OpKind::kHistogram;
    if (op.operands.size() != (two ? 2u : 1u) && !(maybe && op.operands.size() == 2))
      return wrong(op, "operands");
    if (op.results.size() != (op.kind == OpKind::kSplit ? 2u : 1u)) return wrong(op, "results");
    const Type &a = in(0), &r = type(op.results[0]);
    if (a.elem == Elem::kDescriptor) return wrong(op, "numbers or pointers");
    const bool same_elem = a.elem == r.elem && a.pointee == r.pointee;
    const auto rank = static_cast<size_t>(a.rank());
    switch (op.kind) {
      case OpKind::kSplat:
        return !a.tensor && r.tensor && same_elem ? ok_status()
                                                  : Status(wrong(op, "a scalar to a tensor of it"));
      case OpKind::kUnsplat:
        return a.tensor && a.elements() == 1 && !r.tensor && same_elem
                   ? ok_status()
                   : Status(wrong(op, "a tensor of one element"));
      case OpKind::kExpandDims: {
        const int64_t axis = op.integer("axis", -1);
        if (!a.tensor || axis < 0 || axis > a.rank() || a.rank() >= kMaxRank) return wrong(op, "an axis");
        Type expected = a;
        expected.shape.insert(expected.shape.begin() + static_cast<int64_t>(axis), 1);
        return r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
      }
      case OpKind::kBroadcast:
        if (!a.tensor || !same_elem || r.rank() != a.rank()) return wrong(op, "tensors of one rank");
        for (size_t d = 0; d < rank; ++d)
          if (a.shape[d] != r.shape[d] && a.shape[d] != 1) return wrong(op, "dimensions that are equal or 1");
        return ok_status();
      case OpKind::kReshape:
        return a.tensor && r.tensor && same_elem && a.elements() == r.elements()
                   ? ok_status()
                   : Status(wrong(op, "as many elements"));
      case OpKind::kTrans: {
        const auto& order = op.integers("order");
        std::vector<bool> seen(rank, false);
        if (order.size() != rank || !same_elem || r.rank() != a.rank())
          return wrong(op, "an order of the dimensions");
        for (size_t d = 0; d < rank; ++d) {
          if (order[d] < 0 || order[d] >= a.rank() || seen[static_cast<size_t>(order[d])])
            return wrong(op, "an order of the dimensions");
          seen[static_cast<size_t>(order[d])] = true;
          if (r.shape[d] != a.shape[static_cast<size_t>(order[d])])
            return wrong(op, "the dimensions in that order");
        }
        return ok_status();
      }
      case OpKind::kCat: {
        Type expected = a;
        if (!a.tensor || a.rank() != 1) return wrong(op, "one dimension");
        expected.shape[0] *= 2;
        return in(1) == a && r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
      }
      case OpKind::kJoin: {
        Type expected = a;
        if (a.rank() >= kMaxRank) return wrong(op, "fewer dimensions");
        expected.tensor = true;
        expected.shape.push_back(2);
        return in(1) == a && r == expected ? ok_status() : Status(wrong(op, to_string(expected)));
      }
      case OpKind::kSplit: {
        if (!a.tensor || rank == 0 || a.shape.back() != 2) return wrong(op, "a last dimension of 2");
        Type expected = a;
        expected.shape.pop_back();
        if (expected.shape.empty()) expected.tensor = false;
        return r == expected && type(op.results[1]) == expected ? ok_status()
                                                                : Status(wrong(op, to_string(expected)));
      }
      case OpKind::kGather: {
        const int64_t axis = op.integer("axis", -1);
        if (!a.tensor || axis < 0 || axis >= a.rank() || !same_elem || !is_integer(in(1).elem) ||
            elem_bytes(in(1).elem) < 4 || in(1).rank() != a.rank() || r.shape != in(1).shape)
          return wrong(op, "an axis and indices of i32 or i64");
        for (size_t d = 0; d < rank; ++d)
          if (static_cast<int64_t>(d) != axis && a.shape[d] != r.shape[d])
            return wrong(op, "the other dimensions unchanged");
        return ok_status();
      }
      case OpKind::kHistogram:
        if (a.rank() != 1 || r.rank() != 1 || !is_integer(a.elem) ||
            (r.elem != Elem::kI32 && r.elem != Elem::kI64))
          return wrong(op, "a vector of integers to counts");
        if (op.operands.size() == 2 && (in(1).elem != Elem::kI1 || in(1).shape != a.shape))
          return wrong(op, "a mask of i1");
        return ok_status();
      default:
        return input_error("Unsupported: operation {}", to_string(op.kind));
    }
  }

  static constexpr int kLazyDescriptorRank = 5;
  const Module& module_;
  std::set<ValueId> defined_;
  int calls_ = 0;
};

}  // namespace

Status verify(const Module& module) { return Verifier(module).run(); }

}  // namespace nereid::ttir
