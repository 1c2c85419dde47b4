#include "nereid/serve/statistics.h"

#include <chrono>

namespace nereid::serve {
namespace {

constexpr size_t kMaxErrors = 50;

int64_t step_of(double seconds) { return static_cast<int64_t>(seconds / Statistics::kStep); }

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void Histogram::add(double seconds) {
  ++count_;
  sum_ += seconds;
  for (size_t i = 0; i < kBounds.size(); ++i)
    if (seconds <= kBounds[i]) ++counts_[i];
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = metric_head(name, "histogram", help);
  for (size_t i = 0; i < kBounds.size(); ++i)
    text += metric(name + "_bucket", "le", fmt::format("{:g}", kBounds[i]), static_cast<double>(counts_[i]));
  text += metric(name + "_bucket", "le", "+Inf", static_cast<double>(count_));
  return text + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, sum_, count_);
}

void Statistics::verdict(const std::string& kind, double took, double waited) {
  ++verdicts[kind];
  judging.add(took);
  waiting.add(waited);
  const int64_t step = step_of(seconds_now());
  if (steps_.empty() || steps_.back().first != step) steps_.emplace_back(step, 0);
  ++steps_.back().second;
  if (steps_.size() > kSteps) steps_.pop_front();
}

void Statistics::error(const std::string& message) {
  errors.emplace_front(seconds_now(), message);
  if (errors.size() > kMaxErrors) errors.pop_back();
}

Json Statistics::series() const {
  std::map<int64_t, int64_t> counts(steps_.begin(), steps_.end());
  const int64_t now = step_of(seconds_now());
  Json series = Json::array();
  for (int64_t step = now - static_cast<int64_t>(kSteps) + 1; step <= now; ++step)
    series.push_back(counts.contains(step) ? counts[step] : 0);
  return series;
}

double Statistics::per_minute() const {
  const int64_t now = step_of(seconds_now());
  double count = 0;
  for (const auto& [step, verdicts_in_it] : steps_)
    if (static_cast<double>(now - step) * kStep < 60) count += static_cast<double>(verdicts_in_it);
  return count;
}

std::string metric(const std::string& name, const std::string& label, const std::string& value,
                   double number) {
  if (label.empty()) return fmt::format("{} {}\n", name, number);
  std::string escaped;
  for (const char c : value)
    escaped += c == '"' || c == '\\' ? fmt::format("\\{}", c) : c == '\n' ? "\\n" : std::string(1, c);
  return fmt::format("{}{{{}=\"{}\"}} {}\n", name, label, escaped, number);
}

std::string metric_head(const std::string& name, const std::string& type, const std::string& help) {
  return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

}  // namespace nereid::serve
