// Compares the outputs of a trial with the truth, and decides which elements can be judged and how exactly.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/replay/worker/trial/trial_forward.h"
#include "nereid/replay/worker/trial/trial_inputs.h"

namespace nereid::replay {

class TrialJudge {
 public:
  // All outlive it.
  TrialJudge(TrialForward& forward, TrialInputs& inputs, Machine& machine)
      : forward_(forward), inputs_(inputs), machine_(machine) {}

  // A trial is made: what is known of the last one's outputs is forgotten.
  void forget() { judged_.reset(); }

  struct Judgement {
    Comparison comparison;
    double own_seconds;  // of the reference's own run
  };
  // Runs the forward and compares. `outputs` hold what the candidate made (`got`); `paths` name them.
  Judgement judge(const Trial& trial, const Tolerance& tolerance, const std::vector<std::string>& paths,
                  std::vector<OutputTensors> outputs);
  // Another answer to the inputs judged last: nothing where that takes the truth anew.
  std::optional<Comparison> judged_again(const Tolerance& tolerance, const std::vector<std::string>& paths,
                                         const std::vector<OutputTensors>& outputs) const;

  // The root mean square of an output in the first trial; 0 where that is not known.
  double usual_scale(size_t i) const { return i < usual_scales_.size() ? usual_scales_[i] : 0; }

 private:
  // The last judged outputs, kept where they are small, and what was found of them.
  struct Judged {
    std::vector<OutputTensors> outputs;
    Comparison comparison;
  };

  void compute_truth(std::vector<OutputTensors>& outputs, Comparison& comparison, IndexOperands& values);
  void compare_until_agreed(const Trial& trial, const Tolerance& tolerance,
                            const std::vector<std::string>& paths, std::vector<OutputTensors>& outputs,
                            const IndexOperands& values, const IndexOperands& own_values,
                            Comparison& comparison);
  void degenerate(Comparison& comparison, const std::vector<OutputTensors>& outputs);
  void keep_judged(std::vector<OutputTensors>& outputs, const Comparison& comparison);

  TrialForward& forward_;
  TrialInputs& inputs_;
  Machine& machine_;
  std::optional<Judged> judged_;
  std::vector<at::Tensor> earlier_;  // the first trial's truth
  std::vector<double> usual_scales_;
};

}  // namespace nereid::replay
