#include <gmock/gmock.h>

#include <cmath>
#include <pqxx/pqxx>
#include <random>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/skills/bm25.h"
#include "nereid/skills/library.h"
#include "nereid/skills/retrieval.h"
#include "nereid/skills/skill.h"
#include "nereid/skills/worth.h"
#include "tests/support/postgres_server.h"

namespace nereid::skills {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kFile = R"(+++
name = "one-pass-softmax"
operators = ["softmax", "layer_norm"]
tags = ["rows"]
when = "Rows of a \"softmax\" fit into one block."
+++
Read each row once.

Keep it in registers.

```python
@triton.jit
def kernel(x):
    pass
```
)";

Skill skill_of(const std::string& name, std::vector<std::string> operators = {"softmax"},
               const std::string& text = "Read each row once.") {
  return {.name = name,
          .operators = std::move(operators),
          .tags = {"rows"},
          .when = "Rows fit into one block.",
          .text = text,
          .pattern = "x = 1\n"};
}

TEST(Skill, AFileIsReadAndWritten) {
  const auto skill = parse_skill(kFile, "a.md");
  ASSERT_TRUE(skill.ok()) << skill.error().message;
  EXPECT_EQ(skill->name, "one-pass-softmax");
  EXPECT_THAT(skill->operators, ElementsAre("softmax", "layer_norm"));
  EXPECT_EQ(skill->when, "Rows of a \"softmax\" fit into one block.");
  EXPECT_EQ(skill->text, "Read each row once.\n\nKeep it in registers.");
  EXPECT_EQ(skill->pattern, "@triton.jit\ndef kernel(x):\n    pass\n");
  EXPECT_EQ(to_markdown(*skill), kFile);
  Skill with_origin = *skill;
  with_origin.origin = Origin{"t", "s", "f", 2.5, true, "difference", "w"};
  EXPECT_EQ(with_origin.hash(), skill->hash());
  const auto again = skill_from_json(to_json(with_origin));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, with_origin);
  std::string windows;
  for (const char* c = kFile; *c != 0; ++c) windows += *c == '\n' ? "\r\n" : std::string(1, *c);
  EXPECT_EQ(*parse_skill(windows, "a.md"), *skill);
}

// `kFile` with `from` replaced.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = kFile;
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos);
  const auto skill = parse_skill(text.replace(at, from.size(), to), "a.md");
  EXPECT_FALSE(skill.ok()) << from << " -> " << to;
  if (skill.ok()) return "";
  EXPECT_EQ(skill.error().blame, Blame::kInput);
  return skill.error().message;
}

TEST(Skill, ErrorsNameTheLine) {
  EXPECT_THAT(error_with("+++\nname", "name"), StartsWith("a.md:1: expected +++"));
  EXPECT_THAT(error_with("+++\nRead", "Read"), HasSubstr("expected +++ on a line of its own"));
  EXPECT_THAT(error_with("one-pass-softmax", "One pass"), StartsWith("a.md:2: name: expected 1 to 64 lower"));
  EXPECT_THAT(error_with("name = \"one-pass-softmax\"\n", ""), HasSubstr("a.md:1: name: expected 1 to 64"));
  EXPECT_THAT(error_with("layer_norm", "../x"), StartsWith("a.md:3: operators: expected names"));
  EXPECT_THAT(error_with("[\"rows\"]", "7"), StartsWith("a.md:4: expected tags: a text or a list"));
  EXPECT_THAT(error_with("[\"rows\"]", "[\"" + std::string(65, 'x') + "\"]"), StartsWith("a.md:4: tags:"));
  EXPECT_THAT(error_with("tags", "tag"), StartsWith("a.md:4: the front matter has no key 'tag'"));
  EXPECT_THAT(error_with("fit into", "fit\\ninto"), StartsWith("a.md:5: when: expected one line"));
  EXPECT_THAT(error_with("fit into", "\\u001b[31m"), StartsWith("a.md:5: when: expected one line, without"));
  EXPECT_THAT(error_with("fit into", std::string(500, 'x')),
              StartsWith("a.md:5: when: expected at most 400"));
  EXPECT_THAT(error_with("Read each row once.\n\nKeep it in registers.\n", ""),
              StartsWith("a.md:7: text: expected a text"));
  EXPECT_THAT(error_with("Keep it", "Keep \x1b[2J it"), StartsWith("a.md:9: expected UTF-8 without control"));
  EXPECT_THAT(error_with("Keep it", "Keep \xff it"), StartsWith("a.md:9: expected UTF-8"));
  EXPECT_THAT(error_with("Keep it", "Keep \u202e it"), StartsWith("a.md:9: expected UTF-8"));
  EXPECT_THAT(error_with("Keep it", std::string(kMaxText, 'x')), HasSubstr("text: expected at most 4000"));
  EXPECT_THAT(error_with("    pass", std::string(kMaxPattern, 'x')), HasSubstr("a.md:11: pattern: expected"));
  EXPECT_THAT(error_with("    pass", std::string(kMaxFile, 'x')), HasSubstr("a skill of at most 20000"));
  EXPECT_THAT(error_with("```python", "```c"), StartsWith("a.md:11: expected a code block"));
  EXPECT_THAT(error_with("    pass\n```\n", "    pass\n"), HasSubstr("expected ``` at the end"));
  EXPECT_THAT(error_with("    pass\n```\n", "    pass\n```\nmore\n"),
              StartsWith("a.md:16: expected nothing"));
}

