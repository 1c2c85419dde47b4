#include "nereid/dataset/pair_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace nereid::dataset {
namespace {

using testing::HasSubstr;

class PairFileTest : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "pairs.jsonl"; }
  std::string text() const { return read_file(path()).value(); }
  TemporaryFolder folder_ = TemporaryFolder::create().value();
};

TEST_F(PairFileTest, GoesOnWhereItStopped) {
  const Progress first{.next = 7, .programs = 2, .pairs = 3, .degenerate = 1, .verdicts = {{"Verified", 3}}};
  {
    auto file = PairFile::open(path(), "options").value();
    EXPECT_EQ(file.progress(), Progress{});
    ASSERT_TRUE(file.append("{}\n{}\n", first).ok());
  }
  std::ofstream(path(), std::ios::app) << "{\"cut sho";  // as a kill leaves it
  auto again = PairFile::open(path(), "options").value();
  EXPECT_EQ(again.progress(), first);
  EXPECT_EQ(text(), "{}\n{}\n");
  ASSERT_TRUE(again.append("{3}\n", {.next = 8}).ok());
  EXPECT_EQ(text(), "{}\n{}\n{3}\n");
}

TEST_F(PairFileTest, ForgetsWhatWasNotSaved) {
  constexpr double kLong = 1e9;
  const Progress first{.next = 1}, third{.next = 3};
  {
    auto file = PairFile::open(path(), "options", kLong).value();
    ASSERT_TRUE(file.append("{1}\n", first).ok());
    ASSERT_TRUE(file.append("{2}\n", {.next = 2}).ok());
    EXPECT_EQ(text(), "{1}\n{2}\n");
  }
  auto again = PairFile::open(path(), "options", kLong).value();
  EXPECT_EQ(again.progress(), first);
  EXPECT_EQ(text(), "{1}\n");
  ASSERT_TRUE(again.append("{2}\n", {.next = 2}).ok() && again.append("{3}\n", third).ok() &&
              again.save().ok());
  EXPECT_EQ(PairFile::open(path(), "options").value().progress(), third);
  EXPECT_EQ(text(), "{1}\n{2}\n{3}\n");
}

TEST_F(PairFileTest, RefusesWhatIsNotItsOwn) {
  {
    ASSERT_TRUE(PairFile::open(path(), "options").value().append("{}\n", {}).ok());
  }
  EXPECT_THAT(PairFile::open(path(), "others").error().message, HasSubstr("options; now others"));
  std::filesystem::resize_file(path(), 1);
  EXPECT_THAT(PairFile::open(path(), "options").error().message, HasSubstr("should have 3"));
  std::filesystem::remove(path().string() + ".progress");
  EXPECT_THAT(PairFile::open(path(), "options").error().message, HasSubstr("holds its settings"));
  EXPECT_EQ(PairFile::open(path() / "below", "options").error().blame, Blame::kInput);
  std::ofstream(path().string() + ".progress") << "[]";
  EXPECT_EQ(PairFile::open(path(), "options").error().blame, Blame::kInput);
}

}  // namespace
}  // namespace nereid::dataset
