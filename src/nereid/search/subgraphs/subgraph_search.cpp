#include "nereid/search/subgraphs/subgraph_search.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "nereid/base/hash.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/search/fall_back.h"

namespace nereid::search {
namespace {

constexpr double kImproved = 0.98;  // of the last composed program's cost: less is worth another verdict
constexpr double kSubgraphSeconds = 30;

constexpr size_t kComposeEvery = 8;  // questions
constexpr size_t kMostOfALine = 20;  // nodes: a recurrent cell in its calls
constexpr size_t kMostInAdvance = 64;
constexpr size_t kLinesOfAWhole = 5;  // in the reference's file: as many calls as they take are one question
constexpr double kLastResort =
    1e9;  // ms: while nothing is verified, PyTorch's work is what a policy most often refuses

// What is known of one subgraph's source.
struct Known {
  double ms = kNever;
  std::string candidate{}, proposer{};
};

class SubgraphSearch {
 public:
  SubgraphSearch(Evaluator& evaluator, const std::vector<proposers::Proposer*>& proposers,
                 const SubgraphOptions& options, const Partitioner& partitioner,
                 const std::function<void(const proposers::Proposal&)>& whole,
                 const std::function<double()>& to_beat, const std::function<void(const std::string&)>& say)
      : evaluator_(evaluator),
        proposers_(proposers),
        options_(options),
        partitioner_(partitioner),
        whole_(whole),
        to_beat_(to_beat),
        say_(say) {
    for (auto& subgraph : partitioner.subgraphs(options.most_nodes, options.most_subgraphs))
      subgraphs_.push_back(std::move(subgraph));
    for (size_t n = 0; n < partitioner.nodes(); ++n) alone_.push_back(partitioner.alone(n));
    for (auto& line : partitioner.lines_as_subgraphs(kMostOfALine)) {
      lines_.push_back(line.nodes);
      const auto there = [&](const Subgraph& subgraph) { return subgraph.nodes == line.nodes; };
      if (std::none_of(subgraphs_.begin(), subgraphs_.end(), there)) subgraphs_.push_back(std::move(line));
    }
  }

  SubgraphFindings run() {
    if (partitioner_.nodes() < 2 && !rewrites_source()) return {};
    if (!found()) {
      find_any();
      findings_.all_tried = go_on();
    }
    if (partitioner_.nodes() < 2 || (options_.first_is_enough && found())) return std::move(findings_);
    const auto asked = [this](const Subgraph& subgraph) { return ask(subgraph); };
    const auto worth = [this] { return std::min(to_beat_(), composed_ms_) * kImproved; };
    const auto cover =
        cheapest_cover_asked(partitioner_, offers(true), asked, worth, beam(),
                             [this](const std::vector<const Subgraph*>& soon) { ask_in_advance(soon); });
    compose(cover.empty() ? cheapest_cover(partitioner_, offers(false), beam()) : cover);
    return std::move(findings_);
  }

