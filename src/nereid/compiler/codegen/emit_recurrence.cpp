// Steps of a recurrent layer: the hidden state times its weights, the gates, the next state. A kernel of one
// step that is launched for each; where a layer is small, all steps in one launch with the state in
// registers; where the weights fit the processors' shared memory, all steps in one cooperative launch.
#include <algorithm>

#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/codegen/recurrence_lines.h"

namespace nereid::compiler {
namespace {

// Bytes of a sample's units whose states, and whose weights in the first-level cache, one processor holds:
// then all steps are one launch. With more of them a processor alone takes longer for a step than a launch of
// all does.
constexpr int64_t kInRegisters = 256;
constexpr int64_t kGatesOfFourWarps = 8192;  // elements of a program; of more, four warps spill registers

bool fits_registers(const Recurrence& of, DType stored) {
  return of.hidden * trace::element_bytes(stored) <= kInRegisters;
}

class StepEmitter : RecurrenceLines {
 public:
  StepEmitter(Graph& graph, const TileKernel& kernel, const std::string& name, const KernelChoice& choice,
              const Target& target)
      : RecurrenceLines(graph, kernel, name),
        processors_(target.multiprocessors),
        shared_bytes_(target.shared_bytes) {
    cut(choice);
  }

  KernelText run() {
    const std::string states = pointer(node_.out);
    begin();
    if (on_device_) {
      // All of a hidden state stays in the registers of one program.
      line("k = tl.arange(0, BLOCK_N)[:, None]");
      line(fmt::format("h = tl.load({}{})", at_unit(of_.start), load_mask({sample_mask(), unit_mask()})));
      if (of_.cell == Cell::kLstm)
        line(fmt::format("cell = tl.load({}{}).to({})", at_unit(of_.cell_start),
                         load_mask({sample_mask(), unit_mask()}), computed()));
      line(fmt::format("for step in range({}):", hole(of_.steps)));
      indent_ = "    ";
    }
    line(fmt::format("before = {} + (step.to(tl.int64) * {} + sample) * {}", states,
                     hole(of_.batch, Size::Place::kFactor), hole(of_.hidden, Size::Place::kFactor)));
    from_inputs();
    if (on_device_)
      products_of_registers();
    else
      products();
    add_biases();
    if (of_.cell == Cell::kLstm) {
      next_cell();
      if (!on_device_)
        line(fmt::format("tl.store(cell_at, cell{})", store_mask({sample_mask(), unit_mask()})));
    }
    next_hidden();
    line(fmt::format("tl.store(before + {} + unit, hidden{})",
                     hole(of_.batch * of_.hidden, Size::Place::kTerm),
                     store_mask({sample_mask(), unit_mask()})));
    if (on_device_) {
      // A unit that is only padding must stay nothing, for infinite ones times 0 are not.
      const std::string next =
          unit_mask().empty() ? "hidden" : fmt::format("tl.where({}, hidden, 0.0)", unit_mask());
      line(fmt::format("h = {}.to({})", next, type_text(stored_)));
    }
    indent_.clear();
    if (on_device_ && of_.cell == Cell::kLstm)
      line(fmt::format("tl.store({}, cell{})", at_unit(of_.cell_state),
                       store_mask({sample_mask(), unit_mask()})));
    finish();
    return std::move(out_);
  }

 private:
  std::string computed() const { return type_text(compute_type(stored_)); }

  void cut(const KernelChoice& choice) {
    on_device_ = fits_registers(of_, stored_);
    if (on_device_) block_n_ = std::max<int64_t>(power_of_two(of_.hidden), 16);
    // Longer blocks of float32 do not fit the registers (`cuobjdump --dump-resource-usage`: 368 bytes of
    // stack).
    block_k_ = std::clamp<int64_t>(power_of_two(of_.hidden), 16, 256 / trace::element_bytes(stored_));
    // Every step waits for the one before, so its time counts: as many processors as there are.
    while (!on_device_ && programs() > 2 * processors_ && std::min(block_m_, block_n_) < 64)
      (block_m_ <= block_n_ ? block_m_ : block_n_) *= 2;
    if (choice.m > 0) block_m_ = std::max<int64_t>(power_of_two(choice.m), 16);
    if (choice.n > 0 && !on_device_) block_n_ = std::max<int64_t>(power_of_two(choice.n), 16);
    if (choice.k > 0) block_k_ = std::max<int64_t>(power_of_two(choice.k), 16);
    if (stored_ == DType::kF32)
      precision_ = choice.precision.empty() ? (node_.tf32 ? "tf32" : "tf32x3") : choice.precision;
    const int64_t gates = static_cast<int64_t>(gates_.size()) * block_m_ * block_n_;
    out_.num_warps = choice.warps > 0 ? choice.warps : !on_device_ && gates > kGatesOfFourWarps ? 8 : 4;
    out_.num_stages = choice.stages > 0 ? choice.stages : 3;
    const auto shared = [&] {
      const auto rows = block_m_ + static_cast<int64_t>(gates_.size()) * block_n_;
      return rows * block_k_ * trace::element_bytes(stored_) * out_.num_stages;
    };
    while (!on_device_ && choice.k == 0 && block_k_ > 16 && shared() > shared_bytes_) block_k_ /= 2;
    out_.choice = {.m = block_m_,
                   .n = block_n_,
                   .k = block_k_,
                   .warps = out_.num_warps,
                   .stages = out_.num_stages,
                   .precision = precision_};
  }

