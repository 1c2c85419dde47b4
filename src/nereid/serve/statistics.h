// What a server counts: for Prometheus and for its page.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "nereid/base/json.h"

namespace nereid::serve {

double seconds_now();  // since 1970

// Counts of durations, as a Prometheus histogram.
class Histogram {
 public:
  void add(double seconds);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600};
  std::array<int64_t, kBounds.size()> counts_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

// For one thread.
struct Statistics {
  double started = seconds_now();
  std::map<std::pair<std::string, int>, int64_t> requests;  // by route and HTTP status
  std::map<std::string, int64_t> verdicts;                  // by kind
  std::map<std::string, int64_t> refused;                   // by reason: "queue", "client", "token", ...
  int64_t accepted = 0;                                     // pairs that were to be judged
  int64_t known = 0;  // pairs that were asked before: nothing is judged again
  int64_t faults = 0, restarts = 0;
  Histogram judging, waiting;  // seconds that the judge took; from accepted to answered
  std::deque<std::pair<double, std::string>> errors;  // the latest, with their times

  void verdict(const std::string& kind, double took, double waited);
  void error(const std::string& message);
  // Verdicts of the last minutes in steps of `kStep` seconds, the oldest first.
  Json series() const;
  double per_minute() const;  // over the last minute

  static constexpr double kStep = 10;
  static constexpr size_t kSteps = 60;

 private:
  std::deque<std::pair<int64_t, int64_t>> steps_;  // number of the step, verdicts in it
};

// A value as one line, with its labels: `name{label="value"} 1`.
std::string metric(const std::string& name, const std::string& label, const std::string& value,
                   double number);
std::string metric_head(const std::string& name, const std::string& type, const std::string& help);

}  // namespace nereid::serve
