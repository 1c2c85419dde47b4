#include "nereid/dataset/choices/measurement.h"

#include <gtest/gtest.h>

#include <set>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/dataset/choices/best_pairs.h"
#include "nereid/synth/sample/maker.h"
#include "nereid/synth/traced.h"
#include "nereid/verify/analysis/kernel_library.h"

namespace nereid::dataset {
namespace {

// A few programs of several kernels, traced without Python; a judge and a clock that are functions of the
// text.
class MeasurementTest : public testing::Test {
 protected:
  MeasurementTest() {
    const synth::Space space(ops::every_operator(), synth::Bounds{.elements = 6, .work = 8});
    synth::Maker maker(space, synth::MakerConfig{.length = 4, .seed = 5});
    for (uint64_t index = 0; tasks_.size() < 6; ++index) {
      synth::Made made;
      maker.draw(index, 0, made);
      if (made.outcome != synth::Outcome::kMade) continue;
      maker.write(made);
      auto trace = synth::traced(made.program, made.style, made.layout, "model.py");
      if (!trace) continue;
      traces_.emplace(made.code, *std::move(trace));
      tasks_.push_back({.source = made.code,
                        .about = {{"id", fmt::format("p{}", tasks_.size())}, {"split", "train"}},
                        .number = tasks_.size()});
    }
  }

  static double seconds_of(const std::string& text) {  // 1 to 2 us
    return 1e-6 * (1 + static_cast<double>(std::stoul(sha256_hex(text).substr(0, 4), nullptr, 16)) / 65536);
  }

  MeasurementBackends backends(bool clock) {
    MeasurementBackends made{
        .trace = [this](const tracer::TraceRequest& request, Deadline) -> Result<tracer::TraceAnswer> {
          return tracer::TraceAnswer(traces_.at(request.source));
        },
        .analyze = [this](const trace::Trace& trace) { return verify::analyze_trace(trace, library_); },
        .judge =
            [this](const verify::Pair& pair) {
              {
                const std::lock_guard lock(mutex_);
                EXPECT_TRUE(judged_.insert(pair.reference_source + pair.candidate_text).second) << "twice";
              }
              verify::Verdict verdict;
              verdict.kind = judge_(pair);
              verdict.trace = sha256_hex(pair.candidate_text);
              return verdict;
            },
        .peaks = *gpu::peaks_of("NVIDIA H200"),
        .write =
            [this](const std::string& line) {
              lines_.push_back(parse_json(line, "a line").value());
              return ok_status();
            }};
    if (clock) {
      made.device = "a test's GPU";
      made.clock = [this](const verify::Pair& pair) {
        EXPECT_EQ(pair.trace, sha256_hex(pair.candidate_text));
        bool again = false;
        {
          const std::lock_guard lock(mutex_);
          again = ++times_[pair.candidate_text] > 1;
          timed_ += again ? 0 : 1;
        }
        verify::Verdict verdict;
        verdict.kind = verify::VerdictKind::kVerified;
        verdict.times = verify::Times{.reference_ms = 1,
                                      .candidate_ms = (again ? 1.1e3 : 1e3) * seconds_of(pair.candidate_text),
                                      .speedup = 2,
                                      .ci_low = 1.9,
                                      .ci_high = 2.1};
        return verdict;
      };
    }
    return made;
  }

  Result<MeasurementReport> run(bool clock, MeasurementOptions options) {
    options.max_share = 10;
    return Measurement(backends(clock), options).run(tasks_);
  }

