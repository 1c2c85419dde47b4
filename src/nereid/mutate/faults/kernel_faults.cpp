#include "nereid/mutate/faults/kernel_faults.h"

#include "nereid/mutate/faults/edits.h"

namespace nereid::mutate {
namespace {

void add_rewrites(const Site& s) {
  const auto& o = s.operation;
  const std::string type = s.type();
  if (o.results != 1 || element_of(type) != "f32") return;
  if (o.op == "arith.divf" && s.operands() == 2)
    s.replace(Fault::kOperator, "a quotient by a reciprocal",
              {s.constant("%nereid_one", "1.0", type),
               s.line_of("%nereid_inverse", o.op, "%nereid_one, " + s.operand(1), type),
               s.line_of(o.result, "arith.mulf", s.operand(0) + ", %nereid_inverse", type)});
  if (o.op == "math.exp" && s.operands() == 1)
    s.replace(Fault::kOperator, "e^x by 2^x",
              {s.constant("%nereid_log2e", "1.44269502", type),
               s.line_of("%nereid_scaled", "arith.mulf", s.operand(0) + ", %nereid_log2e", type),
               s.line_of(o.result, "math.exp2", "%nereid_scaled", type)});
  if (o.op == "math.rsqrt" && s.operands() == 1)
    s.replace(
        Fault::kOperator, "1/sqrt(x) in two operations",
        {s.line_of("%nereid_root", "math.sqrt", s.operand(0), type), s.constant("%nereid_one", "1.0", type),
         s.line_of(o.result, "arith.divf", "%nereid_one, %nereid_root", type)});
  if (o.op == "math.fma" && s.operands() == 3)
    s.replace(Fault::kOperator, "a multiply-add in two operations",
              {s.line_of("%nereid_product", "arith.mulf", s.operand(0) + ", " + s.operand(1), type),
               s.line_of(o.result, "arith.addf", "%nereid_product, " + s.operand(2), type)});
  if (o.op == "arith.addf" && s.operands() == 2)
    s.replace(Fault::kOperator, "a sum as a multiply-add",
              {s.constant("%nereid_one", "1.0", type),
               s.line_of(o.result, "math.fma", s.operand(0) + ", %nereid_one, " + s.operand(1), type)});
}

}  // namespace

std::vector<KernelFault> kernel_faults(const KernelText& kernel) {
  std::vector<KernelFault> out;
  const auto& operations = kernel.operations();
  for (size_t i = 0; i < operations.size(); ++i) {
    if (!operations[i]) continue;
    const Site site{kernel, static_cast<int>(i), *operations[i], out};
    add_arithmetic_faults(site);
    add_memory_faults(site);
    add_control_faults(site);
    add_precision_faults(site);
  }
  return out;
}

std::vector<KernelFault> kernel_rewrites(const KernelText& kernel) {
  std::vector<KernelFault> out;
  const auto& operations = kernel.operations();
  for (size_t i = 0; i < operations.size(); ++i)
    if (operations[i]) add_rewrites({kernel, static_cast<int>(i), *operations[i], out});
  return out;
}

std::string edited(const KernelText& kernel, const std::vector<LineEdit>& edits) {
  std::string text;
  size_t next = 0;
  const auto keep_to = [&](size_t end) {
    for (; next < end && next < kernel.lines().size(); ++next) text += kernel.lines()[next] + "\n";
  };
  for (const auto& edit : edits) {
    keep_to(static_cast<size_t>(edit.first));
    for (const auto& line : edit.lines) text += line + "\n";
    next += static_cast<size_t>(edit.count);
  }
  keep_to(kernel.lines().size());
  return text;
}

}  // namespace nereid::mutate
