// Masks, ignored inputs, initialisation, ordering and partial outputs.
#include <map>

#include "nereid/mutate/faults/edits.h"

namespace nereid::mutate {
namespace {

using std::string;

// What follows the operands: attributes.
string attributes_of(const Operation& o) {
  string begin;
  for (const auto& operand : o.operands) begin += (begin.empty() ? "" : ", ") + operand;
  return o.middle.starts_with(begin) ? o.middle.substr(begin.size()) : "";
}

string joined(const std::vector<string>& operands) {
  string text;
  for (const auto& operand : operands) text += (text.empty() ? "" : ", ") + operand;
  return text;
}

Operation with_operands(const Operation& o, const std::vector<string>& operands) {
  Operation changed = o;
  changed.middle = joined(operands) + attributes_of(o);
  return changed;
}

void add_masks(const Site& s) {
  const auto& o = s.operation;
  if (o.op == "tt.load" && s.operands() >= 2)
    s.become(Fault::kMask, "a load without its mask", with_operands(o, {s.operand(0)}));
  if (o.op == "tt.store" && s.operands() == 3)
    s.become(Fault::kMask, "a store without its mask", with_operands(o, {s.operand(0), s.operand(1)}));
  if (o.op == "arith.andi" && element_of(s.type()) == "i1" && s.operands() == 2)
    for (int i = 0; i < 2; ++i)
      s.pass(Fault::kMask, fmt::format("the {} condition of a mask dropped", i == 0 ? "second" : "first"),
             s.operand(static_cast<size_t>(i)));
}

void add_loads(const Site& s) {
  const auto& o = s.operation;
  if (o.op != "tt.load" && o.op != "tt.descriptor_load") return;
  const string type = s.type(), element = element_of(type);
  const bool real = is_float(element);
  if (!real && !is_integer(element)) return;
  for (const char* value : {"0", "1"})
    s.replace(Fault::kIgnoredInput, fmt::format("what is loaded is replaced by {}", value),
              std::vector{s.constant(o.result, real ? string(value) + ".0" : value, type)});
  if (o.op == "tt.load" && s.operands() == 3) {
    s.become(Fault::kInitialisation, "nothing is put where a load's mask is false",
             with_operands(o, {s.operand(0), s.operand(1)}));
    Operation changed = with_operands(o, {s.operand(0), s.operand(1), "%nereid_other"});
    s.replace(Fault::kInitialisation, "1 where a load's mask is false",
              {s.constant("%nereid_other", real ? "1.0" : "1", type), write(changed)});
  }
}

// The mask of a store with one lane of the last dimension left out; empty where its shape does not allow
// that.
std::vector<string> without_lane(const Site& s, const std::vector<int>& shape, int lane) {
  const int last = shape.back();
  const string row = fmt::format("tensor<{}xi32>", last), row_mask = fmt::format("tensor<{}xi1>", last);
  std::vector<string> lines = {
      s.line_of("%nereid_range", "tt.make_range", fmt::format("{{end = {} : i32, start = 0 : i32}}", last),
                row),
      s.constant("%nereid_lane", fmt::format("{}", lane), row),
      s.line_of("%nereid_mask0", "arith.cmpi", "ne, %nereid_range, %nereid_lane", row)};
  string type = row_mask;
  int name = 0;
  string dims = fmt::format("{}x", last);
  for (size_t d = 1; d < shape.size(); ++d) {
    dims = "1x" + dims;
    const string next = "tensor<" + dims + "i1>";
    lines.push_back(s.line_of(fmt::format("%nereid_mask{}", name + 1), "tt.expand_dims",
                              fmt::format("%nereid_mask{} {{axis = 0 : i32}}", name), type + " -> " + next));
    type = next, ++name;
  }
  string whole = "tensor<";
  for (const int size : shape) whole += fmt::format("{}x", size);
  whole += "i1>";
  if (type != whole) {
    lines.push_back(s.line_of(fmt::format("%nereid_mask{}", name + 1), "tt.broadcast",
                              fmt::format("%nereid_mask{}", name), type + " -> " + whole));
    ++name;
  }
  if (s.operands() == 3) {
    lines.push_back(s.line_of(fmt::format("%nereid_mask{}", name + 1), "arith.andi",
                              fmt::format("{}, %nereid_mask{}", s.operand(2), name), whole));
    ++name;
  }
  lines.push_back(
      write(with_operands(s.operation, {s.operand(0), s.operand(1), fmt::format("%nereid_mask{}", name)})));
  return lines;
}

void add_stores(const Site& s) {
  const auto& o = s.operation;
  if (o.op == "tt.descriptor_store")
    s.replace(Fault::kPartialOutput, "a store left out", std::vector<string>{});
  if (o.op != "tt.store" || s.operands() < 2) return;
  s.replace(Fault::kPartialOutput, "a store left out", std::vector<string>{});
  const auto shape = shape_of(o.type);
  if (shape.empty() || shape.back() < 2) return;
  s.replace(Fault::kPartialOutput, "lane 0 of a store left out", without_lane(s, shape, 0));
  s.replace(Fault::kPartialOutput, fmt::format("lane {} of a store left out", shape.back() / 2),
            without_lane(s, shape, shape.back() / 2));
  s.replace(Fault::kPartialOutput, "the last lane of a store left out",
            without_lane(s, shape, shape.back() - 1));
}

void add_ordering(const Site& s) {
  const auto& o = s.operation;
  if (o.op == "gpu.barrier" || o.op == "ttg.local_barrier")
    return s.replace(Fault::kOrdering, "a barrier removed", std::vector<string>{});
  static const std::map<string, string> updates = {{"fadd", "arith.addf"},  {"add", "arith.addi"},
                                                   {"max", "arith.maxsi"},  {"min", "arith.minsi"},
                                                   {"umax", "arith.maxui"}, {"umin", "arith.minui"}};
  if (o.op != "tt.atomic_rmw" || s.operands() != 3) return;
  const auto update = updates.find(o.middle.substr(0, o.middle.find(',')));
  const size_t open = o.type.find('('), comma = o.type.find(", ");
  if (update == updates.end() || open == string::npos || comma == string::npos) return;
  const string pointer = o.type.substr(open + 1, comma - open - 1), value = result_type(o);
  s.replace(Fault::kOrdering, "an atomic update in three steps",
            {s.line_of(o.result, "tt.load", s.operand(0) + ", " + s.operand(2), pointer),
             s.line_of("%nereid_new", update->second, o.result + ", " + s.operand(1), value),
             s.line_of("", "tt.store", s.operand(0) + ", %nereid_new, " + s.operand(2), pointer)});
  Operation exchanged = o;
  exchanged.middle.replace(0, update->first.size(), "exch");
  s.become(Fault::kOperator, fmt::format("atomic {} becomes an exchange", update->first), exchanged);
}

}  // namespace

void add_memory_faults(const Site& site) {
  add_masks(site);
  add_loads(site);
  add_stores(site);
  add_ordering(site);
}

}  // namespace nereid::mutate
