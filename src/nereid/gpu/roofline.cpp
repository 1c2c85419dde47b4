#include "nereid/gpu/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace nereid::gpu {
namespace {

constexpr double kTera = 1e12, kMebi = 1 << 20;
// A name that holds another comes first: "GH200" before "H200".
constexpr DevicePeaks kDevices[] = {
    {"GH200", 4.9 * kTera, 60 * kMebi, 67 * kTera, 67 * kTera, 495 * kTera, 990 * kTera, 1979 * kTera},
    {"H200", 4.8 * kTera, 60 * kMebi, 67 * kTera, 67 * kTera, 495 * kTera, 990 * kTera, 1979 * kTera},
    {"H100 PCIe", 2.04 * kTera, 50 * kMebi, 51 * kTera, 51 * kTera, 378 * kTera, 757 * kTera, 1513 * kTera},
    {"H100 NVL", 3.94 * kTera, 50 * kMebi, 60 * kTera, 60 * kTera, 418 * kTera, 836 * kTera, 1671 * kTera},
    {"H100", 3.36 * kTera, 50 * kMebi, 67 * kTera, 67 * kTera, 495 * kTera, 990 * kTera, 1979 * kTera},
    {"A100", 2.04 * kTera, 40 * kMebi, 19.5 * kTera, 19.5 * kTera, 156 * kTera, 312 * kTera, 312 * kTera},
};

}  // namespace

const DevicePeaks* peaks_of(std::string_view device_name) {
  for (const DevicePeaks& peaks : kDevices)
    if (device_name.find(peaks.name) != std::string_view::npos) return &peaks;
  return nullptr;
}

Roofline roofline(const DevicePeaks& peaks, const Work& work) {
  const double memory = (work.bytes_read + std::max(0.0, work.bytes_written - peaks.l2_bytes)) / peaks.bytes;
  // The matrix units and the ordinary ones can be busy at once.
  const double matrix = work.tf32 / peaks.tf32 + work.half / peaks.half + work.f8 / peaks.f8;
  const double compute = std::max({matrix, work.f32 / peaks.f32, work.f64 / peaks.f64});
  return {std::max(memory, compute), memory >= compute};
}

std::string below_roofline(const DevicePeaks& peaks, const Work& work, double seconds, double slack) {
  const Roofline least = roofline(peaks, work);
  if (seconds >= slack * least.seconds) return {};
  return fmt::format("{:.3f} us is less than the {:.3f} us that {} needs to {}", seconds * 1e6,
                     least.seconds * 1e6, peaks.name,
                     least.memory_bound ? "move the bytes counted" : "do the operations counted");
}

double sure_share(int mattered, int tried) {
  constexpr double kErrorRate = 1e-6;
  // How likely that many are of which each matters with probability p; grows with p.
  const auto at_least = [&](double p) {
    double sum = 0;
    for (int k = mattered; k <= tried; ++k)
      sum += std::exp(std::lgamma(tried + 1) - std::lgamma(k + 1) - std::lgamma(tried - k + 1) +
                      k * std::log(p) + (tried - k) * std::log1p(-p));
    return sum;
  };
  if (mattered <= 0) return 0;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (at_least(middle) < kErrorRate ? low : high) = middle;
  }
  return low;
}

}  // namespace nereid::gpu
