// Steps of a recurrent layer: the hidden state times its weights, the gates, the next state. A kernel of one
// step that is launched for each, or, where a layer is small, all steps in one launch with the state in
// registers.
#include <algorithm>

#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/codegen/emit_expr.h"

namespace nereid::compiler {
namespace {

// Units of float32 whose states, and whose weights in the first-level cache, one processor holds: then all
// steps are one launch. With more of them a processor alone takes longer for a step than a launch of all
// does.
constexpr int64_t kInRegisters = 64;

class StepEmitter {
 public:
  StepEmitter(Graph& graph, const TileKernel& kernel, const std::string& name, const KernelChoice& choice,
              const Target& target)
      : graph_(graph),
        processors_(target.multiprocessors),
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
    cut(choice);
  }

  KernelText run() {
    for (const char* name : {"step", "sample", "unit", "before", "gates", "k", "start", "pid", "cell", "h"})
      names_.taken.insert(name);
    const std::string states = pointer(node_.out);
    line("pid = tl.program_id(0)");
    line(fmt::format("sample = pid // {} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", unit_tiles()));
    line(fmt::format("unit = pid % {} * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]", unit_tiles()));
    if (on_device_) {
      // All of a hidden state stays in the registers of one program.
      line("k = tl.arange(0, BLOCK_N)[:, None]");
      line(fmt::format("h = tl.load({}{})", at_unit(of_.start), mask({sample_mask(), unit_mask()})));
      if (of_.cell == Cell::kLstm)
        line(fmt::format("cell = tl.load({}{}).to(tl.float32)", at_unit(of_.cell_start),
                         mask({sample_mask(), unit_mask()})));
      line(fmt::format("for step in range({}):", of_.steps));
      indent_ = "    ";
    }
    line(fmt::format("before = {} + (step.to(tl.int64) * {} + sample) * {}", states, of_.batch, of_.hidden));
    from_inputs();
    if (on_device_)
      products_of_registers();
    else
      products();
    if (of_.bias >= 0)
      for (const auto& gate : gates_) line(fmt::format("from_{0} += bias_{0}", gate));
    next_state();
    line(fmt::format("tl.store(before + {} + unit, hidden{})", of_.batch * of_.hidden,
                     where_text({sample_mask(), unit_mask()})));
    if (on_device_) {
      // A unit that is only padding must stay nothing, for infinite ones times 0 are not.
      const std::string next =
          unit_mask().empty() ? "hidden" : fmt::format("tl.where({}, hidden, 0.0)", unit_mask());
      line(fmt::format("h = {}.to({})", next, type_text(stored_)));
    }
    indent_.clear();
    if (on_device_ && of_.cell == Cell::kLstm)
      line(fmt::format("tl.store({}, cell{})", at_unit(of_.cell_state),
                       where_text({sample_mask(), unit_mask()})));
    finish();
    return std::move(out_);
  }

 private:
  void cut(const KernelChoice& choice) {
    const bool half = stored_ == DType::kF16 || stored_ == DType::kBF16;
    on_device_ = of_.hidden <= (half ? 2 * kInRegisters : kInRegisters);
    if (on_device_) block_n_ = std::max<int64_t>(power_of_two(of_.hidden), 16);
    // Longer blocks of float32 do not fit the registers (`cuobjdump --dump-resource-usage`: 368 bytes of
    // stack).
    block_k_ = std::clamp<int64_t>(power_of_two(of_.hidden), 16, half ? 128 : 64);
    const auto programs = [&] {
      return ((of_.batch + block_m_ - 1) / block_m_) * ((of_.hidden + block_n_ - 1) / block_n_);
    };
    // Every step waits for the one before, so its time counts: as many processors as there are.
    while (!on_device_ && programs() > 2 * processors_ && std::min(block_m_, block_n_) < 64)
      (block_m_ <= block_n_ ? block_m_ : block_n_) *= 2;
    if (choice.m > 0) block_m_ = std::max<int64_t>(power_of_two(choice.m), 16);
    if (choice.n > 0 && !on_device_) block_n_ = std::max<int64_t>(power_of_two(choice.n), 16);
    if (choice.k > 0) block_k_ = std::max<int64_t>(power_of_two(choice.k), 16);
    if (!half) precision_ = choice.precision.empty() ? "tf32x3" : choice.precision;
    out_.num_warps = choice.warps > 0 ? choice.warps : 4;
    out_.num_stages = choice.stages > 0 ? choice.stages : 3;
    out_.choice = {.m = block_m_,
                   .n = block_n_,
                   .k = block_k_,
                   .warps = out_.num_warps,
                   .stages = out_.num_stages,
                   .precision = precision_};
  }

  std::string dot(size_t gate, const std::string& masks) {
    const std::string precision =
        precision_.empty() ? "" : fmt::format(", input_precision=\"{}\"", precision_);
    const int64_t first = static_cast<int64_t>(gate) * of_.hidden;
    const std::string row = first == 0 ? "unit" : fmt::format("(unit + {})", first);
    return fmt::format("tl.dot(h, tl.load({} + {} * {} + k{}){}{})", pointer(of_.weight), row, of_.hidden,
                       masks, on_device_ ? "" : ", from_" + gates_[gate], precision);
  }

  void products_of_registers() {
    const std::string masks =
        mask({unit_mask(), of_.hidden == block_n_ ? "" : fmt::format("k < {}", of_.hidden)});
    for (size_t g = 0; g < gates_.size(); ++g) line(fmt::format("from_{} = {}", gates_[g], dot(g, masks)));
  }

