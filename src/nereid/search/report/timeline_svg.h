// A picture of a search's time: when a language model wrote each answer, and when the judge was busy.
#pragma once

#include <string>
#include <vector>

#include "nereid/search/timeline.h"

namespace nereid::search {

// Two strips, of everything that was written and judged, with their shares of the time; below them a row for
// each answer that was written, the first `most` of them. Empty where no language model wrote.
std::string timeline_svg(const std::vector<Span>& spans, double seconds, size_t most = 40);

}  // namespace nereid::search
