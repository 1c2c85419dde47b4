#include "nereid/ttir/exec/races/happens_before.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace nereid::ttir {
namespace {

constexpr int64_t kFlag = 1 << 20, kOther = 1 << 21;

bool races(HappensBefore& history, AccessKind kind, int64_t low, int64_t high, int32_t program) {
  return history.access(kind, low, high, program, 0).has_value();
}

// The same for few programs, whose clocks are arrays, and for many.
class HappensBeforeTest : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(FewAndMany, HappensBeforeTest, testing::Values(8, 5000));

TEST_P(HappensBeforeTest, AReleaseAndAnAcquireOrder) {
  HappensBefore history(GetParam());
  EXPECT_FALSE(races(history, AccessKind::kWrite, 0, 64, 1));
  history.release(1, kFlag);
  history.acquire(2, kFlag);
  EXPECT_FALSE(races(history, AccessKind::kRead, 16, 32, 2));
  EXPECT_TRUE(races(history, AccessKind::kRead, 60, 68, 3));
  EXPECT_FALSE(races(history, AccessKind::kRead, 64, 68, 3));
  // What comes after the release is not released by it.
  EXPECT_FALSE(races(history, AccessKind::kWrite, 128, 132, 1));
  EXPECT_TRUE(races(history, AccessKind::kWrite, 128, 132, 2));
}

TEST_P(HappensBeforeTest, ByWayOfOthers) {
  HappensBefore history(GetParam());
  EXPECT_FALSE(races(history, AccessKind::kWrite, 0, 4, 0));
  for (int32_t p = 0; p < 5; ++p) {
    history.release(p, kFlag + p);
    history.acquire(p + 1, kFlag + p);
  }
  EXPECT_FALSE(races(history, AccessKind::kWrite, 0, 4, 5));
  EXPECT_TRUE(races(history, AccessKind::kRead, 0, 4, 6));
}

TEST_P(HappensBeforeTest, ReadsAndAtomics) {
  HappensBefore history(GetParam());
  EXPECT_FALSE(races(history, AccessKind::kRead, 0, 8192, 1));
  EXPECT_FALSE(races(history, AccessKind::kRead, 4000, 4200, 2));
  EXPECT_TRUE(races(history, AccessKind::kWrite, 4196, 4200, 1));
  EXPECT_FALSE(races(history, AccessKind::kWrite, 0, 4, 1));
  EXPECT_FALSE(races(history, AccessKind::kAtomic, 9000, 9004, 1));
  EXPECT_FALSE(races(history, AccessKind::kAtomic, 9000, 9004, 2));
  EXPECT_TRUE(races(history, AccessKind::kRead, 9000, 9004, 3));
  history.release(1, kOther);
  history.acquire(4, kOther);
  EXPECT_TRUE(races(history, AccessKind::kRead, 9000, 9004, 4));  // the second program's is not ordered
}

TEST_P(HappensBeforeTest, AReleaseCoversATileAfterABarrier) {
  using By = HappensBefore::By;
  using Barrier = HappensBefore::Barrier;
  HappensBefore history(GetParam());
  const auto tile = [&](AccessKind kind, int64_t low, int32_t program) {
    return history.access(kind, low, low + 4, program, 0, By::kTile);
  };
  EXPECT_FALSE(tile(AccessKind::kWrite, 0, 1));
  EXPECT_FALSE(tile(AccessKind::kRead, 64, 1));
  history.release(1, kFlag);
  history.acquire(2, kFlag);
  const auto race = tile(AccessKind::kRead, 0, 2);
  ASSERT_TRUE(race);
  EXPECT_TRUE(race->not_covered);
  EXPECT_TRUE(tile(AccessKind::kWrite, 64, 2)->not_covered);
  // A barrier after the release does not help, the next release does.
  history.barrier(1, Barrier::kFull);
  EXPECT_TRUE(tile(AccessKind::kRead, 0, 2));
  history.release(1, kFlag);
  EXPECT_TRUE(tile(AccessKind::kRead, 0, 2));
  history.acquire(2, kFlag);
  EXPECT_FALSE(tile(AccessKind::kRead, 0, 2));
  // What is read is done with where it was used; what is written is not.
  EXPECT_FALSE(tile(AccessKind::kRead, 128, 1));
  EXPECT_FALSE(tile(AccessKind::kWrite, 256, 1));
  history.barrier(1, Barrier::kOfReads);
  history.release(1, kFlag);
  history.acquire(2, kFlag);
  EXPECT_FALSE(tile(AccessKind::kWrite, 128, 2));
  EXPECT_TRUE(tile(AccessKind::kWrite, 256, 2));
  // Another program's access has not even been released.
  EXPECT_FALSE(tile(AccessKind::kRead, 512, 3));
  EXPECT_FALSE(tile(AccessKind::kWrite, 512, 2)->not_covered);
}

// Against every pair of accesses, ordered by transitive closure over the events.
TEST_P(HappensBeforeTest, AgreesWithAllPairs) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    struct Event {
      int kind, program;  // kind: 0 read, 1 write, 2 atomic, 3 acquire, 4 release
      int64_t place;
    };
    std::vector<Event> events;
    std::vector<std::vector<bool>> before;  // before[a][b]
    HappensBefore history(GetParam());
    bool found = false, expected = false;
    for (int n = 0; n < 40 && !expected; ++n) {
      const int draw = static_cast<int>(random() % 10);
      const Event e{draw < 2   ? 0
                    : draw < 4 ? 1
                    : draw < 5 ? 2
                    : draw < 7 ? 3
                               : 4,
                    static_cast<int>(random() % 4), static_cast<int64_t>(random() % 3)};
      std::vector<bool> known(events.size());
      for (size_t k = 0; k < events.size(); ++k)
        if (events[k].program == e.program ||
            (e.kind == 3 && events[k].kind == 4 && events[k].place == e.place)) {
          known[k] = true;
          for (size_t j = 0; j < k; ++j) known[j] = known[j] || before[k][j];
        }
      if (e.kind < 3) {
        for (size_t k = 0; k < events.size(); ++k) {
          const Event& o = events[k];
          const bool conflict = o.kind < 3 && o.place == e.place && o.program != e.program &&
                                !(o.kind == 0 && e.kind == 0) && !(o.kind == 2 && e.kind == 2);
          expected = expected || (conflict && !known[k]);
        }
        const auto kind = static_cast<AccessKind>(e.kind);
        found = races(history, kind, 4 * e.place, 4 * e.place + 4, e.program);
      } else if (e.kind == 3) {
        history.acquire(e.program, kFlag + e.place);
      } else {
        history.release(e.program, kFlag + e.place);
      }
      events.push_back(e);
      before.push_back(known);
    }
    EXPECT_EQ(found, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace nereid::ttir
