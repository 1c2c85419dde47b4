// What is judged: a reference's source and a candidate's text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"

namespace nereid::verify {

struct TraceAnalysis;

// What a pair sets in place of the run's Settings; nothing: as the run has it. docs/batch_protocol.md says
// what a line calls them.
struct PairSettings {
  std::string policy{}, device{}, protocol{};  // empty: none
  std::optional<uint64_t> trials{}, seed{};
  std::optional<double> time_limit{}, verdict_limit{}, rtol{}, atol{};
  std::optional<bool> allow_tf32{}, fast_inputs{}, shrink{}, ignore_rules{};
};

struct Pair {
  enum class Form { kSource, kAnswer, kEither };  // what the candidate's text is; see answer.h
  std::string reference_name{}, reference_source{};
  std::string candidate_name{}, candidate_text{};
  Form form = Form::kEither;
  PairSettings settings{};
  std::set<std::string> forbid{};          // remarks that are refused, besides those of the run
  std::map<std::string, int64_t> sizes{};  // module-level integers in place of those of both files
  std::string trace{};  // what Verdict::trace said of the candidate before; another one now is Disallowed
  Deadline deadline =
      Deadline::never();  // where it passes first, the verdict is an Error by the rule "budget"
  // Is given the candidate's first trace, where it was traced at its own sizes.
  std::function<void(const TraceAnalysis&)> traced{};
};

// Reads both files. A candidate that ends in .py is source, any other a raw answer. A candidate that is not
// there is an error blamed on the input; one that is too long is cut just past the limit, so that its verdict
// says so.
Result<Pair> read_pair(const std::filesystem::path& reference, const std::filesystem::path& candidate);

// A candidate's file alone, into `pair`.
Status read_candidate(const std::filesystem::path& path, Pair& pair);
// With the files of its package and folder that it imports (base/program/included_files.h).
Status read_reference(const std::filesystem::path& path, Pair& pair);

}  // namespace nereid::verify
