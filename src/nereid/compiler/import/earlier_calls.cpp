#include "nereid/compiler/import/earlier_calls.h"

#include <algorithm>
#include <set>

#include "nereid/compiler/import/import.h"
#include "nereid/trace/access.h"

namespace nereid::compiler {
namespace {

class EarlierCalls {
 public:
  explicit EarlierCalls(const trace::Trace& trace) : trace_(trace), last_(last_forward(trace)) {}

  std::vector<const trace::Call*> run() {
    if (last_ == nullptr) return {};
    read_by_last();
    if (needed_.empty()) return {};
    for (const trace::Phase& phase : trace_.phases)
      if (is_forward(phase) && phase.call > 0) changed_later(phase);
    for (auto phase = trace_.phases.rbegin(); phase != trace_.phases.rend(); ++phase) {
      if (&*phase == last_ || (is_forward(*phase) && phase->call > 0)) continue;
      for (auto step = phase->steps.rbegin(); step != phase->steps.rend(); ++step)
        if (!take(*phase, *step)) return {};
    }
    std::ranges::reverse(calls_);
    return std::move(calls_);
  }

 private:
  static bool is_forward(const trace::Phase& phase) { return phase.kind == trace::PhaseKind::kForward; }

  const trace::Storage& storage(trace::StorageId id) const {
    return trace_.storages[static_cast<size_t>(id)];
  }

  trace::StepAccess access(const trace::Step& step) const {
    return access_of(trace_, step, [](const trace::Kernel&) { return std::vector<trace::ParameterUse>{}; });
  }

  void need(trace::StorageId id) {
    if (storage(id).role == trace::Role::kTemporary && storage(id).name.empty()) needed_.insert(id);
  }

  void read_by_last() {
    std::set<trace::StorageId> own;
    for (const trace::Step& step : last_->steps) {
      const trace::StepAccess accessed = access(step);
      own.insert(accessed.made.begin(), accessed.made.end());
      for (const trace::Access& read : accessed.reads)
        if (!own.contains(read.storage)) need(read.storage);
    }
    for (const trace::ValueId id : trace::tensors_in(last_->output)) {
      const trace::StorageId of = trace_.values[static_cast<size_t>(id)].storage;
      if (!own.contains(of)) need(of);
    }
  }

  void changed_later(const trace::Phase& phase) {
    for (const trace::Step& step : phase.steps) {
      const trace::StepAccess accessed = access(step);
      changed_.insert(accessed.made.begin(), accessed.made.end());
      for (const trace::Access& write : accessed.writes) changed_.insert(write.storage);
    }
  }

  // False where the step makes what is needed, but not the same in each call.
  bool take(const trace::Phase& phase, const trace::Step& step) {
    const trace::StepAccess accessed = access(step);
    const bool makes =
        std::ranges::any_of(accessed.made, [&](trace::StorageId id) { return needed_.contains(id); }) ||
        std::ranges::any_of(accessed.writes,
                            [&](const trace::Access& write) { return needed_.contains(write.storage); });
    if (!makes) return true;
    const auto* call = std::get_if<trace::Call>(&step);
    if (call == nullptr || accessed.random || accessed.seeds) return false;
    calls_.push_back(call);
    const auto constant = [&](const trace::Access& read) {
      const trace::Role role = storage(read.storage).role;
      const bool state = role == trace::Role::kParameter || role == trace::Role::kBuffer;
      need(read.storage);
      return role != trace::Role::kInput && !(state && !is_forward(phase)) &&
             !changed_.contains(read.storage);
    };
    return std::ranges::all_of(accessed.reads, constant) &&
           std::ranges::none_of(accessed.made, [&](trace::StorageId id) { return changed_.contains(id); }) &&
           std::ranges::none_of(accessed.writes,
                                [&](const trace::Access& write) { return changed_.contains(write.storage); });
  }

  const trace::Trace& trace_;
  const trace::Phase* last_;
  std::set<trace::StorageId> needed_, changed_;  // changed: by calls after the first
  std::vector<const trace::Call*> calls_;        // the last one first
};

}  // namespace

std::vector<const trace::Call*> earlier_calls(const trace::Trace& trace) { return EarlierCalls(trace).run(); }

}  // namespace nereid::compiler
