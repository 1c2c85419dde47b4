#include "nereid/compiler/codegen/recurrence_lines.h"

namespace nereid::compiler {

RecurrenceLines::RecurrenceLines(Graph& graph, const TileKernel& kernel, const std::string& name)
    : graph_(graph),
      kernel_(kernel),
      node_(graph.nodes[static_cast<size_t>(kernel.members.front().node)]),
      of_(*node_.recurrence),
      stored_(graph.tensors[static_cast<size_t>(node_.out)].type) {
  out_.name = name;
  if (of_.cell == Cell::kLstm)
    gates_ = {"in_gate", "forget_gate", "candidate", "out_gate"};
  else if (of_.cell == Cell::kGru)
    gates_ = {"reset_gate", "update_gate", "candidate"};
  else
    gates_ = {"hidden"};
  for (const char* taken : {"step", "sample", "unit", "before", "gates", "k", "start", "pid", "cell", "h"})
    names_.taken.insert(taken);
}

std::string RecurrenceLines::at_unit(TensorId id) {
  return fmt::format("{} + sample * {} + unit", pointer(id), hole(of_.hidden, Size::Place::kFactor));
}

std::string RecurrenceLines::sample_mask() const {
  return of_.batch % block_m_ == 0 ? "" : fmt::format("sample < {}", hole(of_.batch));
}

std::string RecurrenceLines::unit_mask() const {
  return of_.hidden % block_n_ == 0 ? "" : fmt::format("unit < {}", hole(of_.hidden));
}

std::string RecurrenceLines::store_mask(const std::vector<std::string>& conditions) {
  std::string all;
  int count = 0;
  for (const auto& each : conditions) {
    if (each.empty()) continue;
    all += (count++ == 0 ? "(" : " & (") + each + ")";
  }
  return count == 0 ? "" : ", mask=" + (count == 1 ? all.substr(1, all.size() - 2) : all);
}

std::string RecurrenceLines::load_mask(const std::vector<std::string>& conditions) {
  const std::string where = store_mask(conditions);
  return where.empty() ? "" : where + ", other=0";
}

void RecurrenceLines::begin() {
  line("pid = tl.program_id(0)");
  line(fmt::format("sample = pid // {} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", unit_tiles()));
  line(fmt::format("unit = pid % {} * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]", unit_tiles()));
}

void RecurrenceLines::load_biases() {
  if (of_.bias < 0) return;
  for (size_t g = 0; g < gates_.size(); ++g)
    line(fmt::format(
        "bias_{} = tl.load({} + unit{}{})", gates_[g], pointer(of_.bias),
        g == 0 ? "" : fmt::format(" + {}", hole(static_cast<int64_t>(g) * of_.hidden, Size::Place::kTerm)),
        load_mask({unit_mask()})));
}

void RecurrenceLines::load_input_gates() {
  const Size wide = static_cast<int64_t>(gates_.size()) * of_.hidden;
  const std::string time =
      of_.backwards ? fmt::format("({} - step.to(tl.int64))", hole(of_.steps - 1)) : "step.to(tl.int64)";
  line(fmt::format("gates = {} + ({} * {} + sample) * {} + unit", pointer(of_.gates), time,
                   hole(of_.batch, Size::Place::kFactor), hole(wide, Size::Place::kFactor)));
  for (size_t g = 0; g < gates_.size(); ++g)
    line(fmt::format(
        "{} = tl.load(gates{}{})", gates_[g],
        g == 0 ? "" : fmt::format(" + {}", hole(static_cast<int64_t>(g) * of_.hidden, Size::Place::kTerm)),
        load_mask({sample_mask(), unit_mask()})));
}

void RecurrenceLines::add_biases() {
  if (of_.bias < 0) return;
  for (const auto& gate : gates_) line(fmt::format("from_{0} += bias_{0}", gate));
}

void RecurrenceLines::next_cell() {
  for (const char* gate : {"in_gate", "forget_gate", "out_gate"})
    line(fmt::format("{0} = tl.sigmoid({0} + from_{0})", gate));
  line("candidate = libdevice.tanh(candidate + from_candidate)");
  line("cell = forget_gate * cell + in_gate * candidate");
}

void RecurrenceLines::next_hidden() {
  switch (of_.cell) {
    case Cell::kTanh:
      line("hidden = libdevice.tanh(hidden + from_hidden)");
      break;
    case Cell::kRelu:
      line("hidden = tl.maximum(hidden + from_hidden, 0.0, propagate_nan=tl.PropagateNan.ALL)");
      break;
    case Cell::kGru:
      for (const char* gate : {"reset_gate", "update_gate"})
        line(fmt::format("{0} = tl.sigmoid({0} + from_{0})", gate));
      line("candidate = libdevice.tanh(candidate + reset_gate * from_candidate)");
      line("hidden = (hidden - candidate) * update_gate + candidate");
      break;
    case Cell::kLstm:
      line("hidden = out_gate * libdevice.tanh(cell)");
      break;
  }
}

}  // namespace nereid::compiler
