#include "nereid/synth/coverage.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/json.h"

namespace nereid::synth {
namespace {

constexpr size_t kDecades = 20;

size_t decade(double value) {
  return value < 10 ? 0 : std::min(kDecades - 1, static_cast<size_t>(std::log10(value)));
}

Json decades_json(const std::vector<uint64_t>& counts) {
  Json made = Json::object();
  for (size_t d = 0; d < counts.size(); ++d)
    if (counts[d] > 0) made[fmt::format("1e{}", d)] = counts[d];
  return made;
}

}  // namespace

Coverage::Coverage(const std::vector<const ops::Operator*>& operators)
    : operators_(operators),
      steps_(operators.size()),
      pairs_(operators.size() * operators.size()),
      flops_(kDecades),
      bytes_(kDecades) {
  std::sort(operators_.begin(), operators_.end());
}

size_t Coverage::number_of(const ops::Operator* op) const {
  return static_cast<size_t>(std::lower_bound(operators_.begin(), operators_.end(), op) - operators_.begin());
}

void Coverage::add(const Program& program) {
  ++programs_;
  two_results_ += program.waiting >= 0 ? 1 : 0;
  for (const Step& step : program.steps) {
    const size_t op = number_of(step.applied.op);
    ++steps_[op];
    ++ranks_[step.applied.out.rank];
    for (size_t d = 0; d < step.applied.out.rank; ++d) {
      const int32_t size = step.applied.out.dims[d];
      size_t size_class = 0;
      while (size_class + 1 < kClasses && size > cap(static_cast<int>(size_class))) ++size_class;
      ++sizes_[size_class], ++dims_;
      odd_ += static_cast<uint64_t>(size % 2);
    }
    size_t computed = 0;
    for (const Ref ref : step.operands) {
      if (ref.fresh) continue;
      ++pairs_[number_of(program.steps[ref.index].applied.op) * operators_.size() + op];
      ++computed;
    }
    taps_ += step.tap > 0 ? 1 : 0;
    joins_ += computed > 1 && step.tap == 0 ? 1 : 0;
  }
  const ProgramCost cost = cost_of(program);
  ++flops_[decade(cost.flops)], ++bytes_[decade(cost.bytes)];
}

Json Coverage::to_json() const {
  Json operators = Json::object(), ranks = Json::object(), sizes = Json::object();
  for (size_t i = 0; i < operators_.size(); ++i) operators[std::string(operators_[i]->name)] = steps_[i];
  for (size_t r = 0; r < ranks_.size(); ++r) ranks[std::to_string(r)] = ranks_[r];
  for (int c = 0; c < kClasses; ++c)
    sizes[fmt::format("{}-{}", c == 0 ? 1 : cap(c - 1) + 1, cap(c))] = sizes_[static_cast<size_t>(c)];
  const auto seen = std::count_if(pairs_.begin(), pairs_.end(), [](uint64_t n) { return n > 0; });
  return {{"programs", programs_},
          {"operators", operators},
          {"pairs_seen", seen},
          {"ranks", ranks},
          {"sizes", sizes},
          {"odd_sizes", odd_},
          {"taps", taps_},
          {"joins", joins_},
          {"two_results", two_results_},
          {"flops", decades_json(flops_)},
          {"bytes", decades_json(bytes_)}};
}

std::string Coverage::to_text() const {
  const auto used = std::count_if(steps_.begin(), steps_.end(), [](uint64_t n) { return n > 0; });
  const auto pairs = std::count_if(pairs_.begin(), pairs_.end(), [](uint64_t n) { return n > 0; });
  std::vector<size_t> order(operators_.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return steps_[a] > steps_[b]; });
  std::string text =
      fmt::format("operators  {} of {}, {} pairs of a result and its use\n", used, operators_.size(), pairs);
  if (!order.empty())
    text += fmt::format("           most: {} {}, least: {} {}\n", operators_[order.front()]->name,
                        steps_[order.front()], operators_[order.back()]->name, steps_[order.back()]);
  text += "ranks     ";
  for (size_t r = 0; r < ranks_.size(); ++r) text += fmt::format(" {}: {}", r, ranks_[r]);
  text += "\nsizes     ";
  for (int c = 0; c < kClasses; ++c) text += fmt::format(" <={}: {}", cap(c), sizes_[static_cast<size_t>(c)]);
  text += fmt::format("   odd: {:.0f} %\n",
                      dims_ == 0 ? 0 : 100.0 * static_cast<double>(odd_) / static_cast<double>(dims_));
  text += fmt::format("graphs     {} taps, {} joins, {} of two results\n", taps_, joins_, two_results_);
  return text;
}

}  // namespace nereid::synth
