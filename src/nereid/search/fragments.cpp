#include "nereid/search/fragments.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>

#include "nereid/base/hash.h"
#include "nereid/base/interrupt.h"

namespace nereid::search {
namespace {

constexpr double kImproved = 0.98;  // of the last composed program's cost: less is worth another verdict
constexpr double kFragmentSeconds = 30;

constexpr size_t kComposeEvery = 8;  // questions
constexpr size_t kMostOfALine = 20;  // nodes: a recurrent cell in its calls
constexpr size_t kMostInAdvance = 64;
constexpr size_t kLinesOfAWhole = 5;  // in the reference's file: as many calls as they take are one question
constexpr double kLastResort = 1e9;  // ms: while nothing is verified, PyTorch's work is what a policy most often refuses
constexpr double kNever = std::numeric_limits<double>::infinity();

double cost_of(const std::vector<Offer>& cover) {
  double ms = 0;
  for (const auto& offer : cover) ms += offer.ms;
  return ms;
}

// What is known of one fragment's source.
struct Known {
  double ms = kNever;
  std::string candidate{}, proposer{};
};

class FragmentSearch {
 public:
  FragmentSearch(Bench& bench, const std::vector<proposers::Proposer*>& proposers,
                 const FragmentOptions& options, const Slicer& slicer,
                 const std::function<void(const proposers::Proposal&)>& whole,
                 const std::function<double()>& to_beat, const std::function<void(const std::string&)>& say)
      : bench_(bench),
        proposers_(proposers),
        options_(options),
        slicer_(slicer),
        whole_(whole),
        to_beat_(to_beat),
        say_(say) {
    for (auto& fragment : slicer.fragments(options.most_nodes, options.most_fragments)) fragments_.push_back(std::move(fragment));
    for (size_t n = 0; n < slicer.nodes(); ++n) alone_.push_back(slicer.alone(n));
    for (auto& line : slicer.lines_as_fragments(kMostOfALine)) {
      lines_.push_back(line.nodes);
      const auto there = [&](const Fragment& fragment) { return fragment.nodes == line.nodes; };
      if (std::none_of(fragments_.begin(), fragments_.end(), there)) fragments_.push_back(std::move(line));
    }
  }

  FragmentFindings run() {
    if (slicer_.nodes() < 2 && !tells_again()) return {};
    if (!found()) {
      find_any();
      findings_.all_tried = go_on();
    }
    if (slicer_.nodes() < 2 || (options_.first_is_enough && found())) return std::move(findings_);
    const auto asked = [this](const Fragment& fragment) { return ask(fragment); };
    const auto worth = [this] { return std::min(to_beat_(), composed_ms_) * kImproved; };
    const auto cover = cheapest_cover_asked(
        slicer_, offers(true), asked, worth, beam(),
        [this](const std::vector<const Fragment*>& soon) { ask_in_advance(soon); });
    compose(cover.empty() ? cheapest_cover(slicer_, offers(false), beam()) : cover);
    return std::move(findings_);
  }

