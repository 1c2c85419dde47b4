#include "nereid/train/rl/tasks.h"

#include <gtest/gtest.h>

#include <set>

#include "nereid/base/file.h"

namespace nereid::train {
namespace {

class TasksTest : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const auto path = folder_.path() / "tasks.jsonl";
    EXPECT_TRUE(write_file_atomically(path, text).ok());
    return path.string();
  }
  TemporaryFolder folder_ = TemporaryFolder::create("tasks").value();
};

TEST_F(TasksTest, WithoutWeightsEachEpochHasAll) {
  std::string text;
  for (int i = 0; i < 10; ++i) text += "{\"code\": \"x\"}\n";
  auto source = TaskSource::open({file(text)}, 3).value();
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::set<size_t> seen;
    for (int i = 0; i < 10; ++i) seen.insert(source.next(0));
    EXPECT_EQ(seen.size(), 10U);
  }
}

TEST_F(TasksTest, TasksAreDrawnByWhatThereIsToWin) {
  const std::string path = file(
      R"({"code": "a", "roofline_share": 0.5}
{"code": "b", "roofline_share": 0.9}
{"code": "c", "roofline_share": 1.3}
{"code": "d", "weight": 2}
{"code": "e"}
)");
  const std::vector<double> weights = {0.5, 0.1, kMinWeight, 2, 1};
  auto source = TaskSource::open({path}, 7).value();
  constexpr int kDraws = 20'000;
  std::vector<int> counts(weights.size(), 0);
  for (int i = 0; i < kDraws; ++i) ++counts[source.next(0)];
  for (size_t t = 0; t < weights.size(); ++t) {
    EXPECT_DOUBLE_EQ(source.all(0)[t].weight, t == 1 ? 1 - 0.9 : weights[t]);
    const double share = weights[t] / 3.65, spread = 5 * std::sqrt(share / kDraws);
    EXPECT_NEAR(counts[t] / double{kDraws}, share, spread) << t;
  }
  // A checkpoint's count goes on with the same draws.
  auto again = TaskSource::open({path}, 7).value();
  again.drawn() = source.drawn();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(again.next(0), source.next(0));
}

TEST_F(TasksTest, AWeightIsAbove0) {
  const auto wrong = TaskSource::open({file("{\"code\": \"x\", \"weight\": 0}\n")}, 1);
  ASSERT_FALSE(wrong.ok());
  EXPECT_TRUE(wrong.error().message.find("weight: expected a number above 0") != std::string::npos)
      << wrong.error().message;
}

}  // namespace
}  // namespace nereid::train
