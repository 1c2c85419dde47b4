#include "nereid/cli/pages/runs_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

namespace nereid::cli {
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
  EXPECT_EQ(times(page, "role=\"img\""), 2);
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

std::vector<std::smatch> all(const std::string& text, const std::regex& what) {
  return {std::sregex_iterator(text.begin(), text.end(), what), std::sregex_iterator()};
}

// What is visible: labels that do not overlap, lines within the frame and distinguishable.
TEST(RunsPage, IsReadableWithOneTwoAndTenRuns) {
  for (const int count : {1, 2, 10}) {
    std::vector<RunCurves> runs;
    for (int r = 0; r < count; ++r) {
      RunCurves run{.name = fmt::format("training/run-{}", r)};
      for (int64_t step = 0; step < 400; ++step) {
        const auto x = static_cast<double>(step);
        run.curves["loss"].emplace_back(step, 3 * std::exp(-x / 100) + 0.1 * r + 0.05 * std::sin(x));
        run.curves["speedup"].emplace_back(step, 1 + 1e-7 * x * r);
        run.curves["tokens_per_s"].emplace_back(step, 1e6 + 1e5 * std::cos(x / 7));
        if (step % 100 == 99) run.curves["pass_at_1/0"].emplace_back(step, 0.25 * r / 10);
      }
      runs.push_back(std::move(run));
    }
    const std::string page = runs_page(runs);
    SCOPED_TRACE(count);
    EXPECT_FALSE(std::regex_search(page, std::regex("[^a-z](nan|inf)[^a-z]")));
    EXPECT_FALSE(std::regex_search(page, std::regex("<script|https?:|url\\(|@import|<link|<img")));
    const std::string opens = "<svg viewBox=\"0 0 560 240\"";
    EXPECT_EQ(times(page, opens), 4);
    for (size_t at = 0; (at = page.find(opens, at)) != page.npos; ++at) {
      const std::string picture = page.substr(at, page.find("</svg>", at) - at);
      EXPECT_EQ(times(picture, "<polyline"), count);
      std::vector<double> heights, widths;
      std::vector<std::string> labels;
      for (const auto& label :
           all(picture, std::regex("y=\"([0-9.]+)\" text-anchor=\"end\"[^>]*>([^<]+)<"))) {
        heights.push_back(std::stod(label[1]));
        labels.push_back(label[2]);
        EXPECT_LE(labels.back().size(), 10U) << labels.back();
      }
      for (const auto& label : all(picture, std::regex("<text x=\"([0-9.]+)\"[^>]*text-anchor=\"middle\"")))
        widths.push_back(std::stod(label[1]));
      for (const auto& [places, apart] : {std::pair(heights, 14.0), {widths, 40.0}}) {
        EXPECT_GE(places.size(), 2U);
        EXPECT_LE(places.size(), 10U);
        for (size_t i = 1; i < places.size(); ++i) EXPECT_GE(std::abs(places[i] - places[i - 1]), apart);
      }
      std::ranges::sort(labels);
      EXPECT_EQ(std::ranges::adjacent_find(labels), labels.end()) << testing::PrintToString(labels);
      for (const auto& point : all(picture, std::regex("([-0-9.]+),([-0-9.]+)"))) {
        EXPECT_THAT(std::stod(point[1]), testing::AllOf(testing::Ge(64.0), testing::Le(550.0)));
        EXPECT_THAT(std::stod(point[2]), testing::AllOf(testing::Ge(10.0), testing::Le(212.0)));
      }
      std::set<std::string> styles;
      for (const auto& line : all(picture, std::regex("\" style=\"(fill:none[^\"]*)\"")))
        styles.insert(line[1]);
      EXPECT_EQ(std::ssize(styles), count);
      // ... and the legend has each of them.
      for (const auto& style : styles) EXPECT_THAT(page.substr(0, page.find("<h2>")), HasSubstr(style));
    }
  }
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
}  // namespace nereid::cli
