#include "nereid/verify/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/verify/rules/catalogue.h"
#include "nereid/verify/verdict_format.h"

namespace nereid::verify {
namespace {

using testing::HasSubstr;

Verdict mismatch() {
  Verdict v;
  v.kind = VerdictKind::kMismatch;
  v.evidence.push_back(
      {.rule = "values", .sentence = "Output 0 differs at [3, 4].", .file = "c.py", .line = 2});
  v.errors = Errors{.output = "0",
                    .position = {3, 4},
                    .inputs = "huge",
                    .expected = 1,
                    .got = std::numeric_limits<double>::infinity(),
                    .max_error = std::numeric_limits<double>::infinity(),
                    .max_tolerance = 1e-6};
  v.coverage.device = "cpu";
  v.coverage.trials = 3;
  v.seed = 7;
  return v;
}

TEST(Verdict, JsonHoldsTheDesignsFields) {
  const Json json = to_json(mismatch());
  for (const char* field : {"verdict", "reason", "evidence", "coverage", "errors", "times", "seed", "policy"})
    EXPECT_TRUE(json.contains(field)) << field;
  EXPECT_EQ(json["verdict"], "Mismatch");
  EXPECT_EQ(json["reason"], "Output 0 differs at [3, 4].");
  EXPECT_EQ(json["rule"], "values");
  EXPECT_EQ(json["errors"]["got"], "inf");
  EXPECT_EQ(json["errors"]["position"], Json({3, 4}));
  EXPECT_EQ(json["coverage"]["trials"], 3);
  EXPECT_TRUE(json["times"].is_null());
  EXPECT_FALSE(json.contains("blame"));
}

TEST(Verdict, ExitCodes) {
  Verdict v = mismatch();
  EXPECT_EQ(exit_code(v), 1);
  v.kind = VerdictKind::kVerified;
  EXPECT_EQ(exit_code(v), 0);
  v.kind = VerdictKind::kError;
  EXPECT_EQ(exit_code(v), 3);
  v.input_to_blame = true;
  EXPECT_EQ(exit_code(v), 2);
  EXPECT_EQ(to_json(v)["blame"], "input");
}

TEST(Verdict, KindsAreWrittenAsDocumented) {
  EXPECT_EQ(to_string(VerdictKind::kMalformed), "Malformed");
  EXPECT_EQ(to_string(VerdictKind::kCompileFailed), "CompileFailed");
  EXPECT_EQ(to_string(VerdictKind::kVerified), "Verified");
  EXPECT_EQ(to_string(VerdictKind::kError), "Error");
}

TEST(Verdict, ExcerptsMarkTheLine) {
  EXPECT_EQ(excerpt("a\nb\nc\nd\n", 3, 1), "      2 | b\n>     3 | c\n      4 | d\n");
  EXPECT_EQ(excerpt("a\nb", 2, 0), ">     2 | b\n");
  EXPECT_EQ(excerpt("a\n", 9, 1), "");
}

TEST(VerdictFormat, BeginsWithTheHeadlineAndShowsThePlace) {
  const std::string text =
      format_verdict(mismatch(), {.source_of = [](const std::string&) { return "one\ntwo\n"; }});
  EXPECT_TRUE(text.starts_with("Mismatch: Output 0 differs at [3, 4].\n")) << text;
  EXPECT_THAT(text, HasSubstr("c.py:2"));
  EXPECT_THAT(text, HasSubstr("2 | two"));
  EXPECT_THAT(text, HasSubstr("expected 1, got inf"));
  EXPECT_THAT(text, HasSubstr("3 comparisons on cpu"));
  EXPECT_THAT(text, HasSubstr(std::string(find_rule("values")->fix)));
}

TEST(VerdictFormat, EndsWithALegendWhereThereIsSomethingToExplain) {
  Verdict v = mismatch();
  v.coverage.launches = 2, v.coverage.kernels = 1, v.coverage.left_out = 2, v.coverage.triton_share = 0.5;
  v.coverage.inputs = {"own", "huge"};
  const std::string text = format_verdict(v, {});
  EXPECT_THAT(text, HasSubstr("2 launches of 1 kernel: 50 % of the work; 2 checked by leaving each out"));
  EXPECT_THAT(text, HasSubstr("3 comparisons on cpu: the task's own, huge"));
  EXPECT_TRUE(text.ends_with("see docs/verdicts.md\n")) << text;
  Verdict untraced;
  untraced.kind = VerdictKind::kUntraceable;
  EXPECT_EQ(format_verdict(untraced, {}).find("legend"), std::string::npos);
}

TEST(VerdictFormat, ExplainsEveryPieceOfEvidence) {
  Verdict v = mismatch();
  v.evidence.push_back({.rule = "race", .sentence = "Two programs write y.", .numbers = {{"program", 4}}});
  const std::string text = format_verdict(v, {.explain = true});
  EXPECT_THAT(text, HasSubstr(std::string(find_rule("values")->why)));
  EXPECT_THAT(text, HasSubstr(std::string(find_rule("race")->why)));
  EXPECT_THAT(text, HasSubstr("program = 4"));
}

TEST(Catalogue, IdsAreUniqueKebabCaseAndDocumented) {
  std::set<std::string_view> seen;
  const auto page = read_file(NEREID_SOURCE_DIR "/docs/verdicts.md");
  ASSERT_TRUE(page.ok()) << page.error().message;
  for (const auto& rule : catalogue()) {
    EXPECT_TRUE(seen.insert(rule.id).second) << rule.id;
    EXPECT_EQ(rule.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string_view::npos)
        << rule.id;
    EXPECT_THAT(*page, HasSubstr("`" + std::string(rule.id) + "`"));
    EXPECT_THAT(*page, HasSubstr(std::string(to_string(rule.kind))));
  }
}

}  // namespace
}  // namespace nereid::verify
