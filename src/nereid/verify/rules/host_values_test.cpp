#include "nereid/verify/rules/host_values.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/trace_analysis.h"

namespace nereid::verify {
namespace {

// A module whose host code reads 100 integers and launches `launches` kernels, of which grid k of call c is
// grid(c, k).
class AnswersOfTheHost : public testing::Test {
 protected:
  void make(int launches, const std::function<int64_t(int call, int k)>& grid) {
    builder_.kernel("count_kernel", {});
    for (int call = 0; call < 3; ++call) {
      const int in = builder_.forward(call), out = builder_.storage();
      for (int k = 0; k < launches; ++k) {
        builder_.step({.name = "count_kernel", .reads = {in}, .writes = {out}});
        auto& launch = std::get<trace::Launch>(builder_.trace().phases.back().steps.back());
        launch.alternatives.front().kernel = 0;
        launch.alternatives.front().grid = {grid(call, k), 1, 1};
      }
      builder_.returns({out});
      auto& storage = builder_.trace().storages[static_cast<size_t>(in)];
      std::vector<int32_t> numbers(100);
      for (int i = 0; i < 100; ++i) numbers[static_cast<size_t>(i)] = (37 * i + 11 * call) % 101;
      storage.pinned = true;
      storage.data.assign(reinterpret_cast<const char*>(numbers.data()), 400);
    }
    for (auto& value : builder_.trace().values)
      if (builder_.trace().storages[static_cast<size_t>(value.storage)].pinned)
        value.dtype = trace::DType::kI32;
  }
  // The output has 100 elements, of which these do not move, and stay with other integers in memory.
  bool refused(std::vector<double> unmoved, std::vector<double> from_host) {
    const auto output = [](std::vector<double> numbers) {
      const auto count = static_cast<int64_t>(numbers.size());
      return replay::UnmovedOutput{.elements = 100, .unmoved = count, .numbers = std::move(numbers)};
    };
    return answered_by_host(builder_.facts(), {{output(std::move(unmoved))}, {output(std::move(from_host))}})
        .has_value();
  }
  static std::vector<double> counted(size_t size, double first, double step) {
    std::vector<double> numbers(size);
    for (size_t i = 0; i < size; ++i) numbers[i] = first + step * static_cast<double>(i);
    return numbers;
  }

  AnalysisBuilder builder_;
};

TEST_F(AnswersOfTheHost, AsManyGridsAsElementsAreOne) {
  make(50, [](int call, int k) { return 1000 + 7 * k + call; });
  EXPECT_TRUE(refused(counted(100, 1000, 7), {}));
  EXPECT_FALSE(refused({}, {})) << "floating-point data moves all";
  EXPECT_FALSE(refused(std::vector<double>(10, 0.0), {})) << "padding";
}

TEST_F(AnswersOfTheHost, AFewShapeATrace) {
  make(2, [](int call, int k) { return 10 + k + call; });
  EXPECT_FALSE(refused(counted(100, 1000, 7), {})) << "the kernels read the integers";
  EXPECT_FALSE(refused(counted(100, 0, 1), counted(100, 0, 1))) << "counted up";
  std::vector<double> flags(100);
  for (size_t i = 0; i < 40; ++i) flags[i] = 1;
  EXPECT_FALSE(refused(flags, flags));
  EXPECT_TRUE(refused(counted(100, 1000, 7.5), counted(100, 1000, 7.5)));
}

TEST_F(AnswersOfTheHost, WhatIsTheSameInAllCallsFollowsFromNothing) {
  make(50, [](int, int k) { return 1000 + 7 * k; });
  EXPECT_FALSE(refused(counted(100, 1000, 7), {}));
}

}  // namespace
}  // namespace nereid::verify
