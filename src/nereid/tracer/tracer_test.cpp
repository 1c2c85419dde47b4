#include "nereid/tracer/tracer.h"

#include <gtest/gtest.h>

#include <fstream>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"
#include "nereid/tracer/reference_inputs.h"

namespace nereid::tracer {
namespace {

// Stands in for the real tracer: "traces" a source by running it with the request, so that a test says what
// comes out.
constexpr const char* kModule = R"(
def warm():
    pass
def handle(request):
    if "several" in request:
        answers = [handle(each) for each in request["several"]]
        return {"several": answers if "one too few" not in str(request) else answers[1:]}
    scope = {"request": request}
    exec(request["source"], scope)
    return scope["answer"]
)";

Json sample() {
  return Json::parse(read_file(NEREID_SOURCE_DIR "/tests/golden/traces/handmade.json").value());
}

class TracerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    std::ofstream(folder_.path() / "stand_in.py") << kModule;
    tracer_ = Tracer::start({.installation = Installation::locate().value(),
                             .workers = 2,
                             .module = "stand_in",
                             .python_path = {folder_.path()}})
                  .value();
  }
  TraceAnswer trace(TraceRequest request) { return tracer_->trace(request, Deadline::after(120)).value(); }

  TemporaryFolder folder_ = TemporaryFolder::create().value();
  std::unique_ptr<Tracer> tracer_;
};

TEST_F(TracerTest, DecodesEveryKindOfAnswer) {
  const auto traced =
      trace({.source = "import json\nanswer = {'trace': json.loads(r'''" + sample().dump() + "''')}"});
  ASSERT_TRUE(std::holds_alternative<trace::Trace>(traced));
  EXPECT_EQ(trace::encode(std::get<trace::Trace>(traced)), trace::encode(trace::decode(sample()).value()));

  const auto untraceable =
      trace({.source = "answer = {'untraceable': {'phase': 'forward', 'type': 'ValueError', "
                       "'line': 7, 'traceback': ['a', 'b']}}"});
  ASSERT_TRUE(std::holds_alternative<Untraceable>(untraceable));
  EXPECT_EQ(std::get<Untraceable>(untraceable).line, 7);
  EXPECT_EQ(std::get<Untraceable>(untraceable).traceback.size(), 2);

  const auto malformed =
      trace({.source = "answer = {'malformed': {'message': 'no class ' + request['class']}}",
             .class_name = "ModelNew"});
  ASSERT_TRUE(std::holds_alternative<Malformed>(malformed));
  EXPECT_EQ(std::get<Malformed>(malformed).message, "no class ModelNew");

  const auto failed =
      trace({.source = "answer = {'compile_failed': {'kernel': 'add', 'message': 'no such type'}}"});
  ASSERT_TRUE(std::holds_alternative<CompileFailed>(failed));
  EXPECT_EQ(std::get<CompileFailed>(failed).kernel, "add");
}

TEST_F(TracerTest, SaysHowAProcessEnded) {
  const auto late = trace({.source = "while True: pass", .seconds = 0.3});
  EXPECT_TRUE(std::holds_alternative<TimedOut>(late));
  const auto killed = trace({.source = "import os; os._exit(3)"});
  ASSERT_TRUE(std::holds_alternative<Killed>(killed));
  EXPECT_NE(std::get<Killed>(killed).limit.find("status 3"), std::string::npos);
  const auto crashed = trace({.source = "import ctypes; ctypes.string_at(8)"});
  ASSERT_TRUE(std::holds_alternative<Killed>(crashed));
  EXPECT_NE(std::get<Killed>(crashed).limit.find("signal 11"), std::string::npos);
}

TEST_F(TracerTest, TracesSeveralInOneChild) {
  // How many were traced in that process so far.
  const std::string counting =
      "import os\nn = os.environ['TRACED'] = str(int(os.environ.get('TRACED', '0')) + 1)\n"
      "answer = {'malformed': {'message': n + ' ' + request['class']}}";
  const auto several = [&](const std::vector<std::string>& sources) {
    std::vector<TraceRequest> requests;
    for (const auto& source : sources)
      requests.push_back({.source = source, .class_name = std::to_string(requests.size()), .seconds = 5});
    return tracer_->trace_several(requests, Deadline::after(120)).value();
  };
  const auto message = [](const TraceAnswer& answer) { return std::get<Malformed>(answer).message; };
  const auto two = several({counting, counting});
  ASSERT_EQ(two.size(), 2);
  EXPECT_EQ(message(two[0]), "1 0");
  EXPECT_EQ(message(two[1]), "2 1");

  // One that ends the process, or an answer short: each in a child of its own.
  const auto killed = several({counting, "import os; os._exit(3)", counting});
  ASSERT_EQ(killed.size(), 3);
  EXPECT_TRUE(std::holds_alternative<Killed>(killed[1]));
  EXPECT_EQ(message(killed[0]), "1 0");
  EXPECT_EQ(message(killed[2]), "1 2");
  const auto short_by_one = several({counting, counting + "  # one too few"});
  ASSERT_EQ(short_by_one.size(), 2);
  EXPECT_EQ(message(short_by_one[1]), "1 1");
  EXPECT_TRUE(several({}).empty());
}

TEST_F(TracerTest, TakesNonsenseForWhatItIs) {
  for (const char* source :
       {"answer = 17", "answer = {}", "answer = []", "answer = {'trace': {}}", "answer = {'trace': None}",
        "answer = {'untraceable': 3}", "answer = {'untraceable': {'line': 1 << 80}}"}) {
    const auto answer = trace({.source = source});
    EXPECT_TRUE(std::holds_alternative<Forged>(answer)) << source << " gave " << answer.index();
  }
  // What Python's json writes of half a surrogate pair is an honest answer.
  const auto odd =
      trace({.source = R"(answer = {'untraceable': {'message': '\udcff\ud800 \U0001f600 \\udcff'}})"});
  ASSERT_TRUE(std::holds_alternative<Untraceable>(odd)) << odd.index();
  EXPECT_EQ(std::get<Untraceable>(odd).message, "\xef\xbf\xbd\xef\xbf\xbd \xf0\x9f\x98\x80 \\udcff");
  // A tracer that fails says so, and what is too large for a trace was not forged.
  for (const char* source : {"raise SystemExit", "answer = {1, 2}", "answer = float('nan')",
                             "answer = []\nfor i in range(300): answer = [answer]"}) {
    const auto answer = trace({.source = source});
    ASSERT_TRUE(std::holds_alternative<Untraceable>(answer)) << source << " gave " << answer.index();
    EXPECT_EQ(std::get<Untraceable>(answer).phase, "answer") << source;
  }
}

TEST(ReferenceInputs, HoldWhatTheInputsUseAndNoFloatingPointData) {
  const auto reference = trace::decode(sample()).value();
  const Json inputs = reference_inputs(reference);
  size_t calls = 0;
  for (const auto& phase : reference.phases) calls += phase.kind == trace::PhaseKind::kMakeInputs;
  EXPECT_EQ(inputs.at("inputs").size(), calls);
  EXPECT_LE(inputs.at("storages").size(), reference.storages.size());
  for (const Json& value : inputs.at("values")) {
    ASSERT_LT(value.at("s").get<size_t>(), inputs.at("storages").size());
    if (value.at("t").get<std::string>()[0] == 'f') {
      EXPECT_FALSE(inputs.at("storages")[value.at("s").get<size_t>()].contains("data"));
    }
  }
}

}  // namespace
}  // namespace nereid::tracer
