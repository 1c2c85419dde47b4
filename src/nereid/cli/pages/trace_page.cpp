#include "nereid/cli/pages/trace_page.h"

#include <algorithm>

#include "nereid/trace/notation.h"

namespace nereid::cli {
namespace {

using trace::Call;
using trace::Launch;
using trace::Phase;
using trace::PhaseKind;
using trace::Step;
using trace::StepCost;

constexpr size_t kLongest = 40;       // steps or rows of state before a list is cut
constexpr size_t kFiguresWidth = 42;  // "  index bookkeeping 1.23 GFLOP     456 MB"

std::string counted(int64_t n, std::string_view what) {
  const std::string_view plural = what.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : plural);
}

std::string cost_text(const trace::Cost& cost) {
  std::string text = trace::quantity_text(cost.bytes(), "B");
  if (cost.flops > 0) text = trace::quantity_text(cost.flops, "FLOP") + ", " + text;
  return text;
}

// What two calls of forward must share to be shown once.
std::string signature(const trace::Trace& trace, const Phase& phase) {
  std::string text;
  for (const Step& step : phase.steps) {
    if (const auto* call = std::get_if<Call>(&step)) {
      text += call->op + "\n";
    } else {
      const auto& one = std::get<Launch>(step).alternatives.front();
      text += fmt::format("{} {} {} {}\n", trace.kernels[static_cast<size_t>(one.kernel)].hash, one.grid[0],
                          one.grid[1], one.grid[2]);
    }
  }
  return text;
}

class Page {
 public:
  Page(const trace::Trace& trace, const std::vector<std::vector<StepCost>>& costs,
       const std::vector<bool>& idle, const PageOptions& options)
      : trace_(trace), costs_(costs), idle_(idle), options_(options) {}

  std::string write() {
    head();
    state();
    phases();
    kernels();
    for (const std::string& note : trace_.notes) line(terminal().dim("note: ") + trace::safe_text(note));
    return std::move(text_);
  }

 private:
  const Terminal& terminal() const { return options_.terminal; }
  void line(const std::string& text) { text_ += text + "\n"; }
  size_t limit() const { return options_.all ? SIZE_MAX : kLongest; }

  // Columns that are left when `reserved` are taken.
  size_t room(size_t reserved) const {
    const auto width = static_cast<size_t>(terminal().width);
    return std::max<size_t>(width - std::min(width, reserved), 20);
  }

  // Where `text` is cut to leave at most `room` bytes of it: not inside a character.
  static size_t cut(std::string_view text, size_t room) {
    while (room > 0 && (static_cast<unsigned char>(text[room]) & 0xc0) == 0x80) --room;
    return room;
  }

  // On a terminal: in one row, cut short where it is too long.
  std::string fit(const std::string& text, size_t reserved) const {
    if (!terminal().terminal || text.size() <= room(reserved)) return text;
    return text.substr(0, cut(text, room(reserved) - 3)) + "...";
  }

  // On a terminal: in as many rows as it needs, broken at spaces; the rows after the first are indented by
  // two.
  std::vector<std::string> wrapped(std::string_view text, size_t reserved) const {
    std::vector<std::string> rows;
    while (terminal().terminal && text.size() > room(reserved) - (rows.empty() ? 0 : 2)) {
      const size_t most = room(reserved) - (rows.empty() ? 0 : 2);
      const size_t space = text.substr(0, most + 1).rfind(' ');
      const size_t end = space != text.npos && space > most / 2 ? space : cut(text, most);
      rows.emplace_back(text.substr(0, end));
      text.remove_prefix(end);
      while (text.starts_with(' ')) text.remove_prefix(1);
    }
    if (!text.empty() || rows.empty()) rows.emplace_back(text);
    return rows;
  }

