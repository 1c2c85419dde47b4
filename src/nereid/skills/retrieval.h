// Which skills are for a task: BM25 (bm25.h) over a skill's operators, tags, name, `when` and text, times
// what the skill was measured to gain.
#pragma once

#include <string>
#include <vector>

#include "nereid/skills/library.h"
#include "nereid/trace/trace.h"

namespace nereid::skills {

inline constexpr size_t kMaxOffered = 20;

// Operators of the last forward that do work, once each, in order: "softmax" of "aten::_softmax".
std::vector<std::string> operators_of(const trace::Trace& trace);

// What is asked for a traced task: its operators, their classes ("normalisation") and dtypes ("bf16").
std::string query_of(const trace::Trace& trace);

// SHA-256 of the last forward's operators with the shapes and dtypes of their tensors: equal for two files
// that do the same, whatever their names and texts.
std::string forward_signature(const trace::Trace& trace);

// An admitted skill and what was measured of it.
struct Rated {
  Entry entry{};
  Worth worth{};
};

struct Found {
  size_t index = 0;  // in the list that was searched
  double bm25 = 0;
  double score = 0;  // bm25 times worth.speedup
};

// Those with a score above 0, the best first, at most `most`; equal ones by name.
std::vector<Found> search(const std::vector<Rated>& skills, const std::string& query,
                          size_t most = kMaxOffered);

// All admitted skills with their worth.
Result<std::vector<Rated>> rated(Library& library);

}  // namespace nereid::skills
