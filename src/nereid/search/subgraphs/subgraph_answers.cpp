#include "nereid/search/subgraphs/subgraph_answers.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "nereid/base/program/interrupt.h"
#include "nereid/search/fall_back.h"

namespace nereid::search {
namespace {

constexpr double kSubgraphSeconds = 30;
constexpr size_t kMaxPrefetched = 64;

}  // namespace

bool SubgraphAnswers::go_on() const { return !interrupted() && !options_.deadline.passed(); }

const SubgraphKernel* SubgraphAnswers::known(const Subgraph& subgraph) const {
  const auto found = known_.find(subgraph.source);
  return found == known_.end() ? nullptr : &found->second;
}

bool SubgraphAnswers::request_all(std::vector<const Subgraph*> subgraphs, bool sampled) {
  std::set<std::string_view> sources;
  std::erase_if(subgraphs, [&](const Subgraph* f) { return !sources.insert(f->source).second; });
  std::vector<const Subgraph*> open;
  prefetch_answers(subgraphs);
  for (const Subgraph* subgraph : subgraphs) {
    if (known_.contains(subgraph->source)) continue;
    if (!go_on()) return false;
    prefetch_answers(subgraphs);
    report_subgraph(*subgraph);
    Pending& pending = pending_of(*subgraph);
    if (SubgraphKernel kernel = first(pending); !kernel.candidate.empty() || !pending.task)
      settle(*subgraph, std::move(kernel));
    else
      open.push_back(subgraph);
  }
  if (!sampled) return go_on();
  for (const Subgraph* subgraph : open) request_others(pending_of(*subgraph));
  for (const Subgraph* subgraph : open) {
    report_subgraph(*subgraph);
    SubgraphKernel kernel = others(pending_of(*subgraph));
    if (!go_on() && kernel.candidate.empty()) return false;
    settle(*subgraph, std::move(kernel));
  }
  return go_on();
}

bool SubgraphAnswers::request_round(std::vector<const Subgraph*> subgraphs, int round,
                                    const std::function<bool()>& is_enough) {
  std::set<std::string_view> sources;
  std::erase_if(subgraphs, [&](const Subgraph* f) { return !sources.insert(f->source).second; });
  const auto ask_about = [&](size_t i) {
    Pending pending = i < subgraphs.size() && go_on() ? traced(*subgraphs[i]) : Pending();
    for (auto* proposer : proposers_)
      if (pending.task && reads_rewritten_source(*proposer))
        pending.others[proposer] = evaluator_.request_samples(*proposer, *pending.task, samples(1), round);
    return pending;
  };
  Pending next = ask_about(0);
  for (size_t i = 0; i < subgraphs.size(); ++i) {
    Pending pending = std::move(next);
    next = ask_about(i + 1);  // written while this one is judged
    say_(fmt::format("subgraph of {} operators, round {}", subgraphs[i]->nodes.count(), round + 1));
    SubgraphKernel kernel;
    for (auto& [proposer, answers] : pending.others)
      if (kernel.candidate.empty()) judge_answers(*proposer, *pending.task, *answers, kernel, true);
    if (!kernel.candidate.empty()) known_[subgraphs[i]->source] = std::move(kernel);
    if (is_enough() || !go_on()) return false;
  }
  return go_on();
}

std::optional<double> SubgraphAnswers::ask(const Subgraph& subgraph) {
  if (const auto found = known_.find(subgraph.source); found != known_.end()) return found->second.ms;
  if (!go_on()) return std::nullopt;
  report_subgraph(subgraph);
  Pending& pending = pending_of(subgraph);
  SubgraphKernel kernel = first(pending);
  if (kernel.candidate.empty()) {
    request_others(pending);
    kernel = others(pending);
  }
  if (!go_on() && kernel.candidate.empty()) return std::nullopt;
  const double ms = kernel.ms;
  settle(subgraph, std::move(kernel));
  return ms;
}

void SubgraphAnswers::report_subgraph(const Subgraph& subgraph) const {
  say_(fmt::format("subgraph {}, of {} operator{}", known_.size() + 1, subgraph.nodes.count(),
                   subgraph.nodes.count() == 1 ? "" : "s"));
}

void SubgraphAnswers::settle(const Subgraph& subgraph, SubgraphKernel kernel) {
  pending_.erase(subgraph.source);
  known_[subgraph.source] = std::move(kernel);
}

SubgraphAnswers::Pending& SubgraphAnswers::pending_of(const Subgraph& subgraph) {
  const auto found = pending_.find(subgraph.source);
  return found != pending_.end() ? found->second
                                 : pending_.emplace(subgraph.source, traced(subgraph)).first->second;
}

SubgraphAnswers::Pending SubgraphAnswers::traced(const Subgraph& subgraph) {
  auto task =
      evaluator_.trace("subgraph.py", subgraph.source, Deadline::after(kSubgraphSeconds), options_.timeline);
  Pending pending{};
  if (task.ok()) pending.task = *std::move(task);
  return pending;
}

void SubgraphAnswers::prefetch_answers(const std::vector<const Subgraph*>& subgraphs) {
  for (const Subgraph* subgraph : subgraphs) {
    if (pending_.size() >= kMaxPrefetched || !go_on()) return;
    if (known_.contains(subgraph->source) || pending_.contains(subgraph->source)) continue;
    for (auto* proposer : proposers_) {
      if (!proposer->samples() || proposer->paid()) continue;
      Pending& pending = pending_of(*subgraph);
      if (pending.task) pending.first[proposer] = evaluator_.request_samples(*proposer, *pending.task, {0});
    }
  }
}

// The first answers of all proposers that cost nothing.
SubgraphKernel SubgraphAnswers::first(Pending& pending) {
  SubgraphKernel kernel;
  if (!pending.task) return kernel;
  for (auto* proposer : proposers_) {
    if (proposer->paid()) continue;
    auto& answers = pending.first[proposer];
    if (!answers) answers = evaluator_.request_samples(*proposer, *pending.task, {0});
    judge_answers(*proposer, *pending.task, *answers, kernel, false);
  }
  return kernel;
}

// More samples, where no first answer was good.
void SubgraphAnswers::request_others(Pending& pending) {
  if (!pending.task || !go_on() || options_.samples < 2) return;
  for (auto* proposer : proposers_)
    if (proposer->samples() && !proposer->paid())
      pending.others[proposer] = evaluator_.request_samples(*proposer, *pending.task, samples(1));
}
// One that costs money is called where the others have nothing.
SubgraphKernel SubgraphAnswers::others(Pending& pending) {
  SubgraphKernel kernel;
  if (!pending.task) return kernel;
  for (auto& [proposer, answers] : pending.others)
    if (kernel.candidate.empty()) judge_answers(*proposer, *pending.task, *answers, kernel, true);
  for (auto* proposer : proposers_)
    if (proposer->paid() && kernel.candidate.empty() && go_on())
      judge_answers(*proposer, *pending.task,
                    *evaluator_.request_samples(*proposer, *pending.task,
                                                proposer->samples() ? samples(0) : std::vector<int>{0}),
                    kernel, true);
  return kernel;
}
std::vector<int> SubgraphAnswers::samples(int from) const {
  std::vector<int> samples;
  for (int sample = from; sample < std::max(1, options_.samples); ++sample) samples.push_back(sample);
  return samples;
}

void SubgraphAnswers::judge_answers(proposers::Proposer& proposer, const Task& task,
                                    proposers::Answers& answers, SubgraphKernel& kernel, bool one_is_enough) {
  while (go_on() && !(one_is_enough && !kernel.candidate.empty())) {
    const auto next = answers.next(options_.deadline);
    if (!next.ok()) return fail(proposer, next.error());
    if (!*next) return;
    findings_.cost += (*next)->answer.cost;
    for (const auto& proposal : (*next)->answer.proposals) {
      Judged judged = evaluator_.judge(task, std::string(proposer.name()), proposal, options_.deadline);
      if (!judged.verified())
        if (auto other = in_another_way(proposer, task, judged)) judged = *std::move(other);
      if (!judged.verified() || !judged.ms() || *judged.ms() >= kernel.ms) continue;
      kernel = {.ms = *judged.ms(), .candidate = judged.source, .proposer = std::string(proposer.name())};
    }
  }
}

std::optional<Judged> SubgraphAnswers::in_another_way(proposers::Proposer& proposer, const Task& task,
                                                      const Judged& failed) {
  if (!go_on() || !failure_of(failed)) return std::nullopt;
  const auto ways = proposer.fallback({.name = task.name, .source = task.source, .trace = &task.trace});
  if (!ways) return std::nullopt;
  return fall_back(*ways, failed, [&](const proposers::Proposal& proposal) -> std::optional<Judged> {
    if (!go_on()) return std::nullopt;
    return evaluator_.judge(task, std::string(proposer.name()), proposal, options_.deadline);
  });
}

// That there was no time is no fault.
void SubgraphAnswers::fail(const proposers::Proposer& proposer, const Error& error) {
  if (findings_.fault || !go_on()) return;
  findings_.fault = error, findings_.faulty = proposer.name();
}

}  // namespace nereid::search
