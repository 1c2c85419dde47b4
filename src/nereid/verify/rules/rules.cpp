#include "nereid/verify/rules/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "nereid/ttir/analysis/grid_dependency.h"
#include "nereid/verify/analysis/assembly.h"
#include "nereid/verify/analysis/dataflow.h"
#include "nereid/verify/rules/host_counts.h"
#include "nereid/verify/rules/host_values.h"
#include "nereid/verify/rules/judged_outputs.h"
#include "nereid/verify/rules/left_notes.h"
#include "nereid/verify/rules/stream_order.h"
#include "nereid/verify/rules/work_shares.h"

namespace nereid::verify {
namespace {

using trace::StorageId;

constexpr uint32_t kAnyInputs = kInputs0 | kInputs1 | kInputs2;
constexpr std::array<std::string_view, 3> kPolicies = {"strict", "mostly", "hybrid"};
constexpr int64_t kMostLeftAsFound = int64_t{64} << 20;  // bytes of a storage: replays hold copies of it
constexpr double kMemoryFloor = 4e9,
                 kMemoryFactor = 16;  // of all storages of all phases, in bytes and times the reference's

Evidence evidence_of_step(std::string_view rule, std::string sentence, const StepAnalysis* step) {
  Evidence e{.rule = std::string(rule), .sentence = std::move(sentence)};
  if (step != nullptr) {
    e.file = step->place.file, e.line = step->place.line;
    if (step->work == Work::kTriton) e.kernel = step->name;
  }
  return e;
}

// Whether forward does no work, and all that it returns are views of what it is given: inputs, parameters
// and buffers that it leaves alone. There is nothing to launch a kernel for then.
bool returns_views_only(const TraceAnalysis& facts, const Dataflow& flow) {
  const auto outputs = outputs_of(facts);
  const auto is_given = [&](const FlatOutput& output) {
    const auto role = facts.trace->storages[static_cast<size_t>(output.storage)].role;
    return !input_path(facts, output.storage).empty() ||
           ((role == trace::Role::kParameter || role == trace::Role::kBuffer) &&
            flow.made_before[static_cast<size_t>(output.storage)]);
  };
  const auto does_nothing = [](const StepAnalysis& step) {
    return step.work == Work::kFree && step.writes.empty();
  };
  return !outputs.empty() && std::ranges::all_of(outputs, is_given) &&
         std::ranges::all_of(facts.phases.at(static_cast<size_t>(facts.judged())).steps, does_nothing);
}

// A step that worked on the inputs in call 0 and has no equal in `call`. None is looked for where host code
// read integer inputs: how much there is to do may then differ from draw to draw.
const StepAnalysis* work_lost(const TraceAnalysis& facts, int call) {
  for (const auto& storage : facts.trace->storages)
    if (storage.pinned) return nullptr;
  const PhaseAnalysis *first = nullptr, *judged = nullptr;
  for (const auto& phase : facts.phases) {
    if (phase.kind != trace::PhaseKind::kForward) continue;
    if (phase.call == 0) first = &phase;
    if (phase.call == call) judged = &phase;
  }
  if (first == nullptr || judged == nullptr || first == judged) return nullptr;
  // Doing the same thing fewer times is no sign of anything: a first call may warm up before it captures a
  // graph.
  std::set<std::string> present;
  for (const auto& s : judged->steps)
    if (s.work != Work::kFree) present.insert(s.key);
  const auto origins = origins_of_call(facts, 0);
  for (size_t i = 0; i < first->steps.size(); ++i) {
    const auto& s = first->steps[i];
    if (s.work == Work::kFree || (origins[i] & kAnyInputs) == 0) continue;
    if (!present.contains(s.key)) return &s;
  }
  return nullptr;
}

class Checker {
 public:
  Checker(const TraceAnalysis& reference, const TraceAnalysis& candidate, Policy policy)
      : reference_(reference),
        candidate_(candidate),
        policy_(policy),
        reference_flow_(trace_dataflow(reference)),
        flow_(trace_dataflow(candidate)),
        steps_(candidate.phases.at(static_cast<size_t>(candidate.judged())).steps),
        only_views_(returns_views_only(reference, reference_flow_) && returns_views_only(candidate, flow_)) {}

