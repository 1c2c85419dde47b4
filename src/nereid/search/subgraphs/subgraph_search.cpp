#include "nereid/search/subgraphs/subgraph_search.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "nereid/base/program/interrupt.h"
#include "nereid/render/apart/steps_apart.h"
#include "nereid/search/subgraphs/subgraph_answers.h"

namespace nereid::search {
namespace {

constexpr double kImproved = 0.98;    // of the last composed program's cost: less is worth another verdict
constexpr size_t kComposeEvery = 8;   // questions
constexpr size_t kMaxPerLine = 20;    // nodes: a recurrent cell in its calls
constexpr size_t kLinesOfAWhole = 5;  // in the reference's file: as many calls as they take are one question
constexpr double kLastResort =
    1e9;  // ms: while nothing is verified, PyTorch's work is what a policy most often refuses

// The sets of nodes that a search asks about.
enum class Sets : uint8_t { kAll, kSingleNodes };

class SubgraphSearch {
 public:
  SubgraphSearch(Evaluator& evaluator, const Task& task, const std::vector<proposers::Proposer*>& proposers,
                 const SubgraphOptions& options, const Partitioner& partitioner,
                 const std::function<void(const proposers::Proposal&)>& whole,
                 const std::function<double()>& to_beat, SubgraphAnswers& answers, Sets sets = Sets::kAll)
      : evaluator_(evaluator),
        task_(task),
        proposers_(proposers),
        options_(options),
        partitioner_(partitioner),
        whole_(whole),
        to_beat_(to_beat),
        answers_(answers) {
    const bool all = sets == Sets::kAll;
    for (auto& subgraph :
         partitioner.subgraphs(all ? options.max_nodes : 1, all ? options.max_subgraphs : kMaxNodes))
      subgraphs_.push_back(std::move(subgraph));
    for (size_t n = 0; n < partitioner.nodes(); ++n) alone_.push_back(partitioner.alone(n));
    if (!all) return;
    for (auto& line : partitioner.lines_as_subgraphs(kMaxPerLine)) {
      lines_.push_back(line.nodes);
      const auto there = [&](const Subgraph& subgraph) { return subgraph.nodes == line.nodes; };
      if (std::none_of(subgraphs_.begin(), subgraphs_.end(), there)) subgraphs_.push_back(std::move(line));
    }
  }

  SubgraphFindings run() {
    if (partitioner_.nodes() < 2 && !rewrites_source()) return {};
    if (!found()) {
      find_any();
      answers_.findings().all_tried = answers_.go_on();
    }
    if (partitioner_.nodes() < 2 || (options_.first_is_enough && found()))
      return std::move(answers_.findings());
    const auto asked = [this](const Subgraph& subgraph) { return ask(subgraph); };
    const auto worth = [this] { return std::min(to_beat_(), composed_ms_) * kImproved; };
    const auto cover = cheapest_cover_lazily(
        partitioner_, offers(true), asked, worth, beam(),
        [this](const std::vector<const Subgraph*>& soon) { answers_.prefetch_answers(soon); });
    compose(cover.empty() ? cheapest_cover(partitioner_, offers(false), beam()) : cover);
    return std::move(answers_.findings());
  }