// Whatever is read can be written and read again.
TEST(Skill, MutatedFilesAreReadOrRefused) {
  std::mt19937 random(7);
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string text = kFile;
    for (unsigned edits = random() % 3 + 1; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random() % 256);
      else
        text.erase(at, random() % 5);
    }
    const auto skill = parse_skill(text, "a.md");
    if (!skill.ok()) continue;
    ++read;
    const auto again = parse_skill(to_markdown(*skill), "b.md");
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << text;
    EXPECT_EQ(*again, *skill) << text;
    const auto stored = skill_from_json(to_json(*skill));
    ASSERT_TRUE(stored.ok()) << stored.error().message;
  }
  EXPECT_GT(read, 100);
}

TEST(Words, AreThoseOfOperatorsToo) {
  EXPECT_THAT(words_in("aten::_layer_norm.out, BF16!"),
              ElementsAre("aten", "layer_norm", "layer", "norm", "out", "bf16"));
  EXPECT_THAT(words_in("__ . \xc3\xa4"), IsEmpty());
}

TEST(Bm25, IsTheFormula) {
  // Lengths 3, 1, 4: a mean of 8/3.
  const Bm25 index({{"a", "b", "b"}, {"a"}, {"c", "d", "c", "c"}});
  const auto score = [](double idf, double f, double n) {
    return idf * f * 2.5 / (f + 1.5 * (0.25 + 0.75 * n / (8.0 / 3)));
  };
  const double idf_a = std::log(1 + 1.5 / 2.5), idf_b = std::log(1 + 2.5 / 1.5);
  const auto scores = index.scores({"b", "a", "b", "x"});
  ASSERT_THAT(scores, SizeIs(3));
  EXPECT_NEAR(scores[0], score(idf_a, 1, 3) + score(idf_b, 2, 3), 1e-12);
  EXPECT_NEAR(scores[1], score(idf_a, 1, 1), 1e-12);
  EXPECT_EQ(scores[2], 0);
  EXPECT_THAT(Bm25({}).scores({"a"}), IsEmpty());
}

Rated rated_of(const std::string& name, std::vector<std::string> operators, double speedup) {
  Rated rated{.entry = {.skill = skill_of(name, std::move(operators))}};
  rated.worth.speedup = speedup;
  return rated;
}

TEST(Retrieval, MeasuredWorthDecidesAmongEquals) {
  const std::vector<Rated> skills = {rated_of("a", {"softmax"}, 1.3), rated_of("b", {"softmax"}, 2),
                                     rated_of("c", {"conv2d"}, 9), rated_of("d", {"layer_norm"}, 1.2)};
  const auto found = search(skills, "softmax");
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].index, 1u);
  EXPECT_EQ(found[1].index, 0u);
  EXPECT_DOUBLE_EQ(found[0].score, found[0].bm25 * 2);
  EXPECT_THAT(search(skills, "norm"), SizeIs(1));
  EXPECT_THAT(search(skills, "gelu"), IsEmpty());
  std::vector<Rated> many;
  for (int i = 0; i < 50; ++i) many.push_back(rated_of(fmt::format("s{}", i), {"softmax"}, 1.2 + i));
  const auto best = search(many, "softmax");
  ASSERT_THAT(best, SizeIs(kMaxOffered));
  EXPECT_EQ(best.front().index, 49u);
}

