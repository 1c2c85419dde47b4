// Test-time search: proposers work side by side, what they propose is judged as it comes, and the best
// verified result so far is always there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/search/evaluator.h"

namespace nereid::search {

struct SearchOptions {
  // The budget's end. After it no proposer is called, and what is being written or judged is cancelled,
  // whether something is verified or not.
  Deadline deadline = Deadline::after(60);
  int samples = 1;            // answers asked of a proposer that samples, side by side
  bool every_sample = false;  // all of them are judged, though one may be enough (see below)
  // The search ends with the first verified result, and a proposer's other samples wait for its first; those
  // of one that costs nothing wait for subgraphs, too.
  bool first_is_enough = false;
  // Samples go on from one another while they are written, and are judged newest first
  // (docs/speculation.md); of proposers that can do that.
  bool speculate = false;
  double target_speedup = 0;  // over eager PyTorch: the search ends with a result that reaches it; 0: none
  int repairs = 2;            // times that a proposer gets the evidence against an answer
  bool fallbacks = true;      // what was not verified is written in the proposer's other ways
  bool subgraphs = true;      // after whole programs, subgraph_search.h
  bool tuning = true;         // the winner's parameters are tuned, where a clock measures what is better
  // Seconds that the caller needs after the search for what it does with this result. Once something is
  // verified, the search ends so long before the deadline.
  std::function<double(const Judged& best)> to_finish{};
};

// The events of a search while it goes on; called under a lock.
struct Event {
  enum class Kind { kRequested, kDeclined, kJudged, kBest, kSaid } kind;
  std::string proposer;
  std::string text;                // why it declined; of kSaid, what goes on
  const Judged* judged = nullptr;  // of kJudged and kBest
};

struct Declined {
  std::string proposer, why;
  std::optional<Blame>
      fault{};  // whose fault it is that no proposer could be called; else it is a remark about the task
};

struct Outcome {
  std::optional<Judged> best;  // verified, the fastest
  std::vector<Judged> tried;   // all, in the order in which they were judged
  std::vector<Declined> declined;
  std::optional<Judged> compiled;  // Inductor's kernels, where they were measured (baselines.h)
  proposers::Cost cost;            // of all proposers together
  // Of the search; until the first verified result; until the best.
  double seconds = 0, first_seconds = 0, best_seconds = 0;
  std::vector<Span> spans;  // who wrote and who judged when
  bool all_tried = false;   // it ended because nothing was left to be tried
};

// Of the reference's time over this: measured, else by the cost model; 0 where it was neither.
double speedup_of(const Task& task, const Judged& judged);

// True where `a` is to be kept in place of `b`.
bool better(const Judged& a, const Judged& b);

// Whether programs put together from subgraphs may beat the best whole program. Not where that is one kernel,
// nor where the cost model ranks it and every proposer fuses whole programs (Proposer); measured times may
// differ from the model's.
bool subgraphs_may_gain(const std::optional<Judged>& best,
                        const std::vector<proposers::Proposer*>& proposers);

// Whether a proposer's samples of one request may end with this one: it is verified, and beats what was to be
// expected. That is the best that others have found for it; where they have nothing verified, the mean of
// this proposer's own verified samples, of which there must be one (SpecGen's rule). Measured times beat
// measured ones, modelled ones modelled ones by more than the model's error.
class Expectation {
 public:
  // One of this proposer's judged samples, the best of others (null: nothing) as it is now.
  bool enough(const Judged& sample, const Judged* others);

 private:
  double sum_ = 0;  // of its verified samples' times
  int verified_ = 0;
};

// Ends at the deadline, when everything was tried, or at an interrupt: what was found until then is the
// answer. On a CPU, where a verdict takes all cores, one is made after the other.
//
// A proposer's samples are requested at once, and each is judged as soon as it is there, while others are
// being written. What is still being written when one is enough (Expectation) is cancelled.
Outcome search(Evaluator& evaluator, const Task& task, const std::vector<proposers::Proposer*>& proposers,
               const SearchOptions& options, const std::function<void(const Event&)>& on_event = {});

// A proposer that could not be asked; null where all could.
const Declined* fault_of(const Outcome& outcome);

// The evidence of the attempt that reached the latest stage; null where nothing was tried.
const Judged* furthest(const Outcome& outcome);

}  // namespace nereid::search