  void products() {
    for (const auto& gate : gates_)
      line(fmt::format("from_{} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", gate));
    const std::string inside = of_.hidden % block_k_ == 0 ? "" : fmt::format("k < {}", of_.hidden);
    line(fmt::format("for start in range(0, {}, BLOCK_K):", of_.hidden));
    line("    k = start + tl.arange(0, BLOCK_K)[None, :]");
    line(fmt::format("    h = tl.load(before + k{})", mask({sample_mask(), inside})));
    line("    k = start + tl.arange(0, BLOCK_K)[:, None]");
    for (size_t g = 0; g < gates_.size(); ++g)
      line(fmt::format("    from_{} = {}", gates_[g], dot(g, mask({unit_mask(), inside}))));
  }

  // Asked for before the products, so that both are under way at once.
  void from_inputs() {
    const int64_t wide = static_cast<int64_t>(gates_.size()) * of_.hidden;
    const std::string time =
        of_.backwards ? fmt::format("({} - step.to(tl.int64))", of_.steps - 1) : "step.to(tl.int64)";
    const auto shift = [&](size_t gate) {
      return gate == 0 ? "" : fmt::format(" + {}", static_cast<int64_t>(gate) * of_.hidden);
    };
    if (of_.bias >= 0)
      for (size_t g = 0; g < gates_.size(); ++g)
        line(fmt::format("bias_{} = tl.load({} + unit{}{})", gates_[g], pointer(of_.bias), shift(g),
                         mask({unit_mask()})));
    line(fmt::format("gates = {} + ({} * {} + sample) * {} + unit", pointer(of_.gates), time, of_.batch,
                     wide));
    for (size_t g = 0; g < gates_.size(); ++g)
      line(fmt::format("{} = tl.load(gates{}{})", gates_[g], shift(g), mask({sample_mask(), unit_mask()})));
    const std::string inside = mask({sample_mask(), unit_mask()});
    if (of_.cell == Cell::kGru)
      line(fmt::format("hidden = {}.to(tl.float32)",
                       on_device_ ? "h" : fmt::format("tl.load(before + unit{})", inside)));
    if (of_.cell == Cell::kLstm && !on_device_) {
      line("cell_at = " + at_unit(of_.cell_state));
      line(fmt::format("cell = tl.load(cell_at{}).to(tl.float32)", inside));
    }
  }

  void next_state() {
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
        for (const char* gate : {"in_gate", "forget_gate", "out_gate"})
          line(fmt::format("{0} = tl.sigmoid({0} + from_{0})", gate));
        line("candidate = libdevice.tanh(candidate + from_candidate)");
        line("cell = forget_gate * cell + in_gate * candidate");
        if (!on_device_)
          line(fmt::format("tl.store(cell_at, cell{})", where_text({sample_mask(), unit_mask()})));
        line("hidden = out_gate * libdevice.tanh(cell)");
        break;
    }
  }

  void finish() {
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}};
    if (!on_device_) out_.constants.push_back({"BLOCK_K", block_k_});
    out_.programs = (of_.batch + block_m_ - 1) / block_m_ * unit_tiles();
    out_.contraction = true;
    if (!on_device_) {
      out_.steps = of_.steps;
      out_.starts = {{node_.out, of_.start, true}};
      if (of_.cell_state >= 0) out_.starts.push_back({of_.cell_state, of_.cell_start, false});
    }
    close_kernel(out_, graph_, names_, kernel_, lines_);
  }

  int64_t unit_tiles() const { return (of_.hidden + block_n_ - 1) / block_n_; }
  // Of a tensor [batch, hidden].
  std::string at_unit(TensorId id) { return fmt::format("{} + sample * {} + unit", pointer(id), of_.hidden); }
  void line(const std::string& text) { lines_.push_back(indent_ + text); }
  std::string pointer(TensorId id) { return names_.pointer(graph_, id); }

  std::string sample_mask() const {
    return of_.batch % block_m_ == 0 ? "" : fmt::format("sample < {}", of_.batch);
  }
  std::string unit_mask() const {
    return of_.hidden % block_n_ == 0 ? "" : fmt::format("unit < {}", of_.hidden);
  }
  // As arguments of a load.
  static std::string mask(const std::vector<std::string>& conditions) {
    const std::string where = where_text(conditions);
    return where.empty() ? "" : where + ", other=0";
  }
  // As an argument of a store.
  static std::string where_text(const std::vector<std::string>& conditions) {
    std::string all;
    int count = 0;
    for (const auto& each : conditions) {
      if (each.empty()) continue;
      all += (count++ == 0 ? "(" : " & (") + each + ")";
    }
    return count == 0 ? "" : ", mask=" + (count == 1 ? all.substr(1, all.size() - 2) : all);
  }

  Graph& graph_;
  const int64_t processors_;
  const TileKernel& kernel_;
  const Node node_;
  const Recurrence of_;
  const DType stored_;
  std::vector<std::string> gates_;
  int64_t block_m_ = 16, block_n_ = 16, block_k_ = 16;
  bool on_device_ = false;  // all steps in one launch
  std::string precision_, indent_;
  KernelNames names_;
  std::vector<std::string> lines_;
  KernelText out_;
};

}  // namespace

Result<KernelText> emit_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                   const KernelChoice& choice, const Target& target) {
  return StepEmitter(graph, kernel, name, choice, target).run();
}

}  // namespace nereid::compiler
