#include "nereid/sandbox/zygote.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"

namespace nereid::sandbox {
namespace {

// A worker's module: runs the Python text it is asked to run, as the worst candidate could.
constexpr const char* kModule = R"(
import os, sys, json, time, threading
def warm():
    return {"python": sys.version.split()[0]}
def handle(request):
    scope = {"request": request}
    exec(request["code"], scope)
    return {"result": scope.get("result")}
)";

class ZygoteTest : public testing::Test {
 protected:
  static ZygoteOptions options() {
    std::ofstream(folder() / "worst.py") << kModule;
    ZygoteOptions options{.installation = Installation::locate().value(), .module = "worst"};
    options.python_path = {folder()};
    options.limits.memory_bytes = int64_t{512} << 20;
    options.limits.scratch_bytes = 8 << 20;
    options.max_answer_bytes = 4 << 20;
    return options;
  }
  static const std::filesystem::path& folder() {
    static const TemporaryFolder made = TemporaryFolder::create("worst").value();
    std::filesystem::permissions(made.path(), std::filesystem::perms(0755));
    return made.path();
  }
  void SetUp() override { zygote_ = Zygote::start(options()).value(); }

  Result<Outcome> run(const std::string& code, double seconds = 20) {
    return zygote_->run(Json{{"code", code}}.dump(), seconds, Deadline::after(120));
  }
  // What the code leaves in `result`.
  Json result(const std::string& code) {
    auto outcome = run(code);
    if (!outcome.ok()) return outcome.error().message;
    if (auto* killed = std::get_if<Killed>(&*outcome)) return killed->limit;
    if (std::holds_alternative<OutOfTime>(*outcome)) return "out of time";
    const Json answer = parse_json(std::get<Answer>(*outcome).bytes, "answer").value();
    return answer.contains("result") ? answer["result"] : answer;
  }

  std::unique_ptr<Zygote> zygote_;
};

TEST_F(ZygoteTest, AnswersAndSaysWhichWallsStand) {
  EXPECT_EQ(result("result = 6 * 7"), 42);
  const Walls walls = zygote_->walls(Deadline::after(60)).value();
  EXPECT_TRUE(walls.enough()) << describe(walls);
  std::printf("walls: %s\n", describe(walls).c_str());
  EXPECT_NE(zygote_->about(Deadline::after(60)).value().find("3."), std::string::npos);
}

TEST_F(ZygoteTest, ServesManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i)
        if (result(fmt::format("result = {} * 1000 + {}", t, i)) == t * 1000 + i) ++right;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST_F(ZygoteTest, EndsWhatTakesTooLong) {
  auto outcome = run("while True: pass", 0.3);
  ASSERT_TRUE(outcome.ok()) << outcome.error().message;
  EXPECT_TRUE(std::holds_alternative<OutOfTime>(*outcome));
  EXPECT_EQ(result("result = 1"), 1);
}

}  // namespace
}  // namespace nereid::sandbox
