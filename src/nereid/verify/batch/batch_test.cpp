#include "nereid/verify/batch/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/verify/batch/batch_line.h"

namespace nereid::verify {
namespace {

using testing::HasSubstr;

class Batch : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    ASSERT_TRUE(write_file_atomically(folder_.path() / name, text).ok());
  }
  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }

  // Judges by the candidate's text alone: "ours" is our error, "bad" a Mismatch, the rest Verified.
  Result<BatchSummary> run(const std::string& input, const std::string& output = "", int jobs = 2) {
    auto reader = BatchReader::open(at(input)).value();
    const auto judge = [&](const Pair& pair) {
      ++judged_;
      Verdict v;
      v.kind = pair.candidate_text == "ours"  ? VerdictKind::kError
               : pair.candidate_text == "bad" ? VerdictKind::kMismatch
                                              : VerdictKind::kVerified;
      v.reference = pair.reference_source;
      return v;
    };
    BatchOptions options{.jobs = jobs, .stream = [&](const std::string& line) {
                           streamed_ += line;
                           return ok_status();
                         }};
    if (!output.empty()) options.output = at(output);
    return run_batch(reader, judge, options);
  }
  std::map<std::string, Json> by_id(const std::string& lines) {
    std::map<std::string, Json> out;
    size_t from = 0;
    for (size_t end; (end = lines.find('\n', from)) != std::string::npos; from = end + 1) {
      const Json json = Json::parse(lines.substr(from, end - from));
      out[json["id"].is_string() ? json["id"].get<std::string>() : json["id"].dump()] = json;
    }
    EXPECT_EQ(from, lines.size()) << "the last line is whole";
    return out;
  }

  TemporaryFolder folder_ = TemporaryFolder::create("batch").value();
  std::atomic<int> judged_{0};
  std::string streamed_;
};

TEST_F(Batch, ReadsPathsAndSources) {
  write("r.py", "R");
  write("c.txt", "bad");
  write("b.jsonl",
        "{\"id\": \"one\", \"reference\": \"r.py\", \"candidate\": \"c.txt\"}\n\n"
        "{\"id\": 2, \"reference_source\": \"S\", \"candidate_source\": \"good\"}\n");
  const auto summary = run("b.jsonl").value();
  EXPECT_EQ(summary.verdicts, (std::map<std::string, int64_t>{{"Mismatch", 1}, {"Verified", 1}}));
  auto lines = by_id(streamed_);
  EXPECT_EQ(lines["one"]["verdict"], "Mismatch");
  EXPECT_EQ(lines["one"]["reference"], "R");
  EXPECT_EQ(lines["2"]["reference"], "S");
  EXPECT_EQ(lines["2"]["id"], 2);  // as it came
}

TEST_F(Batch, ReportsAWrongLineAndContinues) {
  write(
      "b.jsonl",
      "{not json\n{\"id\": \"a\"}\n{\"id\": \"b\", \"reference_source\": \"S\", \"candidate\": \"gone.py\"}\n"
      "[1]\n{\"id\": \"c\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n"
      "{\"id\": \"c\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n");
  const auto summary = run("b.jsonl", "", 1).value();
  EXPECT_EQ(summary.input_errors, 5);
  EXPECT_EQ(judged_, 1);
  EXPECT_THAT(streamed_, HasSubstr("b.jsonl:1"));
  EXPECT_THAT(streamed_, HasSubstr("expected `reference` or `reference_source`"));
  EXPECT_THAT(streamed_, HasSubstr("gone.py"));
  EXPECT_THAT(streamed_, HasSubstr(R"(the id \"c\" came before)"));
}

TEST_F(Batch, ResumesWhereItStopped) {
  write("b.jsonl",
        "{\"id\": \"a\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n"
        "{\"id\": \"b\", \"reference_source\": \"S\", \"candidate_source\": \"bad\"}\n"
        "{\"id\": \"c\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n"
        "{\"id\": \"d\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n");
  write("out.jsonl",
        "{\"id\": \"a\", \"verdict\": \"Verified\"}\n"
        "{\"id\": \"b\", \"verdict\": \"Error\", \"blame\": \"ours\"}\n"
        "{\"id\": \"c\", \"verdict\": \"Error\", \"blame\": \"input\"}\n"
        "{\"id\": \"d\", \"verd");  // cut short by a kill
  const auto summary = run("b.jsonl", "out.jsonl").value();
  EXPECT_EQ(summary.skipped, 2);
  EXPECT_EQ(judged_, 2);
  auto lines = by_id(read_file(at("out.jsonl")).value());
  EXPECT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines["b"]["verdict"], "Mismatch");
  EXPECT_EQ(lines["d"]["verdict"], "Verified");
  EXPECT_EQ(run("b.jsonl", "out.jsonl").value().skipped, 4);
  EXPECT_EQ(judged_, 2);
}

