#include "nereid/gpu/driver.h"

#include <gtest/gtest.h>

#include "nereid/gpu/nvml.h"
#include "tests/support/fake_driver.h"

namespace nereid::gpu {
namespace {

TEST(Driver, AMachineWithoutOneSaysSo) {
  const auto driver = Driver::open();
  if (driver.ok()) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_TRUE(driver.error().message.starts_with("no CUDA device: ")) << driver.error().message;
  EXPECT_EQ(driver.error().blame, Blame::kOurs);
  EXPECT_EQ(Driver::open().error().message, driver.error().message);
}

TEST(Driver, AnErrorNamesTheFunctionAndTheCode) {
  const Error error = cuda_error(FakeDriver::driver(), CUDA_ERROR_OUT_OF_MEMORY, "cuMemMap(address, 1, 2)");
  EXPECT_EQ(error.message, "cuMemMap: CUDA error 2");
}

TEST(Driver, OnlyWhatAKernelCausesIsAKernelFault) {
  for (const CUresult code : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_ASSERT})
    EXPECT_TRUE(is_kernel_fault(code)) << code;
  for (const CUresult code : {CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_ECC_UNCORRECTABLE,
                              CUDA_ERROR_NOT_READY, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES})
    EXPECT_FALSE(is_kernel_fault(code)) << code;
}

TEST(Nvml, IdleIsNoThrottling) {
  EXPECT_TRUE(throttle_names(0x1).empty());
  EXPECT_EQ(throttle_names(0x24), (std::vector<std::string>{"power cap", "thermal"}));
}

}  // namespace
}  // namespace nereid::gpu
