// What replaying a candidate against its reference found: plain values, the same for the CPU and for CUDA.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/trace/trace.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::replay {

enum class Device { kCpu, kCuda };

// What inputs hold, and in three of these kinds the state. Integer inputs are those of the task's own
// generator, but in kLowest to kRedrawn, where floating-point ones are. Inputs that are never negative stay
// so in all kinds but kFlipped and kLarge; what leaves the range of the task's own inputs is judged where the
// reference makes a number of it.
enum class InputDistribution {
  kOwn,  // the task's own generator
  kZeros,
  kOnes,
  kNegative,    // -|x|, every other row -(1 + |x|) * 2^7 (not in f16)
  kTiny,        // x / 2^20 (2^6 in f16)
  kHuge,        // x * 2^10 (2^5 in f16)
  kRamp,        // evenly spaced over the task's own range, or four times that where it is never negative
  kOneHot,      // rows of zeros with a single one
  kOutliers,    // one element in 64 is 2^8 times larger (2^4 in f16)
  kInfinities,  // one element in 64 is an infinity
  kNans,        // one element in 64 is a NaN
  kFlipped,     // -x, where the task's own inputs are never negative
  kWide,        // x * 2^u with u even in [-6, 16], [-3, 4] in f16, of each element
  kSmall,       // x / 2^10 (2^3 in f16): near what an eps is
  kLarge,       // each row times 2^u with u even in [1, 7], [1, 3] in f16; of what is never negative, every
                // other row with signs by chance
  kShifted,     // each row plus 2^u times the rms of all, u even in [2.6, 3.6]: far from zero, positive
  kGrid,        // x rounded to multiples of a power of two, about half of its rms: zeros and equal numbers
  kFar,         // rows of +-(1 + |x|) * 2^40 (2^13 in f16), wholly on one side of any number near zero
  kClose,       // rows of numbers that differ by less than 2^-11 of their size, f32 and f64 alone
  kState,    // parameters and persistent buffers, each element with a sign of its own, 2^-2 to 2^4 times as
             // large
  kLowest,   // integers and booleans: the least that their domain holds (worker/inputs/integer_inputs.h)
  kHighest,  // ... the most
  kRedrawn,  // ... any of it by chance; of integer tables that the module registers, too
};
std::string_view to_string(InputDistribution kind);
std::optional<InputDistribution> input_distribution_from_string(std::string_view name);

// The seed that a phase starts from: torch.manual_seed(phase_seed(...)), the same for reference and
// candidate. splitmix64(seed * 64 + 8 * kind + call), in [0, 2^63).
uint64_t phase_seed(uint64_t seed, trace::PhaseKind kind, int call);

struct Trial {
  uint64_t seed = 0;
  InputDistribution distribution = InputDistribution::kOwn;
  bool perturb =
      true;  // parameters and persistent buffers get values that hide nothing (worker/inputs/inputs.h)
  bool gentle = false;  // of these only constants, where the reference is not for more
  // Numbers of other distributions that are larger than the task's own, m at the most, become
  // m (|x| / m)^(1 / 2^narrowed).
  int narrowed = 0;
  int deciding = 0;  // of kState: 0, or which of DecidingState::trials; then other state stays near its own
  bool sanitize = true;  // CPU: the executor's sanitizer. CUDA: the fenced replay
};

struct Tolerance {
  double factor = 4;  // times the reference's own error
  double slack = 1;   // ... and times that, on other inputs than the task's own
  std::optional<double> rtol,
      atol;  // where either is set: |got - want| <= atol + rtol * |want|, and nothing else
  // KernelBench's rule and nothing else: |got - own| <= t + t * |got|, t by the output's dtype
  // (`kernelbench_tolerance`).
  bool kernelbench = false;
  bool fixed() const { return rtol || atol || kernelbench; }
  bool allow_tf32 = false;  // judge f32 contractions as PyTorch's "high" precision would
};

// 1e-2 for 16 bits and less, 1e-4 for what is wider.
double kernelbench_tolerance(trace::DType type);

// A step of a trace, named for people.
struct Where {
  trace::PhaseKind phase{};
  int call = 0;
  int step = -1;   // index in the phase; -1: between steps
  std::string op;  // "aten::mm", or a kernel's name
  trace::Place place;
};
// `step` -1 or past the end names the phase alone.
Where where_is(const trace::Trace& trace, const trace::Phase& phase, int step);
std::string describe(const Where& where);  // "forward, step 3: aten::mm (model.py:12)"

