// The search over fragments: DRTriton's (arXiv 2025, test-time search over contiguous fragments of at most
// five operators), over convex sets of the graph in place of runs of its text.
//
// Each (fragment, proposal) is verified and timed once; the best set of disjoint fragments that covers the
// program is found by dynamic programming over what they cost; the whole is verified and timed like any
// proposal, and what is left of the budget goes to the fragment that has the most to gain.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "nereid/search/bench.h"
#include "nereid/search/slicer.h"

namespace nereid::search {

// What can stand for a set of nodes, and what it costs.
struct Offer {
  const Fragment* fragment = nullptr;
  double ms = 0;
  int tag = -1;  // the caller's
};

// The cheapest sequence of offers that are disjoint, cover every node, and can be computed in that order;
// empty where there is none. Exact as long as no more than `beam` sets of finished nodes of one size are to
// be looked at.
std::vector<Offer> cheapest_cover(const Slicer& slicer, const std::vector<Offer>& offers, size_t beam = 256);

struct FragmentOptions {
  Deadline deadline = Deadline::after(60);
  size_t most_nodes = 5;
  size_t most_fragments = 400;
};

// Asks, judges and composes until the deadline, an interrupt, or until nothing is left to gain. `whole` is
// given each composed program that ought to be faster than the one before, judges it, and says whether it was
// verified.
void search_fragments(Bench& bench, const Task& task, const std::vector<policy::Proposer*>& proposers,
                      const FragmentOptions& options,
                      const std::function<bool(const policy::Proposal& proposal, double modelled_ms)>& whole,
                      const std::function<void(const std::string&)>& say);

}  // namespace nereid::search
