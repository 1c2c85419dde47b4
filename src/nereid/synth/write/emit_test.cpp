#include "nereid/synth/write/emit.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "nereid/synth/sample/maker.h"

namespace nereid::synth {
namespace {

std::string first_word(const std::string& line) {
  const size_t begin = line.find_first_not_of(' ');
  return begin == line.npos ? "" : line.substr(begin, line.find_first_of(" (,:", begin) - begin);
}

TEST(Emit, NoVariableHidesASize) {
  const Space space({ops::find("conv2d"), ops::find("conv1d"), ops::find("add"), ops::find("relu")},
                    {.elements = 5, .work = 7});
  Maker maker(space, {.length = 5, .seed = 3});
  int with_sizes = 0;
  for (uint64_t index = 0; index < 3000; ++index) {
    Made made;
    maker.draw(index, 0, made);
    if (made.outcome != Outcome::kMade) continue;
    maker.write(made);
    std::set<std::string> sizes, variables;
    std::istringstream lines(made.code);
    for (std::string line; std::getline(lines, line);)
      if (line.find(" = ") != line.npos) (line[0] == ' ' ? variables : sizes).insert(first_word(line));
    with_sizes += sizes.empty() ? 0 : 1;
    for (const auto& size : sizes) EXPECT_FALSE(variables.contains(size)) << size << "\n" << made.code;
  }
  EXPECT_GT(with_sizes, 100);
}

// Of 3,000 programs some are written in each of these styles.
TEST(Emit, AuthorsSayMoreThanWhatIsComputed) {
  const Space space({ops::find("conv2d"), ops::find("mul_scalar"), ops::find("merge"), ops::find("relu")},
                    {.elements = 5, .work = 7});
  Maker maker(space, {.length = 3, .seed = 3});
  std::map<std::string, int> seen;
  for (uint64_t index = 0; index < 3000; ++index) {
    Made made;
    maker.draw(index, 0, made);
    if (made.outcome != Outcome::kMade) continue;
    maker.write(made);
    const std::string& code = made.code;
    const auto has = [&](std::string_view text) { return code.find(text) != code.npos; };
    seen["prose"] += made.style.prose != 0 && has("#");
    seen["number first"] += has("2.0 * ");
    seen["inferred"] += has(", -1)") || has("(-1, ");
    seen["passed"] += has(", kernel_size, padding=padding");
    seen["global"] += has("SCALE_FACTOR = ");
    // No text ends early, and no comment runs into code.
    size_t quotes = 0;
    for (size_t at = code.find("\"\"\""); at != code.npos; at = code.find("\"\"\"", at + 3)) ++quotes;
    EXPECT_EQ(quotes % 2, 0) << code;
    EXPECT_EQ(code.find('\\'), code.npos) << code;
  }
  EXPECT_EQ(seen.size(), 5U);
  for (const auto& [style, count] : seen) EXPECT_GT(count, 10) << style;
}

}  // namespace
}  // namespace nereid::synth
