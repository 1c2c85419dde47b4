// A run of mutation testing: subjects judged, mutants made of those that are Verified, each mutant judged and
// a witness of its fault looked for.
//
// Results are appended to results.jsonl as they come, each line whole; a run with the same settings goes on
// where another stopped. Which mutants there are follows from the subjects and the settings alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/program/progress.h"
#include "nereid/mutate/result_line.h"
#include "nereid/mutate/subject.h"
#include "nereid/replay/host/client.h"
#include "nereid/verify/stages/pipeline.h"

namespace nereid::mutate {

struct CampaignOptions {
  std::filesystem::path folder;  // of the results
  uint64_t seed = 0;
  int jobs = 1;
  int mutants_each = 60;               // of a subject at most
  int rewrites_each = 4;               // likewise, judged as honest variants
  int64_t limit = 0;                   // mutants judged in all; 0: all of them
  double slowest = 2;                  // seconds that a subject's own verdict may take to be mutated
  double time_limit = 10;              // of each phase of a replay
  std::vector<Fault> faults = {};      // empty: all
  Deadline until = Deadline::never();  // the run ends then, with what is judged
};

// What is mutated: made one at a time, in several threads, so that tracing and verification overlap.
struct Source {
  std::string id;
  std::function<Result<std::vector<Subject>>(Deadline)> load;
};

struct CampaignEnd {
  std::vector<ResultLine> results;      // of this run and of those before
  std::vector<Subject> subjects;        // that are Verified, where they were asked for
  std::vector<std::string> not_loaded;  // sources without subjects, and why
  int64_t slow = 0;                     // subjects not mutated because their own verdict takes too long
  int64_t left = 0;                     // mutants that are not judged yet
  int64_t sources_left = 0;             // sources that are not loaded, or not judged, for want of time
  bool interrupted = false;
};

// An Error is a fault of ours that no single mutant is to blame for (a full disk, results of other settings).
Result<CampaignEnd> run_campaign(const std::vector<Source>& sources, const CampaignOptions& options,
                                 bool keep_subjects);

}  // namespace nereid::mutate