TEST_F(Batch, ReadsAFolder) {
  write("all/reference.py", "R");
  write("all/x.py", "good");
  write("all/relu/reference.py", "R2");
  write("all/relu/wrong.md", "bad");
  write("all/relu/notes.json", "{}");
  const auto summary = run("all").value();
  EXPECT_EQ(summary.verdicts, (std::map<std::string, int64_t>{{"Mismatch", 1}, {"Verified", 1}}));
  auto lines = by_id(streamed_);
  EXPECT_EQ(lines["x"]["reference"], "R");
  EXPECT_EQ(lines["relu/wrong"]["reference"], "R2");
  EXPECT_FALSE(BatchReader::open(at("all") / "relu" / "nothing").ok());
}

TEST_F(Batch, AFailedWriteEndsItWithAnError) {
  write("b.jsonl", "{\"id\": \"a\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}\n");
  auto reader = BatchReader::open(at("b.jsonl")).value();
  const auto summary =
      run_batch(reader, [](const Pair&) { return Verdict{}; },
                {.stream = [](const std::string&) -> Status { return our_error("no space"); }});
  ASSERT_FALSE(summary.ok());
  EXPECT_EQ(summary.error().message, "no space");
}

// Each line's verdict stands under its own id, whatever else is wrong with it.
TEST_F(Batch, AnyTextGetsAVerdictUnderItsOwnId) {
  const std::string good = R"(, "reference_source": "S", "candidate_source": "x"})";
  const std::vector<std::pair<std::string, std::string>> lines = {
      {R"("a")", R"({"id": "a")" + good},
      {R"("\ud800")", R"({"id": "\ud800")" + good},              // half of a pair as the id
      {R"("\ud83d\ude00")", R"({"id": "\ud83d\ude00")" + good},  // and a whole one
      {"7", R"({"id": 7)" + good},
      {"1.5", R"({"id": 1.5)" + good},
      {"true", R"({"id": true)" + good},
      {R"({"step": 3, "sample": [1, "b"]})", R"({"id": {"step": 3, "sample": [1, "b"]})" + good},
      {"\"\"", R"({"id": "")" + good},
      {R"("s")", R"({"id": "s", "reference_source": "S", "candidate_source": "\ud800 = 1"})"},
      {R"("b")", "{\"id\": \"b\", \"reference_source\": \"S\", \"candidate_source\": \"\xff\xfe\"}"},
      {R"("c")", R"({"id": "c", "reference_source": "S", "candidate_source": 7})"},
      {R"("d")", R"({"id": "d", "reference_source": "S", "candidate_source": "x", "polizy": "strict"})"},
      {R"("e")", R"({"id": "e", "reference_source": "S", "candidate_sou)"},  // cut short
      {R"("f")", R"({"id": "f", "id": "g")" + good},
      {R"("h")", R"({"id": "h", "trials": 0)" + good},
      {R"("i")", R"({"id": "i", "time_limit": "5")" + good},
      {R"("j")", R"({"id": "j", "candidate": "c.py")" + good},
      {R"("k")", R"({"id": "k", "candidate_source": "x", "reference": "a\u0000b"})"},
  };
  std::string text;
  for (const auto& [id, line] : lines) text += line + "\n";
  write("b.jsonl", text);
  const auto summary = run("b.jsonl", "", 1).value();
  EXPECT_EQ(summary.input_errors, 8);
  EXPECT_EQ(judged_, 10);
  size_t from = 0;
  for (const auto& [id, line] : lines) {
    const size_t end = streamed_.find('\n', from);
    ASSERT_NE(end, std::string::npos) << line;
    EXPECT_TRUE(streamed_.substr(from, end - from).starts_with("{\"id\":" + id + ","))
        << streamed_.substr(from, 200);
    from = end + 1;
  }
  EXPECT_THAT(streamed_, HasSubstr("unknown key 'polizy': expected one of"));
  EXPECT_THAT(streamed_, HasSubstr("no second key 'id'"));
}