// The task's code, not ours, broke a replay.
struct Failure {
  enum class Kind {
    kRaised,   // an operator refused its arguments
    kRefused,  // an operator that a replay does not run: files, raw memory, unknown ones
    kCrashed,  // the process died: `message` says of which signal
    kTimedOut,
    kUnsupported,  // our executor does not know an operation, or PyTorch has no kernel for this machine: no
                   // verdict
  } kind{};
  Where where;
  std::string message;
};
std::string_view to_string(Failure::Kind kind);

struct OutputComparison {
  std::string path;  // "output", "output[1]", "output['loss']", "input 0 after the call"
  bool agrees = true;
  std::string reason;  // why not, in one sentence
  std::string dtype;
  std::vector<int64_t> sizes;
  int64_t elements = 0, wrong = 0;
  int64_t undefined = 0;  // elements at which the reference itself is not defined (its dtype and float64
                          // differ in being finite): not judged

  // Largest error of an element, in units of max(|want|, rms(want)); and of the whole, ||got-want|| /
  // ||want||. `own` is the reference's, in its own dtype, against itself in float64; `limit` what the
  // candidate's may be.
  double error = 0, own_error = 0, error_limit = 0;
  double norm_error = 0, own_norm_error = 0, norm_limit = 0;
  double max_absolute_error = 0, max_relative_error = 0;  // plain |got-want| and |got-want|/|want|

  // Where an error is more than rounding leaves, over which slice and which: a sentence, and the figures in
  // it.
  std::string systematic = {};
  double systematic_error = 0, systematic_limit = 0;

  // For the report of degenerate tasks, within the tolerance: elements that are all one number, and elements
  // that are the first trial's.
  bool constant = false, insensitive = false;

  std::vector<int64_t> first_wrong, worst;  // positions; empty where nothing is wrong
  double first_got = 0, first_want = 0, worst_got = 0, worst_want = 0;
};

// Where the truth came from.
enum class Oracle {
  kFloat64,  // the reference replayed with every floating-point dtype upcast
  kOwn,  // it cannot be upcast (`oracle_note` says why): its own dtype, with the error that inputs moved by
         // half an ulp cause
};

struct Comparison {
  bool agrees = true;
  std::vector<OutputComparison> outputs;
  std::string structure;  // where the outputs' structure differs: expected and got, in one sentence
  Oracle oracle = Oracle::kFloat64;
  std::string oracle_note;
  bool conditioned = false;  // the own error includes what moving the inputs by half an ulp does
  bool defined = true;  // false: the reference is not defined on this input distribution, nothing was judged

  // Elements at which candidate and reference have different infinities or NaNs, on inputs that are not the
  // task's own: not judged. Overflow explains them where there are none on narrower inputs.
  int64_t overflown = 0;

  double finite = 1;  // the share of the reference's elements that are numbers

  // For the report of degenerate tasks.
  bool constant = false;     // every element of every output is the same number
  bool insensitive = false;  // the outputs are those of an earlier trial although the inputs are not
};

// What a launch of the judged forward did, where that depends on what it loads; bytes of each access.
struct StepWork {
  int step = 0;
  double flops = 0, bytes = 0;
};

struct TrialReport {
  Trial trial;
  bool applicable = true;  // false: the task has no input that this kind would change; nothing ran
  std::optional<Failure> reference_failed;  // the task itself is at fault
  std::optional<Failure> failed;            // the candidate is
  std::vector<ttir::Finding> findings;      // of the sanitizer
  int64_t finding_count = 0;
  std::optional<Comparison> comparison;  // absent where a failure or a finding came first
  bool perturbed = false;                // parameters were
  std::vector<StepWork> work;            // of the candidate's first run in a session
  std::map<int, uint64_t> left;     // where asked for: by launch, a digest of all that it may have written
  std::vector<int> changing_casts;  // steps whose casts to integers or booleans changed a number
  std::vector<std::string> inputs_written;  // the candidate changed these inputs and the reference does not
  std::vector<std::string> state_written;   // likewise, of parameters and buffers that both have
  std::vector<trace::StorageId> not_as_found;  // of SessionOptions::left_as_found, what some forward changed
  // The candidate's are of its work: where it computes on processors, without what it waited for one.
  double seconds_reference = 0, seconds_candidate = 0, seconds_oracle = 0;

  bool ran() const {
    return applicable && !reference_failed && !failed && findings.empty() && inputs_written.empty() &&
           state_written.empty();
  }
  bool ok() const { return ran() && comparison && comparison->agrees; }
};

// Of one of the candidate's outputs: the elements that no state moves, and no inputs but those that host code
// read.
struct UnmovedOutput {
  int64_t elements = 0, unmoved = 0;
  std::vector<double> numbers{};  // the first of these elements, in order
};
struct UnmovedReport {
  std::vector<UnmovedOutput> outputs{};
  // Of these, what stays the same when the integers that host code read are others in memory.
  std::vector<UnmovedOutput> from_host{};
};

