// The judged forward of a trial, run as it is and computed again: in float64, in its own dtypes, with a
// change of inputs, of roundings or of operators.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "nereid/replay/protocol.h"
#include "nereid/replay/worker/compare/compare.h"
#include "nereid/replay/worker/compare/float64_reference.h"
#include "nereid/replay/worker/compare/index_outputs.h"
#include "nereid/replay/worker/roles/role.h"
#include "nereid/replay/worker/trial/other_references.h"

namespace nereid::replay {

// What index makers choose from, in float64, by the step that makes the indices.
using IndexOperands = std::map<int, at::Tensor>;

at::Generator make_generator(uint64_t seed);

struct TrialForward {
  // Both outlive it.
  TrialForward(Loaded& loaded, Machine& machine) : loaded(loaded), references(loaded, machine) {}
  // Once the task is loaded: what its text says about how exactly its outputs can be compared.
  void read_traits();

  const trace::Trace& trace() const { return loaded.trace; }
  Replay& own() const { return *loaded.replay; }

  // Runs the reference as it is, and keeps what index makers choose from.
  void run_own(IndexOperands& values);
  // The outputs of `recomputed`, in the order that the candidate has, where the reference leaves that open.
  std::vector<at::Tensor> recompute(Float64Reference& recomputed, Change change);
  // The reference that computes other truths of the same kind as the comparison's own.
  Float64Reference* truth_reference(const Comparison& comparison);
  // Keeps what index makers choose from; nothing where there are none or memory is dear.
  Replay::Exchange keep_operands(IndexOperands& values) const;

  // Outputs are allowed as much more as `change` moves them. `kind`: see replay::widen. `rounded`: and as
  // much as that moves them once it is rounded to the outputs' dtypes.
  void widen(std::vector<OutputTensors>& outputs, Float64Reference& recomputed, Change change,
             std::optional<ErrorStatistics::Sample> kind = {}, bool rounded = false);
  // Indices may point to values that are that near to the right ones.
  void widen_places(std::vector<OutputTensors>& outputs, const IndexOperands& values) const;

  Loaded& loaded;
  OtherReferences references;
  std::vector<trace::ValueId> outputs;  // outputs, then what the forward writes of inputs and state
  std::vector<IndexMaker> makers;
  std::vector<double> bounds;  // of the forward's clamps
  bool coarse = false;         // the forward rounds to 16 bits or less
  bool near_one = false;       // see OutputTensors::near_one
  bool frugal = false;         // memory is scarce

  // Of the trial being judged.
  RunOptions options;
  bool widened =
      false;  // its inputs or state are not such as the task's own: judged where that makes numbers
  Replay::Watcher reorder;  // see follow_order
};

}  // namespace nereid::replay
