// The result of verifying one candidate: its kind, the evidence for it, and what was checked on the way.
//
// A verdict is data with three formats: JSON with stable field names, a few lines for a terminal, and prose
// with source excerpts (`--explain`); the last two are made by verdict_format.h.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/verify/batch/answer.h"
#include "nereid/verify/verdict_kind.h"

namespace nereid::verify {

// Version of the JSON below. It counts up where a field is removed, renamed or changes its meaning, not where
// one is added.
inline constexpr int kVerdictSchema = 3;

// One thing that speaks for a verdict. `sentence` stands alone; the rest lets a person or a program find the
// place.
struct Evidence {
  std::string rule{};      // a stable id from docs/verdicts.md: "aten-compute", "out-of-bounds"
  std::string sentence{};  // one sentence, with its full stop
  std::string kernel{};    // the Triton function, where one is to blame
  std::string file{};
  int line = 0;          // 1-based; 0 where no line is to blame
  std::string source{};  // that line of the file, where it is known
  std::map<std::string, double> numbers{};
};

struct Shrunk {
  std::string constant{};  // a module-level integer of the reference
  int64_t from = 0, to = 0;
};

// What was checked. All fields are valid whatever the verdict's kind.
struct Coverage {
  std::string device{};               // where the candidate ran: "", "cpu", "cuda"
  int64_t trials = 0;                 // comparisons of all outputs with the reference's
  int64_t draws = 0;                  // traces of the candidate, each for another draw of its integer inputs
  std::vector<std::string> inputs{};  // kinds: "task", "zeros", "huge", ...
  std::vector<std::string> perturbed, not_perturbed;  // parameters by qualified name
  std::vector<Shrunk> shrunk{};
  int64_t kernels = 0, launches = 0;               // of the judged forward call
  int64_t alternatives = 0, alternatives_run = 0;  // autotune configurations offered, and those compared
  int64_t left_out = 0;      // launches left out one at a time, to see that the answer changes
  double triton_share = 0;   // of the counted work of the judged forward call, 0 to 1
  int64_t memory_bytes = 0;  // upper bound of the replays' use of the device's memory
  bool sanitized = false, fenced = false;
  bool frozen_parameters =
      false;                   // something made from the parameters in one call is used again in later ones
  bool reused_output = false;  // an output is a buffer that every call overwrites and returns
  std::string
      degenerate;  // why this task proves little: its reference is constant, or insensitive to its inputs
};

// The worst comparison: where it was and how it stood to its tolerance. Both errors are absolute, in the
// output's unit.
struct Errors {
  std::string output{};             // path in the output tree: "", "0", "loss"
  std::vector<int64_t> position{};  // index of the element
  std::string inputs{};             // the input distribution
  int64_t trial = 0;
  double expected = 0, got = 0;
  double max_error = 0, max_tolerance = 0;    // elementwise
  double norm_error = 0, norm_tolerance = 0;  // of the whole output, relative to its norm
};

struct Times {
  double reference_ms = 0, candidate_ms = 0;  // medians
  double speedup = 0;                         // reference over candidate
  double ci_low = 0, ci_high = 0;             // 95 % bootstrap interval of the speedup
  std::string method{};                       // "graph", "launches"
  std::map<std::string, double> numbers{};    // clocks, roofline, ...
  std::vector<std::string> notes{};
};

struct Verdict {
  VerdictKind kind = VerdictKind::kError;
  bool input_to_blame = false;       // of kError alone: the reference or the options, not we
  std::vector<Evidence> evidence{};  // what decided comes first; never empty unless Verified
  std::vector<Evidence> remarks{};   // worth knowing, deciding nothing
  Coverage coverage;
  std::optional<Errors> errors{};
  std::optional<Times> times{};
  // Of kDisallowed alone, with --ignore-rules: what the pipeline says of the candidate if rules do not
  // count. A measurement of what the rules are for; never a verdict.
  struct WithoutRules {
    VerdictKind kind = VerdictKind::kError;
    std::optional<Times> times{};
  };
  std::optional<WithoutRules> without_rules{};
  std::string
      trace{};  // SHA-256 of the candidate's first trace: what was judged, whatever the file does next time
  // Where the code, and the plan before it, stood in the candidate's text (answer.h); nothing where no code
  // was found.
  std::optional<Span> code{}, plan{};
  // What was asked, so that a run can be repeated.
  std::string reference, candidate;  // display names
  std::string policy{};
  std::string protocol = "nereid";  // what decided whether outputs are right
  uint64_t seed = 0;
  double seconds = 0;
  // Where they went: "reference" and "candidate" (traced), "cpu" (replays), "compile", "wait" (for a turn on
  // the GPU), "open", "trials", "time" (all of it), and of that "time_wait" (for turns), "time_trial",
  // "time_capture", "time_samples" (the GPU in use by this pair alone), "time_judge", "time_needs". Of all of
  // these "gpu" is what was spent in turns on the GPU, which others waited for.
  std::map<std::string, double> phases{};
  // Around "tracer", "compiler" and "replay" processes, where the candidate reached them: what stands, in
  // words.
  std::map<std::string, std::string> isolation{};
};

// "Mismatch: output 0 differs ..."; the reason alone, without the word, is `reason`.
std::string headline(const Verdict& verdict);
std::string reason(const Verdict& verdict);

nlohmann::json to_json(const Verdict& verdict);

// Exit code of a command whose answer this is: 0 verified, 1 not, 2 the input is to blame, 3 we are.
int exit_code(const Verdict& verdict);

// The lines of `source` around `line`, with line numbers and a mark: what a compiler prints. Made printable.
std::string excerpt(std::string_view source, int line, int around = 2);

}  // namespace nereid::verify
