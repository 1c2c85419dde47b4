#include "nereid/search/fragments.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>

#include "nereid/base/hash.h"
#include "nereid/base/interrupt.h"

namespace nereid::search {
namespace {

constexpr double kImproved = 0.98;  // of the last composed program's cost: less is worth another verdict
constexpr double kTraceSeconds = 30;

// What is known of one fragment's source.
struct Known {
  bool asked = false;
  double ms = std::numeric_limits<double>::infinity();
  std::string candidate{}, proposer{};
};

class FragmentSearch {
 public:
  FragmentSearch(Bench& bench, const Task& task, const std::vector<policy::Proposer*>& proposers,
                 const FragmentOptions& options, const Slicer& slicer)
      : bench_(bench), task_(task), proposers_(proposers), options_(options), slicer_(slicer) {
    fragments_ = slicer.fragments(options.most_nodes, options.most_fragments);
    // The single nodes come first, so that there is a whole program soon; then by what there is to gain.
    std::stable_sort(fragments_.begin(), fragments_.end(), [](const Fragment& a, const Fragment& b) {
      if ((a.nodes.count() == 1) != (b.nodes.count() == 1)) return a.nodes.count() == 1;
      return a.eager_ms - a.least_ms > b.eager_ms - b.least_ms;
    });
    for (size_t n = 0; n < slicer.nodes(); ++n) alone_.push_back(slicer.alone(n));
  }

  void run(const std::function<bool(const policy::Proposal&, double)>& whole,
           const std::function<void(const std::string&)>& say) {
    const size_t singles = slicer_.nodes();
    size_t number = 0;
    for (const auto& fragment : fragments_) {
      if (interrupted() || options_.deadline.passed()) break;
      say(fmt::format("fragment {} of {}", ++number, fragments_.size()));
      ask(fragment);
      if (number >= singles && number % 4 == 0) compose(whole);
    }
    if (!interrupted()) compose(whole);
  }

 private:
  void ask(const Fragment& fragment) {
    Known& known = known_[fragment.source];
    if (known.asked) return;
    known.asked = true;
    const auto task = bench_.trace("fragment.py", fragment.source, Deadline::after(kTraceSeconds));
    if (!task.ok()) return;
    for (auto* proposer : proposers_) {
      // A model is asked where the others have nothing: it costs money.
      if (proposer->samples() && !known.candidate.empty()) continue;
      if (interrupted() || options_.deadline.passed()) return;
      const auto answer = bench_.ask(*proposer, **task, 0, {}, options_.deadline);
      if (!answer.ok()) continue;
      for (const auto& proposal : answer->proposals) {
        const Judged judged =
            bench_.judge(**task, std::string(proposer->name()), proposal, options_.deadline);
        if (!judged.verified() || !judged.ms() || *judged.ms() >= known.ms) continue;
        known.ms = *judged.ms(), known.candidate = judged.source, known.proposer = proposer->name();
      }
    }
  }

  // A step that stays PyTorch's: what it costs, or infinity where the policy does not let it.
  double cost_alone(size_t node) const {
    const auto policy = bench_.settings().policy;
    if (slicer_.computes(node) && policy == verify::Policy::kStrict)
      return std::numeric_limits<double>::infinity();
    return alone_[node].eager_ms;
  }

  void compose(const std::function<bool(const policy::Proposal&, double)>& whole) {
    std::vector<Offer> offers;
    for (size_t i = 0; i < fragments_.size(); ++i)
      if (const auto found = known_.find(fragments_[i].source);
          found != known_.end() && !found->second.candidate.empty())
        offers.push_back({&fragments_[i], found->second.ms, static_cast<int>(i)});
    for (size_t n = 0; n < alone_.size(); ++n)
      if (const double ms = cost_alone(n); ms < std::numeric_limits<double>::infinity())
        offers.push_back({&alone_[n], ms, -1});
    const auto chosen = cheapest_cover(slicer_, offers);
    double ms = 0;
    bool any = false;
    std::vector<Piece> pieces;
    for (const auto& offer : chosen) {
      ms += offer.ms;
      if (offer.tag < 0) {
        pieces.push_back({offer.fragment, "", ""});
        continue;
      }
      const Known& known = known_.at(offer.fragment->source);
      pieces.push_back({offer.fragment, known.candidate, known.proposer});
      any = true;
    }
    if (!any || ms > best_ms_ * kImproved) return;
    best_ms_ = ms;
    auto text = slicer_.compose(pieces);
    if (!text.ok()) return;
    std::string plan;
    for (const auto& piece : pieces)
      plan += fmt::format("{} step{}: {}\n", piece.fragment->nodes.count(),
                          piece.fragment->nodes.count() == 1 ? "" : "s",
                          piece.proposer.empty() ? "PyTorch" : piece.proposer);
    whole({.text = *std::move(text), .plan = std::move(plan)}, ms);
  }

  Bench& bench_;
  const Task& task_;
  const std::vector<policy::Proposer*>& proposers_;
  const FragmentOptions& options_;
  const Slicer& slicer_;
  std::vector<Fragment> fragments_, alone_;
  std::map<std::string, Known> known_;  // by source: equal fragments are judged once
  double best_ms_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::vector<Offer> cheapest_cover(const Slicer& slicer, const std::vector<Offer>& offers, size_t beam) {
  struct State {
    double ms = 0;
    Nodes from{};
    int offer = -1;
  };
  // By the number of finished nodes; a set of finished nodes holds all that its members need.
  std::vector<std::unordered_map<Nodes, State>> levels(slicer.nodes() + 1);
  levels[0][Nodes()] = {};
  for (size_t level = 0; level < slicer.nodes(); ++level) {
    std::vector<std::pair<double, Nodes>> states;
    for (const auto& [done, state] : levels[level]) states.emplace_back(state.ms, done);
    std::sort(states.begin(), states.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second.to_string() < b.second.to_string();
    });
    if (states.size() > beam) states.resize(beam);
    for (const auto& [ms, done] : states)
      for (size_t i = 0; i < offers.size(); ++i) {
        const Nodes& nodes = offers[i].fragment->nodes;
        if ((nodes & done).any() || !slicer.may_follow(nodes, done)) continue;
        const Nodes next = done | nodes;
        auto& state = levels[next.count()]
                          .try_emplace(next, State{std::numeric_limits<double>::infinity(), {}, -1})
                          .first->second;
        if (ms + offers[i].ms < state.ms) state = {ms + offers[i].ms, done, static_cast<int>(i)};
      }
  }
  std::vector<Offer> chosen;
  const auto end = levels.back().find(slicer.all());
  if (end == levels.back().end()) return chosen;
  for (Nodes at = slicer.all(); at.any();) {
    const State& state = levels[at.count()].at(at);
    chosen.push_back(offers[static_cast<size_t>(state.offer)]);
    at = state.from;
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

void search_fragments(Bench& bench, const Task& task, const std::vector<policy::Proposer*>& proposers,
                      const FragmentOptions& options,
                      const std::function<bool(const policy::Proposal& proposal, double modelled_ms)>& whole,
                      const std::function<void(const std::string&)>& say) {
  const auto slicer = Slicer::cut(task);
  if (!slicer.ok()) return say("not cut into fragments: " + slicer.error().message);
  if (slicer->nodes() < 2) return;
  FragmentSearch(bench, task, proposers, options, *slicer).run(whole, say);
}

}  // namespace nereid::search
