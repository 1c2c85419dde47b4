// One step of a recurrent layer: the hidden state times its weights, the gates, the next state.
#include <algorithm>

#include "nereid/lower/emit.h"
#include "nereid/lower/emit_expr.h"

namespace nereid::lower {
namespace {

constexpr int64_t kProcessors = 132;

class StepEmitter {
 public:
  StepEmitter(Graph& graph, const TileKernel& kernel, const std::string& name, const KernelChoice& choice)
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
    cut(choice);
  }

  KernelText run() {
    for (const char* name : {"step", "sample", "unit", "before", "gates", "k", "start", "pid", "cell"})
      names_.taken.insert(name);
    const std::string states = pointer(node_.out), weight = pointer(of_.weight), input = pointer(of_.gates);
    const int64_t hidden = of_.hidden, wide = static_cast<int64_t>(gates_.size()) * hidden;
    const int64_t unit_tiles = (hidden + block_n_ - 1) / block_n_;
    line("pid = tl.program_id(0)");
    line(fmt::format("sample = pid // {} * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]", unit_tiles));
    line(fmt::format("unit = pid % {} * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]", unit_tiles));
    line(fmt::format("before = {} + (step.to(tl.int64) * {} + sample) * {}", states, of_.batch, hidden));
    for (const auto& gate : gates_)
      line(fmt::format("from_{} = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)", gate));
    line(fmt::format("for start in range(0, {}, BLOCK_K):", hidden));
    line("    k = start + tl.arange(0, BLOCK_K)[None, :]");
    line(fmt::format("    h = tl.load(before + k{})", mask({sample_mask(), k_mask("k")})));
    line("    k = start + tl.arange(0, BLOCK_K)[:, None]");
    const std::string precision =
        precision_.empty() ? "" : fmt::format(", input_precision=\"{}\"", precision_);
    for (size_t g = 0; g < gates_.size(); ++g)
      line(fmt::format("    from_{0} = tl.dot(h, tl.load({1} + {2} + k{3}), from_{0}{4})", gates_[g], weight,
                       fmt::format("(unit{}) * {}", shift(static_cast<int64_t>(g) * hidden), hidden),
                       mask({unit_mask(), k_mask("k")}), precision));
    const std::string time =
        of_.backwards ? fmt::format("({} - step.to(tl.int64))", of_.steps - 1) : "step.to(tl.int64)";
    line(fmt::format("gates = {} + ({} * {} + sample) * {} + unit", input, time, of_.batch, wide));
    const std::string both = mask({sample_mask(), unit_mask()});
    if (of_.bias >= 0) {
      const std::string bias = pointer(of_.bias);
      for (size_t g = 0; g < gates_.size(); ++g)
        line(fmt::format("from_{} += tl.load({} + unit{}{})", gates_[g], bias,
                         shift(static_cast<int64_t>(g) * hidden), mask({unit_mask()})));
    }
    for (size_t g = 0; g < gates_.size(); ++g)
      line(fmt::format("{} = tl.load(gates{}{})", gates_[g], shift(static_cast<int64_t>(g) * hidden), both));
    next_state(both);
    const std::string after = fmt::format("before + {} + unit", of_.batch * hidden);
    line(fmt::format("tl.store({}, hidden{})", after, where_text({sample_mask(), unit_mask()})));
    finish(unit_tiles);
    return std::move(out_);
  }