 private:
  // While there is nothing: fragments.h has the stages' order.
  void find_any() {
    if (tells_again()) {
      if (!ask_all(whole_again(), false) || made_whole()) return;
    }
    std::vector<const Fragment*> lines, single, larger;
    Nodes in_lines;
    for (const Nodes& line : lines_) in_lines |= line;
    for (const auto& fragment : fragments_) {
      if (&fragment == told_whole_) continue;
      const bool alone = fragment.nodes.count() == 1;
      const bool line = alone ? (fragment.nodes & in_lines).none()
                              : std::find(lines_.begin(), lines_.end(), fragment.nodes) != lines_.end();
      if (line) lines.push_back(&fragment);
      (alone ? single : larger).push_back(&fragment);
    }
    if (!ask_all(lines, false) || made_whole()) return;
    if (!ask_all(having(single, nobodys()), false) || made_whole()) return;
    std::vector<Nodes> alone;
    for (const Fragment* fragment : single) alone.push_back(fragment->nodes);
    std::vector<const Fragment*> otherwise = told_otherwise(alone);
    if (!ask_all(otherwise, false) || made_whole()) return;
    if (!ask_all(having(single, nobodys()), true) || made_whole()) return;
    if (options_.whole_again) options_.whole_again(0);
    if (found() || !ask_all(whole_again(), true) || made_whole()) return;
    with_neighbours(std::move(larger));
    if (made_whole()) return;
    compose(cheapest_cover(slicer_, offers(false), beam()));  // the rest stays PyTorch's, which a policy may let pass
    if (found() || !go_on() || !tells_again()) return;
    std::vector<Nodes> more = lines_;
    if (told_whole_ != nullptr) more.push_back(told_whole_->nodes);
    for (const Fragment* fragment : told_otherwise(more)) otherwise.push_back(fragment);
    if (!ask_all(otherwise, true) || made_whole()) return;
    for (int round = 1; round <= kRounds && go_on(); ++round) {
      if (options_.whole_again) options_.whole_again(round);
      if (found()) return;
      std::vector<const Fragment*> failed = whole_again();
      for (const std::vector<const Fragment*>* list : {&std::as_const(single), &std::as_const(lines), &std::as_const(otherwise)}) {
        const auto own = having(*list, nobodys());
        failed.insert(failed.end(), own.begin(), own.end());
      }
      if (!ask_in_round(failed, round) || made_whole()) return;
    }
  }

  // What nobody can do alone with its neighbours: what is of fewer lines before what is of more.
  void with_neighbours(std::vector<const Fragment*> larger) {
    std::map<const Fragment*, std::pair<size_t, size_t>> order;
    for (const Fragment* fragment : larger)
      order[fragment] = {slicer_.lines(fragment->nodes), fragment->nodes.count()};
    std::stable_sort(larger.begin(), larger.end(),
                     [&](const Fragment* a, const Fragment* b) { return order[a] < order[b]; });
    for (Nodes missing = nobodys(); missing.any(); missing = nobodys()) {
      // One for each missing node at a time: they are written side by side.
      std::vector<const Fragment*> next;
      Nodes hoped;
      for (const Fragment* fragment : larger) {
        if (known_.contains(fragment->source) || (fragment->nodes & missing & ~hoped).none()) continue;
        next.push_back(fragment);
        hoped |= fragment->nodes;
      }
      if (next.empty() || !ask_all(next, true)) break;
    }
  }

  // Of these sets those that have none, told in other words.
  std::vector<const Fragment*> told_otherwise(const std::vector<Nodes>& sets) {
    std::vector<const Fragment*> told;
    if (!tells_again()) return told;
    const Nodes missing = nobodys();
    for (const Nodes& set : sets) {
      if ((set & missing).none()) continue;
      for (auto& fragment : slicer_.told_otherwise(set)) told.push_back(&fragments_.emplace_back(std::move(fragment)));
    }
    return told;
  }

  static std::vector<const Fragment*> having(std::vector<const Fragment*> fragments, const Nodes& nodes) {
    std::erase_if(fragments, [&](const Fragment* fragment) { return (fragment->nodes & nodes).none(); });
    return fragments;
  }

  static bool told_again(const proposers::Proposer& proposer) { return proposer.samples() && !proposer.paid(); }
  bool tells_again() const {
    return !findings_.fault && std::any_of(proposers_.begin(), proposers_.end(), [](const auto* proposer) { return told_again(*proposer); });
  }

  // The whole program told from its trace, where it is not too large for who is told so; else nothing.
  std::vector<const Fragment*> whole_again() {
    int most = 0;
    for (const auto* proposer : proposers_)
      if (told_again(*proposer)) most = std::max(most, proposer->most_operators());
    if (told_whole_ == nullptr && (static_cast<int>(slicer_.nodes()) <= most || slicer_.lines(slicer_.all()) <= kLinesOfAWhole))
      if (auto whole = slicer_.whole()) told_whole_ = &fragments_.emplace_back(*std::move(whole));
    return told_whole_ == nullptr ? std::vector<const Fragment*>() : std::vector<const Fragment*>{told_whole_};
  }

  bool found() const { return to_beat_() != kNever; }

