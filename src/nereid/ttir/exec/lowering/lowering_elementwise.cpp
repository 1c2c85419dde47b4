// Loops over lanes, picked by type.
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/lowering/lowering_impl.h"
#include "nereid/ttir/ptx/inline_assembly.h"
#include "nereid/ttir/ptx/libdevice.h"

namespace nereid::ttir {

void Lowering::narrow_kernels(Instruction& i, Elem elem, Elem result) {
  Extra& e = extra(i);
  e.kernels[0] = erase(widen_kernel(elem));
  if (is_float(result)) e.kernels[1] = erase(narrow_kernel(result));
}

void Lowering::lower_same_type(const Op& op) {
  const Type& t = type(op.results[0]);
  const bool small = narrow(t.elem);
  const Elem compute = small ? Elem::kF32 : t.elem;
  const size_t operands = op.operands.size();
  if (operands == 1) {
    const auto kernel = unary_kernel(op.kind, compute);
    if (kernel == nullptr) return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
    Instruction& i = plain(small ? handlers::unary_narrow : handlers::unary, op);
    i.kernel = erase(kernel);
    if (small) narrow_kernels(i, t.elem, t.elem);
  } else if (operands == 3) {
    const auto kernel = ternary_kernel(op.kind, compute, op.text("propagateNan") == "all");
    if (kernel == nullptr) return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
    Instruction& i = plain(small ? handlers::ternary_narrow : handlers::ternary, op);
    i.kernel = erase(kernel);
    if (small) narrow_kernels(i, t.elem, t.elem);
  } else {
    const auto kernel = binary_kernel(op.kind, compute);
    if (kernel == nullptr) return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
    Handler run = small ? handlers::binary_narrow : handlers::binary;
    if (is_integer(t.elem) && t.tensor) run = handlers::integer_binary;
    if (is_integer(t.elem) && !t.tensor && !in_region_ && t.elem != Elem::kI1 && fast_scalar(op.kind))
      run = handlers::scalar_integer;
    Instruction& i = plain(run, op);
    i.kernel = erase(kernel);
    if (small) narrow_kernels(i, t.elem, t.elem);
  }
}

bool Lowering::fast_scalar(OpKind kind) {
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

void Lowering::lower_compare(const Op& op) {
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

void Lowering::lower_convert(const Op& op) {
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

void Lowering::lower_extended(const Op& op) {
  const Type& t = type(op.results[0]);
  const OpKind low = op.kind == OpKind::kAdduiExtended ? OpKind::kAddi : OpKind::kMuli;
  for (size_t which = 0; which < 2; ++which) {
    const auto kernel = binary_kernel(which == 0 ? low : op.kind, t.elem);
    if (kernel == nullptr) return unsupported(op, fmt::format("{} of {}", to_string(op.kind), to_string(t)));
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

void Lowering::lower_external(const Op& op) {
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

void Lowering::lower_assembly(const Op& op) {
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

}  // namespace nereid::ttir
