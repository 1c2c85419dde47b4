#include "nereid/replay/build_id.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "nereid/base/file.h"
#include "nereid/replay/host/client.h"

namespace nereid::replay {
namespace {

TEST(BuildId, AHelloOfThisBuildIsAccepted) {
  EXPECT_EQ(build_id().size(), 64U);
  EXPECT_TRUE(same_build(hello("all"), "nereid-replay").ok());
}

TEST(BuildId, AnyOtherIsAnErrorOfOurs) {
  Json other = hello("all");
  other["build"] = std::string(64, '0');
  for (const Json& json :
       {other, Json{{"ready", true}, {"isolation", "all"}}, Json{{"build", 3}}, Json(), Json::array()}) {
    const auto status = same_build(json, "old/nereid-replay");
    ASSERT_FALSE(status.ok()) << json;
    EXPECT_EQ(status.error().blame, Blame::kOurs);
    EXPECT_NE(status.error().message.find("old/nereid-replay"), std::string::npos);
    EXPECT_NE(status.error().message.find("build or install both"), std::string::npos);
  }
}

// A program that says what servers of earlier builds said.
TEST(BuildId, AServerOfAnotherBuildDoesNotStart) {
  const auto folder = TemporaryFolder::create();
  ASSERT_TRUE(folder.ok());
  const auto program = folder->path() / "nereid-replay";
  // {"ready": true, "isolation": "all"} as a message: its length, then CBOR; to the socket, descriptor 3.
  std::ofstream(program) << R"(#!/bin/sh
printf '\026\000\000\000\242\145ready\365\151isolation\143all' >&3
exec sleep 60
)";
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const auto server = Server::start({.program = program.string()});
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().blame, Blame::kOurs);
  EXPECT_NE(server.error().message.find("another build (without a number)"), std::string::npos)
      << server.error().message;
}

}  // namespace
}  // namespace nereid::replay
