// The search over subgraphs: DRTriton's (arXiv 2025, test-time search over contiguous subgraphs of at most
// five operators), over convex sets of the graph in place of runs of its text.
//
// Each (subgraph, proposal) is verified and timed once; the best set of disjoint subgraphs that covers the
// program is found by dynamic programming over what they cost, and the whole is verified and timed like any
// proposal. An unexplored subgraph counts with its lower bound of cost: only those in the
// cheapest cover are worth a question, the one with the most to gain first, and where that cover holds none
// of them, or is no cheaper than what there is, there is nothing left to find.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "nereid/search/evaluator.h"
#include "nereid/search/subgraphs/cover.h"
#include "nereid/search/subgraphs/partitioner.h"

namespace nereid::search {

struct SubgraphOptions {
  Deadline deadline = Deadline::after(60);
  size_t max_nodes = 5;
  size_t max_subgraphs = 400;
  bool first_is_enough = false;  // no more requests once a program is verified
  int samples = 1;               // at most so many answers of a proposer that samples, to one subgraph
  std::shared_ptr<Timeline> timeline{};  // of the whole search
  // Requests answers to the program as it is written that were not requested yet: of round 0, those that a
  // search kept back; of later rounds, as of proposers::Request. May be empty.
  std::function<void(int round)> request_whole{};
};

// Rounds after round 0, while nothing is verified.
inline constexpr int kRounds = 3;

// What the requests took, and which proposer could not be called.
struct SubgraphFindings {
  proposers::Cost cost{};
  bool all_tried = true;  // no request was left: neither time nor an interrupt ended it
  std::string faulty{};
  std::optional<Error> fault{};
};

// A subgraph is proposed for as a whole program is, but the first sample goes alone: only where no kernel is
// verified then are the others requested, at once, and the first verified one ends them. Subgraphs that are
// likely to be next are requested in advance, so that a language model writes many side by side.
//
// While nothing is verified, it goes from cheap to expensive, each stage only where those before it have not
// made a whole program: the program rewritten from its trace, whole, in the canonical form of subgraphs (a
// small model depends on the style that it was trained on: names in place of sizes may be enough to mislead
// it), greedily; each line of it; its single operators, and then their canonical forms
// (Partitioner::alternative_sources), greedily too; what failed in simpler steps (render/apart), greedily;
// single operators, and the simpler steps, with all samples; the other samples of
// the program's own text, then of the rewritten one; what failed alone with its neighbours; all that failed
// in canonical form; and in further rounds. Canonical forms go to proposers that sample and cost nothing:
// others read a text as it is.
//
// Asks, judges and composes until the deadline, an interrupt, or until nothing is left to gain. `whole`
// judges composed programs, of which each ought to be faster than `to_beat` (infinity while there is
// nothing).
SubgraphFindings search_subgraphs(Evaluator& evaluator, const Task& task,
                                  const std::vector<proposers::Proposer*>& proposers,
                                  const SubgraphOptions& options,
                                  const std::function<void(const proposers::Proposal& proposal)>& whole,
                                  const std::function<double()>& to_beat,
                                  const std::function<void(const std::string&)>& say);

}  // namespace nereid::search