  void head() {
    int forwards = 0;
    for (const Phase& phase : trace_.phases) forwards += phase.kind == PhaseKind::kForward;
    line(fmt::format("{}  class {}, {}, draw {}, traced in {:.3f} s",
                     terminal().bold(trace::safe_text(trace_.file)), trace::safe_text(trace_.class_name),
                     counted(forwards, "forward call"), trace_.draw, trace_.seconds));
    if (!std::holds_alternative<trace::None>(trace_.init_inputs.node))
      line("  init inputs  " + fit(trace::arg_text(trace_, trace_.init_inputs), 16));
    const Phase& last = trace_.phases.back();
    line("  inputs       " + fit(trace::arg_text(trace_, last.inputs), 16));
    line("  output       " + fit(trace::arg_text(trace_, last.output), 16));
    std::string flags;
    for (const auto& [name, value] : trace_.flags)
      flags += fmt::format("{}{}={}", flags.empty() ? "" : ", ", trace::safe_text(name), value);
    if (!flags.empty()) line("  flags        " + fit(flags, 16));
  }

  void state() {
    if (trace_.state.empty()) return;
    double bytes = 0, parameters = 0;
    size_t longest = 0;
    for (const auto& state : trace_.state) {
      const auto& value = trace_.values[static_cast<size_t>(state.value)];
      const auto count = static_cast<double>(trace::element_count(value));
      bytes += count * static_cast<double>(trace::element_bytes(value.dtype));
      if (state.parameter) parameters += count;
      longest = std::max(longest, state.name.size());
    }
    line("");
    line(fmt::format("{}  {}, {} in {}", terminal().bold("state"),
                     trace::quantity_text(parameters, "") + "parameters", trace::quantity_text(bytes, "B"),
                     counted(static_cast<int64_t>(trace_.state.size()), "tensor")));
    longest = std::min<size_t>(longest, 48);
    for (size_t i = 0; i < trace_.state.size(); ++i) {
      if (i == limit()) {
        line(terminal().dim(fmt::format("  ... {} more (--all shows them)", trace_.state.size() - i)));
        break;
      }
      const auto& state = trace_.state[i];
      const char* kind = state.parameter ? "" : state.persistent ? "  buffer" : "  buffer, not saved";
      line(fmt::format("  {:<{}}  {}{}", trace::safe_text(state.name), longest,
                       trace::shape_text(trace_.values[static_cast<size_t>(state.value)]),
                       terminal().dim(kind)));
    }
  }

  void phases() {
    for (size_t p = 0; p < trace_.phases.size(); ++p) {
      const Phase& phase = trace_.phases[p];
      if (phase.steps.empty() && !options_.all) continue;
      const bool repeats = phase.kind == PhaseKind::kForward || phase.kind == PhaseKind::kMakeInputs;
      if (repeats && !options_.all && shown_later(p)) continue;
      show_phase(p, repeats && !options_.all ? calls_like(p) : std::vector<int>());
    }
  }

  // A later phase of the same kind does the same: that one is shown.
  bool shown_later(size_t p) const {
    for (size_t later = p + 1; later < trace_.phases.size(); ++later)
      if (trace_.phases[later].kind == trace_.phases[p].kind &&
          signature(trace_, trace_.phases[later]) == signature(trace_, trace_.phases[p]))
        return true;
    return false;
  }
  std::vector<int> calls_like(size_t p) const {
    std::vector<int> calls;
    for (const Phase& phase : trace_.phases)
      if (phase.kind == trace_.phases[p].kind &&
          signature(trace_, phase) == signature(trace_, trace_.phases[p]))
        calls.push_back(phase.call);
    return calls;
  }

  void show_phase(size_t p, const std::vector<int>& alike) {
    const Phase& phase = trace_.phases[p];
    const trace::Totals totals = trace::totals_of(costs_[p]);
    std::string name(trace::phase_text(phase.kind));
    if (phase.kind == PhaseKind::kForward || phase.kind == PhaseKind::kMakeInputs)
      name += fmt::format(" {}", phase.call);
    std::string same;
    for (const int call : alike)
      if (call != phase.call) same += (same.empty() ? " (calls " : ", ") + fmt::to_string(call);
    if (!same.empty()) same += " do the same)";
    line("");
    line(fmt::format("{}{}  {}, {}, {}", terminal().bold(name), same, counted(totals.calls, "call"),
                     counted(totals.launch_count, "launch"), cost_text(totals.all())));
    const bool judged = p + 1 == trace_.phases.size();
    for (size_t i = 0; i < phase.steps.size(); ++i) {
      if (i == limit() && phase.steps.size() > limit() + 5 && !judged) {
        line(terminal().dim(fmt::format("  ... {} more (--all shows them)", phase.steps.size() - i)));
        break;
      }
      show_step(phase.steps[i], costs_[p][i], judged && i < idle_.size() && idle_[i]);
    }
  }

