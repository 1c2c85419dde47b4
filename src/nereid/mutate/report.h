// What a run found: by class of faults how many witnessed mutants the verdict killed, with what KernelBench's
// published check kills of the same, and the honest variants that were refused.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/mutate/campaign.h"

namespace nereid::mutate {

// Of k among n: the share and its interval of 95 % (Wilson 1927), each from 0 to 1. All 0 of none.
struct Share {
  double value = 0, low = 0, high = 0;
};
Share wilson(int64_t k, int64_t n);

struct Row {
  int64_t mutants = 0, set_aside = 0;  // of all: without a witness
  int64_t witnessed = 0, killed = 0;
  int64_t kernelbench_kills = 0, kernelbench_passes = 0;  // of those witnessed
  int64_t errors = 0;                                     // neither killed nor survived: an Error of ours
  int64_t refused_unseen = 0;                             // set aside, and not Verified all the same
};

struct Report {
  std::map<Fault, Row> rows;
  Row all;
  int64_t kernels = 0;                       // candidates that were mutated
  int64_t honest = 0, honest_errors = 0;     // judged; of these an Error
  std::vector<const ResultLine*> refused;    // honest, and neither Verified nor an Error
  std::vector<const ResultLine*> survivors;  // witnessed and Verified
  std::map<std::string, int64_t> killed_by;  // the rule that killed
};
// Refers to the results.
Report report_of(const std::vector<ResultLine>& results);

nlohmann::json to_json(const Report& report);
std::string text_table(const Report& report);
std::string html_page(const Report& report, const CampaignEnd& end);

}  // namespace nereid::mutate
