#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/eval/evaluation.h"
#include "nereid/eval/page.h"

namespace nereid::eval {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PassAtK, IsTheShareOfSubsetsThatHoldARightOne) {
  // Against counting all subsets of size k.
  for (int n = 1; n <= 8; ++n)
    for (int c = 0; c <= n; ++c)
      for (int k = 1; k <= n; ++k) {
        int subsets = 0, right = 0;
        for (int set = 0; set < (1 << n); ++set) {
          if (__builtin_popcount(static_cast<unsigned>(set)) != k) continue;
          ++subsets;
          right += (set & ((1 << c) - 1)) != 0 ? 1 : 0;
        }
        EXPECT_NEAR(pass_at_k(n, c, k), static_cast<double>(right) / subsets, 1e-12)
            << n << " " << c << " " << k;
      }
  EXPECT_NEAR(pass_at_k(1000000, 1, 1000), 0.001, 1e-9);
}

TEST(Summary, FastPAndMeans) {
  const Summary s = summarize({{.samples = 2, .verified = 2, .over_eager = 4, .modelled = 1},
                               {.samples = 2, .verified = 1, .over_eager = 1},
                               {.samples = 4, .verified = 0},
                               {.samples = 2, .verified = 1, .over_eager = 0.5, .over_compile = 2}});
  EXPECT_EQ(s.tasks, 4);
  EXPECT_EQ(s.verified, 3);
  EXPECT_DOUBLE_EQ(s.fast_p.at("0.8"), 0.5);
  EXPECT_DOUBLE_EQ(s.fast_p.at("1"), 0.25);  // more than p: 1 itself is not
  EXPECT_DOUBLE_EQ(s.fast_p.at("2"), 0.25);
  EXPECT_NEAR(*s.geomean, std::cbrt(2.0), 1e-12);
  EXPECT_DOUBLE_EQ(s.fast_p_compile.at("1.2"), 0.25);
  EXPECT_DOUBLE_EQ(*s.geomean_modelled, 1);
  EXPECT_DOUBLE_EQ(s.pass_at_k.at("1"), (1 + 0.5 + 0 + 0.5) / 4);
  EXPECT_DOUBLE_EQ(s.pass_at_k.at("2"), 0.75);
  EXPECT_EQ(s.pass_at_k.count("4"), 0U);
  EXPECT_TRUE(s.roofline.empty());
  std::vector<Score> shares(11);
  for (size_t i = 0; i < shares.size(); ++i) shares[10 - i].roofline = 0.1 * static_cast<double>(i);
  for (size_t i = 0; i < shares.size(); ++i) shares[i].first_seconds = static_cast<double>(i);
  shares.push_back({});  // not verified
  EXPECT_DOUBLE_EQ(summarize(shares).first_seconds.at("0.9"), 9);
  EXPECT_TRUE(summarize(shares).best_seconds.empty());
  const auto quantiles = summarize(shares).roofline;
  EXPECT_EQ(quantiles.size(), 5U);
  EXPECT_DOUBLE_EQ(quantiles.at("0.1"), 0.1);
  EXPECT_DOUBLE_EQ(quantiles.at("0.5"), 0.5);
  EXPECT_DOUBLE_EQ(quantiles.at("0.9"), 0.9);
  const Summary none = summarize({});
  EXPECT_FALSE(none.geomean);
  // A task without proposals is a sample that failed.
  EXPECT_DOUBLE_EQ(summarize({{.samples = 0}, {.samples = 1, .verified = 1}}).pass_at_k.at("1"), 0.5);
}

struct Suite : testing::Test {
  TemporaryFolder folder = std::move(TemporaryFolder::create()).value();
  void write(const std::string& name, const std::string& text) {
    const auto path = folder.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
};

TEST_F(Suite, TasksAreFoundInOrder) {
  const std::string task = "import torch\nclass Model(torch.nn.Module): pass\ndef get_inputs(): return []\n";
  for (const char* name :
       {"level1/10_b.py", "level1/2_a.py", "level2/1.py", ".hidden/x.py", "__pycache__/y.py"})
    write(name, task);
  write("helper.py", "x = 1\n");
  write("notes.txt", task);
  std::vector<std::string> others;
  const auto tasks = find_tasks(folder.path(), &others);
  ASSERT_TRUE(tasks.ok()) << tasks.error().message;
  EXPECT_THAT(others, ElementsAre("helper.py"));
  std::vector<std::string> ids;
  for (const auto& t : *tasks) ids.push_back(t.id);
  EXPECT_THAT(ids, ElementsAre("level1/2_a", "level1/10_b", "level2/1"));
  EXPECT_EQ(find_tasks(folder.path() / "gone").error().blame, Blame::kInput);
  EXPECT_THAT(find_tasks(folder.path() / ".hidden" / "..").ok(), true);
  std::filesystem::create_directories(folder.path() / "empty");
  EXPECT_THAT(find_tasks(folder.path() / "empty").error().message, HasSubstr("no tasks"));
}

TEST(Natural, NumbersAsNumbers) {
  EXPECT_TRUE(natural_less("a2", "a10"));
  EXPECT_FALSE(natural_less("a10", "a2"));
  EXPECT_TRUE(natural_less("a02b", "a2c"));
  EXPECT_FALSE(natural_less("a", "a"));
  EXPECT_TRUE(natural_less("a", "ab"));
  EXPECT_TRUE(natural_less("99999999999999999999998", "99999999999999999999999"));
}

TEST(TaskResults, AreReadAsTheyWereWritten) {
  TaskResult r{.id = "level1/2",
               .task = "abc",
               .score = {.samples = 3, .verified = 2, .over_eager = 1.5},
               .verdict = verify::VerdictKind::kVerified};
  r.reason = "a \"quoted\"\nreason", r.proposer = "compiler", r.candidate_ms = 0.25, r.seconds = 2;
  r.score.called_over_eager = 1.25, r.score.called_over_compile = 0.75;
  r.score.called_over_eager_tf32 = 1.125, r.score.called_over_compile_tf32 = 0.5, r.score.roofline = 0.375;
  r.score.first_seconds = 1.5, r.score.best_seconds = 1.75;
  EXPECT_EQ(to_json(r)["roofline"], 0.375);
  EXPECT_EQ(to_json(r)["first_seconds"], 1.5);
  const auto again = result_from(to_json(r).dump());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(r));
  EXPECT_FALSE(result_from("{}").ok());
  EXPECT_FALSE(result_from("[").ok());
  EXPECT_FALSE(result_from(R"({"id": "x", "samples": 1, "verified": 2})").ok());
}