// From tables of Student's distribution.
TEST(Worth, StudentsQuantiles) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.95, 2), 4.30265, 1e-5);
  EXPECT_NEAR(student_quantile(0.95, 5), 2.57058, 1e-5);
  EXPECT_NEAR(student_quantile(0.95, 10), 2.22814, 1e-5);
  EXPECT_NEAR(student_quantile(0.95, 29), 2.04523, 1e-5);
  EXPECT_NEAR(student_quantile(0.99, 7), 3.49948, 1e-5);
}

Sample sample_of(const std::string& task, bool with, int64_t number, double ms, double reference_ms = 8) {
  return {.skill = with ? "s" : "",
          .version = with ? 1 : 0,
          .question = "q",
          .task = task,
          .number = number,
          .verified = ms > 0,
          .ms = ms,
          .reference_ms = reference_ms};
}

TEST(Worth, GainsAreMeansOverTasks) {
  // Gains of 2 (geometric mean of 1 and 4 over 1) and 8.
  const auto worth =
      worth_of({sample_of("a", false, 0, 1), sample_of("a", false, 1, 4), sample_of("a", true, 0, 1),
                sample_of("a", true, 1, 1), sample_of("b", false, 0, 8), sample_of("b", true, 0, 1),
                sample_of("c", true, 0, 1), sample_of("d", false, 0, 1)});
  EXPECT_EQ(worth.groups, 2);
  EXPECT_EQ(worth.with, 3);
  EXPECT_EQ(worth.without, 3);
  EXPECT_NEAR(worth.speedup, 4, 1e-12);
  // ln 2 and ln 8: s = ln 2 * sqrt(2), half = 12.7062 * ln 2.
  EXPECT_NEAR(std::log(worth.speedup_interval.low), 2 * std::log(2) - 12.7062 * std::log(2), 1e-3);
  EXPECT_EQ(worth.correctness, 0);
}

TEST(Worth, FailuresNeverCountAsGains) {
  // Without an answer the reference's 8 ms stay: a gain of 4.
  EXPECT_NEAR(worth_of({sample_of("a", false, 0, 0), sample_of("a", true, 0, 2)}).speedup, 4, 1e-12);
  // A skill with which nothing is verified loses what there was, and gains nothing on a slow answer.
  EXPECT_NEAR(worth_of({sample_of("a", false, 0, 2), sample_of("a", true, 0, 0)}).speedup, 0.25, 1e-12);
  EXPECT_NEAR(worth_of({sample_of("a", false, 0, 80), sample_of("a", true, 0, 0)}).speedup, 1, 1e-12);
  const auto neither = worth_of({sample_of("a", false, 0, 0), sample_of("a", true, 0, 0)});
  EXPECT_EQ(neither.compared, 0);
  EXPECT_EQ(neither.groups, 1);
  EXPECT_EQ(neither.speedup, 1);
  EXPECT_TRUE(std::isinf(neither.speedup_interval.high));
  const auto worse = worth_of({sample_of("a", false, 0, 1), sample_of("a", true, 0, 0),
                               sample_of("b", false, 0, 1), sample_of("b", true, 0, 1)});
  EXPECT_EQ(worse.correctness, -0.5);
  EXPECT_EQ(worse.verified_with, 0.5);
}

// The interval of the mean of normal gains holds the truth in 95 of 100 cases.
TEST(Worth, IntervalsHoldTheTruth) {
  std::mt19937 random(3);
  std::normal_distribution<double> gain(std::log(1.3), 0.2);
  int held = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<Sample> samples;
    for (int task = 0; task < 6; ++task) {
      samples.push_back(sample_of(std::to_string(task), false, 0, std::exp(gain(random))));
      samples.push_back(sample_of(std::to_string(task), true, 0, 1));
    }
    const auto interval = worth_of(samples).speedup_interval;
    held += interval.low <= 1.3 && 1.3 <= interval.high ? 1 : 0;
  }
  EXPECT_THAT(held / static_cast<double>(kRuns), DoubleNear(0.95, 0.02));
}

struct LibraryTest : testing::TestWithParam<const char*> {
  TemporaryFolder folder = std::move(TemporaryFolder::create("skills")).value();
  const bool file = std::string_view(GetParam()) == "sqlite";
  std::string address =
      file ? (folder.path() / "deep" / "skills.db").string() : PostgresServer::shared().uri();

