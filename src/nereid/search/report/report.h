// What a search found, as one self-contained page: the verdict, times as bars, the module's graph next to the
// kernels that took its place, a table of kernels, everything that was tried, both sources.
#pragma once

#include <string>

#include "nereid/search/baselines.h"
#include "nereid/search/evaluator.h"
#include "nereid/search/search.h"

namespace nereid::search {

struct ReportContext {
  std::string reference{};  // the file's name
  std::string hardware{}, versions{}, policy{};
  Baselines baselines{};
};
std::string report_page(const Task& task, const Outcome& outcome, const ReportContext& about);

}  // namespace nereid::search
