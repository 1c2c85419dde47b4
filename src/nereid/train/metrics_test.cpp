#include "nereid/train/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

namespace nereid::train {
namespace {

class Metrics : public testing::Test {
 protected:
  void append(std::string_view text) {
    std::ofstream(folder_.path() / "metrics.jsonl", std::ios::app) << text;
  }
  std::string text() const { return read_file(folder_.path() / "metrics.jsonl").value(); }
  TemporaryFolder folder_ = TemporaryFolder::create().value();
};

TEST_F(Metrics, AreLinesThatReadBackExactly) {
  {
    auto log = MetricsLog::open(folder_.path(), 0).value();
    ASSERT_TRUE(log.add(0, {{"loss", 1.0 / 3}, {"lr", 1e-4}}).ok());
    ASSERT_TRUE(log.add(1, {{"loss", std::nan("")}, {"lr", 2e-4}}).ok());
    ASSERT_TRUE(log.add(3, {{"loss", 0.1f}}).ok());
  }
  EXPECT_THAT(text(), testing::StartsWith("{\"step\":0,\"loss\":0.3333333333333333,\"lr\":0.0001}\n"
                                          "{\"step\":1,\"loss\":null,\"lr\":0.0002}\n"));
  const Curves curves = read_metrics(folder_.path()).value();
  using Points = std::vector<std::pair<int64_t, double>>;
  EXPECT_EQ(curves.at("loss"), (Points{{0, 1.0 / 3}, {3, static_cast<double>(0.1f)}}));
  EXPECT_EQ(curves.at("lr"), (Points{{0, 1e-4}, {1, 2e-4}}));
}

TEST_F(Metrics, GoOnFromAStepWithoutWhatCameLaterOrWasCutOff) {
  {
    auto log = MetricsLog::open(folder_.path(), 0).value();
    for (int64_t step = 0; step < 5; ++step) ASSERT_TRUE(log.add(step, {{"loss", 5.0 - step}}).ok());
  }
  append("{\"step\":5,\"lo");
  EXPECT_EQ(read_metrics(folder_.path())->at("loss").size(), 5u);
  {
    auto log = MetricsLog::open(folder_.path(), 3).value();
    ASSERT_TRUE(log.add(3, {{"loss", 7}}).ok());
  }
  EXPECT_EQ(text(),
            "{\"step\":0,\"loss\":5.0}\n{\"step\":1,\"loss\":4.0}\n{\"step\":2,\"loss\":3.0}\n{\"step\":3,"
            "\"loss\":7.0}\n");
}

TEST_F(Metrics, NameTheMalformedLine) {
  append("{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":\"x\"}\n");
  EXPECT_THAT(read_metrics(folder_.path()).error().message,
              testing::EndsWith("metrics.jsonl:2.loss: expected a number, got \"x\""));
  EXPECT_THAT(read_metrics("/nowhere").error().message,
              testing::HasSubstr("/nowhere/metrics.jsonl: No such file"));
}

// A run of five steps that goes on from step 3: what tests/train/tensorboard_test.py reads with TensorBoard,
// where it names a folder for it.
TEST_F(Metrics, GoIntoOneEventFileARun) {
  const char* output = std::getenv("NEREID_TEST_OUTPUT");
  const std::filesystem::path folder = output != nullptr ? output : folder_.path().string();
  for (const int64_t from : {0, 3}) {
    auto log = MetricsLog::open(folder, from).value();
    for (int64_t step = from; step < from + 5; ++step)
      ASSERT_TRUE(log.add(step, {{"loss", 10.0 * static_cast<double>(from + 1) + static_cast<double>(step)},
                                 {"bad", NAN}})
                      .ok());
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files += entry.path().filename().string().starts_with("events.out.tfevents.");
  EXPECT_EQ(files, 2);
}

}  // namespace
}  // namespace nereid::train
