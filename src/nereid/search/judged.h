// A proposal with its verdict and cost, as it is ranked, reported and stored.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "nereid/proposers/proposer.h"
#include "nereid/search/cost_model.h"
#include "nereid/verify/verdict.h"

namespace nereid::search {

struct Judged {
  std::string proposer{}, variant{}, plan{};
  std::string
      source{};  // of the file with ModelNew, out of an answer where it was one; empty where there is none
  verify::VerdictKind kind = verify::VerdictKind::kError;
  std::string reason{};
  std::string evidence{};                // the verdict in prose, for repairs
  std::string verdict{};                 // JSON, as `nereid verify --json` prints it
  std::optional<verify::Times> times{};  // where a GPU was there
  std::optional<Work> work{};            // of what was traced
  std::vector<proposers::Region> regions{};
  int rank = 0;               // of its proposer: 0 was named first
  bool remembered = false;    // found in the store
  bool sample = true;         // a proposer's own answer; false: what the search made of one
  bool broken_off = false;    // there was no time for a verdict
  double seconds = 0;         // of the verdict
  double traced_seconds = 0;  // of these, until the candidate was traced; 0 if remembered

  bool verified() const { return kind == verify::VerdictKind::kVerified; }
  // What it is ranked by: measured, else modelled; nullopt where it was neither.
  std::optional<double> ms() const;
  // Of its launches one by one, without a graph: nearest to what a user who calls it waits for. Measured, or
  // nullopt.
  std::optional<double> launches_ms() const;
};

// What a proposer repairs by (verify/feedback.h).
std::string feedback_of(const Judged& judged);
nlohmann::json to_json(const Work& work);
nlohmann::json to_json(const Judged& judged);  // with verdict and work, without the source
// What a store keeps of it, and back; proposer, variant, plan and source are not part of it.
std::string document_of(const Judged& judged);
Result<Judged> judged_from(const std::string& document);

}  // namespace nereid::search
