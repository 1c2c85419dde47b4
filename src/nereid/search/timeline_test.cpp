#include "nereid/search/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nereid/base/json.h"
#include "nereid/search/report/timeline_svg.h"

namespace nereid::search {
namespace {

using Kind = Span::Kind;

TEST(Timeline, SharesCountOverlapsOnce) {
  const std::vector<Span> spans = {{.kind = Kind::kWritten, .from = -1, .to = 2},
                                   {.kind = Kind::kWritten, .from = 1, .to = 4},
                                   {.kind = Kind::kJudged, .from = 3, .to = 5},
                                   {.kind = Kind::kJudged, .from = 4.5, .to = 6},
                                   {.kind = Kind::kWritten, .from = 8, .to = 20}};
  const Utilization busy = utilization(spans, 10);
  EXPECT_DOUBLE_EQ(busy.written, 0.6);
  EXPECT_DOUBLE_EQ(busy.judged, 0.3);
  EXPECT_DOUBLE_EQ(busy.both, 0.1);
  EXPECT_EQ(utilization(spans, 0).written, 0);
  EXPECT_EQ(utilization({}, 10).judged, 0);
}

TEST(Timeline, SpansAreInTheOrderOfTheirBeginnings) {
  Timeline timeline;
  timeline.add({.label = "later", .from = 2, .to = 3});
  timeline.add({.kind = Kind::kJudged, .label = "sooner", .from = 1, .to = 4, .verified = true});
  const auto spans = timeline.spans();
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].label, "sooner");
  const Json json = to_json(spans, 4);
  EXPECT_DOUBLE_EQ(json["writing"], 0.25);
  EXPECT_DOUBLE_EQ(json["judging"], 0.75);
  EXPECT_EQ(json["spans"][0]["what"], "judged");
  EXPECT_EQ(json["spans"][0]["verified"], true);
  EXPECT_FALSE(json["spans"][1].contains("verified"));
}

TEST(Timeline, ThePictureHasARowForEachAnswer) {
  std::vector<Span> spans = {{.kind = Kind::kJudged, .label = "model", .from = 1, .to = 2}};
  EXPECT_EQ(timeline_svg(spans, 4), "");  // nothing was written
  for (int i = 0; i < 5; ++i) spans.push_back({.label = fmt::format("<{}>", i), .from = 0, .to = 1});
  const std::string picture = timeline_svg(spans, 4, 3);
  EXPECT_THAT(picture, testing::HasSubstr("model, 25 % of the time"));
  EXPECT_THAT(picture, testing::HasSubstr("judge, 25 %"));
  EXPECT_THAT(picture, testing::HasSubstr("&lt;2&gt;</text>"));
  EXPECT_THAT(picture, testing::Not(testing::HasSubstr("&lt;3&gt;</text>")));
  EXPECT_THAT(picture, testing::HasSubstr("and 2 more"));
}

}  // namespace
}  // namespace nereid::search
