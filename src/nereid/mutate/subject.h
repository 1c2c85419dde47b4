// What mutants are made of: a verified candidate and its reference, as traces.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::mutate {

struct Subject {
  std::string id;       // unique in a run: "honest/gelu_erf", "L5-s0-17-v0"
  std::string policy;   // of its verdict; empty: the run's
  bool mutated = true;  // false: only judged, as an honest variant
  std::shared_ptr<const trace::Trace> reference, candidate;
};

// A folder of subjects: subjects.jsonl, a line each ({"id", "policy", "mutated", "reference": FILE,
// "candidate": FILE}), and the traces that it names, each once, as trace::save writes them. No Python is
// needed to use one.
inline constexpr const char* kSubjectsFile = "subjects.jsonl";
Status save_subjects(const std::vector<Subject>& subjects, const std::filesystem::path& folder);
Result<std::vector<Subject>> load_subjects(const std::filesystem::path& folder);

}  // namespace nereid::mutate
