#include "nereid/search/call_server.h"

#include <gmock/gmock.h>

#include <mutex>
#include <thread>

#include "nereid/base/file.h"
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
  CallServer server(*installation, CallServer::Kind::kEager, "cpu");
  const auto answers_to = [&](const std::string& body, std::vector<std::string> modes) {
    std::map<std::string, Json> answers;
    const Status status = server.run(
        {.program = program_that(body), .modes = std::move(modes), .seconds = 0.01, .patience = 1},
        Deadline::after(100), [&](const std::string& mode, const Json& answer) { answers[mode] = answer; });
    EXPECT_TRUE(status.ok()) << status.error().message;
    return answers;
  };
  std::map<std::string, Json> hung, dead, raised;
  std::thread other([&] { hung = answers_to("time.sleep(1000)", {"eager", "graph"}); });
  const auto good = answers_to("pass", {"eager"});
  EXPECT_GT(good.at("eager").at("call_ms").get<double>(), 0) << good.at("eager").dump();
  dead = answers_to("os.write(2, b'no more\\n'); os._exit(7)", {"eager", "graph"});
  EXPECT_THAT(dead.at("eager").at("declined").get<std::string>(), HasSubstr("its process ended: no more"));
  EXPECT_THAT(dead.at("graph").at("declined").get<std::string>(), HasSubstr("GPU"));  // by another process
  raised = answers_to("raise KeyError('what')", {"eager"});
  const auto precise = answers_to(
      "assert torch.get_float32_matmul_precision() == 'high', torch.get_float32_matmul_precision()",
      {"eager-tf32", "eager"});
  EXPECT_GT(precise.at("eager-tf32").value("call_ms", 0.0), 0) << precise.at("eager-tf32").dump();
  EXPECT_THAT(precise.at("eager").value("declined", ""), HasSubstr("AssertionError: highest"));
  EXPECT_THAT(raised.at("eager").at("declined").get<std::string>(), HasSubstr("KeyError: 'what'"));
  other.join();
  EXPECT_THAT(hung.at("eager").at("declined").get<std::string>(), HasSubstr("longer than 1 s"));
  EXPECT_TRUE(hung.at("eager").value("timed_out", false));
  EXPECT_FALSE(dead.at("eager").contains("timed_out"));
  EXPECT_THAT(hung.at("graph").at("declined").get<std::string>(), HasSubstr("GPU"));
}

// What a taken over child could do: it is in the jail of CUDA's workers, without a GPU here.
TEST(CallServer, JailsCandidates) {
  const auto installation = Installation::locate();
  ASSERT_TRUE(installation.ok()) << installation.error().message;
  const auto secret = TemporaryFolder::create();
  ASSERT_TRUE(secret.ok() && write_file_atomically(secret->path() / "weights", "secret").ok());
  const std::string file = (secret->path() / "weights").string();
  CallServer server(*installation, CallServer::Kind::kCandidates, "cpu");
  const auto answer_to = [&](const std::string& body) {
    Json answer;
    const Status status =
        server.run({.program = program_that(body), .modes = {"eager"}, .seconds = 0.01, .patience = 20},
                   Deadline::after(100), [&](const std::string&, const Json& said) { answer = said; });
    EXPECT_TRUE(status.ok()) << status.error().message;
    return answer;
  };
  const auto good = answer_to("a0 = torch.ops.aten.softmax.int(a0 @ a0[None].T, 0)");
  EXPECT_GT(good.value("call_ms", 0.0), 0) << good.dump();
  const std::map<std::string, const char*> attempts = {
      {"open('" + file + "').read()", "FileNotFoundError"},
      {"open('" + file + "', 'w')", "Error: [Errno"},
      {"open('here', 'w')", "Error: [Errno"},
      {"os.listdir('/root')", "Error: [Errno"},
      {"os.fork()", "Error: [Errno"},
      {"os.execv('/bin/true', ['true'])", "PermissionError"},
      {"__import__('socket').socket()", "PermissionError"},
      {"[os.write(2, bytes(1 << 16)) for _ in range(20)]", "File too large"},
  };
  for (const auto& [attempt, refusal] : attempts) {
    const auto answer = answer_to(attempt);
    EXPECT_THAT(answer.value("declined", ""), HasSubstr(refusal)) << attempt << ": " << answer.dump();
  }
}

}  // namespace
}  // namespace nereid::search
