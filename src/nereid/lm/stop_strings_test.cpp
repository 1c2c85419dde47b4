#include "nereid/lm/stop_strings.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::lm {
namespace {

// However a text is cut into pieces: what is handed out is what stands before the first stop string, and none of it is taken back.
TEST(StoppedText, IsTheTextBeforeTheFirstStop) {
  std::mt19937 random(1);
  for (int turn = 0; turn < 5000; ++turn) {
    std::vector<std::string> stops;
    for (unsigned i = 0, n = random() % 3; i < n; ++i) {
      stops.emplace_back();
      for (unsigned k = 0, length = random() % 4; k < length; ++k) stops.back() += static_cast<char>('a' + random() % 2);
    }
    std::string whole;
    for (unsigned k = 0, length = random() % 12; k < length; ++k) whole += static_cast<char>('a' + random() % 2);
    // Pieces end anywhere; a stop string is seen at the end of the piece that completes it.
    StoppedText text(stops);
    std::string out;
    size_t at = 0;
    while (at < whole.size() && !text.stopped()) {
      const size_t n = 1 + random() % 3;
      text.push(std::string_view(whole).substr(at, n));
      at = std::min(at + n, whole.size());
      out += text.take_certain();
      ASSERT_TRUE(whole.starts_with(out));
    }
    size_t first = std::string::npos;
    for (const auto& stop : stops)
      if (!stop.empty()) first = std::min(first, whole.substr(0, at).find(stop));
    EXPECT_EQ(text.stopped(), first != std::string::npos);
    if (!text.stopped()) text.finish();
    out += text.take_certain();
    EXPECT_EQ(out, whole.substr(0, first)) << whole;
    EXPECT_EQ(text.whole(), out);
  }
}

}  // namespace
}  // namespace nereid::lm
