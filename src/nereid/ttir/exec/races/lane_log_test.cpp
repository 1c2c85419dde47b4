#include "nereid/ttir/exec/races/lane_log.h"

#include <gtest/gtest.h>

namespace nereid::ttir {
namespace {

bool conflicts(LaneLog& log, LaneAccess kind, int64_t address, int64_t elements, int64_t lane,
               int64_t lanes) {
  log.next();
  return log.access(kind, {address, 4 * elements, lane, lanes, 4, 0}).has_value();
}

TEST(LaneLog, TheSameOffsetsAreTheSameLanes) {
  LaneLog log;
  EXPECT_FALSE(conflicts(log, LaneAccess::kWrite, 0, 128, 0, 128));
  EXPECT_FALSE(conflicts(log, LaneAccess::kRead, 0, 128, 0, 128));
  EXPECT_FALSE(conflicts(log, LaneAccess::kRead, 64, 16, 16, 128));  // a part of it, masked
  EXPECT_FALSE(conflicts(log, LaneAccess::kWrite, 0, 128, 0, 128));
  EXPECT_FALSE(conflicts(log, LaneAccess::kWrite, 4096, 1, 0, 1));
  EXPECT_FALSE(conflicts(log, LaneAccess::kRead, 4096, 1, 0, 1));
}

TEST(LaneLog, OtherLanesNeedABarrier) {
  LaneLog log;
  EXPECT_FALSE(conflicts(log, LaneAccess::kWrite, 0, 128, 0, 128));
  EXPECT_TRUE(conflicts(log, LaneAccess::kRead, 4, 127, 0, 128));    // shifted
  EXPECT_TRUE(conflicts(log, LaneAccess::kRead, 0, 128, 0, 256));    // a larger tile
  EXPECT_TRUE(conflicts(log, LaneAccess::kWrite, 40, 1, 0, 1));      // a scalar
  EXPECT_FALSE(conflicts(log, LaneAccess::kRead, 512, 128, 0, 64));  // next to it
  log.barrier();
  EXPECT_FALSE(conflicts(log, LaneAccess::kRead, 4, 127, 0, 128));
  EXPECT_TRUE(conflicts(log, LaneAccess::kWrite, 0, 128, 0, 128));  // overtakes the read
}

TEST(LaneLog, AtomicsAndOneTilesAccessesHaveNoOrder) {
  LaneLog log;
  EXPECT_FALSE(conflicts(log, LaneAccess::kAtomic, 0, 1, 0, 128));
  EXPECT_FALSE(conflicts(log, LaneAccess::kAtomic, 0, 1, 7, 128));
  EXPECT_TRUE(conflicts(log, LaneAccess::kRead, 0, 1, 7, 128));
  log.barrier();
  log.next();
  for (int64_t lane = 0; lane < 8; ++lane)  // one tile's
    EXPECT_FALSE(log.access(LaneAccess::kRead, {0, 4, lane, 8, 4, 0}).has_value());
  EXPECT_TRUE(conflicts(log, LaneAccess::kWrite, 0, 1, 7, 8));
}

}  // namespace
}  // namespace nereid::ttir
