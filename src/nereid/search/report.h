// What a search found, as one self-contained page: the verdict, times as bars, the module's graph beside the
// kernels that took its place, a table of kernels, everything that was tried, both sources.
#pragma once

#include <string>

#include "nereid/search/baselines.h"
#include "nereid/search/bench.h"
#include "nereid/search/search.h"

namespace nereid::search {

struct ReportAbout {
  std::string reference{};  // the file's name
  std::string hardware{}, versions{}, policy{};
  Baselines baselines{};
};
std::string report_page(const Task& task, const Outcome& outcome, const ReportAbout& about);

// The reference's last forward as an SVG: a box a step, in rows by how far it is from the inputs; views are
// left out, and what is behind the first `most` steps is only counted.
std::string graph_svg(const Task& task, size_t most = 120);

}  // namespace nereid::search
