// Covers of a program: disjoint subgraphs that together hold every node, and what they cost.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "nereid/search/subgraphs/partitioner.h"

namespace nereid::search {

inline constexpr double kNever = std::numeric_limits<double>::infinity();  // ms: no kernel is known

// What can stand for a set of nodes, and what it costs.
struct Offer {
  const Subgraph* subgraph = nullptr;
  double ms = 0;
  int tag = -1;       // the caller's
  bool asked = true;  // else `ms` is a lower bound
};

// The cheapest sequence of offers that are disjoint, cover every node, and can be computed in that order;
// empty where there is none. Exact as long as no more than `beam` sets of finished nodes of one size are to
// be looked at.
std::vector<Offer> cheapest_cover(const Partitioner& partitioner, const std::vector<Offer>& offers,
                                  size_t beam = 256);

// The cheapest cover, found by asking for the cost of as few offers as will do. `ask` gives a cost (infinity:
// no kernel is known), or nothing to stop. Empty where no cover is cheaper than `to_beat()`, or it was
// stopped. `soon` gets, before each request, the subgraphs that are likely to be next: all of the cheapest
// cover that are unexplored.
std::vector<Offer> cheapest_cover_lazily(
    const Partitioner& partitioner, std::vector<Offer> offers,
    const std::function<std::optional<double>(const Subgraph&)>& ask, const std::function<double()>& to_beat,
    size_t beam = 256, const std::function<void(const std::vector<const Subgraph*>&)>& soon = {});

double cost_of(const std::vector<Offer>& cover);  // ms

}  // namespace nereid::search