// Alternatives of launches of the last forward: step -> index. The first where a launch is not named.
using Choices = std::map<int, int>;

// How the last trial's forward runs once more.
struct ConfiguredRun {
  Choices choices{};
  bool digests = false;  // with TrialReport::left of all launches that have alternatives
  // By step: alternatives that run before the chosen one, the autotuner's hooks around each, as in the call
  // that tunes. Of launches with trace::Launch::tuning alone.
  std::map<int, std::vector<int>> tuned{};
};

// A candidate's storage that is older than the judged forward and that every forward must leave as it was
// when this step, the first that wrote something of any inputs to it, began. Earlier forwards are then
// replayed as far as they write it, and the judged one begins with what they left.
struct LeftAsFound {
  trace::StorageId storage = -1;
  int phase = 0, step = 0;  // indices in the trace
  // Kernels alone read it in the judged forward: bytes that forwards change may stay changed where none of
  // them is read before this forward has written it.
  bool may_be_dirty = false;
};

// A launch of the last forward: `step` is its index in that phase.
struct LaunchId {
  int step = 0;
  auto operator<=>(const LaunchId&) const = default;
};

struct MutationReport {
  std::optional<Failure> failed;  // leaving them out made a later step fail: that, too, is a change
  bool changed = false;           // some output differs in some bit
  std::vector<bool> outputs_changed;
  double seconds = 0;  // of the candidate's work
};

// Work that a forward cannot do without, for the check against the device's peak rates
// (gpu/roofline.h). How much of the inputs it must read is found out where it would make a
// difference.
struct LeastWork {
  double input_bytes = 0, bytes_written = 0;
  double f64 = 0, f32 = 0, tf32 = 0, half = 0, f8 = 0;  // operations by the unit that does them
};

class KnownReference;

struct TimeRequest {
  uint64_t seed = 0;
  double seconds =
      1.5;  // for sampling, all kinds together; choosing among alternatives may take as much again
  // What floating-point inputs hold while timed; the first is the task's own. Each is a trial first.
  std::vector<InputDistribution> kinds = {InputDistribution::kOwn, InputDistribution::kOutliers,
                                          InputDistribution::kHuge, InputDistribution::kNegative};
  double slack = 1;      // the tolerance's factor is multiplied by this on other kinds than the task's own
  LeastWork least = {};  // of the candidate
  // What other sessions found of the reference, and where what this one finds goes (known_reference.h). Where
  // its time as a graph is known the candidate alone is timed, as far as it is a graph, too.
  std::shared_ptr<KnownReference> reference = nullptr;
  bool graphs_alone = false;  // no launches issued anew besides, no look at what the GPU's clocks do
  // What came out is compared once: what the last timed run gave. Else the trial before is, too.
  bool compare_once = false;
  bool gentle = false;           // see Trial
  double relative_width = 0.02;  // of the interval of the speedup: narrow enough to stop
};

struct KindTimes {
  InputDistribution kind{};
  double reference_ms = 0, candidate_ms = 0;    // medians
  double speedup = 0, ci_low = 0, ci_high = 0;  // reference over candidate, 95 % bootstrap interval
  int samples = 0;
  bool converged = false;  // the interval is as narrow as asked for
  // What must surely be read and written takes at the device's peak; 0: the device is not in our table.
  // Inputs count only where the candidate was faster than reading all of them.
  double roofline_ms = 0;
};

struct TimeReport {
  // Something went wrong with the candidate on the way: a trial before timing, or the outputs of a timed run.
  std::optional<TrialReport> spoiled;
  std::string impossible;        // a time that the device cannot have needed: which, and what it needs
  KindTimes counted;             // the task's own kind, or the one on which the candidate is slowest
  std::vector<KindTimes> kinds;  // all that applied
  std::string method;        // "graph": captured CUDA graphs; "launches": one of the two cannot be captured
  std::string not_captured;  // which, and why
  double reference_launches_ms = 0, candidate_launches_ms = 0;  // issued anew, of the task's own kind
  std::vector<std::pair<int, int>>
      alternatives;  // launch (its step) and the alternative that our clock chose
  int alternatives_timed = 0;
  int input_sets = 1;  // copies of the candidate's inputs that its runs took in turn
  std::string device;
  std::map<std::string, double> gpu;      // clocks, temperature and power after timing
  std::vector<std::string> throttled_by;  // what held the clocks down
  // Wall seconds: "wait" (for a turn on the GPU), and without that "trial", "capture", "samples" (with the
  // GPU alone), "judge", "needs" (what must be read, where that was asked).
  std::map<std::string, double> spent;
};

}  // namespace nereid::replay
