#include "nereid/train/sft/profile.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "nereid/base/deadline.h"

namespace nereid::train {
namespace {

constexpr size_t kMaxLines = 40, kMaxGaps = 8;
constexpr size_t kMaxNameBytes = 110;

// What ran on the device from `begin` to `end`, in nanoseconds.
struct Ran {
  int64_t begin = 0, end = 0;
  std::string name;
};

// When nothing ran on the device between its first kernel and its last, and the longest such gaps.
std::string idle_times(std::vector<Ran> spans) {
  if (spans.empty()) return "";
  std::ranges::sort(spans, {}, &Ran::begin);
  struct Gap {
    int64_t length;
    const Ran *before, *after;
  };
  std::vector<Gap> gaps;
  int64_t idle = 0;
  const Ran* last = &spans.front();  // what ended last so far
  for (const Ran& span : spans) {
    if (span.begin > last->end) {
      idle += span.begin - last->end;
      gaps.push_back({span.begin - last->end, last, &span});
    }
    if (span.end > last->end) last = &span;
  }
  std::ranges::sort(gaps, std::greater(), &Gap::length);
  std::string text = fmt::format(
      "{:10.3f} {:7}  idle between kernels, of {:.3f} ms from the first to the last; the longest:\n",
      1e-6 * static_cast<double>(idle), gaps.size(),
      1e-6 * static_cast<double>(last->end - spans.front().begin));
  for (size_t i = 0; i < std::min(gaps.size(), kMaxGaps); ++i)
    text += fmt::format("{:10.3f}          at {:.3f} ms, after {} and before {}\n",
                        1e-6 * static_cast<double>(gaps[i].length),
                        1e-6 * static_cast<double>(gaps[i].before->end - spans.front().begin),
                        gaps[i].before->name.substr(0, kMaxNameBytes / 2),
                        gaps[i].after->name.substr(0, kMaxNameBytes / 2));
  return text;
}

}  // namespace

Result<std::string> profiled(const std::function<Status()>& work) {
  namespace profiler = torch::autograd::profiler;
  using torch::profiler::impl::ActivityType;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<ActivityType> activities = {ActivityType::CPU, ActivityType::CUDA};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  const Stopwatch clock;
  const Status done = work();
  const double seconds = clock.seconds();
  const auto result = profiler::disableProfiler();
  if (!done.ok()) return done.error();

  struct Row {
    double ms = 0;
    int64_t count = 0;
  };
  std::map<std::string, Row> on_device, on_host;
  std::vector<Ran> spans;
  for (const auto& event : result->events()) {
    Row& row = (event.deviceType() == c10::DeviceType::CUDA ? on_device : on_host)[event.name()];
    row.ms += static_cast<double>(event.durationNs()) * 1e-6;
    ++row.count;
    if (event.deviceType() != c10::DeviceType::CUDA) continue;
    const auto begin = static_cast<int64_t>(event.startNs());
    spans.push_back({begin, begin + static_cast<int64_t>(event.durationNs()), event.name()});
  }
  const auto& rows = on_device.empty() ? on_host : on_device;
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  double sum = 0;
  for (const auto& [name, row] : sorted) sum += row.ms;
  std::string table =
      fmt::format("{:>10} {:>7}  {}\n", "ms", "times", on_device.empty() ? "operator" : "kernel");
  for (size_t i = 0; i < std::min(sorted.size(), kMaxLines); ++i)
    table += fmt::format("{:10.3f} {:7}  {}\n", sorted[i].second.ms, sorted[i].second.count,
                         sorted[i].first.substr(0, kMaxNameBytes));
  table += fmt::format("{:10.3f}          in all; {:.3f} ms by the clock\n", sum, 1e3 * seconds);
  return table + idle_times(std::move(spans));
}

}  // namespace nereid::train
