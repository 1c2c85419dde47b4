// The last stage of the pipeline: compiles for the device, opens a session, and runs its trials and timings.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "nereid/replay/known_reference.h"
#include "nereid/verify/rules/rules.h"
#include "nereid/verify/settings.h"
#include "nereid/verify/stages/limited_session.h"
#include "nereid/verify/stages/references.h"
#include "nereid/verify/stages/verifier_backends.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

class Trials;

// status: a fault, with the verdict as far as it came. Else the stage passed where the verdict is kVerified.
struct Replayed {
  Verdict verdict{};
  Status status = ok_status();
};

// Everything that it refers to outlives it.
class ReplayStage {
 public:
  ReplayStage(const VerifierBackends& backends, const Settings& settings, const Traced& reference,
              const Traced& candidate, const RuleReport& rules, CandidateWork& work,
              std::function<std::shared_ptr<replay::KnownReference>()> known_reference)
      : backends_(backends),
        settings_(settings),
        reference_(reference),
        candidate_(candidate),
        rules_(rules),
        work_(work),
        known_reference_(std::move(known_reference)) {}

  // The verdict of the stages before, continued. `draw` counts the traces of the candidate; `alone`: no other
  // session holds the device's memory. Called once.
  Replayed run(Verdict verdict, int draw, bool alone = false);

 private:
  Status replay(int draw, bool alone);
  void end(VerdictKind kind, Evidence evidence, bool input_to_blame = false);
  void exceed_verdict_limit();
  Status run_trials(Trials& trials, int draw);
  // False where a kernel has no machine code; the verdict then says so.
  Result<bool> compile(std::map<std::string, std::string>& kernels);
  // The kernel of the first alternative, where no alternative was compiled.
  const trace::Kernel* none_runs(const trace::Launch& launch,
                                 const std::map<std::string, std::string>& kernels) const;
  void note_parameters(const replay::SessionFacts& facts);
  void spend(const char* phase, const Stopwatch& watch, double less = 0) {
    verdict_.phases[phase] += watch.seconds() - less;
  }

  const VerifierBackends& backends_;
  const Settings& settings_;
  const Traced& reference_;
  const Traced& candidate_;
  const RuleReport& rules_;
  CandidateWork& work_;
  std::function<std::shared_ptr<replay::KnownReference>()> known_reference_;
  Verdict verdict_{};
};

}  // namespace nereid::verify
