#include "nereid/verify/stages/configurations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "nereid/trace/notation.h"

namespace nereid::verify {
namespace {

// Alternatives with equal numbers and text do the same.
std::string text_of(const trace::Trace& trace, const trace::Alternative& alternative, replay::Device device) {
  std::string text;
  if (alternative.kernel >= 0) {
    const auto& kernel = trace.kernels.at(static_cast<size_t>(alternative.kernel));
    text = device == replay::Device::kCpu ? kernel.ttir : kernel.hash;
  }
  for (const auto n : alternative.grid) text += fmt::format("\n{}", n);
  for (const auto& arg : alternative.args) {
    if (const auto* pointer = std::get_if<trace::PointerArg>(&arg))
      text += fmt::format("\np {} {}", pointer->value, pointer->offset);
    else if (const auto* d = std::get_if<trace::DescriptorArg>(&arg))
      text += fmt::format("\nd {} {} {} {} {}", d->value, fmt::join(d->shape, "x"),
                          fmt::join(d->strides, "x"), fmt::join(d->block, "x"), d->nan_padding);
    else if (const auto* i = std::get_if<trace::IntArg>(&arg))
      text += fmt::format("\ni {}", i->value);
    else
      text += fmt::format("\nf {:a}", std::get<trace::FloatArg>(arg).value);
  }
  for (const auto& call : alternative.before) text += "\n" + trace::call_text(trace, call);
  return text;
}

const std::vector<trace::Step>& judged_steps(const TraceAnalysis& candidate) {
  return candidate.trace->phases.at(static_cast<size_t>(candidate.judged())).steps;
}

// Launches of one tuner that were offered the same.
std::vector<TunedGroup> tuned_launch_groups(const TraceAnalysis& candidate) {
  const auto& steps = judged_steps(candidate);
  std::vector<TunedGroup> groups;
  std::map<std::pair<int32_t, std::string>, size_t> known;
  for (size_t step = 0; step < steps.size(); ++step) {
    const auto* launch = std::get_if<trace::Launch>(&steps[step]);
    if (!launch || launch->alternatives.size() < 2) continue;
    size_t at = groups.size();
    if (launch->tuner >= 0) {
      std::string offered;
      for (const auto& alternative : launch->alternatives) offered += alternative.config + "\n";
      at = known.try_emplace({launch->tuner, std::move(offered)}, at).first->second;
    }
    if (at == groups.size()) groups.emplace_back();
    groups[at].steps.push_back(static_cast<int>(step));
  }
  return groups;
}

void find_options(TunedGroup& group, const TraceAnalysis& candidate, replay::Device device) {
  const auto launch = [&](int step) -> const trace::Launch& {
    return std::get<trace::Launch>(judged_steps(candidate)[static_cast<size_t>(step)]);
  };
  const auto launches = static_cast<int64_t>(group.steps.size());
  std::map<std::string, size_t> seen;  // its place among the options
  for (size_t i = 0; i < launch(group.steps.front()).alternatives.size(); ++i) {
    std::string text;
    for (const int step : group.steps)
      text += text_of(*candidate.trace, launch(step).alternatives[i], device) + "\n\n";
    const auto [place, fresh] = seen.emplace(std::move(text), group.options.size());
    if (i == 0)
      place->second = SIZE_MAX;  // the default, which every trial runs
    else if (fresh)
      group.options.push_back(
          {static_cast<int>(i), launches, launch(group.steps.front()).alternatives[i].config});
    else if (place->second != SIZE_MAX)
      group.options[place->second].equals += launches;
  }
}

// All choices, but for those that differ in nothing that a later launch could see.
class Exhaustive {
 public:
  Exhaustive(const std::vector<TunedGroup>& groups, const RunConfiguration& run)
      : groups_(groups), run_(run) {}

  // Every option with the others' defaults.
  Result<bool> singles() {
    const bool several = groups_.size() > 1;
    if (several) {
      NEREID_TRY(const bool on, add(OptionChoice(groups_.size())));
      if (!on) return false;
    }
    for (size_t g = 0; g < groups_.size(); ++g)
      for (size_t option = 1; option <= groups_[g].options.size(); ++option) {
        OptionChoice choice(groups_.size());
        choice[g] = static_cast<int>(option);
        NEREID_TRY(const bool on, add(choice));
        if (!on) return false;
      }
    return true;
  }

