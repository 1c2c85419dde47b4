#include "nereid/verify/rules/host_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace nereid::verify {
namespace {

using Numbers = std::vector<double>;
using Slots = std::map<std::string, Numbers>;

constexpr int kMaxBlock = 4096;
constexpr size_t kMaxSingle = 512;  // numbers of a sequence that are sizes by themselves
constexpr size_t kMaxInOrder = 2048;
constexpr size_t kMaxFirst = 64;  // numbers that the first of several may follow from
constexpr int kEveryBlock = 128;  // up to this size all are tried, then powers of two

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

double blocks_of(double n, int size) { return std::ceil(n / size); }
double next_power(double n) { return n <= 1 ? 1 : std::exp2(std::ceil(std::log2(n))); }
int next_size(int size) { return size < kEveryBlock ? size + 1 : 2 * size; }

// Of one call: each input with what is made of it, in the same order in every call.
std::vector<Numbers> sequences(const std::vector<Numbers>& inputs) {
  std::vector<Numbers> all;
  for (const auto& input : inputs) {
    Numbers differences, sums = {0};
    for (size_t i = 1; i < input.size(); ++i) differences.push_back(input[i] - input[i - 1]);
    for (const double n : input) sums.push_back(sums.back() + n);
    auto sorted = input;
    std::ranges::sort(sorted);
    all.insert(all.end(), {input, differences, sums, sorted, Numbers(sorted.rbegin(), sorted.rend())});
  }
  return all;
}

// Single numbers of a sequence, in the same order in every call.
Numbers sizes_of(const Numbers& sequence) {
  if (sequence.empty()) return {};
  const auto [low, high] = std::ranges::minmax(sequence);
  Numbers sizes = {low,
                   high,
                   std::accumulate(sequence.begin(), sequence.end(), 0.0),
                   static_cast<double>(sequence.size()),
                   static_cast<double>(std::ranges::count_if(sequence, [](double n) { return n != 0; })),
                   static_cast<double>(std::set<double>(sequence.begin(), sequence.end()).size()),
                   sequence.back()};
  const auto single = std::min(sequence.size(), kMaxSingle);
  sizes.insert(sizes.end(), sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(single));
  return sizes;
}

// Whether `counts`, one of each call, are one factor times `sizes`.
bool proportional(const Numbers& counts, const Numbers& sizes) {
  const auto last = counts.size() - 1;
  if (sizes[last] == 0 || counts[last] == 0) return false;
  for (size_t c = 0; c < counts.size(); ++c)
    if (!is_near(counts[c] * sizes[last], counts[last] * sizes[c])) return false;
  return true;
}

class Counts {
 public:
  Counts(const TraceAnalysis& facts, const Dataflow& flow) : facts_(facts), flow_(flow) {
    for (size_t p = 0; p < facts.phases.size(); ++p)
      if (facts.phases[p].kind == trace::PhaseKind::kForward) {
        slots_.push_back(static_cast<int>(p) == facts.judged() ? of_judged() : of_phase(facts.phases[p]));
        sequences_.push_back(sequences(pinned_inputs(*facts.trace, p)));
      }
  }

  std::optional<HostValue> find() const {
    if (slots_.size() < 2) return std::nullopt;
    for (size_t c = 0; c < sequences_.size(); ++c)
      if (sequences_[c].size() != sequences_.back().size()) return std::nullopt;
    for (const auto& [slot, numbers] : slots_.back()) {
      std::vector<Numbers> calls;
      for (const auto& slots : slots_) {
        const auto at = slots.find(slot);
        calls.push_back(at == slots.end() ? Numbers() : at->second);
      }
      const bool as_before =
          std::any_of(calls.begin(), calls.end() - 1, [&](const Numbers& n) { return n == numbers; });
      if (as_before || is_size(calls)) continue;
      return HostValue{
          step_of(slot),
          fmt::format("How often something is done ({}, here {}) follows from the values of integer "
                      "inputs, and is not a size made of them: it scales what is added up.",
                      slot, fmt::join(numbers, ", "))};
    }
    return std::nullopt;
  }