  RuleReport check_trace() {
    count();
    check_kernel_storages();
    // Where a kernel cannot be read its flow of data is unknown, and the pipeline ends there anyway.
    if (std::any_of(candidate_.kernels.begin(), candidate_.kernels.end(),
                    [](const KernelAnalysis& k) { return !k.unreadable.empty(); }))
      return std::move(report_);
    launches_on_every_path();
    check_inputs_unwritten();
    check_left_state();
    memory_is_bounded();
    reuse_between_calls();
    outputs_are_fresh();
    randomness();
    constant_outputs();
    check_host_values();
    check_work_shares({}, nullptr);
    remarks();
    return std::move(report_);
  }

  RuleReport on_effects(const std::vector<LeftOut>& left_out, const std::vector<ReplayedWork>& ran) {
    count();
    std::set<int> idle;
    const auto names = outputs_of(candidate_);
    std::vector<bool> changed(names.size());
    bool all_at_once = false;
    for (const auto& trial : left_out) {
      bool any = false;
      for (size_t i = 0; i < std::min(names.size(), trial.outputs_changed.size()); ++i) {
        changed[i] = changed[i] || trial.outputs_changed[i];
        any |= trial.outputs_changed[i];
      }
      if (!any) idle.insert(trial.steps.begin(), trial.steps.end());
      all_at_once |= trial.all;
    }
    for (const auto& output : outputs_to_compute(reference_, reference_flow_, candidate_)) {
      if (only_views_ || output.position >= changed.size() || changed[output.position]) continue;
      const auto* blamed = idle.empty() ? nullptr : &step(*idle.begin());
      break_rule("launch-without-effect",
                 fmt::format("{} stays the same when {} left out.", output_name(output, names.size()),
                             left_out.size() == 1 ? "the launch is"
                             : all_at_once ? "all launches are"
                                           : fmt::format("any one of the {} launches is", left_out.size())),
                 blamed);
    }
    for (const int i : idle)
      remark("launch-without-effect",
             fmt::format("Leaving out the launch of {} changes nothing.", step(i).name), &step(i));
    check_work_shares(idle, &ran);
    return std::move(report_);
  }

  std::vector<Evidence> on_casts(const std::vector<int>& changing, const std::vector<ReplayedWork>& ran) {
    bool any = false;
    for (auto& s : flow_.steps) {
      const bool free = s.work == Work::kFree && s.facts->over_integers == Work::kFree && s.as_data;
      if (s.before || !free || std::ranges::find(changing, s.step) == changing.end()) continue;
      s.work = Work::kPointwise;
      any = true;
    }
    if (!any) return {};
    count();
    check_work_shares({}, &ran);
    for (auto& e : report_.broken)
      e.sentence += " A cast to integers or booleans that changes a number is work.";
    return std::move(report_.broken);
  }

 private:
  const StepAnalysis& step(int i) const { return steps_.at(static_cast<size_t>(i)); }

  Evidence& break_rule(std::string_view rule, std::string sentence, const StepAnalysis* step = nullptr) {
    return report_.broken.emplace_back(evidence_of_step(rule, std::move(sentence), step));
  }
  void remark(std::string_view rule, std::string sentence, const StepAnalysis* step = nullptr) {
    report_.remarks.push_back(evidence_of_step(rule, std::move(sentence), step));
  }

