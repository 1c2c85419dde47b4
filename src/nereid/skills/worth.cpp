#include "nereid/skills/worth.h"

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "nereid/base/json.h"

namespace nereid::skills {
namespace {

struct Arm {
  int64_t samples = 0, verified = 0;
  double log_ms = 0;  // summed over verified samples

  void take(const Sample& sample) {
    ++samples;
    if (!sample.verified || sample.ms <= 0) return;
    ++verified, log_ms += std::log(sample.ms);
  }
  double share() const { return static_cast<double>(verified) / static_cast<double>(samples); }
  double mean_log() const { return log_ms / static_cast<double>(verified); }
};

struct Group {
  Arm with, without;
  double reference_ms = 0;
};

struct Estimate {
  double mean = 0;
  gpu::Interval interval{};
};

Estimate estimate(const std::vector<double>& values, gpu::Interval unknown) {
  if (values.empty()) return {0, unknown};
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  if (values.size() < 2) return {mean, unknown};
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half =
      student_quantile(0.95, std::ssize(values) - 1) * std::sqrt(squares / (n - 1)) / std::sqrt(n);
  return {mean, {mean - half, mean + half}};
}

}  // namespace

Worth worth_of(const std::vector<Sample>& samples) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const auto& sample : samples) {
    Group& group = groups[{sample.question, sample.task}];
    (sample.skill.empty() ? group.without : group.with).take(sample);
    if (sample.reference_ms > 0) group.reference_ms = sample.reference_ms;
  }
  Worth worth;
  std::vector<double> gains, changes;
  for (const auto& [key, group] : groups) {
    const auto& [with, without, reference_ms] = group;
    if (with.samples == 0 || without.samples == 0) continue;
    ++worth.groups, worth.with += with.samples, worth.without += without.samples;
    worth.verified_with += with.share(), worth.verified_without += without.share();
    changes.push_back(with.share() - without.share());
    const bool neither = with.verified == 0 && without.verified == 0;
    const bool by_reference = with.verified == 0 || without.verified == 0;
    if (neither || (by_reference && reference_ms <= 0)) continue;
    const double reference = by_reference ? std::log(reference_ms) : 0;
    const double gain = (without.verified > 0 ? without.mean_log() : reference) -
                        (with.verified > 0 ? with.mean_log() : reference);
    gains.push_back(with.verified > 0 ? gain : std::min(gain, 0.0));
  }
  if (worth.groups > 0) {
    worth.verified_with /= static_cast<double>(worth.groups);
    worth.verified_without /= static_cast<double>(worth.groups);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const auto speed = estimate(gains, {-infinity, infinity});
  worth.compared = std::ssize(gains);
  worth.speedup = std::exp(speed.mean);
  worth.speedup_interval = {std::exp(speed.interval.low), std::exp(speed.interval.high)};
  const auto correct = estimate(changes, {-1, 1});
  worth.correctness = correct.mean, worth.correctness_interval = correct.interval;
  return worth;
}

Json to_json(const Worth& worth) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"groups", worth.groups},
          {"samples_with", worth.with},
          {"samples_without", worth.without},
          {"compared", worth.compared},
          {"speedup", worth.speedup},
          {"speedup_interval", {number(worth.speedup_interval.low), number(worth.speedup_interval.high)}},
          {"correctness", worth.correctness},
          {"correctness_interval", {worth.correctness_interval.low, worth.correctness_interval.high}},
          {"verified_with", worth.verified_with},
          {"verified_without", worth.verified_without}};
}

double student_within(double t, int64_t freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  double term = freedom % 2 == 1 ? cosine : 1, sum = freedom == 1 ? 0 : term;
  for (int64_t k = freedom % 2 == 1 ? 3 : 2; k < freedom; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return freedom % 2 == 1 ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

double student_quantile(double confidence, int64_t freedom) {
  double low = 0, high = 1;
  while (student_within(high, freedom) < confidence) high *= 2;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    (student_within(middle, freedom) < confidence ? low : high) = middle;
  }
  return high;
}

}  // namespace nereid::skills