 private:
  // While there is nothing: subgraph_search.h has the stages' order.
  void find_any() {
    if (rewrites_source()) {
      if (!answers_.request_all(unsolved_lines(), false) || compose_and_judge()) return;
    }
    std::vector<const Subgraph*> lines, single, larger;
    Nodes in_lines;
    for (const Nodes& line : lines_) in_lines |= line;
    for (const auto& subgraph : subgraphs_) {
      if (&subgraph == whole_program_) continue;
      const bool alone = subgraph.nodes.count() == 1;
      const bool line = alone ? (subgraph.nodes & in_lines).none()
                              : std::find(lines_.begin(), lines_.end(), subgraph.nodes) != lines_.end();
      if (line) lines.push_back(&subgraph);
      (alone ? single : larger).push_back(&subgraph);
    }
    if (!answers_.request_all(lines, false) || compose_and_judge()) return;
    if (!answers_.request_all(having(single, without_kernel()), false) || compose_and_judge()) return;
    std::vector<Nodes> alone;
    for (const Subgraph* subgraph : single) alone.push_back(subgraph->nodes);
    std::vector<const Subgraph*> otherwise = alternative_sources(alone);
    if (!answers_.request_all(otherwise, false) || compose_and_judge() || found_apart(false)) return;
    if (!answers_.request_all(having(single, without_kernel()), true) || compose_and_judge() ||
        found_apart(true))
      return;
    if (options_.request_whole) options_.request_whole(0);
    if (found() || !answers_.request_all(unsolved_lines(), true) || compose_and_judge()) return;
    with_neighbours(std::move(larger));
    if (compose_and_judge()) return;
    compose(cheapest_cover(partitioner_, offers(false),
                           beam()));  // the rest stays PyTorch's, which a policy may let pass
    if (found() || !answers_.go_on() || !rewrites_source()) return;
    std::vector<Nodes> more = lines_;
    if (whole_program_ != nullptr) more.push_back(whole_program_->nodes);
    for (const Subgraph* subgraph : alternative_sources(more)) otherwise.push_back(subgraph);
    if (!answers_.request_all(otherwise, true) || compose_and_judge()) return;
    for (int round = 1; round <= kRounds && answers_.go_on(); ++round) {
      if (options_.request_whole) options_.request_whole(round);
      if (found()) return;
      std::vector<const Subgraph*> failed = unsolved_lines();
      for (const std::vector<const Subgraph*>* list :
           {&std::as_const(single), &std::as_const(lines), &std::as_const(otherwise)}) {
        const auto own = having(*list, without_kernel());
        failed.insert(failed.end(), own.begin(), own.end());
      }
      if (!answers_.request_round(failed, round, [this] { return compose_and_judge(); }) ||
          compose_and_judge())
        return;
    }
  }

  // What no proposer solved, in simpler steps (render/apart), each a question of its own; whether the whole
  // is verified then. `sampled`: with all samples, not the first alone.
  bool found_apart(bool sampled) {
    if (!rewrites_source() || !answers_.go_on()) return false;
    const auto steps = partitioner_.steps_of(without_kernel());
    if (!apart_ || apart_->steps != steps) {
      apart_ = std::make_unique<Apart>(Apart{.steps = steps});
      auto trace = render::steps_apart(task_.trace, static_cast<size_t>(task_.facts.judged()), steps);
      if (!trace) return false;
      auto task = evaluator_.with_trace(task_, *std::move(trace));
      if (!task.ok()) return false;
      apart_->task = *std::move(task);
      auto partitioner = Partitioner::cut(*apart_->task);
      if (!partitioner.ok()) return false;
      apart_->partitioner = std::make_unique<Partitioner>(*std::move(partitioner));
      apart_->search = std::make_unique<SubgraphSearch>(evaluator_, *apart_->task, proposers_, options_,
                                                        *apart_->partitioner, whole_, to_beat_, answers_,
                                                        Sets::kSingleNodes);
    }
    return apart_->search != nullptr && apart_->search->found_of_single_steps(sampled);
  }

  // Asks about each step alone, then in other forms; whether the whole is verified then.
  bool found_of_single_steps(bool sampled) {
    std::vector<const Subgraph*> single;
    for (const auto& subgraph : subgraphs_)
      if (subgraph.nodes.count() == 1) single.push_back(&subgraph);
    if (!answers_.request_all(having(single, without_kernel()), false) || compose_and_judge()) return found();
    std::vector<Nodes> alone;
    for (const Subgraph* subgraph : single) alone.push_back(subgraph->nodes);
    const std::vector<const Subgraph*> otherwise = alternative_sources(alone);
    if (!answers_.request_all(otherwise, false) || compose_and_judge() || !sampled) return found();
    if (!answers_.request_all(having(single, without_kernel()), true) || compose_and_judge()) return found();
    return (answers_.request_all(having(otherwise, without_kernel()), true) && compose_and_judge()) ||
           found();
  }