  void count() {
    std::set<std::string> names;
    const auto& phase = candidate_.trace->phases[static_cast<size_t>(candidate_.judged())];
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].work != Work::kTriton) continue;
      ++report_.launches;
      names.insert(steps_[i].name);
      if (flow_.live[i]) report_.live_launches.push_back(static_cast<int>(i));
      if (const auto* launch = std::get_if<trace::Launch>(&phase.steps[i]))
        report_.alternatives += static_cast<int64_t>(launch->alternatives.size());
    }
    report_.kernels = static_cast<int64_t>(names.size());
  }

  void check_kernel_storages() {
    for (size_t k = 0; k < candidate_.kernels.size(); ++k) {
      const auto& kernel = candidate_.trace->kernels[k];
      const auto blame = [&](std::string_view rule, std::string sentence) {
        auto& e = break_rule(rule, std::move(sentence));
        e.kernel = kernel.name, e.file = kernel.place.file, e.line = kernel.place.line;
      };
      if (candidate_.kernels[k].int_to_ptr)
        blame("int-to-ptr", fmt::format("Kernel {} makes a pointer from a number.", kernel.name));
      if (!candidate_.kernels[k].foreign_function.empty())
        blame("foreign-function", fmt::format("Kernel {} calls {}, a function of no known library.",
                                              kernel.name, candidate_.kernels[k].foreign_function));
      if (const auto pdl = kernel.options.find("launch_pdl");
          pdl != kernel.options.end() && pdl->second != 0 && !ttir::waits_before_memory(kernel.ttir))
        blame("dependent-launch",
              fmt::format("Kernel {}, launched with launch_pdl=True, accesses memory before it waits for the "
                          "kernel before it.",
                          kernel.name));
      for (const auto& assembly : candidate_.kernels[k].assembly)
        if (const auto found = forbidden_instruction(assembly))
          blame("inline-assembly",
                fmt::format("Kernel {} holds the assembly `{}`.", kernel.name, found->substr(0, 120)));
    }
  }

  void launches_on_every_path() {
    if (only_views_) return;
    if (report_.launches == 0) {
      break_rule("no-launch", "forward launches no Triton kernel.");
      return;
    }
    const size_t count = outputs_of(candidate_).size();
    for (const auto& output : outputs_to_compute(reference_, reference_flow_, candidate_)) {
      if ((flow_.origins[static_cast<size_t>(output.storage)] & kLaunchNow) != 0) continue;
      const StepAnalysis* maker = nullptr;
      for (const auto& s : flow_.steps)
        if (std::ranges::find(s.facts->writes, output.storage) != s.facts->writes.end()) maker = s.facts;
      break_rule(
          "output-without-launch",
          fmt::format("{} comes from {}; no Triton launch is on the way to it.", output_name(output, count),
                      maker != nullptr ? maker->name : "outside this call"),
          maker);
    }
  }

  // Launches are seen to write when they are replayed (input-written is then given from what the replay
  // found), as must be where they choose among tensors.
  void check_inputs_unwritten() {
    std::set<std::string> allowed;
    for (const auto& s : reference_flow_.steps)
      for (const StorageId id : s.facts->writes) allowed.insert(input_path(reference_, id));
    for (const auto& flow_step : flow_.steps) {
      const auto& s = *flow_step.facts;
      for (const StorageId id : s.writes) {
        const std::string path = input_path(candidate_, id);
        if (path.empty() || allowed.contains(path)) continue;
        if (std::ranges::find(s.perhaps_writes, id) != s.perhaps_writes.end()) continue;
        break_rule("input-written",
                   fmt::format("{} writes input {}, which the reference leaves alone.", s.name, path), &s);
        return;
      }
    }
  }

  void check_left_state() {
    if (auto found = unordered_work(candidate_)) report_.broken.push_back(std::move(*found));
    for (auto& evidence : left_to_the_caller(reference_, candidate_))
      if (policy_ != Policy::kHybrid || evidence.rule != "aten-compute")
        report_.broken.push_back(std::move(evidence));
  }

  void memory_is_bounded() {
    const double theirs = total_bytes(*reference_.trace), ours = total_bytes(*candidate_.trace);
    if (ours <= kMemoryFloor || ours <= kMemoryFactor * theirs) return;
    auto& e = break_rule("too-much-memory",
                         fmt::format("The candidate's tensors take {:.3g} GB, the reference's {:.3g} GB.",
                                     ours / 1e9, theirs / 1e9));
    e.numbers = {{"bytes", ours}, {"reference_bytes", theirs}};
  }
  static double total_bytes(const trace::Trace& trace) {
    double bytes = 0;
    for (const auto& storage : trace.storages) bytes += static_cast<double>(storage.bytes);
    return bytes;
  }

  void reuse_between_calls() {
    // A reference that keeps something of earlier inputs (a running average that is read) does so by
    // definition.
    const bool by_definition = !reference_flow_.stale_reads.empty();
    const auto updated = state_written_by_reference();
    for (const auto& stale : flow_.stale_reads) {
      if (by_definition) break;
      const auto& storage = candidate_.trace->storages[static_cast<size_t>(stale.storage)];
      if (storage.role != trace::Role::kTemporary && updated.contains(storage.name)) continue;
      if (stale.begun && storage.bytes <= kMostLeftAsFound) {
        report_.left_as_found.push_back(*stale.begun);
        continue;
      }
      const auto& s = step(stale.step);
      break_rule("reuse-of-inputs",
                 fmt::format("{} reads {} made from the inputs of an earlier call.", s.name,
                             storage_name(*candidate_.trace, stale.storage)),
                 &s);
      break;
    }
    const int call = candidate_.phases[static_cast<size_t>(candidate_.judged())].call;
    if (const auto lost = work_lost(candidate_, call);
        lost != nullptr && work_lost(reference_, call) == nullptr)
      break_rule("does-less",
                 fmt::format("The first call of forward does {}, the judged one does not.", lost->name),
                 lost);
    report_.frozen_parameters = !flow_.reused.empty();
  }

  // A running average is read to be updated. In a replay it begins as the reference's does, and what became
  // of it is compared: nothing of an earlier call comes through it.
  std::set<std::string> state_written_by_reference() const {
    std::set<std::string> names;
    std::set<StorageId> written;
    for (const auto& s : reference_.phases.at(static_cast<size_t>(reference_.judged())).steps)
      written.insert(s.writes.begin(), s.writes.end());
    for (const auto& state : reference_.trace->state) {
      const auto storage = reference_.trace->values[static_cast<size_t>(state.value)].storage;
      if (written.contains(storage)) names.insert(state.name);
    }
    return names;
  }

  void outputs_are_fresh() {
    const auto outputs = outputs_of(candidate_), wanted = outputs_of(reference_);
    for (const auto& output : outputs) {
      const auto at = static_cast<size_t>(output.storage);
      if (!flow_.made_before[at] || !input_path(candidate_, output.storage).empty()) continue;
      const auto& storage = candidate_.trace->storages[at];
      // What no step of the call writes may be returned again: a parameter, a constant.
      const StepAnalysis* writer = nullptr;
      for (const auto& s : flow_.steps)
        if (std::ranges::find(s.facts->writes, output.storage) != s.facts->writes.end()) writer = s.facts;
      const bool derived = (flow_.origins[at] & kAnyInputs) != 0;
      if (writer == nullptr && !derived) continue;
      if (wanted.size() == outputs.size()) {
        const auto& theirs = reference_.trace->storages[static_cast<size_t>(wanted[output.position].storage)];
        if (reference_flow_.made_before[static_cast<size_t>(wanted[output.position].storage)] &&
            theirs.role == storage.role)
          continue;
      }
      const std::string name = output_name(output, outputs.size());
      const std::string where = storage_name(*candidate_.trace, output.storage);
      if (writer != nullptr && flow_.output_overwritten.at(output.position)) {
        report_.reused_output = true;
        remark(
            "reused-output",
            fmt::format(
                "{} is in {} that every call overwrites and returns: a caller who keeps it has to copy it.",
                name, where),
            writer);
        continue;
      }
      break_rule(
          "stale-output",
          fmt::format("{} is in {} from before the call, and not all of it is surely written in this call.",
                      name, where),
          writer);
    }
  }

  static const StepAnalysis* draws(const Dataflow& flow) {
    for (const auto& step : flow.steps)
      if (step.facts->random && step.live) return step.facts;
    return nullptr;
  }

  void randomness() {
    const auto* draw = draws(flow_);
    if (draw != nullptr && draws(reference_flow_) == nullptr)
      break_rule("random-draw",
                 fmt::format("forward draws random numbers with {}; the reference draws none.", draw->name),
                 draw);
  }

  void constant_outputs() {
    const auto outputs = outputs_of(candidate_), wanted = outputs_of(reference_);
    if (outputs.size() != wanted.size()) return;
    for (const auto& output : outputs) {
      const bool theirs =
          (reference_flow_.origins[static_cast<size_t>(wanted[output.position].storage)] & kAnyInputs) != 0;
      const bool ours = (flow_.origins[static_cast<size_t>(output.storage)] & kAnyInputs) != 0;
      if (theirs && !ours)
        break_rule("constant-output", fmt::format("{} does not depend on the inputs; the reference's does.",
                                                  output_name(output, outputs.size())));
    }
  }

  void check_host_values() {
    auto found = computed_on_host(candidate_, flow_);
    if (!found) found = counted_by_host(candidate_, flow_);
    if (found) break_rule("host-computed", found->sentence, found->step);
  }

  // `ran`: null before a replay; shares that depend on what ran are then left for later.
  void check_work_shares(const std::set<int>& idle, const std::vector<ReplayedWork>* ran) {
    const bool free_draws = draws(reference_flow_) != nullptr;
    const auto shares = shares_of_work(candidate_, flow_, free_draws, idle, ran);
    report_.triton_share = report_.launches == 0 ? 0 : std::min(shares.flops, shares.bytes);
    if (policy_ == Policy::kHybrid) return;
    if (shares.bookkeeping > kBookkeepingShare) {
      auto& e = break_rule(
          "aten-compute",
          fmt::format("PyTorch's work over integers moves {:.0f} % of the counted bytes, most of them in {}; "
                      "as bookkeeping it may move {:.0f} %.",
                      100 * shares.bookkeeping, shares.counted->name, 100 * kBookkeepingShare),
          shares.counted);
      e.numbers = {{"byte_share", shares.bookkeeping}};
    }
    if (shares.largest == nullptr) return;
    const auto* heavy = shares.heavy;
    if (heavy == nullptr && policy_ == Policy::kStrict) heavy = shares.largest;
    if (heavy != nullptr) {
      const std::string kind = heavy->kind.empty() ? "" : fmt::format(", {},", heavy->kind);
      break_rule("aten-compute",
                 fmt::format("PyTorch's {}{} does work that `{}` reserves for Triton.", heavy->name, kind,
                             to_string(policy_)),
                 heavy);
    } else if (shares.final && report_.triton_share < kTritonShare) {
      auto& e = break_rule(
          "aten-share",
          fmt::format("Triton does {:.0f} % of the FLOPs and {:.0f} % of the bytes; at "
                      "least {:.0f} % of both are required. "
                      "The largest part of the rest is {}.",
                      100 * shares.flops, 100 * shares.bytes, 100 * kTritonShare, shares.largest->name),
          shares.largest);
      e.numbers = {{"flop_share", shares.flops}, {"byte_share", shares.bytes}};
    }
  }

  void remarks() {
    for (size_t k = 0; k < candidate_.kernels.size(); ++k) {
      if (!candidate_.kernels[k].branches_on_float_data) continue;
      const auto& kernel = candidate_.trace->kernels[k];
      remark("float-branch", fmt::format("Kernel {} branches on floating-point data.", kernel.name));
      report_.remarks.back().kernel = kernel.name;
      report_.remarks.back().file = kernel.place.file;
      report_.remarks.back().line = kernel.place.line;
    }
    if (report_.frozen_parameters)
      remark("frozen-parameters",
             "forward uses something made once from the parameters; it must be made again when they change.");
    for (const auto& [flag, value] : candidate_.trace->flags) {
      const auto theirs = reference_.trace->flags.find(flag);
      if (theirs != reference_.trace->flags.end() && theirs->second != value)
        remark("flags", fmt::format("The candidate sets {} to {}; the reference has {}.", flag, value,
                                    theirs->second));
    }
    for (const auto& note : candidate_.trace->notes)
      if (!is_left_note(note)) remark("note", note);
  }

  const TraceAnalysis& reference_;
  const TraceAnalysis& candidate_;
  const Policy policy_;
  const Dataflow reference_flow_;
  Dataflow flow_;
  const std::vector<StepAnalysis>& steps_;
  const bool only_views_;
  RuleReport report_;
};

}  // namespace

