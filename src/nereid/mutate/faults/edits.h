// What the makers of faults share: one operation of a kernel, and edits around it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "nereid/mutate/faults/kernel_faults.h"

namespace nereid::mutate {

// Names that no kernel of Triton's has: one mutant holds one fault, so these are enough.
inline constexpr const char* kKept = "%nereid_kept";

struct Site {
  const KernelText& kernel;
  int line;
  const Operation& operation;
  std::vector<KernelFault>& out;

  const std::string& operand(size_t i) const { return operation.operands[i]; }
  size_t operands() const { return operation.operands.size(); }
  std::string type() const { return result_type(operation); }

  Operation like(const std::string& result, const std::string& op, const std::string& middle,
                 const std::string& type) const {
    Operation made;
    made.indent = operation.indent, made.location = operation.location;
    made.result = result, made.results = result.empty() ? 0 : 1;
    made.op = op, made.middle = middle, made.type = type;
    return made;
  }
  std::string line_of(const std::string& result, const std::string& op, const std::string& middle,
                      const std::string& type) const {
    return write(like(result, op, middle, type));
  }
  std::string constant(const std::string& name, const std::string& text, const std::string& type) const {
    return constant_line(operation, name, text, type);
  }

  void add(Fault fault, std::string what, std::vector<LineEdit> edits) const {
    out.push_back({fault, std::move(what), line, std::move(edits)});
  }
  // The operation's line becomes these.
  void replace(Fault fault, std::string what, std::vector<std::string> lines) const {
    add(fault, std::move(what), {{line, 1, std::move(lines)}});
  }
  void become(Fault fault, std::string what, const Operation& changed) const {
    replace(fault, std::move(what), std::vector{write(changed)});
  }
  // The result is one of the operands.
  void pass(Fault fault, std::string what, const std::string& operand) const {
    const bool real = is_float(element_of(type()));
    replace(fault, std::move(what),
            std::vector{line_of(operation.result, real ? "arith.maximumf" : "arith.ori",
                                operand + ", " + operand, type())});
  }
  // The result, under the name kKept, goes through `lines` before anything reads it.
  void wrap(Fault fault, std::string what, std::vector<std::string> lines) const {
    Operation renamed = operation;
    renamed.result = kKept;
    const int end = operation.type.empty() ? kernel.end_of_region(line) : line;
    if (end < 0) return;
    if (end == line) {
      lines.insert(lines.begin(), write(renamed));
      return replace(fault, std::move(what), std::move(lines));
    }
    lines.insert(lines.begin(), kernel.lines()[static_cast<size_t>(end)]);
    add(fault, std::move(what), {{line, 1, {write(renamed)}}, {end, 1, std::move(lines)}});
  }
};

// Makers, by what they look at (each adds to the site's faults).
void add_arithmetic_faults(const Site& site);  // operators, constants, comparisons, clamps, terms, indices
void add_memory_faults(const Site& site);  // masks, ignored inputs, initialisation, ordering, partial outputs
void add_control_faults(const Site& site);    // loops, branches, selections
void add_precision_faults(const Site& site);  // narrowed results, approximations

}  // namespace nereid::mutate
