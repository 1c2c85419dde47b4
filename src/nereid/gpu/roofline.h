// The least time that a GPU can need for counted work. A measured time below it is a broken clock or a broken
// count, never a win.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nereid::gpu {

// Peak rates from the vendor's datasheets, without sparsity; per second.
struct DevicePeaks {
  std::string_view name;              // part of the name that the driver reports
  double bytes = 0;                   // of device memory
  double l2_bytes = 0;                // size of the level-2 cache
  double f64 = 0, f32 = 0;            // floating-point operations outside the matrix units (f64: with them)
  double tf32 = 0, half = 0, f8 = 0;  // in the matrix units; half: fp16 and bf16
};
// Null for a device that the table does not hold: nothing is then checked.
const DevicePeaks* peaks_of(std::string_view device_name);

// What a program must do at least: every byte it needs read once, every byte of its result written once.
struct Work {
  double bytes_read = 0, bytes_written = 0;
  double f64 = 0, f32 = 0, tf32 = 0, half = 0, f8 = 0;  // operations by the unit that does them
};

struct Roofline {
  double seconds = 0;
  bool memory_bound = false;
};
// Cold cache: what is read comes from memory; of what is written, as much as the level-2 cache holds may
// are still there when the clock stops, so that much is not counted.
Roofline roofline(const DevicePeaks& peaks, const Work& work);

// Says what is wrong with a measured time; empty where nothing is. `slack` allows for boost clocks above the
// datasheet's and for the clock's own resolution.
std::string below_roofline(const DevicePeaks& peaks, const Work& work, double seconds, double slack = 0.9);

// The lower confidence bound (at 1 - 1e-6) on the share of parts that matter, where `mattered` of `tried`
// parts drawn at random did (Clopper and Pearson 1934). It may understate the share; it overstates it once in
// a million times.
double sure_share(int mattered, int tried);

}  // namespace nereid::gpu
