// What proposers answer about subgraphs: requested, judged, and known from then on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/search/evaluator.h"
#include "nereid/search/subgraphs/partitioner.h"
#include "nereid/search/subgraphs/subgraph_search.h"

namespace nereid::search {

// The fastest verified kernel for one subgraph's source; `candidate` is empty where no proposer has one.
struct SubgraphKernel {
  double ms = kNever;
  std::string candidate{}, proposer{};
};

// The first sample of each proposer goes alone; the others are requested only where no kernel is verified. It
// holds references to all that it is made of.
class SubgraphAnswers {
 public:
  SubgraphAnswers(Evaluator& evaluator, const std::vector<proposers::Proposer*>& proposers,
                  const SubgraphOptions& options, const std::function<void(const std::string&)>& say)
      : evaluator_(evaluator), proposers_(proposers), options_(options), say_(say) {}

  // Whether there is time.
  bool go_on() const;
  // Canonical forms of subgraphs go to proposers that sample and cost nothing.
  static bool reads_rewritten_source(const proposers::Proposer& proposer) {
    return proposer.samples() && !proposer.paid();
  }

  // Subgraphs of equal source are one. `known` is nullptr until a source's answers are judged.
  const SubgraphKernel* known(const Subgraph& subgraph) const;
  size_t size() const { return known_.size(); }
  SubgraphFindings& findings() { return findings_; }
  const SubgraphFindings& findings() const { return findings_; }

  // The milliseconds of its kernel, kNever where none is verified; nothing where there was no time.
  std::optional<double> ask(const Subgraph& subgraph);
  // About all of them, in parallel: first greedily, then (`sampled`) with more samples where that is not
  // enough. False where there was no time.
  bool request_all(std::vector<const Subgraph*> subgraphs, bool sampled);
  // All of them once more: the samples of a later round, for the canonical forms. False where `is_enough`
  // after one of them, or there was no time.
  bool request_round(std::vector<const Subgraph*> subgraphs, int round,
                     const std::function<bool()>& is_enough);
  // Requests first answers, so that a language model writes many in parallel; nothing is judged.
  void prefetch_answers(const std::vector<const Subgraph*>& subgraphs);

 private:
  // A subgraph as a task (none where it cannot be traced), and the answers that were requested. The task goes
  // last.
  struct Pending {
    std::unique_ptr<const Task> task{};
    std::map<proposers::Proposer*, std::unique_ptr<proposers::Answers>> first{}, others{};
  };

  void report_subgraph(const Subgraph& subgraph) const;
  void settle(const Subgraph& subgraph, SubgraphKernel kernel);
  Pending& pending_of(const Subgraph& subgraph);
  Pending traced(const Subgraph& subgraph);
  SubgraphKernel first(Pending& pending);
  void request_others(Pending& pending);
  SubgraphKernel others(Pending& pending);
  std::vector<int> samples(int from) const;
  void judge_answers(proposers::Proposer& proposer, const Task& task, proposers::Answers& answers,
                     SubgraphKernel& kernel, bool one_is_enough);
  std::optional<Judged> in_another_way(proposers::Proposer& proposer, const Task& task, const Judged& failed);
  void fail(const proposers::Proposer& proposer, const Error& error);

  Evaluator& evaluator_;
  const std::vector<proposers::Proposer*>& proposers_;
  const SubgraphOptions& options_;
  const std::function<void(const std::string&)>& say_;
  std::map<std::string, SubgraphKernel> known_{};  // by source
  std::map<std::string, Pending> pending_{};       // by source
  SubgraphFindings findings_{};
};

}  // namespace nereid::search