std::string_view to_string(Policy policy) { return kPolicies.at(static_cast<size_t>(policy)); }

std::optional<Policy> policy_from_string(std::string_view name) {
  for (size_t i = 0; i < kPolicies.size(); ++i)
    if (kPolicies[i] == name) return static_cast<Policy>(i);
  return std::nullopt;
}

bool protects(std::string_view rule) {
  constexpr std::array<std::string_view, 6> kProtecting = {"int-to-ptr",       "foreign-function",
                                                           "inline-assembly",  "too-much-memory",
                                                           "refused-operator", "stream-order"};
  return std::ranges::find(kProtecting, rule) != kProtecting.end();
}

void forbid(const std::set<std::string>& rules, RuleReport& report) {
  for (const auto& remark : report.remarks)
    if (rules.contains(remark.rule)) report.broken.push_back(remark);
  std::erase_if(report.remarks, [&](const Evidence& remark) { return rules.contains(remark.rule); });
}

RuleReport check_rules(const TraceAnalysis& reference, const TraceAnalysis& candidate, Policy policy) {
  return Checker(reference, candidate, policy).check_trace();
}

RuleReport check_effects(const TraceAnalysis& reference, const TraceAnalysis& candidate, Policy policy,
                         const std::vector<LeftOut>& left_out, const std::vector<ReplayedWork>& ran) {
  return Checker(reference, candidate, policy).on_effects(left_out, ran);
}

std::vector<Evidence> check_casts(const TraceAnalysis& reference, const TraceAnalysis& candidate,
                                  Policy policy, const std::vector<int>& changing,
                                  const std::vector<ReplayedWork>& ran) {
  return Checker(reference, candidate, policy).on_casts(changing, ran);
}

}  // namespace nereid::verify