  // The cheapest program of what has a kernel, judged, where these are enough for one; whether one is verified.
  bool made_whole() {
    if (nobodys().none()) compose(cheapest_cover(slicer_, offers(false), beam()));
    return found();
  }

  // Nodes that compute, and that no fragment with a kernel has.
  Nodes nobodys() const {
    Nodes missing = slicer_.all();
    for (const auto& offer : offers(false))
      if (offer.tag >= 0) missing &= ~offer.fragment->nodes;
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!slicer_.computes(n)) missing &= ~alone_[n].nodes;
    return missing;
  }

  // About all of them, side by side: first greedily, then (`sampled`) with more samples where that is not
  // enough. False where there was no time.
  bool ask_all(std::vector<const Fragment*> fragments, bool sampled) {
    std::set<std::string_view> sources;
    std::erase_if(fragments, [&](const Fragment* f) { return !sources.insert(f->source).second; });
    std::vector<const Fragment*> open;
    ask_in_advance(fragments);
    for (const Fragment* fragment : fragments) {
      if (known_.contains(fragment->source)) continue;
      if (!go_on()) return false;
      ask_in_advance(fragments);
      say_about(*fragment);
      Asked& asked = asked_about(*fragment);
      if (Known known = first(asked); !known.candidate.empty() || !asked.task)
        settle(*fragment, std::move(known));
      else
        open.push_back(fragment);
    }
    if (!sampled) return go_on();
    for (const Fragment* fragment : open) ask_others(asked_about(*fragment));
    for (const Fragment* fragment : open) {
      say_about(*fragment);
      Known known = others(asked_about(*fragment));
      if (!go_on() && known.candidate.empty()) return false;
      settle(*fragment, std::move(known));
    }
    return go_on();
  }

  // About all of them once more: the samples of a later round, of who is told again.
  bool ask_in_round(std::vector<const Fragment*> fragments, int round) {
    std::set<std::string_view> sources;
    std::erase_if(fragments, [&](const Fragment* f) { return !sources.insert(f->source).second; });
    const auto ask_about = [&](size_t i) {
      Asked asked = i < fragments.size() && go_on() ? traced(*fragments[i]) : Asked();
      for (auto* proposer : proposers_)
        if (asked.task && told_again(*proposer)) asked.others[proposer] = bench_.ask_several(*proposer, *asked.task, samples(1), round);
      return asked;
    };
    Asked next = ask_about(0);
    for (size_t i = 0; i < fragments.size(); ++i) {
      Asked asked = std::move(next);
      next = ask_about(i + 1);  // written while this one is judged
      say_(fmt::format("fragment of {} operators, round {}", fragments[i]->nodes.count(), round + 1));
      Known known;
      for (auto& [proposer, answers] : asked.others)
        if (known.candidate.empty()) judge_answers(*proposer, *asked.task, *answers, known, true);
      if (!known.candidate.empty()) known_[fragments[i]->source] = std::move(known);
      if (made_whole() || !go_on()) return false;
    }
    return go_on();
  }

  bool go_on() const { return !interrupted() && !options_.deadline.passed(); }
  size_t beam() const { return slicer_.nodes() > 64 ? 32 : 256; }

  std::optional<double> ask(const Fragment& fragment) {
    if (const auto found = known_.find(fragment.source); found != known_.end()) return found->second.ms;
    if (!go_on()) return std::nullopt;
    say_about(fragment);
    Asked& asked = asked_about(fragment);
    Known known = first(asked);
    if (known.candidate.empty()) {
      ask_others(asked);
      known = others(asked);
    }
    if (!go_on() && known.candidate.empty()) return std::nullopt;
    const double ms = known.ms;
    settle(fragment, std::move(known));
    if (known_.size() % kComposeEvery == 0) compose(cheapest_cover(slicer_, offers(false), beam()));
    return ms;
  }

  void say_about(const Fragment& fragment) const {
    say_(fmt::format("fragment {}, of {} operator{}", known_.size() + 1, fragment.nodes.count(),
                     fragment.nodes.count() == 1 ? "" : "s"));
  }