 private:
  static void collect(const StepAnalysis& step, Slots& slots) {
    if (step.work != Work::kTriton) return;
    for (const auto& count : step.counts) slots[count.slot].push_back(count.value);
    auto& launches = slots[step.name + ":launches"];
    if (launches.empty()) launches.push_back(0);
    ++launches[0];
  }
  static Slots of_phase(const PhaseAnalysis& phase) {
    Slots slots;
    for (const auto& step : phase.steps) collect(step, slots);
    return slots;
  }
  Slots of_judged() const { return of_phase(facts_.phases[static_cast<size_t>(facts_.judged())]); }

  const StepAnalysis* step_of(const std::string& slot) const {
    for (const auto& step : flow_.steps)
      if (slot.starts_with(step.facts->name + ":")) return step.facts;
    return nullptr;
  }

  bool is_size(std::vector<Numbers> calls) const {
    for (auto& numbers : calls) {
      if (numbers.empty()) return true;  // nothing to compare with
      if (std::ranges::all_of(numbers, [&](double n) { return n == numbers[0]; })) numbers.resize(1);
    }
    const bool single = std::ranges::all_of(calls, [](const Numbers& n) { return n.size() == 1; });
    for (size_t k = 0; k < sequences_.back().size(); ++k)
      if (single ? is_size_of(calls, k) : follow(calls, k)) return true;
    return false;
  }

  // One number a call.
  bool is_size_of(const std::vector<Numbers>& calls, size_t k) const {
    Numbers counts;
    std::vector<Numbers> sizes;
    for (size_t c = 0; c < calls.size(); ++c) {
      counts.push_back(calls[c][0]);
      sizes.push_back(sizes_of(sequences_[c][k]));
    }
    const auto tried = [&](auto made) {  // made(call): a size of it
      Numbers all;
      for (size_t c = 0; c < calls.size(); ++c) all.push_back(made(c));
      return proportional(counts, all);
    };
    const auto most = std::ranges::min(sizes, {}, &Numbers::size).size();
    for (int block = 1; block <= kMaxBlock; block = next_size(block)) {
      const auto blocks = [&](size_t c) {
        double sum = 0;
        for (const double n : sequences_[c][k]) sum += blocks_of(n, block);
        return sum;
      };
      if (tried(blocks)) return true;
      for (size_t j = 0; j < most; ++j)
        for (const int moved : {0, 1, -1})
          if (tried([&](size_t c) { return blocks_of(sizes[c][j] + moved, block); })) return true;
    }
    for (size_t j = 0; j < most; ++j)
      if (tried([&](size_t c) { return next_power(sizes[c][j]); })) return true;
    return false;
  }

  // Several a call, in the order of a sequence; numbers that are left out are between.
  bool follow(const std::vector<Numbers>& calls, size_t k) const {
    const auto& last = sequences_.back()[k];
    if (last.size() > kMaxInOrder) return false;
    for (int block = 1; block <= kMaxBlock; block = next_size(block))
      for (const bool power : {false, true}) {
        const auto all = [&](size_t c) {
          return [&, c](double factor) {
            size_t at = 0;
            for (const double n : sequences_[c][k]) {
              const double size = power ? next_power(n) : blocks_of(n, block);
              if (at < calls[c].size() && is_near(calls[c][at], factor * size)) ++at;
            }
            return at == calls[c].size();
          };
        };
        std::set<double> factors;
        for (size_t i = 0; i < std::min(last.size(), kMaxFirst); ++i) {
          const double size = power ? next_power(last[i]) : blocks_of(last[i], block);
          if (size > 0) factors.insert(calls.back()[0] / size);
        }
        for (const double factor : factors) {
          bool every = true;
          for (size_t c = 0; c < calls.size() && every; ++c) every = all(c)(factor);
          if (every) return true;
        }
      }
    return false;
  }

  const TraceAnalysis& facts_;
  const Dataflow& flow_;
  std::vector<Slots> slots_;                     // of each call
  std::vector<std::vector<Numbers>> sequences_;  // likewise
};

}  // namespace

std::optional<HostValue> counted_by_host(const TraceAnalysis& facts, const Dataflow& flow) {
  if (facts.judged() < 0 || std::ranges::none_of(facts.trace->storages, &trace::Storage::pinned))
    return std::nullopt;
  return Counts(facts, flow).find();
}

}  // namespace nereid::verify