  // Of all groups but the last. Nothing: it would take too many runs. False: it was stopped.
  Result<std::optional<bool>> together() {
    std::vector<OptionChoice> memories = {OptionChoice(groups_.size())};  // one choice for each
    for (size_t g = 0; g < groups_.size(); ++g) {
      const bool last = g + 1 == groups_.size();
      if (memories.size() * groups_[g].options.size() > kMaxExhaustive) return std::optional<bool>();
      std::vector<OptionChoice> next;
      for (const auto& memory : memories) {
        std::set<Left> seen = {left_of(memory)};
        next.push_back(memory);
        for (size_t option = 1; option <= groups_[g].options.size(); ++option) {
          OptionChoice choice = memory;
          choice[g] = static_cast<int>(option);
          NEREID_TRY(const bool on, add(choice));
          if (!on) return std::optional(false);
          if (!ran(choice) || last) continue;
          if (seen.insert(left_of(choice)).second || !ends_before_others(g))
            next.push_back(std::move(choice));
        }
      }
      memories = std::move(next);
    }
    return std::optional(true);
  }

  // Every pair of options of two groups whose memory later launches may distinguish from the defaults'.
  Result<bool> pairs() {
    std::set<Pair> open;
    for (size_t g = 0; g < groups_.size(); ++g)
      for (const int option : distinct_options(g))
        for (size_t h = g + 1; h < groups_.size(); ++h)
          for (size_t other = 1; other <= groups_[h].options.size(); ++other)
            if (ran(single(h, static_cast<int>(other))))
              open.insert({{g, option}, {h, static_cast<int>(other)}});
    while (!open.empty()) {
      const OptionChoice choice = cover(open);
      NEREID_TRY(const bool on, add(choice));
      if (!on) return false;
      std::erase_if(
          open, [&](const Pair& pair) { return holds(choice, pair.first) && holds(choice, pair.second); });
    }
    return true;
  }

  size_t runs() const { return runs_; }

 private:
  using Left = std::map<int, uint64_t>;
  using OptionOf = std::pair<size_t, int>;  // group, option
  using Pair = std::pair<OptionOf, OptionOf>;

  static bool holds(const OptionChoice& choice, const OptionOf& option) {
    return choice[option.first] == option.second;
  }
  OptionChoice single(size_t group, int option) const {
    OptionChoice choice(groups_.size());
    choice[group] = option;
    return choice;
  }

  // False: stop.
  Result<bool> add(const OptionChoice& choice) {
    if (known_.contains(choice)) return true;
    NEREID_TRY(auto done, run_(choice, groups_.size() > 1));
    ++runs_;
    if (done.end == ConfigurationRun::End::kStop) return false;
    auto& known = known_[choice];
    if (done.end == ConfigurationRun::End::kAgrees) known = std::move(done.left);
    return true;
  }
  bool ran(const OptionChoice& choice) const { return known_.at(choice).has_value(); }
  Left left_of(const OptionChoice& choice) const { return known_.at(choice).value_or(Left{}); }

  // What its launches leave says all about its choice: no launch of a later group comes before its last.
  bool ends_before_others(size_t group) const {
    return std::all_of(groups_.begin() + static_cast<int64_t>(group) + 1, groups_.end(),
                       [&](const TunedGroup& g) { return g.steps.front() > groups_[group].steps.back(); });
  }

  std::vector<int> distinct_options(size_t group) const {
    std::set<Left> seen = {left_of(OptionChoice(groups_.size()))};
    std::vector<int> found;
    for (size_t option = 1; option <= groups_[group].options.size(); ++option) {
      const auto choice = single(group, static_cast<int>(option));
      if (!ran(choice)) continue;
      if (seen.insert(left_of(choice)).second || !ends_before_others(group))
        found.push_back(static_cast<int>(option));
    }
    return found;
  }

  // A choice with the first open pair, and of each other group the option that closes the most.
  OptionChoice cover(const std::set<Pair>& open) const {
    const Pair& first = *open.begin();
    OptionChoice choice(groups_.size());
    std::vector<bool> fixed(groups_.size());
    for (const auto& [group, option] : {first.first, first.second})
      choice[group] = option, fixed[group] = true;
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (fixed[g]) continue;
      std::map<int, int> closes;
      for (const auto& pair : open)
        for (const auto& [mine, other] : {pair, Pair{pair.second, pair.first}})
          if (mine.first == g && fixed[other.first] && holds(choice, other)) ++closes[mine.second];
      const auto best = std::ranges::max_element(closes, {}, [](const auto& entry) { return entry.second; });
      if (best != closes.end()) choice[g] = best->first, fixed[g] = true;
    }
    return choice;
  }

