// The verification pipeline, from a pair to a verdict. Its stages, in order: read the source, choose sizes,
// trace the reference, trace the candidate, check the rules on the traces, replay (replay_stage.h).
//
// The first stage that fails decides the verdict. A fault that is not the candidate's (a lost worker, a full
// disk) is tried once more and is then an Error.
#pragma once

#include <memory>

#include "nereid/verify/pair.h"
#include "nereid/verify/settings.h"
#include "nereid/verify/stages/verifier_backends.h"
#include "nereid/verify/verdict.h"

namespace nereid::verify {

struct JudgeState;

class Judge {
 public:
  Judge(VerifierBackends backends, Settings settings);
  ~Judge();

  // Thread-safe. References are traced once for each source. A verdict that came of an interrupt is an Error
  // that says so.
  Verdict judge(const Pair& pair);

  const Settings& settings() const;

 private:
  std::unique_ptr<JudgeState> state_;
};

}  // namespace nereid::verify