  void SetUp() override {
    if (file) return;
    pqxx::connection connection(PostgresServer::shared().uri());
    pqxx::nontransaction(connection).exec("DROP SCHEMA IF EXISTS nereid CASCADE");
  }
  std::unique_ptr<Library> open() const {
    auto library = Library::open(address);
    EXPECT_TRUE(library.ok()) << library.error().message;
    return *std::move(library);
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, LibraryTest, testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(LibraryTest, VersionsStayReadable) {
  const auto library = open();
  EXPECT_EQ(library->add(skill_of("a"))->version, 1);
  EXPECT_EQ(library->add(skill_of("a"))->version, 1);  // the same again
  ASSERT_TRUE(
      library->decide({.skill = "a", .version = 1, .state = State::kAdmitted, .document = "{}"}).ok());
  EXPECT_EQ(library->add(skill_of("a", {"gelu"}))->version, 2);
  EXPECT_EQ((*open()->find("a"))->version, 1);  // admitted, until the next is
  EXPECT_THAT(*library->admitted(), SizeIs(1));
  ASSERT_TRUE(
      library->decide({.skill = "a", .version = 2, .state = State::kAdmitted, .document = "{}"}).ok());
  const auto first = open()->find("a", 1);
  EXPECT_EQ((*first)->state, State::kSuperseded);
  EXPECT_EQ((*first)->skill, skill_of("a"));
  EXPECT_EQ((*library->find("a"))->version, 2);
  EXPECT_THAT(*library->admitted(), SizeIs(1));
  EXPECT_THAT(*library->list(), SizeIs(1));
  EXPECT_THAT(*library->list(true), SizeIs(2));
  EXPECT_FALSE(*library->find("a", 3));
  EXPECT_FALSE(*library->find("b"));
  const auto decisions = *library->decisions("a");
  ASSERT_THAT(decisions, SizeIs(2));
  EXPECT_EQ(decisions[0].version, 2);
}

TEST_P(LibraryTest, WhatIsRemovedIsNotOffered) {
  const auto library = open();
  ASSERT_TRUE(library->add(skill_of("a")).ok());
  ASSERT_TRUE(
      library->decide({.skill = "a", .version = 1, .state = State::kAdmitted, .document = "{}"}).ok());
  ASSERT_TRUE(library->record({{.skill = "a", .version = 1, .question = "q", .task = "t"}}).ok());
  EXPECT_TRUE(*library->remove("a"));
  EXPECT_FALSE(*library->remove("a"));
  EXPECT_THAT(*library->admitted(), IsEmpty());
  EXPECT_EQ((*library->find("a"))->state, State::kRemoved);
  EXPECT_EQ(library->add(skill_of("a"))->version, 2);
  EXPECT_EQ(*library->purge("a"), 2);
  EXPECT_FALSE(*library->find("a"));
  EXPECT_THAT(*library->samples("a", 1), IsEmpty());
  EXPECT_THAT(*library->decisions("a"), IsEmpty());
}

TEST_P(LibraryTest, SamplesOfBothArms) {
  const auto library = open();
  const auto with = [](const std::string& task, int64_t number, bool verified) {
    return Sample{"a", 1, "q", task, number, verified, 2, 4};
  };
  const Sample control{"", 0, "q", "t", 0, true, 3, 4}, other{"", 0, "q", "u", 0, true, 3, 4};
  ASSERT_TRUE(library->record({with("t", 0, false), with("t", 1, true), control, other}).ok());
  ASSERT_TRUE(library->record({with("t", 0, true)}).ok());  // replaces the first
  const auto samples = *open()->samples("a", 1);
  ASSERT_THAT(samples, SizeIs(3));
  EXPECT_TRUE(samples[0].skill.empty());
  EXPECT_EQ(samples[0].ms, 3);
  EXPECT_TRUE(samples[1].verified);
  EXPECT_NEAR(worth_of(samples).speedup, 1.5, 1e-12);
  EXPECT_THAT(*library->samples("a", 1, "another"), IsEmpty());
  EXPECT_THAT(*library->samples("a", 2), IsEmpty());
}

TEST_P(LibraryTest, ManyWritersTakeDifferentVersions) {
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      const auto library = open();
      for (int i = 0; i < 5; ++i) {
        const auto added = library->add(skill_of("a", {"softmax"}, fmt::format("Text {} {}.", writer, i)));
        EXPECT_TRUE(added.ok()) << added.error().message;
      }
    });
  for (auto& writer : writers) writer.join();
  EXPECT_THAT(*open()->list(true), SizeIs(20));
}

TEST(Library, AnotherProgramsFileIsRefused) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(write_file_atomically(folder->path() / "x", "no database at all, but a text").ok());
  const auto library = Library::open((folder->path() / "x").string());
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().blame, Blame::kInput);
}

}  // namespace
}  // namespace nereid::skills