  void settle(const Fragment& fragment, Known known) {
    asked_.erase(fragment.source);
    known_[fragment.source] = std::move(known);
  }

  // A fragment as a task (none where it cannot be traced), and who has been asked about it. The task goes
  // last.
  struct Asked {
    std::unique_ptr<const Task> task{};
    std::map<proposers::Proposer*, std::unique_ptr<proposers::Answers>> first{}, others{};
  };

  Asked& asked_about(const Fragment& fragment) {
    const auto found = asked_.find(fragment.source);
    return found != asked_.end() ? found->second : asked_.emplace(fragment.source, traced(fragment)).first->second;
  }

  Asked traced(const Fragment& fragment) {
    auto task = bench_.trace("fragment.py", fragment.source, Deadline::after(kFragmentSeconds));
    Asked asked{};
    if (task.ok()) asked.task = *std::move(task);
    return asked;
  }

  void ask_in_advance(const std::vector<const Fragment*>& fragments) {
    for (const Fragment* fragment : fragments) {
      if (asked_.size() >= kMostInAdvance || !go_on()) return;
      if (known_.contains(fragment->source) || asked_.contains(fragment->source)) continue;
      for (auto* proposer : proposers_) {
        if (!proposer->samples() || proposer->paid()) continue;
        Asked& asked = asked_about(*fragment);
        if (asked.task) asked.first[proposer] = bench_.ask_several(*proposer, *asked.task, {0});
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
      if (!answers) answers = bench_.ask_several(*proposer, *asked.task, {0});
      judge_answers(*proposer, *asked.task, *answers, known, false);
    }
    return known;
  }

  // More samples, where nobody's first answer was good.
  void ask_others(Asked& asked) {
    if (!asked.task || !go_on() || options_.samples < 2) return;
    for (auto* proposer : proposers_)
      if (proposer->samples() && !proposer->paid())
        asked.others[proposer] = bench_.ask_several(*proposer, *asked.task, samples(1));
  }
  // One that costs money is asked where the others have nothing.
  Known others(Asked& asked) {
    Known known;
    if (!asked.task) return known;
    for (auto& [proposer, answers] : asked.others)
      if (known.candidate.empty()) judge_answers(*proposer, *asked.task, *answers, known, true);
    for (auto* proposer : proposers_)
      if (proposer->paid() && known.candidate.empty() && go_on())
        judge_answers(*proposer, *asked.task, *bench_.ask_several(*proposer, *asked.task, proposer->samples() ? samples(0) : std::vector<int>{0}),
                      known, true);
    return known;
  }
  std::vector<int> samples(int from) const {
    std::vector<int> samples;
    for (int sample = from; sample < std::max(1, options_.samples); ++sample) samples.push_back(sample);
    return samples;
  }

  void judge_answers(proposers::Proposer& proposer, const Task& task, proposers::Answers& answers, Known& known,
                     bool one_is_enough) {
    while (go_on() && !(one_is_enough && !known.candidate.empty())) {
      const auto next = answers.next(options_.deadline);
      if (!next.ok()) return fail(proposer, next.error());
      if (!*next) return;
      findings_.cost += (*next)->answer.cost;
      for (const auto& proposal : (*next)->answer.proposals) {
        const Judged judged = bench_.judge(task, std::string(proposer.name()), proposal, options_.deadline);
        if (!judged.verified() || !judged.ms() || *judged.ms() >= known.ms) continue;
        known = {.ms = *judged.ms(), .candidate = judged.source, .proposer = std::string(proposer.name())};
      }
    }
  }

  // That there was no time is no fault.
  void fail(const proposers::Proposer& proposer, const Error& error) {
    if (findings_.fault || !go_on()) return;
    findings_.fault = error, findings_.faulty = proposer.name();
  }

  // Of every fragment that has a kernel, or (`hopeful`) may have one; and of the steps as they are, where the
  // policy lets them stay PyTorch's.
  std::vector<Offer> offers(bool hopeful) const {
    std::vector<Offer> offers;
    for (size_t i = 0; i < fragments_.size(); ++i) {
      const auto found = known_.find(fragments_[i].source);
      const bool asked = found != known_.end();
      if (asked ? !found->second.candidate.empty() : hopeful)
        offers.push_back({.fragment = &fragments_[i],
                          .ms = asked ? found->second.ms : fragments_[i].least_ms,
                          .tag = static_cast<int>(i),
                          .asked = asked});
    }
    for (size_t n = 0; n < alone_.size(); ++n)
      if (!slicer_.computes(n) || bench_.settings().policy != verify::Policy::kStrict)
        offers.push_back({.fragment = &alone_[n], .ms = alone_[n].eager_ms + (found() || !slicer_.computes(n) ? 0 : kLastResort)});
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
      const Known known = offer.tag < 0 ? Known() : known_.at(offer.fragment->source);
      const size_t steps = offer.fragment->nodes.count();
      plan += fmt::format("{} step{}: {}\n", steps, steps == 1 ? "" : "s",
                          offer.tag < 0 ? "PyTorch" : known.proposer);
      pieces.push_back({offer.fragment, known.candidate, known.proposer});
      const auto done = slicer_.steps_of(offer.fragment->nodes);
      if (offer.tag >= 0) regions.push_back({known.proposer, {done.begin(), done.end()}});
    }
    auto text = slicer_.compose(pieces);
    if (text.ok()) whole_({.text = *std::move(text), .plan = std::move(plan), .regions = std::move(regions)});
  }

