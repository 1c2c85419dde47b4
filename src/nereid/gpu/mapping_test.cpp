#include "nereid/gpu/mapping.h"

#include <gtest/gtest.h>

#include "tests/support/fake_driver.h"

namespace nereid::gpu {
namespace {

constexpr size_t kPage = FakeDriver::kGranularity;

TEST(Layout, DataEndsWithinFifteenBytesOfTheFence) {
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{4000}, kPage - 1, kPage, kPage + 1, 5 * kPage}) {
    const Layout end = lay_out(bytes, kPage, Placement::kAtEnd);
    EXPECT_EQ(end.mapped % kPage, 0U);
    EXPECT_EQ(end.fence % kPage, 0U);
    EXPECT_GE(end.fence, Mapping::kFence);
    EXPECT_EQ(end.offset % Mapping::kAlignment, 0U);
    EXPECT_LE(end.offset + bytes, end.mapped);
    EXPECT_LT(end.mapped - end.offset - bytes, Mapping::kAlignment);
    EXPECT_LT(end.mapped, bytes + kPage + 1);
    EXPECT_EQ(end.reserved, end.mapped + 2 * end.fence);
    EXPECT_EQ(lay_out(bytes, kPage, Placement::kAtBegin).offset, 0U);
  }
}

TEST(Mapping, PagesLieBetweenFencesAndGoWithIt) {
  auto& record = FakeDriver::reset();
  {
    const auto made = Mapping::create(FakeDriver::driver(), 0, 1000, Placement::kAtEnd);
    ASSERT_TRUE(made.ok());
    ASSERT_EQ(record.reserved.size(), 1U);
    ASSERT_EQ(record.mapped.size(), 1U);
    const auto [base, reserved] = *record.reserved.begin();
    const auto [pages, mapped] = *record.mapped.begin();
    EXPECT_GE(pages, base + Mapping::kFence);
    EXPECT_LE(pages + mapped, base + reserved - Mapping::kFence);
    EXPECT_EQ(made->data() + 1008, pages + mapped);  // 1000 rounded up to 16
    EXPECT_EQ(record.access.at(pages), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  }
  EXPECT_TRUE(record.reserved.empty() && record.mapped.empty() && record.handles.empty());
}

TEST(Mapping, AFailureHalfWayLeavesNothing) {
  for (const char* function : {"cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"}) {
    auto& record = FakeDriver::reset();
    record.fail = function;
    const auto made = Mapping::create(FakeDriver::driver(), 0, 1000, Placement::kAtEnd);
    ASSERT_FALSE(made.ok());
    EXPECT_TRUE(made.error().message.starts_with(function)) << made.error().message;
    EXPECT_TRUE(record.reserved.empty() && record.mapped.empty() && record.handles.empty()) << function;
  }
}

TEST(Mapping, MovingDoesNotUnmap) {
  auto& record = FakeDriver::reset();
  auto made = Mapping::create(FakeDriver::driver(), 0, 1000, Placement::kAtBegin);
  ASSERT_TRUE(made.ok());
  Mapping first = *std::move(made);
  const CUdeviceptr data = first.data();
  Mapping second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(record.mapped.size(), 1U);
  auto other = Mapping::create(FakeDriver::driver(), 0, 10, Placement::kAtBegin);
  ASSERT_TRUE(other.ok());
  second = *std::move(other);
  EXPECT_NE(second.data(), data);
}

TEST(Mapping, OverwrittenSlackIsSeen) {
  for (const Placement placement : {Placement::kAtEnd, Placement::kAtBegin}) {
    auto& record = FakeDriver::reset();
    const auto made = Mapping::create(FakeDriver::driver(), 0, 1000, placement);
    ASSERT_TRUE(made.ok());
    EXPECT_EQ(made->check_slack().value(), 0);
    record.bytes[made->data() + 1000] = 0;
    EXPECT_EQ(made->check_slack().value(), 1);
    record.bytes[made->data() + 1001] = 1;
    EXPECT_EQ(made->check_slack().value(), 2);
    record.bytes[made->data() + 999] = 1;  // its own
    EXPECT_EQ(made->check_slack().value(), 2);
    if (placement == Placement::kAtEnd) {
      record.bytes[made->data() - 1] = 1;
      EXPECT_EQ(made->check_slack().value(), 3);
    }
  }
}

TEST(Mapping, AnImportLargerThanWhatWasMadeIsRefused) {
  FakeDriver::reset();
  const Fd fd;
  EXPECT_TRUE(Mapping::import(FakeDriver::driver(), 0, fd, kPage, Placement::kAtEnd, Access::kRead).ok());
  const auto larger =
      Mapping::import(FakeDriver::driver(), 0, fd, kPage + 1, Placement::kAtEnd, Access::kRead);
  ASSERT_FALSE(larger.ok());
  EXPECT_TRUE(larger.error().message.starts_with("cuMemMap")) << larger.error().message;
  EXPECT_TRUE(FakeDriver::record().handles.empty());
}

}  // namespace
}  // namespace nereid::gpu