  // "  17" or "functional.py:2810", and what a step is, does and costs.
  void show_step(const Step& step, const StepCost& cost, bool unused) {
    const auto* call = std::get_if<Call>(&step);
    const std::string where = place_text(call != nullptr ? call->place : std::get<Launch>(step).place);
    const std::string text = (unused ? "(reaches no output) " : "") +
                             (call != nullptr ? trace::call_text(trace_, *call)
                                              : trace::launch_text(trace_, std::get<Launch>(step)));
    const size_t margin = std::max<size_t>(where.size(), 5);
    const auto rows = wrapped(text, margin + 3 + kFiguresWidth);
    const size_t column = terminal().terminal ? room(margin + 3 + kFiguresWidth) : 64;
    const auto shown = [&](const std::string& row) {
      if (call == nullptr) return terminal().green(row);
      return trace::is_free(cost.op_class) ? terminal().dim(row) : row;
    };
    const std::string padding(column - std::min(column, rows[0].size()), ' ');
    line(fmt::format("{} {}{}  {}", terminal().dim(fmt::format("{:>{}}", where, margin)), shown(rows[0]),
                     padding,
                     figures_text(call != nullptr ? trace::to_string(cost.op_class) : "Triton", cost.cost)));
    for (size_t i = 1; i < rows.size(); ++i) line(std::string(margin + 5, ' ') + shown(rows[i]));
    if (const auto* launch = std::get_if<Launch>(&step)) show_configurations(*launch, margin);
  }

  std::string place_text(const trace::Place& place) const {
    const std::string number = place.line > 0 ? fmt::to_string(place.line) : "";
    if (place.file.empty() || place.file == trace_.file) return number;
    return trace::safe_text(std::string_view(place.file).substr(place.file.rfind('/') + 1)) + ":" + number;
  }

  static std::string figures_text(std::string_view kind, const trace::Cost& cost) {
    if (cost.flops == 0 && cost.bytes() == 0) return std::string(kind);
    return fmt::format("{:<18}{:>11}{:>11}", kind,
                       cost.flops > 0 ? trace::quantity_text(cost.flops, "FLOP") : "",
                       trace::quantity_text(cost.bytes(), "B"));
  }

  void show_configurations(const Launch& launch, size_t margin) {
    const trace::Alternative& first = launch.alternatives.front();
    std::string text = first.config.empty() ? "" : "config " + trace::safe_text(first.config);
    if (launch.alternatives.size() > 1) text += fmt::format(" (the first of {})", launch.alternatives.size());
    if (!text.empty()) line(std::string(margin + 3, ' ') + terminal().dim(fit(text, margin + 3)));
  }

  void kernels() {
    if (trace_.kernels.empty()) return;
    line("");
    line(terminal().bold("kernels"));
    for (const trace::Kernel& kernel : trace_.kernels) {
      std::string options;
      for (const char* name : {"num_warps", "num_stages", "num_ctas", "maxnreg"})
        if (const auto found = kernel.options.find(name); found != kernel.options.end())
          options += fmt::format(", {}={}", name, found->second);
      for (const auto& [name, value] : kernel.constants)
        options += fmt::format(", {}={}", trace::safe_text(name), trace::safe_text(value));
      std::string where = kernel.place.line > 0
                              ? fmt::format("{}:{}", trace::safe_text(kernel.place.file), kernel.place.line)
                              : "";
      line(fit(fmt::format("  {}  {}  {} lines of TTIR{}  {}", kernel.hash.substr(0, 12),
                           trace::safe_text(kernel.name),
                           std::count(kernel.ttir.begin(), kernel.ttir.end(), '\n'), options, where),
               0));
    }
  }

  const trace::Trace& trace_;
  const std::vector<std::vector<StepCost>>& costs_;
  const std::vector<bool>& idle_;
  const PageOptions& options_;
  std::string text_;
};

}  // namespace

std::string trace_page(const trace::Trace& trace, const std::vector<std::vector<StepCost>>& costs,
                       const std::vector<bool>& idle, const PageOptions& options) {
  return Page(trace, costs, idle, options).write();
}

}  // namespace nereid::cli
