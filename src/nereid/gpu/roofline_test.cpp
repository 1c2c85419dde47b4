#include "nereid/gpu/roofline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nereid::gpu {
namespace {

TEST(Roofline, DevicesAreFoundByTheDriversName) {
  ASSERT_NE(peaks_of("NVIDIA H200"), nullptr);
  EXPECT_EQ(peaks_of("NVIDIA H200")->bytes, 4.8e12);
  EXPECT_EQ(peaks_of("NVIDIA GH200 480GB")->name, "GH200");
  EXPECT_EQ(peaks_of("NVIDIA H100 PCIe")->name, "H100 PCIe");
  EXPECT_EQ(peaks_of("NVIDIA H100 80GB HBM3")->name, "H100");
  EXPECT_EQ(peaks_of("NVIDIA GeForce GTX 970"), nullptr);
}

TEST(Roofline, TheSlowerOfMemoryAndArithmeticCounts) {
  const DevicePeaks& h200 = *peaks_of("NVIDIA H200");
  const Roofline memory = roofline(h200, {.bytes_read = 4.8e9, .f32 = 1});
  EXPECT_DOUBLE_EQ(memory.seconds, 1e-3);
  EXPECT_TRUE(memory.memory_bound);
  const Roofline compute = roofline(h200, {.bytes_read = 4.8e6, .half = 990e9});
  EXPECT_DOUBLE_EQ(compute.seconds, 1e-3);
  EXPECT_FALSE(compute.memory_bound);
}

TEST(Roofline, WritesMayStillLieInTheCache) {
  const DevicePeaks& h200 = *peaks_of("NVIDIA H200");
  EXPECT_EQ(roofline(h200, {.bytes_written = h200.l2_bytes}).seconds, 0);
  EXPECT_GT(roofline(h200, {.bytes_written = h200.l2_bytes + 4.8e9}).seconds, 0.99e-3);
}

TEST(Roofline, ATimeBelowItIsNamed) {
  const DevicePeaks& h200 = *peaks_of("NVIDIA H200");
  const Work work{.bytes_read = 4.8e9};
  EXPECT_EQ(below_roofline(h200, work, 1.0e-3), "");
  EXPECT_EQ(below_roofline(h200, work, 0.95e-3), "");
  EXPECT_EQ(below_roofline(h200, work, 0.5e-3),
            "500.000 us is less than the 1000.000 us that H200 needs to move the bytes counted");
}

TEST(Roofline, OfASampleLessIsSureThanWasSeen) {
  EXPECT_EQ(sure_share(0, 64), 0);
  EXPECT_NEAR(sure_share(64, 64), std::pow(1e-6, 1.0 / 64), 1e-9);  // 0.81
  EXPECT_GT(sure_share(32, 64), 0.2);
  EXPECT_LT(sure_share(32, 64), 0.25);
  EXPECT_LT(sure_share(1, 1), 1e-5);
}

}  // namespace
}  // namespace nereid::gpu