TEST(Pages, SortByHeadroomAndNameTimeOuts) {
  const auto task = [](const char* id, double ms, double roofline) {
    TaskResult r{.id = id, .score = {.samples = 1, .verified = 1}, .verdict = verify::VerdictKind::kVerified};
    r.candidate_ms = ms, r.score.roofline = roofline;
    return r;
  };
  std::vector<TaskResult> results = {task("near", 5, 0.95),
                                     task("far", 4, 0.25),
                                     task("small", 0.01, 0.1),
                                     {.id = "wrong", .verdict = verify::VerdictKind::kMismatch}};
  results[0].compared.baselines["compile"] = {.declined = "it took longer than 120 s", .timed_out = true};
  results[1].compared.baselines["compile"] = {.declined = "it cannot"};
  EXPECT_EQ(timed_out(results), (std::map<std::string, int64_t>{{"compile", 1}}));
  std::vector<Score> scores;
  for (const auto& r : results) scores.push_back(r.score);
  const std::string html = html_page(results, summarize(scores), {});
  size_t before = 0;
  for (const char* id : {"wrong", "far", "near", "small"}) {
    const size_t at = html.find(fmt::format("<td>{}</td>", id));
    EXPECT_LT(before, at) << id;
    EXPECT_NE(at, html.npos) << id;
    before = at;
  }
  EXPECT_THAT(html, HasSubstr("timed out"));
  EXPECT_THAT(html, HasSubstr("25.0 %"));
  const std::string text = text_table(results, summarize(scores));
  EXPECT_THAT(text, HasSubstr("torch.compile: timed out on 1 task\n"));
  EXPECT_THAT(text, HasSubstr("share of the roofline"));
}

TEST(Called, SpeedUpsByWay) {
  TaskResult r{.id = "one", .verdict = verify::VerdictKind::kVerified};
  compare(r, {.baselines = {{search::kCandidateName, {.call_ms = 2}},
                            {"eager", {.call_ms = 3}},
                            {"compile", {.declined = "stopped", .timed_out = true}},
                            {"eager-tf32", {.call_ms = 1}},
                            {"compile-tf32", {.call_ms = 4}}}});
  EXPECT_EQ(r.score.called_over_eager, 1.5);
  EXPECT_FALSE(r.score.called_over_compile);
  EXPECT_EQ(r.score.called_over_eager_tf32, 0.5);
  EXPECT_EQ(r.score.called_over_compile_tf32, 2);
}

TEST(Pages, ShowAllAndEscapeAll) {
  std::vector<TaskResult> results = {{.id = "one",
                                      .score = {.samples = 1, .verified = 1, .over_eager = 2.5},
                                      .verdict = verify::VerdictKind::kVerified,
                                      .proposer = "compiler"},
                                     {.id = "<script>",
                                      .score = {.samples = 1},
                                      .verdict = verify::VerdictKind::kMismatch,
                                      .reason = "a < b & \"c\""}};
  const Summary summary = summarize({results[0].score, results[1].score});
  const std::string html =
      html_page(results, summary, {.suite = "s<u>ite", .hardware = "H200", .versions = "v", .question = "q"});
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_THAT(html, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(html, HasSubstr("s&lt;u&gt;ite"));
  EXPECT_THAT(html, HasSubstr("50.0 %"));
  EXPECT_EQ(html.find("http"), html.npos);  // nothing is fetched
  const std::string text = text_table(results, summary);
  EXPECT_THAT(text, HasSubstr("2.50x"));
  EXPECT_THAT(text, HasSubstr("verified  1 of 2 (50.0 %)"));
}

}  // namespace
}  // namespace nereid::eval
