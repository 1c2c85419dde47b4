// The reference's judged forward replayed in other arithmetic: the truth that answers are measured by.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "nereid/replay/host/upcast.h"
#include "nereid/replay/worker/inputs/attention_rounding.h"
#include "nereid/replay/worker/machine.h"
#include "nereid/replay/worker/replay.h"

namespace nereid::replay {

// What a replay gave for a value, to be kept beyond its next run. No copy where the forward made it and
// nothing larger than it would be kept.
at::Tensor taken(Replay& replay, trace::ValueId value);

// How inputs and state are changed before the replay.
struct Change {
  std::optional<at::Generator> nudge = {};  // by half an ulp either way, `nudge_times` it, but for:
  std::set<trace::StorageId> exact = {};    // labels, masks: half an ulp more is another number, not rounding
  // 16 bits and less are exact as they come in: inputs move by half an ulp of float32 at most, and `rounding`
  // draws the error of rounding anew (`add_rounding_noise`).
  bool coarse = false;
  // Of what operators make, up or down (`round_by_chance`). What they take a mean of is moved by half an ulp
  // besides: of rows that are all one number the mean is that number, exactly, in float64 alone. A softmax
  // may subtract a maximum that is rounded from what is not (`move_exponents`). Where the result is fp16,
  // what tanh.approx may stand in for errs by 2^-11 of one besides. Attention rounds its probabilities
  // (`round_probabilities`).
  std::optional<at::Generator> rounding = {};
  // Normalisations with a weight or a bias are taken in two steps, each rounded to the output's dtype: the
  // normalised numbers, then their product with the weight and the sum. Likewise products and convolutions
  // with a bias, which may cancel what was rounded. Numbers of a row that come from one grid are rounded
  // alike when they are only moved and scaled: no independent signs show what that gives.
  bool in_parts = false;
  // What float32 operators make and several calls read gets an error of rounding of its own in each of them,
  // as where two kernels compute it anew: what is exactly zero in x - x is not there. So gets what functions
  // make that a kernel computes by others (a softplus by exp and log), also where it is a float32 number by
  // chance (softplus above its threshold, the logsumexp of one number).
  std::optional<at::Generator> apart = {};
  Replay::Exchange exchange = {};                 // of operands, after `rounding`
  Replay::Watcher watch = {};                     // of results, where nothing else watches them
  Replay::Watcher reorder = {};                   // of results, before all else
  std::optional<double> nan = {}, infinity = {};  // what stands for a NaN, and for an infinity with its sign
  // What attention gives for queries that are no numbers, in place of a NaN; with no `exchange` or `watch`.
  std::optional<double> odd_attention = {};
  // Results whose size is about the largest of the dtype that they had become NaN: which of them overflow
  // hangs on rounding.
  bool mark_overflow = false;
  double scale = 1;                                       // of all floating-point state and inputs
  std::optional<std::set<trace::StorageId>> scaled = {};  // ... or of these alone
  double nudge_times = 1;
  Tf32Rounding tf32 = {};  // of products that the upcast marked
};

// Upcast to float64 or in its own dtype. Holds no tensors between runs.
class Float64Reference {
 public:
  // `watched`: see ProgramOptions. Throws Failed where some step cannot be prepared so.
  Float64Reference(Upcast upcasted, std::vector<trace::ValueId> watched, Machine& machine);

  // Runs from the state that `own` begins its judged forward with; floating-point state and inputs are
  // changed first, and go after their last use.
  std::vector<at::Tensor> run(Replay& own, const RunOptions& options,
                              const std::vector<trace::ValueId>& outputs, Change change);

  // Whether `Change::in_parts` makes a difference.
  bool has_parts() const;
  bool has_softmax() const;
  bool has_roots() const { return !roots_of_squares().empty(); }
  // Whether `Change::apart` does.
  bool has_shared_results() const { return !shared_results().empty(); }
  bool has_approximate_results() const { return !approximate_results().empty(); }

  const Footprint& footprint() const { return program_->footprint(); }
  const trace::Trace& trace() const { return upcast_.trace; }

 private:
  static trace::DType real_of(trace::DType type);
  const std::vector<trace::Step>& judged_steps() const {
    return program_->phases()[program_->judged()].phase->steps;
  }
  c10::Storage converted(Replay& own, trace::StorageId id, Change& change) const;
  void watch(Replay::Watcher watcher);  // after Change::reorder
  void round_on_the_way(at::Generator generator, bool coarse, const Replay::Exchange& then);
  void round_apart(at::Generator generator);
  // What attention is given, by the storage of its result.
  void keep_attention(int step, trace::ValueId id, const at::Tensor& operand,
                      std::map<trace::StorageId, Attention>& by_result) const;
  // Storages that a step reads and does not write, nor make views of.
  std::set<trace::StorageId> read_by(const trace::Step& step) const;
  // Of float32, those that several calls of the judged forward read.
  std::set<trace::StorageId> shared_results() const;
  // Of float32, those of functions that kernels compute in more than one way.
  std::set<trace::StorageId> approximate_results() const;
  // Where the largest number of a dtype is what an infinity became.
  std::set<trace::StorageId> replaced_infinities() const;
  void round_parts(const Replay::Exchange& then);
  // How many terms are added up in each element of a call's result, by its storage, in the judged forward.
  std::map<trace::StorageId, double> terms_of_sums() const;
  // Storages of standard deviations and norms, which PyTorch may compute in float64 inside.
  std::set<trace::StorageId> roots_of_squares() const;
  // The call whose first argument the value is; null where it is another's.
  void fill_odd_attention(double with);
  const trace::Call* call_on(int step, trace::ValueId value) const;

  Upcast upcast_;
  Machine& machine_;
  std::unique_ptr<const Program> program_;
  std::unique_ptr<Replay> replay_;
  Replay::Watcher reorder_;  // of the run under way
};

}  // namespace nereid::replay
