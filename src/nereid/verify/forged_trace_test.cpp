// A candidate's process may answer with any bytes: whatever it writes is its own doing. Valid traces of
// several honest candidates are changed at random and judged with real replays; none may give an Error.
//
// By default a slice; NEREID_TEST_FORGED=N runs N traces (label slow).
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "nereid/base/file.h"
#include "nereid/base/thread_pool.h"
#include "nereid/trace/format/codec.h"
#include "nereid/verify/stages/pipeline.h"
#include "nereid/verify/stages/verifier_processes.h"
#include "tests/support/mutated_json.h"

namespace nereid::verify {
namespace {

struct Honest {
  const char* task;
  const char* candidate;
};
constexpr Honest kHonest[] = {
    {"relu", "relu_one_kernel"},                     // a launch and nothing else
    {"ragged_mean", "ragged_mean_host_lengths"},     // integers that host code reads
    {"linear_gelu", "linear_gelu_packed_lazily"},    // parameters, and what is kept between calls
    {"scale_add", "scale_add_autotuned_pruned"},     // alternatives
    {"batch_norm_training", "batch_norm_training"},  // state that is written
    {"matmul", "matmul_host_descriptors"},           // descriptors
    {"min_max", "min_max_dictionary"},               // a tree of outputs
};

class ForgedTrace : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    processes_ = VerifierProcesses::open({.jobs = 2}).value().release();
    for (const auto& [task, candidate] : kHonest) {
      const std::string folder = NEREID_SOURCE_DIR "/tests/";
      Case found;
      found.name = candidate;
      found.reference = read_file(folder + "tasks/" + task + ".py").value();
      const auto trace = [&](tracer::TraceRequest request) {
        auto answer = processes_->tracer().trace(request, Deadline::after(600)).value();
        EXPECT_TRUE(std::holds_alternative<trace::Trace>(answer)) << candidate << " gave " << answer.index();
        return std::get<trace::Trace>(std::move(answer));
      };
      found.reference_trace =
          trace({.source = found.reference, .path = "reference.py", .draw = kSeed, .seconds = 120});
      found.document =
          trace::encode(trace({.source = read_file(folder + "honest/" + candidate + ".py").value(),
                               .path = "candidate.py",
                               .class_name = "ModelNew",
                               .draw = kSeed,
                               .reference = &found.reference_trace,
                               .seconds = 120}));
      cases_.push_back(std::move(found));
    }
  }
  static void TearDownTestSuite() { delete processes_; }

  static constexpr uint64_t kSeed = 5;
  struct Case {
    std::string name, reference;
    trace::Trace reference_trace;
    Json document;
  };

