#include "nereid/verify/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "nereid/base/file.h"
#include "nereid/base/json.h"

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
      v.word = pair.candidate_text == "ours"  ? Word::kError
               : pair.candidate_text == "bad" ? Word::kMismatch
                                              : Word::kVerified;
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
      out[json["id"]] = json;
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
  EXPECT_EQ(summary.words, (std::map<std::string, int64_t>{{"Mismatch", 1}, {"Verified", 1}}));
  auto lines = by_id(streamed_);
  EXPECT_EQ(lines["one"]["verdict"], "Mismatch");
  EXPECT_EQ(lines["one"]["reference"], "R");
  EXPECT_EQ(lines["2"]["reference"], "S");
}

TEST_F(Batch, TellsWhatIsWrongWithALineAndGoesOn) {
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
  EXPECT_THAT(streamed_, HasSubstr("the id 'c' came before"));
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
  EXPECT_EQ(summary.words, (std::map<std::string, int64_t>{{"Mismatch", 1}, {"Verified", 1}}));
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

}  // namespace
}  // namespace nereid::verify