 private:
  void cut(const KernelChoice& choice) {
    const bool half = stored_ == DType::kF16 || stored_ == DType::kBF16;
    block_k_ = std::clamp<int64_t>(power_of_two(of_.hidden), 16, half ? 128 : 64);
    const auto programs = [&] {
      return ((of_.batch + block_m_ - 1) / block_m_) * ((of_.hidden + block_n_ - 1) / block_n_);
    };
    // Every step waits for the one before, so its time counts: as many processors as there are.
    while (programs() > 2 * kProcessors && std::min(block_m_, block_n_) < 64)
      (block_m_ <= block_n_ ? block_m_ : block_n_) *= 2;
    if (choice.m > 0) block_m_ = std::max<int64_t>(power_of_two(choice.m), 16);
    if (choice.n > 0) block_n_ = std::max<int64_t>(power_of_two(choice.n), 16);
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

  void next_state(const std::string& both) {
    const auto line = [&](const std::string& text) { this->line(text); };
    switch (of_.cell) {
      case Cell::kTanh:
        line("hidden = libdevice.tanh(hidden.to(tl.float32) + from_hidden)");
        break;
      case Cell::kRelu:
        line("hidden = tl.maximum(hidden + from_hidden, 0.0, propagate_nan=tl.PropagateNan.ALL)");
        break;
      case Cell::kGru:
        line("reset_gate = tl.sigmoid(reset_gate.to(tl.float32) + from_reset_gate)");
        line("update_gate = tl.sigmoid(update_gate.to(tl.float32) + from_update_gate)");
        line("candidate = libdevice.tanh(candidate.to(tl.float32) + reset_gate * from_candidate)");
        line(fmt::format("hidden = tl.load(before + unit{}).to(tl.float32)", both));
        line("hidden = (hidden - candidate) * update_gate + candidate");
        break;
      case Cell::kLstm: {
        const std::string cell = pointer(of_.cell_state);
        for (const char* gate : {"in_gate", "forget_gate", "out_gate"})
          line(fmt::format("{0} = tl.sigmoid({0}.to(tl.float32) + from_{0})", gate));
        line("candidate = libdevice.tanh(candidate.to(tl.float32) + from_candidate)");
        line(fmt::format("cell_at = {} + sample * {} + unit", cell, of_.hidden));
        line(fmt::format("cell = forget_gate * tl.load(cell_at{}).to(tl.float32) + in_gate * candidate",
                         both));
        line(fmt::format("tl.store(cell_at, cell{})", where_text({sample_mask(), unit_mask()})));
        line("hidden = out_gate * libdevice.tanh(cell)");
        break;
      }
    }
  }

  void finish(int64_t unit_tiles) {
    out_.constants = {{"BLOCK_M", block_m_}, {"BLOCK_N", block_n_}, {"BLOCK_K", block_k_}};
    out_.programs = (of_.batch + block_m_ - 1) / block_m_ * unit_tiles;
    out_.contraction = true;
    out_.steps = of_.steps;
    out_.starts = {{node_.out, of_.start, true}};
    if (of_.cell_state >= 0) out_.starts.push_back({of_.cell_state, of_.cell_start, false});
    close_kernel(out_, graph_, names_, kernel_, lines_);
  }

  void line(const std::string& text) { lines_.push_back(text); }
  std::string pointer(TensorId id) { return names_.pointer(graph_, id); }
  static std::string shift(int64_t by) { return by == 0 ? "" : fmt::format(" + {}", by); }

  std::string sample_mask() const {
    return of_.batch % block_m_ == 0 ? "" : fmt::format("sample < {}", of_.batch);
  }
  std::string unit_mask() const {
    return of_.hidden % block_n_ == 0 ? "" : fmt::format("unit < {}", of_.hidden);
  }
  std::string k_mask(const std::string& k) const {
    return of_.hidden % block_k_ == 0 ? "" : fmt::format("{} < {}", k, of_.hidden);
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
  const TileKernel& kernel_;
  const Node node_;
  const Recurrence of_;
  const DType stored_;
  std::vector<std::string> gates_;
  int64_t block_m_ = 16, block_n_ = 16, block_k_ = 16;
  std::string precision_;
  KernelNames names_;
  std::vector<std::string> lines_;
  KernelText out_;
};

}  // namespace

Result<KernelText> emit_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                   const KernelChoice& choice) {
  return StepEmitter(graph, kernel, name, choice).run();
}

}  // namespace nereid::lower