  // Judges what a candidate's process answered.
  static Verdict judge(const Case& of, const std::string& bytes) {
    VerifierBackends backends = processes_->backends();
    backends.trace = [&](const tracer::TraceRequest& request, Deadline) -> Result<tracer::TraceAnswer> {
      if (request.class_name == "Model") return tracer::TraceAnswer(of.reference_trace);
      return tracer::decode_answer(bytes, &request);
    };
    Judge judge(backends, {.policy = Policy::kHybrid,
                           .trials = 1,
                           .seed = kSeed,
                           .time_limit = 5,
                           .fast_inputs = true,
                           .threads = 1});
    return judge.judge({.reference_name = "reference.py",
                        .reference_source = of.reference,
                        .candidate_name = "candidate.py",
                        .candidate_text = "class ModelNew: pass\n",
                        .form = Pair::Form::kSource});
  }
  static std::string answer_of(const Json& document) {
    return Json{{"trace", document}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  static VerifierProcesses* processes_;
  static std::vector<Case> cases_;
};
VerifierProcesses* ForgedTrace::processes_ = nullptr;
std::vector<ForgedTrace::Case> ForgedTrace::cases_;

TEST_F(ForgedTrace, AsTheTracerWroteThemTheyAreVerified) {
  for (const Case& of : cases_) {
    const Verdict v = judge(of, answer_of(of.document));
    EXPECT_EQ(v.kind, VerdictKind::kVerified) << of.name << ": " << headline(v);
  }
}

TEST_F(ForgedTrace, WhatIsNotOfTheTaskIsForged) {
  const auto forged = [&](const char* name, const std::function<void(Json&)>& change) {
    for (const Case& of : cases_) {
      if (of.name != name) continue;
      Json document = of.document;
      change(document);
      const Verdict v = judge(of, answer_of(document));
      EXPECT_EQ(v.kind, VerdictKind::kDisallowed) << headline(v);
      ASSERT_FALSE(v.evidence.empty());
      EXPECT_EQ(v.evidence.front().rule, "forged-trace") << headline(v);
    }
  };
  const auto phase = [](Json& trace, const char* kind, int call) -> Json& {
    for (Json& one : trace["phases"])
      if (one["phase"] == kind && one.value("call", 0) == call) return one;
    throw std::runtime_error("no such phase");
  };
  // Missing inputs.
  forged("relu_one_kernel", [&](Json& t) { phase(t, "make_inputs", 2)["inputs"] = Json::array(); });
  forged("relu_one_kernel", [&](Json& t) { phase(t, "forward", 2)["inputs"] = nullptr; });
  // The second call's as the third's.
  forged("relu_one_kernel",
         [&](Json& t) { phase(t, "forward", 2)["inputs"] = phase(t, "forward", 1)["inputs"]; });
  // Renumbered calls, and fewer than were asked for.
  forged("relu_one_kernel", [&](Json& t) {
    phase(t, "make_inputs", 2)["call"] = 3;
    phase(t, "forward", 2)["call"] = 3;
  });
  forged("relu_one_kernel", [&](Json& t) { t["phases"].erase(6), t["phases"].erase(6); });
  // The constructor after the inputs.
  forged("relu_one_kernel", [&](Json& t) { std::swap(t["phases"][1], t["phases"][2]); });
  // Inputs of another shape, that overlap, or that are made by the candidate.
  forged("relu_one_kernel", [&](Json& t) {
    for (Json& value : t["values"]) value["n"][0] = 1;
  });
  forged("min_max_dictionary",
         [&](Json& t) { phase(t, "make_inputs", 2)["steps"] = phase(t, "forward", 2)["steps"]; });
  forged("ragged_mean_host_lengths", [&](Json& t) {
    for (Json& storage : t["storages"])
      if (storage.value("pinned", false)) {
        std::string data = base64_decode(storage["data"].get<std::string>()).value();
        data[0] = static_cast<char>(data[0] + 1);
        storage["data"] = base64_encode(data);
      }
  });
  // What nothing made.
  forged("relu_one_kernel", [&](Json& t) { phase(t, "forward", 2)["steps"] = Json::array(); });
  // No trace at all.
  forged("relu_one_kernel", [&](Json& t) { t = Json::array({1, 2}); });
  forged("relu_one_kernel", [&](Json& t) { t["values"][0]["n"] = {-1}; });
  const std::vector<std::string> garbage = {std::string("\x00\xff\xfe", 3), "{}", "", "{\"trace\": ", "[[[["};
  for (const auto& bytes : garbage) {
    const Verdict v = judge(cases_.front(), bytes);
    EXPECT_EQ(v.kind, VerdictKind::kDisallowed) << headline(v);
    EXPECT_EQ(v.evidence.front().rule, "forged-trace") << headline(v);
  }
}

TEST_F(ForgedTrace, NoChangeGivesAnError) {
  const char* asked = std::getenv("NEREID_TEST_FORGED");
  const int64_t count = asked != nullptr ? std::atoll(asked) : 150;
  const char* first = std::getenv("NEREID_TEST_FORGED_FROM");
  const int64_t from = first != nullptr ? std::atoll(first) : 0;
  std::mutex mutex;
  std::map<std::string, int> words;
  ThreadPool(2).parallel_for(count, [&](int64_t index, int) {
    const auto number = static_cast<uint64_t>(from + index);
    const Case& of = cases_[number % cases_.size()];
    const Case& other = cases_[(number / cases_.size() + 1 + number) % cases_.size()];
    TraceMutator mutator(of.document, other.document, number);
    Json document = mutator.mutate();
    // Some as they come out of CBOR: the same document model.
    if (number % 5 == 0)
      if (auto again = parse_cbor(to_cbor(document), "a trace"); again.ok()) document = *std::move(again);
    const Verdict v = judge(of, answer_of(document));
    const std::lock_guard lock(mutex);
    ++words[std::string(to_string(v.kind)) + (v.evidence.empty() ? "" : " " + v.evidence.front().rule)];
    EXPECT_NE(v.kind, VerdictKind::kError) << number << " " << of.name << ": " << mutator.what() << "\n"
                                           << headline(v);
  });
  for (const auto& [word, times] : words) std::printf("%5d %s\n", times, word.c_str());
}

}  // namespace
}  // namespace nereid::verify
