#include "nereid/train/ranks/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>

namespace nereid::train {
namespace {

using testing::HasSubstr;

// Three ranks that exchange their numbers again and again; before its second time rank 2 fails in the given
// way.
Error trouble(const std::function<Status()>& of_rank_2) {
  const Status status = launch_ranks(3, [&](RankLink link) -> Status {
    link.patience_seconds = 1;
    const int64_t rank = link.rank;
    NEREID_TRY(const auto ranks, connect_ranks(std::move(link), at::kCPU));
    for (int turn = 0; turn < 3; ++turn) {
      if (rank == 2 && turn == 1) NEREID_TRY_STATUS(of_rank_2());
      NEREID_TRY(const auto numbers, gather_numbers(*ranks, std::vector<int64_t>(1, 10 * turn + rank)));
      if (numbers != std::vector<int64_t>{10 * turn, 10 * turn + 1, 10 * turn + 2})
        return our_error("expected everybody's numbers");
      std::vector<double> sum = {static_cast<double>(rank)};
      NEREID_TRY_STATUS(ranks->sum(sum));
      if (sum[0] != 3) return our_error("expected a sum of 3, got {}", sum[0]);
    }
    return ok_status();
  });
  return status.ok() ? Error{"none", Blame::kOurs} : status.error();
}

TEST(LocalRanks, SayTheirNumbersToEachOther) {
  EXPECT_EQ(trouble([] { return ok_status(); }).message, "none");
}

TEST(LocalRanks, WhoIsMissingIsNamed) {
  EXPECT_EQ(trouble([]() -> Status { return ::raise(SIGKILL), ok_status(); }).message,
            "rank 2 was killed by signal 9 (Killed); the others were stopped");
  EXPECT_EQ(trouble([]() -> Status { ::_exit(7); }).message, "rank 2 is gone");
  // It is there, and says nothing: it is waited for, not for ever, and stopped.
  EXPECT_EQ(trouble([]() -> Status { return ::raise(SIGSTOP), ok_status(); }).message,
            "rank 2 has not answered for 1 s");
}

// What a rank says itself comes before what the others make of its end.
TEST(LocalRanks, TheCauseIsReportedNotItsConsequences) {
  const Error input = trouble([]() -> Status { return input_error("shard 3: expected tokens"); });
  EXPECT_EQ(input.message, "shard 3: expected tokens");
  EXPECT_EQ(input.blame, Blame::kInput);
  EXPECT_EQ(trouble([]() -> Status { throw std::runtime_error("out of memory\na stack"); }).message,
            "rank 2: unexpected: out of memory");
}

}  // namespace
}  // namespace nereid::train
