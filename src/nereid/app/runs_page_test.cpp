#include "nereid/app/runs_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace nereid::app {
namespace {

using testing::HasSubstr;

int64_t times(const std::string& text, const std::string& what) {
  int64_t count = 0;
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += what.size()) ++count;
  return count;
}

TEST(RunsPage, HasAPictureAFigureAndALineARun) {
  const std::string page =
      runs_page({{.name = "a<b", .curves = {{"loss", {{0, 3}, {10, 1}}}, {"lr", {{0, 1e-3}}}}},
                 {.name = "c", .curves = {{"loss", {{0, 4}, {5, 2}}}}}});
  EXPECT_EQ(times(page, "<svg"), 2);
  EXPECT_EQ(times(page, "<polyline"), 2);
  EXPECT_EQ(times(page, "<circle"), 1);
  EXPECT_THAT(page, HasSubstr("<title>a&lt;b: 1 at step 10</title>"));
  EXPECT_THAT(page, HasSubstr("<title>c: 2 at step 5</title>"));
  EXPECT_THAT(page, testing::Not(HasSubstr("a<b")));
  EXPECT_THAT(page, testing::Not(HasSubstr("<script")));
  EXPECT_THAT(page, testing::Not(HasSubstr("http")));
  EXPECT_LT(page.find("<h2>loss</h2>"), page.find("<h2>lr</h2>"));
  // From the left end of the frame at its top to the right at its bottom, as far as the other line leaves
  // room.
  EXPECT_THAT(page, HasSubstr("<polyline points=\"64.0,77.3 550.0,212.0\""));
}

TEST(RunsPage, LongCurvesKeepTheirPeaks) {
  train::Curves curves;
  for (int64_t step = 0; step < 100'000; ++step)
    curves["loss"].emplace_back(step, step == 54'321 ? 9.0 : 1 + step % 2 * 0.25);
  const std::string page = runs_page({{.name = "long", .curves = curves}});
  EXPECT_LT(page.size(), 20'000u);
  std::smatch match;
  ASSERT_TRUE(std::regex_search(page, match, std::regex("<polyline points=\"([^\"]*)\"")));
  EXPECT_THAT(match[1].str(), HasSubstr(",10.0 "));  // the top of the frame: the peak
}

TEST(RunsPage, ACurveThatNeverMovesIsDrawn) {
  for (const double value : {0.0, 5.0, -1e20, 1e-30}) {
    const std::string page = runs_page({{.name = "flat", .curves = {{"loss", {{3, value}, {4, value}}}}}});
    EXPECT_EQ(times(page, "<polyline"), 1) << value;
    EXPECT_THAT(page, testing::Not(HasSubstr("nan"))) << value;
    EXPECT_THAT(page, testing::Not(HasSubstr("inf"))) << value;
    EXPECT_LT(page.size(), 8'000u) << value;
  }
}

}  // namespace
}  // namespace nereid::app
