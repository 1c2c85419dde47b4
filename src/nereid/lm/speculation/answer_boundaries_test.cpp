#include "nereid/lm/speculation/answer_boundaries.h"

#include <gtest/gtest.h>

#include <random>

#include "nereid/lm/speculation/trunk.h"

namespace nereid::lm {
namespace {

using Kind = Boundary::Kind;

const std::string kAnswer = R"(<think>
One kernel. ```python is no code here.
</think>
Here it is:
```python
import triton

@triton.autotune(
    configs=[],
)
@triton.jit
def first(
    x_ptr,
):
    """A text with
```
inside."""
    tl.store(x_ptr, 1)

    # the end

@triton.jit
def second(x_ptr):
    pass
def helper(x):
    return x

class Model:
    def forward(self, x):
        pass

class ModelNew(nn.Module):
    def forward(self, x):
        return x

def get_inputs():
    return []
```
It is fast:
```python
print(ModelNew())
```
)";

// What stands before each boundary, its last characters.
std::vector<std::pair<Kind, std::string>> found_in(const std::string& answer, size_t piece) {
  AnswerBoundaries boundaries;
  std::vector<std::pair<Kind, std::string>> found;
  for (size_t at = 0; at < answer.size(); at += piece)
    for (const Boundary& boundary : boundaries.push(std::string_view(answer).substr(at, piece)))
      found.emplace_back(boundary.kind, answer.substr(0, boundary.at));
  EXPECT_EQ(boundaries.text(), answer);
  return found;
}

TEST(AnswerBoundaries, PlanKernelsAndProgramHoweverTheTextComes) {
  for (size_t piece = 1; piece <= kAnswer.size(); piece = piece < 8 ? piece + 1 : piece * 3) {
    const auto found = found_in(kAnswer, piece);
    ASSERT_EQ(found.size(), 4u) << piece;
    EXPECT_EQ(found[0].first, Kind::kPlan);
    EXPECT_TRUE(found[0].second.ends_with("here.\n</think>"));
    EXPECT_EQ(found[1].first, Kind::kKernel);
    EXPECT_TRUE(found[1].second.ends_with("    # the end\n"));
    EXPECT_EQ(found[2].first, Kind::kKernel);
    EXPECT_TRUE(found[2].second.ends_with("    pass\n"));
    EXPECT_EQ(found[3].first, Kind::kProgram);
    EXPECT_TRUE(found[3].second.ends_with("return []\n```\n"));
  }
}

TEST(AnswerBoundaries, AnAnswerThatDoesNotThinkPlansUpToItsCode) {
  const auto found = found_in("A plan.\n```bash\npip\n```\n~~~py\n@jit\ndef k(): pass\nx = 1\n~~~\n", 5);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].first == Kind::kPlan && found[0].second.ends_with("~~~py\n"));
  EXPECT_TRUE(found[1].first == Kind::kKernel && found[1].second.ends_with("pass\n"));
}

TEST(AnswerBoundaries, NoProgramWithoutAForward) {
  for (const char* answer : {"```python\nclass ModelNew:\n    pass\n```\n",
                             "```python\nclass ModelNewer:\n    def forward(s):\n```\n",
                             "<think>\n```python\nclass ModelNew:\n    def forward(s): pass\n```\n",
                             "```python\nclass ModelNew:\n    '''\n    def forward(s): pass\n    '''\n```\n",
                             "```cpp\nclass ModelNew:\n    def forward(s): pass\n```\n"})
    for (const auto& [kind, text] : found_in(answer, 3)) EXPECT_NE(kind, Kind::kProgram) << answer;
}

// Cuts fall between tokens, never after their boundaries, and by less than one token before them.
TEST(Trunk, CutsFallBetweenTokens) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const size_t begun = random() % 30;
    Trunk trunk(kAnswer.substr(0, begun));
    std::vector<size_t> ends = {begun};
    std::vector<Cut> cuts;
    for (size_t at = begun; at < kAnswer.size();) {
      const size_t length = random() % 7;  // 0: a token that adds no text yet
      const auto found = trunk.push(static_cast<int64_t>(ends.size()), kAnswer.substr(at, length));
      at = std::min(at + length, kAnswer.size());
      ends.push_back(at);
      cuts.insert(cuts.end(), found.begin(), found.end());
    }
    ASSERT_EQ(cuts.size(), 4u);
    EXPECT_EQ(trunk.tokens().size(), ends.size() - 1);
    for (const Cut& cut : cuts) {
      EXPECT_EQ(ends[cut.tokens], cut.text);
      EXPECT_LE(cut.text, cut.boundary.at);
      EXPECT_TRUE(cut.tokens == 0 || ends[cut.tokens - 1] < cut.text);
      size_t next = cut.tokens;
      while (next < ends.size() && ends[next] == cut.text) ++next;
      EXPECT_TRUE(next == ends.size() || ends[next] > cut.boundary.at);
    }
  }
}

}  // namespace
}  // namespace nereid::lm