 private:
  // While there is nothing: subgraph_search.h has the stages' order.
  void find_any() {
    if (rewrites_source()) {
      if (!ask_all(whole_again(), false) || made_whole()) return;
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
    if (!ask_all(lines, false) || made_whole()) return;
    if (!ask_all(having(single, nobodys()), false) || made_whole()) return;
    std::vector<Nodes> alone;
    for (const Subgraph* subgraph : single) alone.push_back(subgraph->nodes);
    std::vector<const Subgraph*> otherwise = alternative_sources(alone);
    if (!ask_all(otherwise, false) || made_whole()) return;
    if (!ask_all(having(single, nobodys()), true) || made_whole()) return;
    if (options_.whole_again) options_.whole_again(0);
    if (found() || !ask_all(whole_again(), true) || made_whole()) return;
    with_neighbours(std::move(larger));
    if (made_whole()) return;
    compose(cheapest_cover(partitioner_, offers(false),
                           beam()));  // the rest stays PyTorch's, which a policy may let pass
    if (found() || !go_on() || !rewrites_source()) return;
    std::vector<Nodes> more = lines_;
    if (whole_program_ != nullptr) more.push_back(whole_program_->nodes);
    for (const Subgraph* subgraph : alternative_sources(more)) otherwise.push_back(subgraph);
    if (!ask_all(otherwise, true) || made_whole()) return;
    for (int round = 1; round <= kRounds && go_on(); ++round) {
      if (options_.whole_again) options_.whole_again(round);
      if (found()) return;
      std::vector<const Subgraph*> failed = whole_again();
      for (const std::vector<const Subgraph*>* list :
           {&std::as_const(single), &std::as_const(lines), &std::as_const(otherwise)}) {
        const auto own = having(*list, nobodys());
        failed.insert(failed.end(), own.begin(), own.end());
      }
      if (!ask_in_round(failed, round) || made_whole()) return;
    }
  }

  // What no proposer solved alone, with its neighbours: fewer lines before more.
  void with_neighbours(std::vector<const Subgraph*> larger) {
    std::map<const Subgraph*, std::pair<size_t, size_t>> order;
    for (const Subgraph* subgraph : larger)
      order[subgraph] = {partitioner_.lines(subgraph->nodes), subgraph->nodes.count()};
    std::stable_sort(larger.begin(), larger.end(),
                     [&](const Subgraph* a, const Subgraph* b) { return order[a] < order[b]; });
    for (Nodes missing = nobodys(); missing.any(); missing = nobodys()) {
      // One for each missing node at a time: they are written side by side.
      std::vector<const Subgraph*> next;
      Nodes hoped;
      for (const Subgraph* subgraph : larger) {
        if (known_.contains(subgraph->source) || (subgraph->nodes & missing & ~hoped).none()) continue;
        next.push_back(subgraph);
        hoped |= subgraph->nodes;
      }
      if (next.empty() || !ask_all(next, true)) break;
    }
  }

  // Of these sets those that have none, in canonical form.
  std::vector<const Subgraph*> alternative_sources(const std::vector<Nodes>& sets) {
    std::vector<const Subgraph*> alternatives;
    if (!rewrites_source()) return alternatives;
    const Nodes missing = nobodys();
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

  static bool reads_rewritten_source(const proposers::Proposer& proposer) {
    return proposer.samples() && !proposer.paid();
  }
  bool rewrites_source() const {
    return !findings_.fault && std::any_of(proposers_.begin(), proposers_.end(), [](const auto* proposer) {
      return reads_rewritten_source(*proposer);
    });
  }

  // The whole program rewritten from its trace, where it is not too large for the proposer; else nothing.
  std::vector<const Subgraph*> whole_again() {
    int most = 0;
    for (const auto* proposer : proposers_)
      if (reads_rewritten_source(*proposer)) most = std::max(most, proposer->most_operators());
    if (whole_program_ == nullptr && (static_cast<int>(partitioner_.nodes()) <= most ||
                                      partitioner_.lines(partitioner_.all()) <= kLinesOfAWhole))
      if (auto whole = partitioner_.whole()) whole_program_ = &subgraphs_.emplace_back(*std::move(whole));
    return whole_program_ == nullptr ? std::vector<const Subgraph*>()
                                     : std::vector<const Subgraph*>{whole_program_};
  }

  bool found() const { return to_beat_() != kNever; }

  // The cheapest program of what has a kernel, judged, where these are enough for one; whether one is
  // verified.
  bool made_whole() {
    if (nobodys().none()) compose(cheapest_cover(partitioner_, offers(false), beam()));
    return found();
  }

  // Nodes that compute, and that no subgraph with a kernel has.
  Nodes nobodys() const {
    Nodes missing = partitioner_.all();
    for (const auto& offer : offers(false))
      if (offer.tag >= 0) missing &= ~offer.subgraph->nodes;
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!partitioner_.computes(n)) missing &= ~alone_[n].nodes;
    return missing;
  }

  // About all of them, side by side: first greedily, then (`sampled`) with more samples where that is not
  // enough. False where there was no time.
  bool ask_all(std::vector<const Subgraph*> subgraphs, bool sampled) {
    std::set<std::string_view> sources;
    std::erase_if(subgraphs, [&](const Subgraph* f) { return !sources.insert(f->source).second; });
    std::vector<const Subgraph*> open;
    ask_in_advance(subgraphs);
    for (const Subgraph* subgraph : subgraphs) {
      if (known_.contains(subgraph->source)) continue;
      if (!go_on()) return false;
      ask_in_advance(subgraphs);
      say_about(*subgraph);
      Asked& asked = asked_about(*subgraph);
      if (Known known = first(asked); !known.candidate.empty() || !asked.task)
        settle(*subgraph, std::move(known));
      else
        open.push_back(subgraph);
    }
    if (!sampled) return go_on();
    for (const Subgraph* subgraph : open) ask_others(asked_about(*subgraph));
    for (const Subgraph* subgraph : open) {
      say_about(*subgraph);
      Known known = others(asked_about(*subgraph));
      if (!go_on() && known.candidate.empty()) return false;
      settle(*subgraph, std::move(known));
    }
    return go_on();
  }

  // All of them once more: the samples of a later round, for the canonical forms.
  bool ask_in_round(std::vector<const Subgraph*> subgraphs, int round) {
    std::set<std::string_view> sources;
    std::erase_if(subgraphs, [&](const Subgraph* f) { return !sources.insert(f->source).second; });
    const auto ask_about = [&](size_t i) {
      Asked asked = i < subgraphs.size() && go_on() ? traced(*subgraphs[i]) : Asked();
      for (auto* proposer : proposers_)
        if (asked.task && reads_rewritten_source(*proposer))
          asked.others[proposer] = evaluator_.ask_several(*proposer, *asked.task, samples(1), round);
      return asked;
    };
    Asked next = ask_about(0);
    for (size_t i = 0; i < subgraphs.size(); ++i) {
      Asked asked = std::move(next);
      next = ask_about(i + 1);  // written while this one is judged
      say_(fmt::format("subgraph of {} operators, round {}", subgraphs[i]->nodes.count(), round + 1));
      Known known;
      for (auto& [proposer, answers] : asked.others)
        if (known.candidate.empty()) judge_answers(*proposer, *asked.task, *answers, known, true);
      if (!known.candidate.empty()) known_[subgraphs[i]->source] = std::move(known);
      if (made_whole() || !go_on()) return false;
    }
    return go_on();
  }

  bool go_on() const { return !interrupted() && !options_.deadline.passed(); }
  size_t beam() const { return partitioner_.nodes() > 64 ? 32 : 256; }

  std::optional<double> ask(const Subgraph& subgraph) {
    if (const auto found = known_.find(subgraph.source); found != known_.end()) return found->second.ms;
    if (!go_on()) return std::nullopt;
    say_about(subgraph);
    Asked& asked = asked_about(subgraph);
    Known known = first(asked);
    if (known.candidate.empty()) {
      ask_others(asked);
      known = others(asked);
    }
    if (!go_on() && known.candidate.empty()) return std::nullopt;
    const double ms = known.ms;
    settle(subgraph, std::move(known));
    if (known_.size() % kComposeEvery == 0) compose(cheapest_cover(partitioner_, offers(false), beam()));
    return ms;
  }

  void say_about(const Subgraph& subgraph) const {
    say_(fmt::format("subgraph {}, of {} operator{}", known_.size() + 1, subgraph.nodes.count(),
                     subgraph.nodes.count() == 1 ? "" : "s"));
  }

  void settle(const Subgraph& subgraph, Known known) {
    asked_.erase(subgraph.source);
    known_[subgraph.source] = std::move(known);
  }

  // A subgraph as a task (none where it cannot be traced), and who has been asked about it. The task goes
  // last.
  struct Asked {
    std::unique_ptr<const Task> task{};
    std::map<proposers::Proposer*, std::unique_ptr<proposers::Answers>> first{}, others{};
  };

  Asked& asked_about(const Subgraph& subgraph) {
    const auto found = asked_.find(subgraph.source);
    return found != asked_.end() ? found->second
                                 : asked_.emplace(subgraph.source, traced(subgraph)).first->second;
  }

  Asked traced(const Subgraph& subgraph) {
    auto task = evaluator_.trace("subgraph.py", subgraph.source, Deadline::after(kSubgraphSeconds),
                                 options_.timeline);
    Asked asked{};
    if (task.ok()) asked.task = *std::move(task);
    return asked;
  }

  void ask_in_advance(const std::vector<const Subgraph*>& subgraphs) {
    for (const Subgraph* subgraph : subgraphs) {
      if (asked_.size() >= kMostInAdvance || !go_on()) return;
      if (known_.contains(subgraph->source) || asked_.contains(subgraph->source)) continue;
      for (auto* proposer : proposers_) {
        if (!proposer->samples() || proposer->paid()) continue;
        Asked& asked = asked_about(*subgraph);
        if (asked.task) asked.first[proposer] = evaluator_.ask_several(*proposer, *asked.task, {0});
      }
    }
  }

  // What everybody answers first, but for who costs money.
  Known first(Asked& asked) {
    Known known;
    if (!asked.task) return known;
    for (auto* proposer : proposers_) {
      if (proposer->paid()) continue;
      auto& answers = asked.first[proposer];
      if (!answers) answers = evaluator_.ask_several(*proposer, *asked.task, {0});
      judge_answers(*proposer, *asked.task, *answers, known, false);
    }
    return known;
  }

  // More samples, where no first answer was good.
  void ask_others(Asked& asked) {
    if (!asked.task || !go_on() || options_.samples < 2) return;
    for (auto* proposer : proposers_)
      if (proposer->samples() && !proposer->paid())
        asked.others[proposer] = evaluator_.ask_several(*proposer, *asked.task, samples(1));
  }
  // One that costs money is called where the others have nothing.
  Known others(Asked& asked) {
    Known known;
    if (!asked.task) return known;
    for (auto& [proposer, answers] : asked.others)
      if (known.candidate.empty()) judge_answers(*proposer, *asked.task, *answers, known, true);
    for (auto* proposer : proposers_)
      if (proposer->paid() && known.candidate.empty() && go_on())
        judge_answers(*proposer, *asked.task,
                      *evaluator_.ask_several(*proposer, *asked.task,
                                              proposer->samples() ? samples(0) : std::vector<int>{0}),
                      known, true);
    return known;
  }
  std::vector<int> samples(int from) const {
    std::vector<int> samples;
    for (int sample = from; sample < std::max(1, options_.samples); ++sample) samples.push_back(sample);
    return samples;
  }

  void judge_answers(proposers::Proposer& proposer, const Task& task, proposers::Answers& answers,
                     Known& known, bool one_is_enough) {
    while (go_on() && !(one_is_enough && !known.candidate.empty())) {
      const auto next = answers.next(options_.deadline);
      if (!next.ok()) return fail(proposer, next.error());
      if (!*next) return;
      findings_.cost += (*next)->answer.cost;
      for (const auto& proposal : (*next)->answer.proposals) {
        Judged judged = evaluator_.judge(task, std::string(proposer.name()), proposal, options_.deadline);
        if (!judged.verified())
          if (auto other = in_another_way(proposer, task, judged)) judged = *std::move(other);
        if (!judged.verified() || !judged.ms() || *judged.ms() >= known.ms) continue;
        known = {.ms = *judged.ms(), .candidate = judged.source, .proposer = std::string(proposer.name())};
      }
    }
  }

  std::optional<Judged> in_another_way(proposers::Proposer& proposer, const Task& task,
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
  void fail(const proposers::Proposer& proposer, const Error& error) {
    if (findings_.fault || !go_on()) return;
    findings_.fault = error, findings_.faulty = proposer.name();
  }

  // Of every subgraph that has a kernel, or (`hopeful`) may have one; and of the steps as they are, where the
  // policy lets them stay PyTorch's.
  std::vector<Offer> offers(bool hopeful) const {
    std::vector<Offer> offers;
    for (size_t i = 0; i < subgraphs_.size(); ++i) {
      const auto found = known_.find(subgraphs_[i].source);
      const bool asked = found != known_.end();
      if (asked ? !found->second.candidate.empty() : hopeful)
        offers.push_back({.subgraph = &subgraphs_[i],
                          .ms = asked ? found->second.ms : subgraphs_[i].least_ms,
                          .tag = static_cast<int>(i),
                          .asked = asked});
    }
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!partitioner_.computes(n) || evaluator_.settings().policy != verify::Policy::kStrict)
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
      const Known known = offer.tag < 0 ? Known() : known_.at(offer.subgraph->source);
      const size_t steps = offer.subgraph->nodes.count();
      plan += fmt::format("{} step{}: {}\n", steps, steps == 1 ? "" : "s",
                          offer.tag < 0 ? "PyTorch" : known.proposer);
      pieces.push_back({offer.subgraph, known.candidate, known.proposer});
      const auto done = partitioner_.steps_of(offer.subgraph->nodes);
      if (offer.tag >= 0) regions.push_back({known.proposer, {done.begin(), done.end()}});
    }
    auto text = partitioner_.compose(pieces);
    if (text.ok()) whole_({.text = *std::move(text), .plan = std::move(plan), .regions = std::move(regions)});
  }

  Evaluator& evaluator_;
  const std::vector<proposers::Proposer*>& proposers_;
  const SubgraphOptions& options_;
  const Partitioner& partitioner_;
  const std::function<void(const proposers::Proposal&)>& whole_;
  const std::function<double()>& to_beat_;
  const std::function<void(const std::string&)>& say_;
  std::deque<Subgraph> subgraphs_;  // grows: canonical forms
  std::vector<Subgraph> alone_;
  const Subgraph* whole_program_ = nullptr;  // all of it, canonical
  std::vector<Nodes> lines_;                 // of several nodes each
  std::map<std::string, Known> known_;       // by source: equal subgraphs are judged once
  std::map<std::string, Asked> asked_;       // by source: in advance
  SubgraphFindings findings_{};
  double composed_ms_ = kNever;  // of the last composed program, by its pieces
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
  return SubgraphSearch(evaluator, proposers, options, *partitioner, whole, to_beat, say).run();
}

}  // namespace nereid::search
