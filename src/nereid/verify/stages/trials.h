// The stages that need data: replays of the candidate against its reference.
#pragma once

#include <memory>

#include "nereid/replay/host/client.h"
#include "nereid/verify/analysis/trace_analysis.h"
#include "nereid/verify/settings.h"
#include "nereid/verify/stages/configurations.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

// Of the tolerance, on inputs of other kinds than the task's own.
inline constexpr double kSlackOnOtherDistributions = 16;
// An error that leaves an output no digit, of its scale.
inline constexpr double kNoDigit = 0.1;

// Trials of state that decides alone (deciding_state.h). One number is on one side of a bound in each, so
// these are many; where trials take long (not `cheap`), the first of them.
int sides_to_try(const trace::Trace& reference, bool cheap, bool brief);
// What `tolerance` is on inputs of this distribution.
replay::Tolerance tolerance_on(replay::InputDistribution kind, replay::Tolerance tolerance);

// Runs one session's trials: the task's own inputs, launches left out one at a time, every other kind of
// input, and the configurations that autotuners were offered. What is found goes into `verdict`: its word
// stays kVerified while nothing is wrong.
class Trials {
 public:
  Trials(replay::Session& session, const TraceAnalysis& reference, const TraceAnalysis& candidate,
         const RuleReport& rules, const Settings& settings, Verdict& verdict);

  // All of the above. `draw` counts the traces of one candidate: later ones run fewer trials. An Error is a
  // fault that may be tried again, or (blamed on the input) the reference's.
  Status run(int draw);

  // Times what was verified (CUDA alone); what a timed run shows to be wrong changes the verdict. `known`:
  // what sessions share of the reference, or null.
  Status time(std::shared_ptr<replay::KnownReference> known);

 private:
  bool good() const { return verdict_.kind == VerdictKind::kVerified; }
  // `checked`: every access is looked at (on CUDA: fenced), where the trial is not too long for that.
  // `turn`: how often this kind was tried before (the last bit of the trial's seed).
  // `narrowed`, `deciding`: see replay::Trial.
  Result<replay::TrialReport> one(replay::InputDistribution kind, int number, bool checked, size_t turn = 0,
                                  int narrowed = 0, int deciding = 0);
  // Trials of a distribution, narrower until overflow decides nothing; with all configurations.
  Status other_inputs_of(replay::InputDistribution kind, int number, size_t turn, int deciding = 0);
  Status own_inputs(int draw);
  int own_draws(int draw) const;
  // Whether a draw of the task's own inputs shows nothing that the first did not, so that another one takes
  // its place: most of a task's elements may lie at a clamp's bound, or behind a mask.
  bool draws_again(const replay::TrialReport& report);
  bool draws_many() const;         // further draws cost little, and are asked for
  bool has_small_outputs() const;  // of small outputs a single draw shows little
  bool mixes_elements() const;     // the reference does more than pointwise work
  bool is_cheap() const;           // another trial costs little
  bool has_integer_output() const;
  Status choose_perturbation(replay::TrialReport& report);
  Result<LeftOut> without(std::vector<int> steps);
  Status leave_out(const replay::TrialReport& whole);
  Status other_inputs();
  Status check_host_answers();
  // Every other configuration of every launch, alone and together (configurations.h), on the inputs of the
  // trial before.
  Status configurations(replay::InputDistribution kind, int number);
  Result<ConfigurationRun> run_configuration(const replay::ConfiguredRun& run, replay::InputDistribution kind,
                                             int number, const std::string& circumstances);
  // The calls that tune (configurations.h), on the inputs of the trial before.
  Status tuning(replay::InputDistribution kind, int number);
  void end_by_configurations(replay::InputDistribution kind);
  void take_times(const replay::TimeReport& report);

  // True where the report is a comparison that agrees; else the verdict says what was wrong (or the kind did
  // not apply).
  Result<bool> take(const replay::TrialReport& report, int number, const std::string& circumstances = "");
  bool take_findings(const replay::TrialReport& report, const std::string& circumstances);
  bool take_failure(const replay::Failure& failure, const std::string& circumstances);
  Status take_comparison(const replay::TrialReport& report, int number, const std::string& circumstances);
  void keep_worst(const replay::OutputComparison& output, const replay::TrialReport& report, int number);
  void end(VerdictKind kind, Evidence evidence);

  replay::Session& session_;
  const TraceAnalysis& reference_;
  const TraceAnalysis& candidate_;
  const RuleReport& rules_;
  const Settings& settings_;
  Verdict& verdict_;
  std::vector<ReplayedWork> ran_;  // by the first trial
  const std::vector<TunedGroup> tuned_;
  const bool blind_;                  // what one trial shows of the candidate's accesses, it shows for all
  const bool floats_;                 // inputs are floating-point numbers, some of them
  const bool brief_;                  // one draw of the task's own inputs, and one other kind
  double first_seconds_ = 0;          // of the first trial: later ones are spared where it was long
  double worst_ratio_ = -1;           // error over tolerance of what `verdict.errors` holds
  double configuration_seconds_ = 0;  // spent on configurations
  int64_t configurations_run_ = 0;
  bool gentle_ = false;  // see replay::Trial
  bool configurations_counted_ = false;
  int64_t overflown_ = 0;  // elements of the trials under way (replay::Comparison)
  int redraws_ = 0;        // in place of draws that show nothing new
  bool varies_ = false;    // some draw shows more than the first
  int judged_trials_ = 0, constant_trials_ = 0, insensitive_trials_ = 0;
};

}  // namespace nereid::verify
