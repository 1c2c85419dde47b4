#include "nereid/train/rl/step_times.h"

#include <fmt/format.h>

#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "nereid/gpu/nvml.h"

namespace nereid::train {
namespace {

constexpr double kMinShare = 0.01;  // of a step: in less there are too few readings for a mean

}  // namespace

StepTimes::StepTimes(Utilization utilization, double period) : utilization_(std::move(utilization)) {
  if (utilization_)
    watching_ = std::jthread([this, period](const std::stop_token& stop) {
      std::unique_lock lock(mutex_);
      const auto pause = std::chrono::duration<double>(period);
      while (!wake_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
        lock.unlock();
        const auto read = utilization_();
        lock.lock();
        if (!read) continue;
        auto& readings = readings_[static_cast<size_t>(part_)];
        readings.sum += *read, readings.count += 1;
      }
    });
}

StepTimes::~StepTimes() = default;

StepTimes::Utilization StepTimes::utilization_of(int gpu) {
  if (gpu < 0) return {};
  auto nvml = gpu::Nvml::open_visible(gpu);
  if (!nvml.ok() || !nvml->utilization()) return {};
  return [nvml = *std::move(nvml)] { return nvml.utilization(); };
}

void StepTimes::begin() {
  const std::lock_guard lock(mutex_);
  part_ = StepPart::kOther;
  since_ = Stopwatch();
  seconds_ = {};
  readings_ = {};
}

void StepTimes::settle() {
  seconds_[static_cast<size_t>(part_)] += since_.seconds();
  since_ = Stopwatch();
}

void StepTimes::enter(StepPart part) {
  const std::lock_guard lock(mutex_);
  settle();
  part_ = part;
}

double StepTimes::seconds(StepPart part) const {
  const std::lock_guard lock(mutex_);
  return seconds_[static_cast<size_t>(part)] + (part == part_ ? since_.seconds() : 0);
}

Figures StepTimes::figures() {
  const std::lock_guard lock(mutex_);
  settle();
  const double whole = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  Figures figures;
  Readings all;
  for (size_t part = 0; part < kParts; ++part) {
    const double share = whole > 0 ? seconds_[part] / whole : 0;
    figures.emplace_back(fmt::format("wall/{}", kStepParts[part]), share);
    const Readings& readings = readings_[part];
    all.sum += readings.sum, all.count += readings.count;
    if (share >= kMinShare && readings.count > 0)
      figures.emplace_back(fmt::format("busy/gpu_{}", kStepParts[part]), readings.sum / readings.count);
  }
  if (all.count > 0) figures.emplace_back("busy/gpu", all.sum / all.count);
  return figures;
}

}  // namespace nereid::train
