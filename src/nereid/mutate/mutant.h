// Mutants of a subject: its candidate's trace with one fault each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nereid/mutate/faults/fault.h"
#include "nereid/mutate/subject.h"

namespace nereid::mutate {

struct Mutant {
  Fault fault{};
  std::string what;                        // one line: "a load without its mask"
  std::string kernel, file;                // where there is one
  int line = 0;                            // of the source; 0 where it is not known
  std::string source;                      // that line
  std::vector<std::string> before, after;  // the lines of the kernel or the step that differ
  // Of a fault in one of several configurations: the launch (its step in the judged forward) and the
  // configuration.
  int step = -1, alternative = 0;
  std::function<void(trace::Trace&)> apply;
};

// At most `most`, drawn by `seed`, of as many classes as there are. Every kernel that they hold can be
// loaded.
std::vector<Mutant> mutants_of(const Subject& subject, uint64_t seed, int most);

// At most `most` edits that keep what the candidate computes up to rounding.
std::vector<Mutant> rewrites_of(const Subject& subject, uint64_t seed, int most);

trace::Trace applied(const Subject& subject, const Mutant& mutant);

// Faults of the judged forward's launches and calls, in every forward that has the same step
// (trace_faults.cpp).
std::vector<Mutant> trace_faults(const trace::Trace& trace);

// The last forward; and in every forward the step that is as far from its end as `step` is in the last.
const trace::Phase& judged_phase(const trace::Trace& trace);
void in_every_forward(trace::Trace& trace, int step,
                      const std::function<void(trace::Phase&, size_t step)>& change);

}  // namespace nereid::mutate