  // The statement that adds a block's product to a gate, or makes the gate of one block.
  std::string product(size_t gate, const std::string& masks) {
    const Size first = static_cast<int64_t>(gate) * of_.hidden;
    const std::string row = first == 0 ? "unit" : fmt::format("(unit + {})", hole(first, Size::Place::kTerm));
    const std::string weight = fmt::format("tl.load({} + {} * {} + k{})", pointer(of_.weight), row,
                                           hole(of_.hidden, Size::Place::kFactor), masks);
    const std::string from = "from_" + gates_[gate];
    if (stored_ == DType::kF64)
      return fmt::format("{0} = tl.dot(h, {1}{2}, out_dtype=tl.float64)", from, weight,
                         on_device_ ? "" : ", " + from);
    return on_device_ ? from + " = " + dot_text("h", weight, "", precision_)
                      : add_dot(from, "h", weight, precision_);
  }

  void products_of_registers() {
    const std::string masks =
        load_mask({unit_mask(), of_.hidden == block_n_ ? "" : fmt::format("k < {}", hole(of_.hidden))});
    for (size_t g = 0; g < gates_.size(); ++g) line(product(g, masks));
  }

  void products() {
    for (const auto& gate : gates_)
      line(fmt::format("from_{} = tl.zeros([BLOCK_M, BLOCK_N], {})", gate, computed()));
    const std::string inside = of_.hidden % block_k_ == 0 ? "" : fmt::format("k < {}", hole(of_.hidden));
    line(fmt::format("for start in range(0, {}, BLOCK_K):", hole(of_.hidden)));
    line("    k = start + tl.arange(0, BLOCK_K)[None, :]");
    line(fmt::format("    h = tl.load(before + k{})", load_mask({sample_mask(), inside})));
    line("    k = start + tl.arange(0, BLOCK_K)[:, None]");
    for (size_t g = 0; g < gates_.size(); ++g) line("    " + product(g, load_mask({unit_mask(), inside})));
  }

  // Asked for before the products, so that both are under way at once.
  void from_inputs() {
    load_biases();
    load_input_gates();
    const std::string inside = load_mask({sample_mask(), unit_mask()});
    if (of_.cell == Cell::kGru)
      line(fmt::format("hidden = {}.to({})",
                       on_device_ ? "h" : fmt::format("tl.load(before + unit{})", inside), computed()));
    if (of_.cell == Cell::kLstm && !on_device_) {
      line("cell_at = " + at_unit(of_.cell_state));
      line(fmt::format("cell = tl.load(cell_at{}).to({})", inside, computed()));
    }
  }

  void finish() {
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}};
    if (!on_device_) out_.constants.push_back({"BLOCK_K", block_k_});
    out_.programs = programs();
    out_.contraction = true;
    if (!on_device_) {
      out_.steps = of_.steps;
      out_.starts = {{node_.out, of_.start, true}};
      if (of_.cell_state >= 0) out_.starts.push_back({of_.cell_state, of_.cell_start, false});
    }
    close_kernel(out_, graph_, names_, kernel_, lines_);
  }

  const int64_t processors_, shared_bytes_;
  bool on_device_ = false;  // all steps in one launch
  std::string precision_;
};

}  // namespace

Result<KernelText> emit_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                   const KernelChoice& choice, const Target& target) {
  const Node& node = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  const DType stored = graph.tensors[static_cast<size_t>(node.out)].type;
  if (fits_registers(*node.recurrence, stored)) return StepEmitter(graph, kernel, name, choice, target).run();
  const auto tile = persistent_tile(*node.recurrence, node, stored, choice, target);
  KernelText text = tile ? emit_persistent_recurrence(graph, kernel, name, *tile)
                         : StepEmitter(graph, kernel, name, choice, target).run();
  text.others = persistent_alternatives(*node.recurrence, node, stored, target);
  return text;
}

}  // namespace nereid::compiler
