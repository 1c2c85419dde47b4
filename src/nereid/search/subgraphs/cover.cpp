#include "nereid/search/subgraphs/cover.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace nereid::search {

double cost_of(const std::vector<Offer>& cover) {
  double ms = 0;
  for (const auto& offer : cover) ms += offer.ms;
  return ms;
}

std::vector<Offer> cheapest_cover_lazily(
    const Partitioner& partitioner, std::vector<Offer> offers,
    const std::function<std::optional<double>(const Subgraph&)>& ask, const std::function<double()>& to_beat,
    size_t beam, const std::function<void(const std::vector<const Subgraph*>&)>& soon) {
  while (true) {
    const auto cover = cheapest_cover(partitioner, offers, beam);
    if (cover.empty() || cost_of(cover) > to_beat()) return {};
    const auto gain = [](const Subgraph* subgraph) { return subgraph->eager_ms - subgraph->min_ms; };
    std::vector<const Subgraph*> unasked;
    for (const auto& offer : cover)
      if (!offer.asked) unasked.push_back(offer.subgraph);
    if (unasked.empty()) return cover;
    std::stable_sort(unasked.begin(), unasked.end(),
                     [&](const Subgraph* a, const Subgraph* b) { return gain(a) > gain(b); });
    if (soon) soon(unasked);
    const Subgraph* next = unasked.front();
    const auto ms = ask(*next);
    if (!ms) return {};
    for (auto& offer : offers)
      if (!offer.asked && offer.subgraph->source == next->source) offer.ms = *ms, offer.asked = true;
    std::erase_if(offers, [](const Offer& offer) { return offer.ms == kNever; });
  }
}

std::vector<Offer> cheapest_cover(const Partitioner& partitioner, const std::vector<Offer>& offers,
                                  size_t beam) {
  struct State {
    double ms = 0;
    Nodes from{};
    int offer = -1;
  };
  // By the number of finished nodes; a set of finished nodes holds all that its members need.
  std::vector<std::unordered_map<Nodes, State>> levels(partitioner.nodes() + 1);
  levels[0][Nodes()] = {};
  for (size_t level = 0; level < partitioner.nodes(); ++level) {
    std::vector<std::pair<double, Nodes>> states;
    for (const auto& [done, state] : levels[level]) states.emplace_back(state.ms, done);
    std::sort(states.begin(), states.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second.to_string() < b.second.to_string();
    });
    if (states.size() > beam) states.resize(beam);
    for (const auto& [ms, done] : states)
      for (size_t i = 0; i < offers.size(); ++i) {
        const Nodes& nodes = offers[i].subgraph->nodes;
        if ((nodes & done).any() || !partitioner.may_follow(nodes, done)) continue;
        const Nodes next = done | nodes;
        auto& state = levels[next.count()].try_emplace(next, State{kNever, {}, -1}).first->second;
        if (ms + offers[i].ms < state.ms) state = {ms + offers[i].ms, done, static_cast<int>(i)};
      }
  }
  std::vector<Offer> chosen;
  const auto end = levels.back().find(partitioner.all());
  if (end == levels.back().end()) return chosen;
  for (Nodes at = partitioner.all(); at.any();) {
    const State& state = levels[at.count()].at(at);
    chosen.push_back(offers[static_cast<size_t>(state.offer)]);
    at = state.from;
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace nereid::search
