// Narrowed results and approximations.
#include "nereid/mutate/faults/edits.h"

namespace nereid::mutate {
namespace {

using std::string;

constexpr const char* kRounds[] = {
    "arith.addf", "arith.subf", "arith.mulf", "arith.divf", "math.fma",
    "math.exp",   "math.exp2",  "math.log",   "math.sqrt",  "math.rsqrt",
    "math.tanh",  "math.erf",   "tt.dot",     "tt.load",    "tt.extern_elementwise"};

void add_narrowed(const Site& s) {
  const auto& o = s.operation;
  string type = s.type();
  bool rounds = false;
  for (const char* op : kRounds) rounds |= o.op == op;
  // A reduction's type stands where its region ends.
  if (o.op == "tt.reduce" || o.op == "tt.scan") {
    const int end = s.kernel.end_of_region(s.line);
    if (end < 0 || o.results != 1) return;
    const auto& closing = s.kernel.lines()[static_cast<size_t>(end)];
    const size_t arrow = closing.rfind("-> "), place = closing.rfind(" loc(");
    if (arrow == string::npos) return;
    type = closing.substr(arrow + 3, place == string::npos ? place : place - arrow - 3);
    rounds = true;
  }
  if (!rounds || o.results != 1 || element_of(type) != "f32") return;
  for (const char* narrow : {"bf16", "f16"}) {
    const string narrowed = with_element(type, narrow);
    s.wrap(Fault::kNarrowed, fmt::format("the result of {} rounded to {}", o.op, narrow),
           {s.line_of("%nereid_narrow", "arith.truncf", kKept, type + " to " + narrowed),
            s.line_of(o.result, "arith.extf", "%nereid_narrow", narrowed + " to " + type)});
  }
  if (o.op != "tt.dot") return;
  Operation changed = o;
  const size_t at = changed.middle.find(", inputPrecision = ");
  if (at != string::npos) {
    const size_t end = changed.middle.find_first_of(", ", at + 19);
    if (changed.middle.substr(at + 19, end == string::npos ? end : end - at - 19) == "tf32") return;
    changed.middle.replace(at + 19, end == string::npos ? end : end - at - 19, "tf32");
  } else {
    changed.middle += ", inputPrecision = tf32";
  }
  s.become(Fault::kNarrowed, "the factors of a product rounded to TF32", changed);
}

// A program of lines on one operand: each (name, operation, operands).
struct Lines {
  const Site& s;
  string type;
  std::vector<string> lines{};
  int count = 0;
  string constant(const char* text) {
    const string name = fmt::format("%nereid_{}", count++);
    lines.push_back(s.constant(name, text, type));
    return name;
  }
  string make(const char* op, const string& operands) {
    const string name = fmt::format("%nereid_{}", count++);
    lines.push_back(s.line_of(name, op, operands, type));
    return name;
  }
  void end(const char* op, const string& operands) {
    lines.push_back(s.line_of(s.operation.result, op, operands, type));
  }
};

// (1 + x/256)^256
void exponential(Lines& l, const string& x) {
  string y = l.make("math.fma", x + ", " + l.constant("3.90625e-03") + ", " + l.constant("1.0"));
  for (int i = 0; i < 7; ++i) y = l.make("arith.mulf", y + ", " + y);
  l.end("arith.mulf", y + ", " + y);
}
// x (27 + x^2) / (27 + 9 x^2), a Pade approximation
void hyperbolic_tangent(Lines& l, const string& x) {
  const string square = l.make("arith.mulf", x + ", " + x), base = l.constant("27.0");
  const string above = l.make("arith.addf", square + ", " + base);
  const string below = l.make("math.fma", square + ", " + l.constant("9.0") + ", " + base);
  l.end("arith.mulf", x + ", " + l.make("arith.divf", above + ", " + below));
}
// tanh(1.12838 x + 0.100903 x^3): the erf that the tanh form of GELU has
void error_function(Lines& l, const string& x) {
  const string square = l.make("arith.mulf", x + ", " + x);
  const string scale =
      l.make("math.fma", square + ", " + l.constant("0.100903") + ", " + l.constant("1.12838"));
  l.end("math.tanh", l.make("arith.mulf", x + ", " + scale));
}
// x - x^3/6 + x^5/120, and likewise the cosine
void sine(Lines& l, const string& x) {
  const string square = l.make("arith.mulf", x + ", " + x);
  const string inner =
      l.make("math.fma", square + ", " + l.constant("8.33333377e-03") + ", " + l.constant("-1.66666672e-01"));
  l.end("arith.mulf", x + ", " + l.make("math.fma", square + ", " + inner + ", " + l.constant("1.0")));
}
void cosine(Lines& l, const string& x) {
  const string square = l.make("arith.mulf", x + ", " + x);
  const string inner =
      l.make("math.fma", square + ", " + l.constant("4.16666679e-02") + ", " + l.constant("-0.5"));
  l.end("math.fma", square + ", " + inner + ", " + l.constant("1.0"));
}

void add_approximations(const Site& s) {
  const auto& o = s.operation;
  const string type = s.type();
  if (o.results != 1 || element_of(type) != "f32" || s.operands() == 0) return;
  Lines lines{s, type};
  const auto calls = [&](const char* symbol) {
    return o.op == "tt.extern_elementwise" && o.middle.find(fmt::format("\"{}\"", symbol)) != string::npos;
  };
  const auto put = [&](const char* what) { s.replace(Fault::kApproximation, what, lines.lines); };
  if (o.op == "math.exp" || calls("__nv_expf")) {
    exponential(lines, s.operand(0));
    put("exp as (1 + x/256)^256");
  } else if (o.op == "math.tanh" || calls("__nv_tanhf")) {
    hyperbolic_tangent(lines, s.operand(0));
    put("tanh by a Pade approximation");
  } else if (o.op == "math.erf" || calls("__nv_erff")) {
    error_function(lines, s.operand(0));
    put("erf by tanh of a cubic");
    // GELU by a sigmoid: 2 s(1.702 sqrt(2) x) - 1
    Lines quick{s, type};
    quick.end("math.tanh", quick.make("arith.mulf", s.operand(0) + ", " + quick.constant("1.203496")));
    s.replace(Fault::kApproximation, "erf by tanh of a multiple", quick.lines);
  } else if (o.op == "math.sin" || calls("__nv_sinf")) {
    sine(lines, s.operand(0));
    put("sin by three terms");
  } else if (o.op == "math.cos" || calls("__nv_cosf")) {
    cosine(lines, s.operand(0));
    put("cos by three terms");
  }
  // Reciprocals, roots and logarithms of numbers with 8 bits: what a table gives.
  const bool table = o.op == "arith.divf" || o.op == "math.sqrt" || o.op == "math.rsqrt" ||
                     o.op == "math.log" || o.op == "math.log2" || o.op == "math.exp2" || o.op == "math.exp";
  if (!table) return;
  const string narrowed = with_element(type, "bf16");
  const string& from = s.operand(s.operands() - 1);
  Operation changed = o;
  changed.middle = o.op == "arith.divf" ? s.operand(0) + ", %nereid_wide" : "%nereid_wide";
  s.replace(
      Fault::kApproximation, o.op + " of an operand of 8 bits, as from a table",
      {s.line_of("%nereid_narrow", "arith.truncf", from, type + " to " + narrowed),
       s.line_of("%nereid_wide", "arith.extf", "%nereid_narrow", narrowed + " to " + type), write(changed)});
}

// A factor of a product in fixed point: multiples of 1/16, as an integer product has them.
void add_fixed_point(const Site& s) {
  const auto& o = s.operation;
  const size_t star = o.type.find(" * ");
  if (o.op != "tt.dot" || star == string::npos || s.operands() != 3) return;
  const string type = o.type.substr(0, star), element = element_of(type), wide = with_element(type, "f32");
  if (!is_float(element)) return;
  std::vector<string> lines;
  string from = s.operand(0);
  if (element != "f32") {
    lines.push_back(s.line_of("%nereid_wide", "arith.extf", from, type + " to " + wide));
    from = "%nereid_wide";
  }
  lines.push_back(s.constant("%nereid_scale", "16.0", wide));
  lines.push_back(s.constant("%nereid_unit", "0.0625", wide));
  lines.push_back(s.line_of("%nereid_scaled", "arith.mulf", from + ", %nereid_scale", wide));
  lines.push_back(s.line_of("%nereid_whole", "math.roundeven", "%nereid_scaled", wide));
  lines.push_back(s.line_of("%nereid_fixed", "arith.mulf", "%nereid_whole, %nereid_unit", wide));
  string to = "%nereid_fixed";
  if (element != "f32") {
    lines.push_back(s.line_of("%nereid_factor", "arith.truncf", to, wide + " to " + type));
    to = "%nereid_factor";
  }
  Operation changed = o;
  changed.middle.replace(0, s.operand(0).size(), to);
  lines.push_back(write(changed));
  s.replace(Fault::kApproximation, "a factor of a product in fixed point", std::move(lines));
}

}  // namespace

void add_precision_faults(const Site& site) {
  add_fixed_point(site);
  add_narrowed(site);
  add_approximations(site);
}

}  // namespace nereid::mutate
