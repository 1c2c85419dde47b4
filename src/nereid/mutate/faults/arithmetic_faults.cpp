// Operators, constants, comparisons, clamps, terms and indices.
#include <cmath>
#include <cstdlib>
#include <map>

#include "nereid/mutate/faults/edits.h"

namespace nereid::mutate {
namespace {

using std::string;

const std::map<string, std::vector<string>>& other_operators() {
  static const std::map<string, std::vector<string>> table = {
      {"arith.addf", {"arith.subf", "arith.mulf"}},
      {"arith.subf", {"arith.addf"}},
      {"arith.mulf", {"arith.addf"}},
      {"arith.divf", {"arith.mulf"}},
      {"arith.maxnumf", {"arith.minnumf", "arith.addf"}},
      {"arith.minnumf", {"arith.maxnumf"}},
      {"arith.maximumf", {"arith.minimumf"}},
      {"arith.minimumf", {"arith.maximumf"}},
      {"arith.andi", {"arith.ori"}},
      {"arith.ori", {"arith.andi"}},
      {"arith.xori", {"arith.ori"}},
      {"arith.addi", {"arith.subi"}},
      {"arith.subi", {"arith.addi"}},
      {"arith.maxsi", {"arith.minsi"}},
      {"arith.minsi", {"arith.maxsi"}},
      {"arith.shrsi", {"arith.shrui"}},
      {"arith.divsi", {"arith.remsi"}},
      {"arith.remsi", {"arith.divsi"}},
      {"math.exp", {"math.exp2"}},
      {"math.exp2", {"math.exp"}},
      {"math.log", {"math.log2"}},
      {"math.log2", {"math.log"}},
      {"math.log1p", {"math.log"}},
      {"math.expm1", {"math.exp"}},
      {"math.sqrt", {"math.rsqrt"}},
      {"math.rsqrt", {"math.sqrt"}},
      {"math.sin", {"math.cos"}},
      {"math.cos", {"math.sin"}},
      {"math.tanh", {"math.erf"}},
      {"math.erf", {"math.tanh"}},
      {"math.floor", {"math.ceil"}},
      {"math.ceil", {"math.floor"}},
      {"math.absf", {"arith.negf"}},
      {"tt.precise_divf", {"arith.mulf"}},
      {"tt.precise_sqrt", {"math.rsqrt"}},
  };
  return table;
}

// Functions of libdevice, by the symbol.
const std::map<string, string>& other_symbols() {
  static const std::map<string, string> table = {
      {"__nv_expf", "__nv_exp2f"},  {"__nv_exp2f", "__nv_expf"},   {"__nv_logf", "__nv_log2f"},
      {"__nv_log1pf", "__nv_logf"}, {"__nv_expm1f", "__nv_expf"},  {"__nv_tanhf", "__nv_erff"},
      {"__nv_erff", "__nv_tanhf"},  {"__nv_sqrtf", "__nv_rsqrtf"}, {"__nv_rsqrtf", "__nv_sqrtf"},
      {"__nv_sinf", "__nv_cosf"},   {"__nv_cosf", "__nv_sinf"},    {"__nv_floorf", "__nv_ceilf"},
      {"__nv_fmaxf", "__nv_fminf"}, {"__nv_rintf", "__nv_truncf"}, {"__nv_roundf", "__nv_floorf"},
      {"__nv_sinhf", "__nv_coshf"}, {"__nv_powf", "__nv_fmodf"},   {"__nv_fmodf", "__nv_powf"},
  };
  return table;
}

void add_operators(const Site& s) {
  const auto& o = s.operation;
  if (const auto found = other_operators().find(o.op); found != other_operators().end())
    for (const auto& other : found->second) {
      Operation changed = o;
      changed.op = other;
      s.become(Fault::kOperator, fmt::format("{} becomes {}", o.op, other), changed);
    }
  if ((o.op == "arith.subf" || o.op == "arith.divf") && s.operands() == 2) {
    Operation changed = o;
    changed.middle =
        s.operand(1) + ", " + s.operand(0) + o.middle.substr(s.operand(0).size() + s.operand(1).size() + 2);
    s.become(Fault::kOperator, o.op + " with its operands exchanged", changed);
  }
  if (o.op != "tt.extern_elementwise") return;
  const size_t at = o.middle.find("symbol = \"");
  if (at == string::npos) return;
  const size_t begin = at + 10, end = o.middle.find('"', begin);
  const auto found = other_symbols().find(o.middle.substr(begin, end - begin));
  if (found == other_symbols().end()) return;
  Operation changed = o;
  changed.middle.replace(begin, end - begin, found->second);
  s.become(Fault::kOperator, fmt::format("{} becomes {}", found->first, found->second), changed);
}

// The literal of a constant, and how it is written back.
struct Literal {
  string text;
  bool dense = false;
};
Literal literal_of(const Operation& o) {
  if (o.middle.starts_with("dense<") && o.middle.ends_with(">"))
    return {o.middle.substr(6, o.middle.size() - 7), true};
  return {o.middle, false};
}

void add_constants(const Site& s) {
  const auto& o = s.operation;
  if (o.op != "arith.constant" || o.type.empty()) return;
  const auto literal = literal_of(o);
  const string element = element_of(o.type);
  const auto put = [&](Fault fault, const string& text) {
    Operation changed = o;
    changed.middle = literal.dense ? "dense<" + text + ">" : text;
    s.become(fault, fmt::format("the constant {} becomes {}", literal.text, text), changed);
  };
  if (is_float(element)) {
    if (literal.text.starts_with("0x")) return put(Fault::kConstant, "0.0");
    char* end = nullptr;
    const double value = std::strtod(literal.text.c_str(), &end);
    if (*end != 0) return;
    const auto number = [](double x) { return fmt::format("{:.9e}", x); };
    if (value == 0) return put(Fault::kConstant, number(1));
    put(Fault::kConstant, number(value * 1.05));
    put(Fault::kConstant, number(value * 0.5));
    put(Fault::kConstant, number(-value));
    put(Fault::kConstant, number(value * 1.001));
    put(Fault::kConstant, number(0));
  } else if (is_integer(element)) {
    const int64_t value = std::strtoll(literal.text.c_str(), nullptr, 0);
    put(Fault::kIndex, fmt::format("{}", value + 1));
    if (value != 0) put(Fault::kIndex, fmt::format("{}", value - 1));
  }
}

void add_comparisons(const Site& s) {
  static const std::map<string, std::vector<string>> others = {
      {"slt", {"sle", "sgt"}}, {"sle", {"slt"}},        {"sgt", {"sge", "slt"}}, {"sge", {"sgt"}},
      {"ult", {"ule"}},        {"ule", {"ult"}},        {"eq", {"ne", "sle"}},   {"ne", {"eq"}},
      {"olt", {"ole", "ogt"}}, {"ole", {"olt", "oge"}}, {"ogt", {"oge", "olt"}}, {"oge", {"ogt", "ole"}},
      {"oeq", {"une", "oge"}}, {"une", {"oeq"}},        {"uno", {"ord"}},
  };
  const auto& o = s.operation;
  if (o.op != "arith.cmpi" && o.op != "arith.cmpf") return;
  const string predicate = o.middle.substr(0, o.middle.find(','));
  const auto found = others.find(predicate);
  if (found == others.end()) return;
  for (const auto& other : found->second) {
    Operation changed = o;
    changed.middle.replace(0, predicate.size(), other);
    s.become(Fault::kComparison, fmt::format("{} {} becomes {}", o.op, predicate, other), changed);
  }
}

void add_clamps(const Site& s) {
  const auto& o = s.operation;
  const bool extremum = o.op == "arith.maxnumf" || o.op == "arith.minnumf" || o.op == "arith.maximumf" ||
                        o.op == "arith.minimumf" || o.op == "arith.maxsi" || o.op == "arith.minsi";
  if (extremum && s.operands() == 2) {
    s.pass(Fault::kClamp, o.op + " dropped: its first operand", s.operand(0));
    s.pass(Fault::kClamp, o.op + " dropped: its second operand", s.operand(1));
  }
  if (o.op == "tt.clampf" && s.operands() == 3) {
    s.pass(Fault::kClamp, "a clamp dropped", s.operand(0));
    s.replace(
        Fault::kClamp, "a clamp without its upper bound",
        std::vector{s.line_of(o.result, "arith.maxnumf", s.operand(0) + ", " + s.operand(1), s.type())});
    s.replace(
        Fault::kClamp, "a clamp without its lower bound",
        std::vector{s.line_of(o.result, "arith.minnumf", s.operand(0) + ", " + s.operand(2), s.type())});
  }
}

void add_terms(const Site& s) {
  const auto& o = s.operation;
  const string type = s.type();
  if (!is_float(element_of(type))) return;
  const bool binary =
      o.op == "arith.addf" || o.op == "arith.subf" || o.op == "arith.mulf" || o.op == "arith.divf";
  if (binary && s.operands() == 2 && s.operand(0) != s.operand(1)) {
    s.pass(Fault::kTerm, fmt::format("{}: the second operand dropped", o.op), s.operand(0));
    if (o.op == "arith.addf" || o.op == "arith.mulf")
      s.pass(Fault::kTerm, fmt::format("{}: the first operand dropped", o.op), s.operand(1));
  }
  if (o.op == "math.fma" && s.operands() == 3) {
    s.replace(Fault::kTerm, "a multiply-add without its sum",
              std::vector{s.line_of(o.result, "arith.mulf", s.operand(0) + ", " + s.operand(1), type)});
    s.replace(Fault::kTerm, "a multiply-add without a factor",
              std::vector{s.line_of(o.result, "arith.addf", s.operand(0) + ", " + s.operand(2), type)});
  }
  const bool function = o.op.starts_with("math.") || o.op == "arith.negf" || o.op == "tt.extern_elementwise";
  if (function && s.operands() == 1) s.pass(Fault::kTerm, o.op + " not applied", s.operand(0));
  if (o.op == "tt.dot" && s.operands() == 3) s.pass(Fault::kTerm, "a product not added", s.operand(2));
}

void add_indices(const Site& s) {
  const auto& o = s.operation;
  const string type = s.type();
  const bool index = o.op == "arith.addi" || o.op == "arith.muli" || o.op == "tt.get_program_id" ||
                     o.op == "arith.divsi" || o.op == "arith.remsi" || o.op == "arith.subi" ||
                     o.op == "arith.extsi";
  if (o.op == "tt.make_range") {
    Operation changed = o;
    const auto shape = shape_of(o.type);
    const size_t start = changed.middle.find("start = 0 ");
    if (shape.size() == 1 && start != string::npos) {
      changed.middle = fmt::format("{{end = {} : i32, start = 1 : i32}}", shape[0] + 1);
      s.become(Fault::kIndex, "a range that begins at 1", changed);
    }
  }
  if (!index || !is_integer(element_of(type))) return;
  s.wrap(Fault::kIndex, o.op + " plus one",
         {s.constant("%nereid_one", "1", type),
          s.line_of(o.result, "arith.addi", fmt::format("{}, %nereid_one", kKept), type)});
  if (o.op == "arith.muli" && s.operands() == 2) {
    const string one = s.constant("%nereid_one", "1", type);
    s.replace(Fault::kIndex, "a stride plus one",
              {one, s.line_of("%nereid_other", "arith.addi", s.operand(1) + ", %nereid_one", type),
               s.line_of(o.result, "arith.muli", s.operand(0) + ", %nereid_other", type)});
    s.replace(Fault::kIndex, "a stride minus one",
              {one, s.line_of("%nereid_other", "arith.subi", s.operand(1) + ", %nereid_one", type),
               s.line_of(o.result, "arith.muli", s.operand(0) + ", %nereid_other", type)});
    s.replace(Fault::kIndex, "an offset that is always 0",
              std::vector{s.line_of(o.result, "arith.subi", s.operand(0) + ", " + s.operand(0), type)});
  }
  if (o.op == "tt.get_program_id") {
    Operation changed = o;
    changed.middle = o.middle == "x" ? "y" : "x";
    s.become(Fault::kIndex, fmt::format("the program's {} is taken for its {}", changed.middle, o.middle),
             changed);
  }
}

}  // namespace

void add_arithmetic_faults(const Site& site) {
  add_operators(site);
  add_constants(site);
  add_comparisons(site);
  add_clamps(site);
  add_terms(site);
  add_indices(site);
}

}  // namespace nereid::mutate