  // What no proposer solved alone, with its neighbours: fewer lines before more.
  void with_neighbours(std::vector<const Subgraph*> larger) {
    std::map<const Subgraph*, std::pair<size_t, size_t>> order;
    for (const Subgraph* subgraph : larger)
      order[subgraph] = {partitioner_.lines(subgraph->nodes), subgraph->nodes.count()};
    std::stable_sort(larger.begin(), larger.end(),
                     [&](const Subgraph* a, const Subgraph* b) { return order[a] < order[b]; });
    for (Nodes missing = without_kernel(); missing.any(); missing = without_kernel()) {
      // One for each missing node at a time: they are written side by side.
      std::vector<const Subgraph*> next;
      Nodes hoped;
      for (const Subgraph* subgraph : larger) {
        if (answers_.known(*subgraph) != nullptr || (subgraph->nodes & missing & ~hoped).none()) continue;
        next.push_back(subgraph);
        hoped |= subgraph->nodes;
      }
      if (next.empty() || !answers_.request_all(next, true)) break;
    }
  }

  // Of these sets those that have none, in canonical form.
  std::vector<const Subgraph*> alternative_sources(const std::vector<Nodes>& sets) {
    std::vector<const Subgraph*> alternatives;
    if (!rewrites_source()) return alternatives;
    const Nodes missing = without_kernel();
    for (const Nodes& set : sets) {
      if ((set & missing).none()) continue;
      for (auto& subgraph : partitioner_.alternative_sources(set))
        alternatives.push_back(&subgraphs_.emplace_back(std::move(subgraph)));
    }
    return alternatives;
  }

  static std::vector<const Subgraph*> having(std::vector<const Subgraph*> subgraphs, const Nodes& nodes) {
    std::erase_if(subgraphs, [&](const Subgraph* subgraph) { return (subgraph->nodes & nodes).none(); });
    return subgraphs;
  }

  bool rewrites_source() const {
    return !answers_.findings().fault &&
           std::any_of(proposers_.begin(), proposers_.end(), [](const auto* proposer) {
             return SubgraphAnswers::reads_rewritten_source(*proposer);
           });
  }

  // The whole program rewritten from its trace, where it is not too large for the proposer; else nothing.
  std::vector<const Subgraph*> unsolved_lines() {
    int most = 0;
    for (const auto* proposer : proposers_)
      if (SubgraphAnswers::reads_rewritten_source(*proposer))
        most = std::max(most, proposer->max_operators());
    if (whole_program_ == nullptr && (static_cast<int>(partitioner_.nodes()) <= most ||
                                      partitioner_.lines(partitioner_.all()) <= kLinesOfAWhole))
      if (auto whole = partitioner_.whole()) whole_program_ = &subgraphs_.emplace_back(*std::move(whole));
    return whole_program_ == nullptr ? std::vector<const Subgraph*>()
                                     : std::vector<const Subgraph*>{whole_program_};
  }

  bool found() const { return to_beat_() != kNever; }

  // The cheapest program of what has a kernel, judged, where these are enough for one; whether one is
  // verified.
  bool compose_and_judge() {
    if (without_kernel().none()) compose(cheapest_cover(partitioner_, offers(false), beam()));
    return found();
  }

  // Nodes that compute, and that no subgraph with a kernel has.
  Nodes without_kernel() const {
    Nodes missing = partitioner_.all();
    for (const auto& offer : offers(false))
      if (offer.tag >= 0) missing &= ~offer.subgraph->nodes;
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!partitioner_.computes(n)) missing &= ~alone_[n].nodes;
    return missing;
  }

  size_t beam() const { return partitioner_.nodes() > 64 ? 32 : 256; }

  std::optional<double> ask(const Subgraph& subgraph) {
    const bool is_new = answers_.known(subgraph) == nullptr;
    const auto ms = answers_.ask(subgraph);
    if (is_new && ms && answers_.size() % kComposeEvery == 0)
      compose(cheapest_cover(partitioner_, offers(false), beam()));
    return ms;
  }

