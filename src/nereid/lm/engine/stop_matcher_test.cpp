#include "nereid/lm/engine/stop_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::lm {
namespace {

struct Outcome {
  std::string text;
  bool matched;
  bool operator==(const Outcome&) const = default;
};

Outcome pushed(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome{};
  for (const std::string& piece : pieces) outcome.text += matcher.push(piece);
  outcome.text += matcher.finish();
  outcome.matched = matcher.matched();
  return outcome;
}

TEST(StopMatcher, AcrossPieces) {
  EXPECT_EQ(pushed({"END"}, {"some E", "N", "Dmore"}), (Outcome{"some ", true}));
  EXPECT_EQ(pushed({"END"}, {"some E", "N", "..."}), (Outcome{"some EN...", false}));
  EXPECT_EQ(pushed({"aab"}, {"a", "a", "a", "b"}), (Outcome{"a", true}));
  EXPECT_EQ(pushed({""}, {"all", " of it"}), (Outcome{"all of it", false}));
  EXPECT_EQ(pushed({}, {"all", " of it"}), (Outcome{"all of it", false}));
  EXPECT_EQ(pushed({"\n\n"}, {"a\n", "b\n", "\nc"}), (Outcome{"a\nb", true}));
}

TEST(StopMatcher, HoldsBackNoMoreThanMayBeAStop) {
  StopMatcher matcher({"stop", "halt"});
  EXPECT_EQ(matcher.push("please s"), "please ");
  EXPECT_EQ(matcher.push("ta"), "sta");
  EXPECT_EQ(matcher.push("ha"), "");
  EXPECT_EQ(matcher.finish(), "ha");
}

// Whatever the pieces, the outcome is that of single characters, where the first match to end is the only one
// there can be.
TEST(StopMatcher, ThePiecesDoNotMatter) {
  std::mt19937 random(1);
  const auto text_of = [&](size_t length) {
    std::string text;
    for (size_t i = 0; i < length; ++i) text += static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops;
    for (size_t i = 0; i <= random() % 3; ++i) stops.push_back(text_of(1 + random() % 5));
    const std::string text = text_of(random() % 16);
    // By definition.
    Outcome expected = {text, false};
    for (size_t end = 1; end <= text.size() && !expected.matched; ++end)
      for (size_t begin = 0; begin < end && !expected.matched; ++begin)
        for (const std::string& stop : stops)
          if (text.substr(begin, end - begin) == stop) expected = {text.substr(0, begin), true};
    std::vector<std::string> pieces;
    for (size_t at = 0; at < text.size();) {
      const size_t length = 1 + random() % 4;
      pieces.push_back(text.substr(at, length));
      at += length;
    }
    ASSERT_EQ(pushed(stops, pieces), expected) << text << " stops at " << testing::PrintToString(stops);
  }
}

}  // namespace
}  // namespace nereid::lm
