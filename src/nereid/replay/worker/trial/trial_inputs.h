// What a trial makes of the task's inputs and state, in the reference's replay.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "nereid/replay/deciding_state.h"
#include "nereid/replay/protocol.h"
#include "nereid/replay/worker/inputs/integer_inputs.h"
#include "nereid/replay/worker/roles/role.h"

namespace nereid::replay {

class TrialInputs {
 public:
  explicit TrialInputs(const Loaded& loaded) : loaded_(loaded) {}  // which outlives it

  // Once the task is loaded. `coarse`: the forward rounds to 16 bits or less; `chooses`: it uses places
  // that it has chosen.
  void load(bool coarse, bool chooses);
  // Whether inputs of this distribution mean something for this forward.
  bool may_be(InputDistribution kind) const { return kind != InputDistribution::kClose || may_be_close_; }

  // The tensors among a call's inputs.
  std::vector<trace::ValueId> of_call(int call) const;

  // What a caller may load: parameters and persistent buffers. Other buffers, and tensors that no state
  // holds, are what the constructor makes of constants, and a candidate may make them again. `paired`: state
  // that the candidate has, too.
  void perturb_state(trace::StorageId storage, const Trial& trial, const std::vector<trace::ValueId>& paired,
                     at::Generator& generator);

  // Draws a call's inputs from the trial's distribution. False where it changes nothing; `widened` becomes
  // true where they are not such as the task's own.
  bool change(int call, const Trial& trial, at::Generator& generator, bool& widened);
  // Where kFar and kWide bound their numbers, kWide by this factor: see DistributionContext.
  std::optional<double> bounded;
  // Floating-point tensors, of more than one element, of the judged call.
  std::set<trace::StorageId> floating() const;

  // Inputs that are labels, masks or counts: whole numbers as the task draws them.
  void note_labels();
  // What is a whole number is exact: of labels, and of all state (masks). So are inputs that are on a grid,
  // or close.
  std::set<trace::StorageId> exact(const Trial& trial);

  // Whether a sample of each floating-point input holds a few numbers alone, or rises or falls all along.
  bool repeat();
  bool has_integer_tables() const;

 private:
  bool holds_whole_numbers(trace::ValueId value);
  bool is_structure(trace::ValueId value, const at::Tensor& tensor);
  const IntegerUse& use_in_forward(trace::ValueId value);
  bool change_integers(int call, InputDistribution kind, at::Generator& generator);
  bool inputs_have_mask_constant(int call);
  void put_in_order(trace::ValueId value);
  void decide(const trace::State& state, const at::Tensor& tensor, const Trial& trial,
              at::Generator& generator);

  const Loaded& loaded_;
  bool may_be_on_grids_ = false, may_be_far_ = false, may_be_close_ = false;
  bool beyond_squares_ = false;          // see DistributionContext
  std::vector<bool> by_chance_;          // of each state
  std::set<trace::StorageId> searched_;  // what the forward searches as sorted rows
  std::vector<double> compared_;         // numbers that the forward compares with
  DecidingState deciding_;
  std::vector<trace::ValueId> labels_;
  std::map<trace::ValueId, IntegerUse> uses_;
  std::map<trace::ValueId, bool> structures_;
};

}  // namespace nereid::replay
