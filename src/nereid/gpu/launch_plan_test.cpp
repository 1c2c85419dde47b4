#include "nereid/gpu/launch_plan.h"

#include <cuda.h>
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

namespace {

using testing::ElementsAre;

struct Seen {
  CUlaunchConfig config;
  CUfunction function;
  std::vector<uint64_t> values;
  bool cooperative;
};
std::vector<Seen> g_seen;
CUresult g_answer = CUDA_SUCCESS;

CUresult record(const CUlaunchConfig* config, CUfunction function, void** parameters, void** extra) {
  EXPECT_EQ(extra, nullptr);
  Seen seen{.config = *config, .function = function, .values = {}, .cooperative = false};
  for (int i = 0; i < 2; ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i], sizeof value);
    seen.values.push_back(value);
  }
  for (unsigned i = 0; i < config->numAttrs; ++i)
    seen.cooperative |=
        config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && config->attrs[i].value.cooperative == 1;
  g_seen.push_back(seen);
  return g_answer;
}

class LaunchPlan : public testing::Test {
 protected:
  LaunchPlan() { g_seen.clear(), g_answer = CUDA_SUCCESS; }

  int functions_[2] = {};
  NereidParameter first_[2] = {{.value = 512, .slot = 1}, {.value = 7, .slot = -1}};
  NereidParameter second_[2] = {{.value = 0, .slot = 0}, {.value = 0x3f800000, .slot = -1}};
  NereidLaunch launches_[2] = {{.function = &functions_[0],
                                .grid = {3, 2, 1},
                                .threads = 128,
                                .shared_bytes = 0,
                                .cooperative = 0,
                                .parameters = 2,
                                .parameter = first_},
                               {.function = &functions_[1],
                                .grid = {132, 1, 1},
                                .threads = 256,
                                .shared_bytes = 4096,
                                .cooperative = 1,
                                .parameters = 2,
                                .parameter = second_}};
  NereidPlan plan_{.launch_kernel_ex = reinterpret_cast<void*>(&record), .launch = launches_, .launches = 2};
  const uint64_t pointers_[2] = {0x7000, 0x9000};
  int stream_ = 0;
};

TEST_F(LaunchPlan, LaunchesInOrder) {
  ASSERT_EQ(nereid_launch(&plan_, &stream_, pointers_), 0);
  ASSERT_EQ(g_seen.size(), 2U);
  const auto& one = g_seen[0];
  EXPECT_EQ(one.function, reinterpret_cast<CUfunction>(&functions_[0]));
  EXPECT_EQ(one.config.gridDimX, 3U);
  EXPECT_EQ(one.config.gridDimY, 2U);
  EXPECT_EQ(one.config.gridDimZ, 1U);
  EXPECT_EQ(one.config.blockDimX, 128U);
  EXPECT_EQ(one.config.blockDimY, 1U);
  EXPECT_EQ(one.config.hStream, reinterpret_cast<CUstream>(&stream_));
  EXPECT_THAT(one.values, ElementsAre(0x9000 + 512, 7));
  EXPECT_FALSE(one.cooperative);
  EXPECT_EQ(g_seen[1].config.sharedMemBytes, 4096U);
  EXPECT_THAT(g_seen[1].values, ElementsAre(0x7000, 0x3f800000));
  EXPECT_TRUE(g_seen[1].cooperative);
}

TEST_F(LaunchPlan, StopsAtTheFirstError) {
  g_answer = CUDA_ERROR_INVALID_CONTEXT;
  EXPECT_EQ(nereid_launch(&plan_, &stream_, pointers_), static_cast<int>(CUDA_ERROR_INVALID_CONTEXT));
  EXPECT_EQ(g_seen.size(), 1U);
}

}  // namespace