  // Of every subgraph that has a kernel, or (`optimistic`) may have one; and of the steps as they are, where
  // the policy lets them stay PyTorch's.
  std::vector<Offer> offers(bool optimistic) const {
    std::vector<Offer> offers;
    for (size_t i = 0; i < subgraphs_.size(); ++i) {
      const SubgraphKernel* kernel = answers_.known(subgraphs_[i]);
      if (kernel != nullptr ? !kernel->candidate.empty() : optimistic)
        offers.push_back({.subgraph = &subgraphs_[i],
                          .ms = kernel != nullptr ? kernel->ms : subgraphs_[i].min_ms,
                          .tag = static_cast<int>(i),
                          .asked = kernel != nullptr});
    }
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!partitioner_.is_reserved(n, evaluator_.settings().policy))
        offers.push_back(
            {.subgraph = &alone_[n],
             .ms = alone_[n].eager_ms + (found() || !partitioner_.computes(n) ? 0 : kLastResort)});
    return offers;
  }

  void compose(const std::vector<Offer>& cover) {
    const bool any = std::any_of(cover.begin(), cover.end(), [](const Offer& o) { return o.tag >= 0; });
    const double ms = cost_of(cover);
    if (!any || interrupted() || ms > std::min(to_beat_(), composed_ms_) * kImproved) return;
    composed_ms_ = ms;
    std::vector<Piece> pieces;
    std::string plan;
    std::vector<proposers::Region> regions;
    for (const auto& offer : cover) {
      const SubgraphKernel kernel = offer.tag < 0 ? SubgraphKernel() : *answers_.known(*offer.subgraph);
      const size_t steps = offer.subgraph->nodes.count();
      plan += fmt::format("{} step{}: {}\n", steps, steps == 1 ? "" : "s",
                          offer.tag < 0 ? "PyTorch" : kernel.proposer);
      pieces.push_back({offer.subgraph, kernel.candidate, kernel.proposer});
      const auto done = partitioner_.steps_of(offer.subgraph->nodes);
      if (offer.tag >= 0) regions.push_back({kernel.proposer, {done.begin(), done.end()}});
    }
    auto text = partitioner_.compose(pieces);
    if (text.ok()) whole_({.text = *std::move(text), .plan = std::move(plan), .regions = std::move(regions)});
  }

  Evaluator& evaluator_;
  const Task& task_;
  const std::vector<proposers::Proposer*>& proposers_;
  const SubgraphOptions& options_;
  const Partitioner& partitioner_;
  const std::function<void(const proposers::Proposal&)>& whole_;
  const std::function<double()>& to_beat_;
  std::deque<Subgraph> subgraphs_;  // grows: canonical forms
  std::vector<Subgraph> alone_;
  const Subgraph* whole_program_ = nullptr;  // all of it, canonical
  std::vector<Nodes> lines_;                 // of several nodes each
  SubgraphAnswers& answers_;
  double composed_ms_ = kNever;  // of the last composed program, by its pieces
  // The program with what had no kernel in simpler steps.
  struct Apart {
    std::vector<size_t> steps;  // of this program
    std::unique_ptr<const Task> task{};
    std::unique_ptr<const Partitioner> partitioner{};
    std::unique_ptr<SubgraphSearch> search{};
  };
  std::unique_ptr<Apart> apart_;
};

}  // namespace

SubgraphFindings search_subgraphs(Evaluator& evaluator, const Task& task,
                                  const std::vector<proposers::Proposer*>& proposers,
                                  const SubgraphOptions& options,
                                  const std::function<void(const proposers::Proposal& proposal)>& whole,
                                  const std::function<double()>& to_beat,
                                  const std::function<void(const std::string&)>& say) {
  const auto partitioner = Partitioner::cut(task);
  if (!partitioner.ok()) say("not cut into subgraphs: " + partitioner.error().message);
  if (!partitioner.ok() || partitioner->nodes() == 0) return {};
  SubgraphAnswers answers(evaluator, proposers, options, say);
  return SubgraphSearch(evaluator, task, proposers, options, *partitioner, whole, to_beat, answers).run();
}

}  // namespace nereid::search
