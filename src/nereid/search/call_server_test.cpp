#include "nereid/search/call_server.h"

#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "nereid/base/json.h"

namespace nereid::search {
namespace {

using testing::HasSubstr;

// A program whose forward does `body`.
std::string program_that(const std::string& body) {
  return R"(import os, time, torch
def make():
    return [torch.ones(4)], []
class Model(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
    def forward(self, a0):
        )" +
         body + "\n        return a0 + 1\n";
}

// All with one server: its imports take seconds.
TEST(CallServer, LivesThroughWhatProgramsDo) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok()) << installation.error().message;
  CallServer server(*installation, false);
  const auto answers_to = [&](const std::string& body, std::vector<std::string> ways) {
    std::map<std::string, Json> answers;
    const Status status = server.run(
        {.program = program_that(body), .ways = std::move(ways), .device = "cpu", .seconds = 0.01, .patience = 1},
        Deadline::after(100), [&](const std::string& way, const Json& answer) { answers[way] = answer; });
    EXPECT_TRUE(status.ok()) << status.error().message;
    return answers;
  };
  std::map<std::string, Json> hung, dead, raised;
  std::thread beside([&] { hung = answers_to("time.sleep(1000)", {"eager", "graph"}); });
  const auto good = answers_to("pass", {"eager"});
  EXPECT_GT(good.at("eager").at("call_ms").get<double>(), 0) << good.at("eager").dump();
  dead = answers_to("os.write(2, b'no more\\n'); os._exit(7)", {"eager", "graph"});
  EXPECT_THAT(dead.at("eager").at("declined").get<std::string>(), HasSubstr("its process ended: no more"));
  EXPECT_THAT(dead.at("graph").at("declined").get<std::string>(), HasSubstr("GPU"));  // by another process
  raised = answers_to("raise KeyError('what')", {"eager"});
  EXPECT_THAT(raised.at("eager").at("declined").get<std::string>(), HasSubstr("KeyError: 'what'"));
  beside.join();
  EXPECT_THAT(hung.at("eager").at("declined").get<std::string>(), HasSubstr("longer than 1 s"));
  EXPECT_THAT(hung.at("graph").at("declined").get<std::string>(), HasSubstr("GPU"));
}

}  // namespace
}  // namespace nereid::search
