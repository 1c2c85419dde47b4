#include "nereid/verify/rules/stream_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/trace_analysis.h"

namespace nereid::verify {
namespace {

using Clock = std::vector<std::pair<int32_t, int64_t>>;
using testing::HasSubstr;

// The judged forward, whose steps are put on streams.
class StreamOrderTest : public testing::Test {
 protected:
  StreamOrderTest() {
    in_ = builder_.forward(0);
    first_ = builder_.storage(), second_ = builder_.storage();
  }
  void step(const std::string& name, std::vector<int> reads, std::vector<int> writes,
            trace::StreamOrder order) {
    builder_.step({.name = name, .reads = std::move(reads), .writes = std::move(writes)});
    std::get<trace::Launch>(builder_.trace().phases.back().steps.back()).order = std::move(order);
  }
  std::string found(Clock joined) {
    builder_.returns({second_});
    builder_.trace().phases.back().joined = std::move(joined);
    const auto evidence = unordered_work(builder_.facts());
    return evidence ? evidence->sentence : "";
  }

  AnalysisBuilder builder_;
  int in_ = 0, first_ = 0, second_ = 0;
};

TEST_F(StreamOrderTest, WorkThatIsWaitedForOnBothSidesIsInOrder) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {{0, 1}}});
  step("b", {first_}, {second_}, {.stream = 0, .number = 1, .after = {{1, 2}}});
  EXPECT_EQ(found({{1, 2}}), "");
}

TEST_F(StreamOrderTest, InputsAreWrittenOnTheCallersStream) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {}});
  EXPECT_THAT(found({{1, 2}}), HasSubstr("a on stream 1"));
}

TEST_F(StreamOrderTest, TheCallerWaitsForAllOfIt) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {{0, 1}}});
  step("b", {in_}, {second_}, {.stream = 1, .number = 2, .after = {{0, 1}}});
  EXPECT_THAT(found({{1, 2}}), HasSubstr("b runs on stream 1, and the caller's stream does not wait"));
}

TEST_F(StreamOrderTest, AnotherStreamsWaitIsNone) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {{0, 1}}});
  step("b", {first_}, {second_}, {.stream = 2, .number = 1, .after = {{0, 1}, {1, 1}}});
  EXPECT_THAT(found({{1, 2}, {2, 2}}), HasSubstr("b on stream 2 reads what a on stream 1 writes"));
}

TEST_F(StreamOrderTest, WhatIsReadIsNotWrittenMeanwhile) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {{0, 1}}});
  step("b", {first_}, {second_}, {.stream = 1, .number = 2, .after = {{0, 1}}});
  step("c", {in_}, {first_}, {.stream = 0, .number = 1, .after = {{1, 2}}});
  EXPECT_THAT(found({{1, 3}}), HasSubstr("c on the caller's stream writes what b on stream 1 reads"));
}

TEST_F(StreamOrderTest, ReadersRunSideBySide) {
  step("a", {in_}, {first_}, {.stream = 1, .number = 1, .after = {{0, 1}}});
  step("b", {in_}, {second_}, {.stream = 2, .number = 1, .after = {{0, 1}}});
  EXPECT_EQ(found({{1, 2}, {2, 2}}), "");
}

}  // namespace
}  // namespace nereid::verify
