#include "nereid/eval/metrics.h"

#include <algorithm>
#include <cmath>

#include "nereid/base/check.h"

namespace nereid::eval {
namespace {

// fast_p and the geometric mean of one kind of speed-up.
void speeds(const std::vector<Score>& scores, std::optional<double> Score::* kind,
            std::map<std::string, double>& fast, std::optional<double>& geomean) {
  double logs = 0;
  int64_t measured = 0;
  for (const auto& score : scores)
    if (const auto& speedup = score.*kind; speedup && *speedup > 0) logs += std::log(*speedup), ++measured;
  if (measured == 0) return;
  geomean = std::exp(logs / static_cast<double>(measured));
  for (const double p : kFastP) {
    const auto faster = std::count_if(scores.begin(), scores.end(),
                                      [&](const Score& s) { return s.*kind && *(s.*kind) > p; });
    fast[fmt::format("{:g}", p)] = static_cast<double>(faster) / static_cast<double>(scores.size());
  }
}

// Of the scores that have the figure, by share of them (the nearest rank).
std::map<std::string, double> quantiles(const std::vector<Score>& scores,
                                        std::optional<double> Score::* kind) {
  std::vector<double> values;
  for (const auto& score : scores)
    if (score.*kind) values.push_back(*(score.*kind));
  std::ranges::sort(values);
  std::map<std::string, double> found;
  for (const double q : {0.1, 0.25, 0.5, 0.75, 0.9})
    if (!values.empty())
      found[fmt::format("{:g}", q)] =
          values[static_cast<size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
  return found;
}

}  // namespace

double pass_at_k(int64_t n, int64_t c, int64_t k) {
  NEREID_CHECK(0 <= c && c <= n && 1 <= k && k <= n, "0 <= c <= n and 1 <= k <= n, got n={} c={} k={}", n, c,
               k);
  if (n - c < k) return 1;
  double none = 1;  // the product form does not overflow
  for (int64_t i = n - c + 1; i <= n; ++i) none *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - none;
}

Summary summarize(const std::vector<Score>& scores) {
  Summary summary{.tasks = std::ssize(scores)};
  if (scores.empty()) return summary;
  int64_t fewest = INT64_MAX;
  for (const auto& score : scores) {
    if (score.solved || score.verified > 0) ++summary.verified;
    fewest = std::min(fewest, std::max<int64_t>(score.samples, 1));
  }
  speeds(scores, &Score::over_eager, summary.fast_p, summary.geomean);
  speeds(scores, &Score::over_compile, summary.fast_p_compile, summary.geomean_compile);
  speeds(scores, &Score::called_over_eager, summary.fast_p_called, summary.geomean_called);
  speeds(scores, &Score::called_over_compile, summary.fast_p_compile_called, summary.geomean_compile_called);
  speeds(scores, &Score::called_over_eager_tf32, summary.fast_p_called_tf32, summary.geomean_called_tf32);
  speeds(scores, &Score::called_over_compile_tf32, summary.fast_p_compile_called_tf32,
         summary.geomean_compile_called_tf32);
  summary.roofline = quantiles(scores, &Score::roofline);
  summary.first_seconds = quantiles(scores, &Score::first_seconds);
  summary.best_seconds = quantiles(scores, &Score::best_seconds);
  speeds(scores, &Score::modelled, summary.fast_p_modelled, summary.geomean_modelled);
  for (int64_t k = 1; k <= fewest; k *= 2) {
    double sum = 0;
    for (const auto& score : scores) sum += pass_at_k(std::max<int64_t>(score.samples, 1), score.verified, k);
    summary.pass_at_k[std::to_string(k)] = sum / static_cast<double>(scores.size());
  }
  return summary;
}

}  // namespace nereid::eval
