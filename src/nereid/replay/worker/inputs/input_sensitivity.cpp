#include "nereid/replay/worker/inputs/input_sensitivity.h"

#include <ATen/Context.h>

#include <algorithm>
#include <set>

#include "nereid/replay/memory_plan.h"
#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/float64_reference.h"
#include "nereid/replay/worker/inputs/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::ValueId;

constexpr double kBeyondAnyTolerance = 0.01;             // of max(|element|, rms of the output)
constexpr int64_t kSensitivityChunk = int64_t{1} << 24;  // elements looked at together

at::Tensor real_line(const at::Tensor& tensor) {
  const auto t = tensor.resolve_conj().resolve_neg();
  return (t.is_complex() ? at::view_as_real(t) : t).reshape({-1});
}

bool differs(const at::Tensor& now, const at::Tensor& before, double scale) {
  const auto a = real_line(now), b = real_line(before);
  for (int64_t first = 0; first < a.numel(); first += kSensitivityChunk) {
    const auto size = std::min(kSensitivityChunk, a.numel() - first);
    const auto x = a.narrow(0, first, size), y = b.narrow(0, first, size);
    const bool exact = c10::isIntegralType(a.scalar_type(), true);
    const auto close = exact ? x.eq(y)
                             : at::isclose(x.to(at::kFloat), y.to(at::kFloat), kBeyondAnyTolerance,
                                           kBeyondAnyTolerance * scale, /*equal_nan=*/true);
    if (!close.all().item().toBool()) return true;
  }
  return false;
}

class Trier {
 public:
  Trier(Replay& replay, const RunOptions& options, uint64_t seed)
      : replay_(replay),
        options_(options),
        generator_(at::globalContext().defaultGenerator(at::kCPU).clone()) {
    generator_.set_current_seed(seed);
    for (const auto& output : run()) {
      before_.push_back(output);
      scales_.push_back(c10::isIntegralType(output.scalar_type(), true) ? 0 : rms(output));
    }
  }

  InputSensitivity input_sensitivity(ValueId input, int samples, Deadline deadline) {
    const auto line = replay_.value(input).view({-1});
    InputSensitivity needs{.bytes = static_cast<int64_t>(line.nbytes())};
    const auto others = other_values(line);
    for (int i = 0; i < samples && !others.empty() && !deadline.passed(); ++i) {
      const auto at = at::randint(line.numel(), {1}, generator_, at::TensorOptions().dtype(at::kLong));
      ++needs.tried;
      needs.mattered += matters(line.narrow(0, at.item().toLong(), 1), others);
    }
    return needs;
  }

 private:
  std::vector<at::Tensor> run() {
    replay_.run_judged(options_);
    std::vector<at::Tensor> out;
    for (const auto id : replay_.outputs())
      if (is_computed(id)) out.push_back(taken(replay_, id));
    replay_.rewind();
    return out;
  }

  // A view of what a caller gives, which the forward leaves alone, is returned without a look at it.
  bool is_computed(ValueId id) const {
    const auto& program = replay_.program();
    const auto& trace = program.trace();
    const auto storage = trace.values[id].storage;
    return trace.storages[storage].role == trace::Role::kTemporary ||
           std::ranges::find(program.judged_writes(), storage) != program.judged_writes().end();
  }

  bool matters(const at::Tensor& element, const std::vector<double>& others) {
    const auto own = element.clone();
    bool found = false;
    for (size_t i = 0; i < others.size() && !found; ++i) {
      element.fill_(others[i]);
      const auto now = run();
      for (size_t k = 0; k < now.size() && !found; ++k) found = differs(now[k], before_[k], scales_[k]);
    }
    element.copy_(own);
    return found;
  }

  Replay& replay_;
  const RunOptions& options_;
  at::Generator generator_;
  std::vector<at::Tensor> before_;
  std::vector<double> scales_;
};

}  // namespace

std::vector<InputSensitivity> input_sensitivity(Replay& replay, const RunOptions& options, uint64_t seed,
                                                int samples, Deadline deadline) {
  const auto& program = replay.program();
  const auto& trace = program.trace();
  const auto& written = program.judged_writes();
  std::vector<ValueId> inputs;
  std::set<trace::StorageId> seen;
  for (const auto id : trace::tensors_in(program.phases()[program.judged()].phase->inputs)) {
    const auto storage = trace.values[id].storage;
    // What the forward itself writes is put back before every run.
    if (is_whole(trace, id) && replay.bound(storage) &&
        std::ranges::find(written, storage) == written.end() && seen.insert(storage).second)
      inputs.push_back(id);
  }
  std::vector<InputSensitivity> needs;
  if (inputs.empty()) return needs;
  Trier trier(replay, options, seed);
  for (const auto id : inputs) needs.push_back(trier.input_sensitivity(id, samples, deadline));
  return needs;
}

}  // namespace nereid::replay