  std::vector<GivenTask> tasks_;
  std::map<std::string, trace::Trace> traces_;
  std::function<verify::VerdictKind(const verify::Pair&)> judge_ = [](const verify::Pair&) {
    return verify::VerdictKind::kVerified;
  };
  verify::KernelLibrary library_;
  std::mutex mutex_;
  std::set<std::string> judged_;
  int timed_ = 0;
  std::map<std::string, int> times_;
  std::vector<Json> lines_;
};

TEST_F(MeasurementTest, EachChoiceIsVerifiedOnceAndTimed) {
  const auto report = run(true, {.choices = 8, .brief = true, .threads = 3, .clocks = 2});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->programs + (report->left_out.empty() ? 0 : report->left_out.begin()->second),
            std::ssize(tasks_));
  EXPECT_EQ(report->complete, report->programs);
  EXPECT_EQ(report->choices, std::ssize(judged_));
  EXPECT_EQ(report->timed, timed_);
  EXPECT_GT(report->timed, 3 * report->programs);
  for (const auto& [text, times] : times_) EXPECT_LE(times, 2);
  std::string text;
  for (const Json& line : lines_) {
    text += line.dump() + "\n";
    if (line.contains("left_out")) continue;
    std::set<std::string> codes;
    for (const Json& choice : line.at("choices")) {
      EXPECT_TRUE(codes.insert(choice.at("code").get<std::string>()).second);
      EXPECT_GT(choice.at("seconds").get<double>(), 0);
      EXPECT_GT(choice.at("modelled_seconds").get<double>(), 0);
      EXPECT_EQ(choice.at("features").size(), choice.at("kernels").size());
      EXPECT_TRUE(choice.at("plan").get<std::string>().starts_with("given "));
    }
    EXPECT_LE(codes.size(), 8U);
  }
  // The fastest of each program, unless the compiler's own is as fast.
  const auto best = best_pairs(text, "lines");
  ASSERT_TRUE(best.ok()) << best.error().message;
  EXPECT_EQ(best->pairs, report->programs);
  EXPECT_TRUE(best->measured);
  EXPECT_GE(best->gain, 1);
  std::string_view rest = best->lines;
  for (const Json& line : lines_) {
    if (line.contains("left_out")) continue;
    const Json pair = parse_json(rest.substr(0, rest.find('\n')), "a pair").value();
    rest.remove_prefix(rest.find('\n') + 1);
    double least = 1;
    for (const Json& choice : line.at("choices")) least = std::min(least, choice.at("seconds").get<double>());
    const bool own = pair.contains("first");
    EXPECT_LE(pair.at("seconds").get<double>(), own ? kFaster * least : least);
    EXPECT_TRUE(own || std::abs(pair.at("seconds_again").get<double>() - 1.1 * least) < 1e-12);
    EXPECT_EQ(pair.at("times"), "measured");
    EXPECT_EQ(pair.at("verdict").at("verdict"), "Verified");
  }
}

TEST_F(MeasurementTest, WithoutAClockSecondsAreModelled) {
  int count = 0;
  judge_ = [&](const verify::Pair&) {
    return ++count % 3 == 0 ? verify::VerdictKind::kMismatch : verify::VerdictKind::kVerified;
  };
  const auto report = run(false, {.choices = 6, .threads = 2});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->timed, 0);
  EXPECT_GT(report->verdicts.at("Mismatch"), 0);
  std::string text;
  for (const Json& line : lines_) {
    text += line.dump() + "\n";
    if (line.contains("left_out")) continue;
    EXPECT_TRUE(line.at("device").is_null());
    for (const Json& choice : line.at("choices")) EXPECT_FALSE(choice.contains("seconds"));
  }
  const auto best = best_pairs(text, "lines").value();
  EXPECT_FALSE(best.measured);
  EXPECT_NE(best.lines.find("\"times\":\"modelled\""), std::string::npos);
}

TEST_F(MeasurementTest, WhatCannotBeJudgedIsLeftOut) {
  judge_ = [](const verify::Pair&) { return verify::VerdictKind::kError; };
  const auto report = run(true, {.choices = 6, .threads = 1});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->programs, 0);
  EXPECT_EQ(report->timed, 0);
  EXPECT_GT(report->left_out.at("not judged"), 0);
  EXPECT_EQ(lines_.size(), tasks_.size());
}

TEST_F(MeasurementTest, ProgramsNearTheRooflineAreLeftOut) {
  const auto report = Measurement(backends(true), {.choices = 6, .max_share = 1e-6}).run(tasks_);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->left_out.at("near the roofline"), std::ssize(tasks_));
  EXPECT_TRUE(judged_.empty());
}

TEST_F(MeasurementTest, WhenTimeIsUpWhatWasTimedIsWritten) {
  judge_ = [number = 0](const verify::Pair&) mutable {  // one program's choices take all the time
    std::this_thread::sleep_for(std::chrono::milliseconds(++number > 4 ? 400 : 0));
    return verify::VerdictKind::kVerified;
  };
  const auto report = run(true, {.choices = 16, .threads = 1, .clocks = 1, .seconds = 1.0});
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->out_of_time);
  EXPECT_LT(report->complete, std::ssize(tasks_));
  ASSERT_FALSE(lines_.empty());
  EXPECT_FALSE(lines_.back().at("complete").get<bool>());
  EXPECT_GT(lines_.back().at("choices").size(), 1U);
}

TEST(BestPairs, NamesTheLineThatIsWrong) {
  const auto wrong =
      best_pairs("{\"id\": \"a\", \"left_out\": \"untraceable\"}\n{\"id\": \"b\"}\n", "f.jsonl");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().blame, Blame::kInput);
  EXPECT_TRUE(wrong.error().message.starts_with("f.jsonl:2")) << wrong.error().message;
}

}  // namespace
}  // namespace nereid::dataset