TEST_F(Batch, WithoutAnIdThereIsTheLinesNumber) {
  write("b.jsonl", "\n[1, 2]\n\xff\xfe\x01 garbage\n\"text\"\n{\"id\": null}\n{\"id\": \"" +
                       std::string(70000, 'x') + "\"}\n");
  const auto summary = run("b.jsonl", "", 1).value();
  EXPECT_EQ(summary.input_errors, 5);
  auto lines = by_id(streamed_);
  for (int number = 2; number <= 6; ++number) {
    const std::string id = fmt::format("{}:{}", at("b.jsonl").string(), number);
    ASSERT_TRUE(lines.contains(id)) << streamed_;
    EXPECT_EQ(lines[id]["line"], number);
    EXPECT_EQ(lines[id]["verdict"], "Error");
    EXPECT_EQ(lines[id]["blame"], "input");
  }
}

TEST_F(Batch, ALineThatIsTooLongKeepsItsId) {
  write("b.jsonl", "{\"id\": \"long\", \"candidate_source\": \"" + std::string(kMaxLineBytes, 'x') +
                       "\"}\n{\"id\": \"next\", \"reference_source\": \"S\", \"candidate_source\": \"x\"}");
  const auto summary = run("b.jsonl", "", 1).value();
  EXPECT_EQ(summary.input_errors, 1);
  auto lines = by_id(streamed_);
  EXPECT_THAT(lines["long"]["reason"].get<std::string>(), HasSubstr("expected at most"));
  EXPECT_EQ(lines["next"]["verdict"], "Verified") << "the last line needs no end";
}

TEST(BatchLine, TakesEverySettingOfAPair) {
  const auto line = read_batch_line(
      R"({"id": 1, "reference_source": "R", "candidate_source": "C", "form": "answer", "policy": "strict",
          "device": "cpu", "protocol": "kernelbench",
          "trials": 2, "seed": 9007199254740991, "time_limit": 4.5, "verdict_limit": 60, "rtol": 1e-3,
          "atol": 0, "allow_tf32": true,
          "fast_inputs": false, "shrink": true, "ignore_rules": null, "trace": "ab",
          "reference_name": "r.py", "candidate_name": "c.py"})",
      false, "stdin:1", "");
  ASSERT_TRUE(line.pair.ok()) << line.pair.error().message;
  const auto& [policy, device, protocol, trials, seed, time_limit, verdict_limit, rtol, atol, tf32, few,
               shrink, beyond] = line.pair->settings;
  EXPECT_EQ(line.pair->form, Pair::Form::kAnswer);
  EXPECT_EQ(policy + device + protocol, "strictcpukernelbench");
  EXPECT_EQ(trials, 2U);
  EXPECT_EQ(seed, 9007199254740991U);
  EXPECT_EQ(time_limit, 4.5);
  EXPECT_EQ(verdict_limit, 60);
  EXPECT_EQ(rtol, 1e-3);
  EXPECT_EQ(atol, 0);
  EXPECT_EQ(tf32, true);
  EXPECT_EQ(few, false);
  EXPECT_EQ(shrink, true);
  EXPECT_EQ(beyond, std::nullopt);
  EXPECT_EQ(line.pair->reference_name + line.pair->candidate_name + line.pair->trace, "r.pyc.pyab");
}

TEST(BatchLine, LooseJsonIsJsonForEverythingElse) {
  for (const char* text : {"{}", "[]", " [1, -2.5e3, true, false, null, \"\\u00e9\\n\\ud83d\\ude00\"] ",
                           "{\"a\": {\"b\": [[]]}}", "1", "\"x\""}) {
    const auto loose = parse_loose_json(text);
    EXPECT_EQ(loose.error, "") << text;
    EXPECT_EQ(loose.value, Json::parse(text)) << text;
  }
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "01", "1 2", "tru", "'x'", "\"a",
                           "\"\\x\"", "\"\\u12\"", "nan", "{\"a\": 1, \"a\": 1}", "\"\t\"", "[1}"})
    EXPECT_NE(parse_loose_json(text).error, "") << text;
  EXPECT_NE(parse_loose_json(std::string(100000, '[')).error, "");
}

}  // namespace
}  // namespace nereid::verify