  Bench& bench_;
  const std::vector<proposers::Proposer*>& proposers_;
  const FragmentOptions& options_;
  const Slicer& slicer_;
  const std::function<void(const proposers::Proposal&)>& whole_;
  const std::function<double()>& to_beat_;
  const std::function<void(const std::string&)>& say_;
  std::deque<Fragment> fragments_;      // grows: what was told otherwise
  std::vector<Fragment> alone_;
  const Fragment* told_whole_ = nullptr;  // all of it, told again
  std::vector<Nodes> lines_;            // of several nodes each
  std::map<std::string, Known> known_;  // by source: equal fragments are judged once
  std::map<std::string, Asked> asked_;  // by source: in advance
  FragmentFindings findings_{};
  double composed_ms_ = kNever;         // of the last composed program, by its pieces
};

}  // namespace

std::vector<Offer> cheapest_cover_asked(const Slicer& slicer, std::vector<Offer> offers,
                                        const std::function<std::optional<double>(const Fragment&)>& ask,
                                        const std::function<double()>& to_beat, size_t beam,
                                        const std::function<void(const std::vector<const Fragment*>&)>& soon) {
  while (true) {
    const auto cover = cheapest_cover(slicer, offers, beam);
    if (cover.empty() || cost_of(cover) > to_beat()) return {};
    const auto gain = [](const Fragment* fragment) { return fragment->eager_ms - fragment->least_ms; };
    std::vector<const Fragment*> unasked;
    for (const auto& offer : cover)
      if (!offer.asked) unasked.push_back(offer.fragment);
    if (unasked.empty()) return cover;
    std::stable_sort(unasked.begin(), unasked.end(),
                     [&](const Fragment* a, const Fragment* b) { return gain(a) > gain(b); });
    if (soon) soon(unasked);
    const Fragment* next = unasked.front();
    const auto ms = ask(*next);
    if (!ms) return {};
    for (auto& offer : offers)
      if (!offer.asked && offer.fragment->source == next->source) offer.ms = *ms, offer.asked = true;
    std::erase_if(offers, [](const Offer& offer) { return offer.ms == kNever; });
  }
}

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

FragmentFindings search_fragments(Bench& bench, const Task& task, const std::vector<proposers::Proposer*>& proposers,
                      const FragmentOptions& options,
                      const std::function<void(const proposers::Proposal& proposal)>& whole,
                      const std::function<double()>& to_beat,
                      const std::function<void(const std::string&)>& say) {
  const auto slicer = Slicer::cut(task);
  if (!slicer.ok()) say("not cut into fragments: " + slicer.error().message);
  if (!slicer.ok() || slicer->nodes() == 0) return {};
  return FragmentSearch(bench, proposers, options, *slicer, whole, to_beat, say).run();
}

}  // namespace nereid::search
