#include "nereid/train/torch/profile.h"

#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "nereid/base/deadline.h"

namespace nereid::train {
namespace {

constexpr size_t kMostLines = 40;
constexpr size_t kMostOfName = 110;

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
  for (const auto& event : result->events()) {
    Row& row = (event.deviceType() == c10::DeviceType::CUDA ? on_device : on_host)[event.name()];
    row.ms += static_cast<double>(event.durationNs()) * 1e-6;
    ++row.count;
  }
  const auto& rows = on_device.empty() ? on_host : on_device;
  std::vector<std::pair<std::string, Row>> sorted(rows.begin(), rows.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
  double sum = 0;
  for (const auto& [name, row] : sorted) sum += row.ms;
  std::string table = fmt::format("{:>10} {:>7}  {}\n", "ms", "times", on_device.empty() ? "operator" : "kernel");
  for (size_t i = 0; i < std::min(sorted.size(), kMostLines); ++i)
    table += fmt::format("{:10.3f} {:7}  {}\n", sorted[i].second.ms, sorted[i].second.count,
                         sorted[i].first.substr(0, kMostOfName));
  return table + fmt::format("{:10.3f}          in all; {:.3f} ms by the clock\n", sum, 1e3 * seconds);
}

}  // namespace nereid::train
