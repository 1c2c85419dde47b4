// Pictures for a report: the module's graph with its fused regions, and the launches that took their place.
// A region has one number and one colour in both.
#pragma once

#include <string>
#include <vector>

#include "nereid/proposers/proposer.h"
#include "nereid/search/evaluator.h"

namespace nereid::search {

// The reference's last forward: a box a step, in rows by how far it is from the inputs; views are left out,
// and what is after the first `most` steps is only counted. Where the steps of one region follow each other,
// a band joins them.
std::string graph_svg(const Task& task, const std::vector<proposers::Region>& regions, size_t most = 120);

// The steps of `work` one below the other, Triton's framed.
std::string steps_svg(const Work& work, const std::vector<proposers::Region>& regions);

}  // namespace nereid::search