  const std::vector<TunedGroup>& groups_;
  const RunConfiguration& run_;
  std::map<OptionChoice, std::optional<Left>> known_;  // nothing where it cannot run
  size_t runs_ = 0;
};

int64_t launches_of(const trace::Phase& phase, int32_t tuner) {
  return std::ranges::count_if(phase.steps, [&](const trace::Step& step) {
    const auto* launch = std::get_if<trace::Launch>(&step);
    return launch != nullptr && launch->tuner == tuner;
  });
}

bool tunes(const trace::Trace& trace, const trace::Phase& judged, const trace::Launch& launch) {
  if (!launch.tuning || launch.tuner < 0) return false;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward && launches_of(phase, launch.tuner) > 0)
      return launches_of(phase, launch.tuner) == launches_of(judged, launch.tuner);
  return false;
}

// Different ones, an odd number of times in all.
std::vector<int> measured(const trace::Trace& trace, const trace::Launch& launch, replay::Device device) {
  std::vector<int> indices;
  std::set<std::string> seen;
  for (size_t i = 0; i < launch.alternatives.size(); ++i)
    if (seen.insert(text_of(trace, launch.alternatives[i], device)).second)
      indices.push_back(static_cast<int>(i));
  if (indices.size() % 2 == 0) indices.push_back(indices.back());
  return indices;
}

double programs(const trace::Alternative& alternative) {
  double count = 1;
  for (const auto n : alternative.grid) count *= static_cast<double>(n);
  return count;
}

}  // namespace

std::vector<replay::ConfiguredRun> tuning_runs(const TraceAnalysis& candidate, replay::Device device) {
  const auto& judged = candidate.trace->phases.at(static_cast<size_t>(candidate.judged()));
  std::vector<replay::ConfiguredRun> runs(3);
  for (size_t step = 0; step < judged.steps.size(); ++step) {
    const auto* launch = std::get_if<trace::Launch>(&judged.steps[step]);
    if (launch == nullptr || !tunes(*candidate.trace, judged, *launch)) continue;
    const auto [least, most] =
        std::ranges::minmax_element(launch->alternatives, {}, [](const auto& one) { return programs(one); });
    const auto first = launch->alternatives.begin();
    const std::array<int, 3> chosen = {0, static_cast<int>(least - first), static_cast<int>(most - first)};
    const auto alternatives = measured(*candidate.trace, *launch, device);
    for (size_t i = 0; i < runs.size(); ++i) {
      runs[i].tuned[static_cast<int>(step)] = alternatives;
      for (size_t other = step; chosen[i] > 0 && other < judged.steps.size(); ++other)
        if (const auto* same = std::get_if<trace::Launch>(&judged.steps[other]);
            same != nullptr && same->tuner == launch->tuner)
          runs[i].choices[static_cast<int>(other)] = chosen[i];
    }
  }
  if (runs[0].tuned.empty()) return {};
  if (runs[2].choices == runs[1].choices || runs[2].choices.empty()) runs.pop_back();
  if (runs[1].choices.empty()) runs.erase(runs.begin() + 1);
  return runs;
}

std::vector<TunedGroup> tuned_groups(const TraceAnalysis& candidate, replay::Device device) {
  auto groups = tuned_launch_groups(candidate);
  for (auto& group : groups) find_options(group, candidate, device);
  std::erase_if(groups, [](const TunedGroup& group) { return group.options.empty(); });
  return groups;
}

replay::Choices choices_of(const std::vector<TunedGroup>& groups, const OptionChoice& choice) {
  replay::Choices choices;
  for (size_t g = 0; g < groups.size(); ++g)
    if (choice[g] > 0)
      for (const int step : groups[g].steps)
        choices[step] = groups[g].options[static_cast<size_t>(choice[g]) - 1].index;
  return choices;
}

std::string describe_choice(const std::vector<TunedGroup>& groups, const OptionChoice& choice) {
  std::vector<std::string> configs;
  for (size_t g = 0; g < groups.size(); ++g)
    if (choice[g] > 0) configs.push_back(groups[g].options[static_cast<size_t>(choice[g]) - 1].config);
  return fmt::format("{}", fmt::join(configs, " with "));
}

Result<ConfigurationsRun> run_configurations(const std::vector<TunedGroup>& groups,
                                             const RunConfiguration& run) {
  ConfigurationsRun done;
  Exhaustive search(groups, run);
  const auto finish = [&](bool on) {
    done.runs = search.runs(), done.stopped = !on;
    return done;
  };
  NEREID_TRY(bool on, search.singles());
  if (!on || groups.size() < 2) return finish(on);
  NEREID_TRY(const auto together, search.together());
  if (together) return finish(*together);
  done.pairs_alone = true;
  NEREID_TRY(on, search.pairs());
  return finish(on);
}

}  // namespace nereid::verify
