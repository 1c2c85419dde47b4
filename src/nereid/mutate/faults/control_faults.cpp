// Loops, branches and selections.
#include "nereid/mutate/faults/edits.h"

namespace nereid::mutate {
namespace {

using std::string;

// `%k = %lower to %upper step %step iter_args(%a = %x, %b = %y) -> (T, U)`
struct Loop {
  string variable, lower, upper, step, rest, type;
  bool found = false;
};
Loop read_loop(const Operation& o) {
  Loop loop;
  const size_t equal = o.middle.find(" = "), to = o.middle.find(" to "), step = o.middle.find(" step ");
  if (o.op != "scf.for" || equal == string::npos || to == string::npos || step == string::npos) return loop;
  loop.variable = o.middle.substr(0, equal);
  loop.lower = o.middle.substr(equal + 3, to - equal - 3);
  loop.upper = o.middle.substr(to + 4, step - to - 4);
  const size_t end = o.middle.find(' ', step + 6);
  loop.step = o.middle.substr(step + 6, end == string::npos ? end : end - step - 6);
  loop.rest = end == string::npos ? "" : o.middle.substr(end);
  loop.type = o.type.substr(0, o.type.find(' '));
  loop.found = is_integer(loop.type);
  return loop;
}

// Items of a list at depth 0.
std::vector<string> items_of(const string& text) {
  std::vector<string> items(1);
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    depth += c == '<' || c == '(' ? 1 : c == '>' || c == ')' ? -1 : 0;
    if (depth == 0 && text.compare(i, 2, ", ") == 0) {
      items.emplace_back();
      ++i;
    } else {
      items.back() += c;
    }
  }
  return items;
}

void add_loops(const Site& s) {
  const auto& o = s.operation;
  const Loop loop = read_loop(o);
  if (!loop.found) return;
  const auto with = [&](const string& lower, const string& upper, const string& rest) {
    Operation changed = o;
    changed.middle = fmt::format("{} = {} to {} step {}{}", loop.variable, lower, upper, loop.step, rest);
    return write(changed);
  };
  s.replace(Fault::kLoopTurn, "the last turn of a loop dropped",
            {s.line_of("%nereid_end", "arith.subi", loop.upper + ", " + loop.step, loop.type),
             with(loop.lower, "%nereid_end", loop.rest)});
  s.replace(Fault::kLoopTurn, "the first turn of a loop dropped",
            {s.line_of("%nereid_begin", "arith.addi", loop.lower + ", " + loop.step, loop.type),
             with("%nereid_begin", loop.upper, loop.rest)});
  Operation skipping = o;
  skipping.middle =
      fmt::format("{} = {} to {} step %nereid_step{}", loop.variable, loop.lower, loop.upper, loop.rest);
  s.replace(
      Fault::kLoopTurn, "every other turn of a loop dropped",
      {s.line_of("%nereid_step", "arith.addi", loop.step + ", " + loop.step, loop.type), write(skipping)});
  const size_t open = loop.rest.find("iter_args("), close = loop.rest.find(") -> (");
  if (open == string::npos || close == string::npos) return;
  const auto values = items_of(loop.rest.substr(open + 10, close - open - 10));
  const size_t types_end = loop.rest.rfind(')');
  const auto types = items_of(loop.rest.substr(close + 6, types_end - close - 6));
  for (size_t i = 0; i < values.size() && values.size() == types.size(); ++i) {
    if (!is_float(element_of(types[i]))) continue;
    string name = values[i].substr(0, values[i].find(" = "));
    string changed = loop.rest;
    changed.replace(changed.find(values[i]), values[i].size(), name + " = %nereid_start");
    s.replace(Fault::kInitialisation, fmt::format("{} begins as 1", name),
              {s.constant("%nereid_start", "1.0", types[i]), with(loop.lower, loop.upper, changed)});
  }
}

void add_branches(const Site& s) {
  const auto& o = s.operation;
  if (o.op == "arith.select" && s.operands() == 3 && o.results == 1) {
    s.pass(Fault::kSpecialValues, "a selection always takes its first value", s.operand(1));
    s.pass(Fault::kSpecialValues, "a selection always takes its second value", s.operand(2));
  }
  if (o.op != "scf.if" || s.operands() != 1) return;
  for (const char* way : {"true", "false"}) {
    Operation changed = o;
    changed.middle.replace(changed.middle.find(s.operand(0)), s.operand(0).size(), "%nereid_way");
    s.replace(Fault::kSpecialValues, fmt::format("a branch's condition is always {}", way),
              {s.constant("%nereid_way", way, "i1"), write(changed)});
  }
}

}  // namespace

void add_control_faults(const Site& site) {
  add_loops(site);
  add_branches(site);
}

}  // namespace nereid::mutate
