// The lines of a run's results.jsonl: one for each candidate and rewrite that was judged as honest, one for
// each mutant.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/mutate/mutant.h"
#include "nereid/mutate/witness.h"
#include "nereid/verify/verdict_kind.h"

namespace nereid::mutate {

struct ResultLine {
  enum class Kind { kHonest, kMutant } kind = Kind::kMutant;
  std::string id{}, subject{};
  std::string verdict{}, rule{}, inputs{},
      sentence{};          // of the verdict; `rule` and `sentence` of what decided
  bool our_error = false;  // an Error that is tried again when a run goes on
  double seconds = 0;
  // Of a mutant, and of a rewrite what applies:
  Fault fault{};
  std::string what{}, kernel{}, file{}, source{};
  int line = 0;
  std::vector<std::string> before{}, after{};
  std::optional<Witness> witness{};
  int trials = 0;  // of the search
  KernelBench kernelbench = KernelBench::kUndecided;

  bool verified() const {
    return verify::verdict_kind_from_string(verdict) == verify::VerdictKind::kVerified;
  }
};

Json to_json(const ResultLine& line);
Result<ResultLine> result_from_json(const Json& json, const std::string& what);

}  // namespace nereid::mutate
