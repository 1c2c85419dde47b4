#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/memory.h"
#include "nereid/base/program/command.h"
#include "nereid/base/thread_pool.h"

namespace nereid {
namespace {

TEST(Result, PassesErrorsUp) {
  auto half = [](int x) -> Result<int> {
    if (x % 2 != 0) return input_error("{} is odd, expected an even number", x);
    return x / 2;
  };
  auto quarter = [&](int x) -> Result<int> {
    NEREID_TRY(int h, half(x));
    return half(h);
  };
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error().message, "3 is odd, expected an even number");
  EXPECT_EQ(quarter(6).error().blame, Blame::kInput);
}

TEST(Command, AnErrorIsReportedAndHasAnExitCode) {
  const auto ends_with = [](const Chosen& chosen) {
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    const int code = run_to_exit_code(chosen);
    return std::tuple(code, testing::internal::GetCapturedStderr(), testing::internal::GetCapturedStdout());
  };
  EXPECT_EQ(ends_with({.run = [] { return Result<Answer>(Answer::kNo); }}), std::tuple(1, "", ""));
  EXPECT_EQ(ends_with({.run = [] { return Result<Answer>(input_error("a.toml:3: no")); }}),
            std::tuple(2, "nereid: a.toml:3: no\n", ""));
  EXPECT_EQ(ends_with({.json = true, .run = [] { return Result<Answer>(our_error("full")); }}),
            std::tuple(3, "nereid: full\n", "{\"error\":{\"blame\":\"ours\",\"message\":\"full\"}}\n"));
  EXPECT_EQ(ends_with({.run = []() -> Result<Answer> { throw std::runtime_error("why\nand a stack"); }}),
            std::tuple(3, "nereid: unexpected: why\n", ""));
  const auto failing = [&](std::errc code) {
    return ends_with({.run = [&]() -> Result<Answer> {
      throw std::filesystem::filesystem_error("status", "a.py", std::make_error_code(code));
    }});
  };
  EXPECT_EQ(failing(std::errc::too_many_symbolic_link_levels),
            std::tuple(2, "nereid: a.py: Too many levels of symbolic links\n", ""));
  EXPECT_EQ(std::get<0>(failing(std::errc::no_space_on_device)), 3);
  EXPECT_EQ(
      std::get<0>(ends_with({.run = [] { return Result<Answer>(Error{"stop", Blame::kInterrupted}); }})),
      130);
}

// A field of a document or of a name that is gone with the statement cannot be made.
static_assert(std::is_constructible_v<JsonField, const Json&, const char*>);
static_assert(std::is_constructible_v<JsonField, const Json&, std::string&>);
static_assert(std::is_constructible_v<JsonField, const Json&, std::string_view>);
static_assert(!std::is_constructible_v<JsonField, const Json&, std::string>);
static_assert(!std::is_constructible_v<JsonField, const Json&, const std::string>);
static_assert(!std::is_constructible_v<JsonField, Json, const char*>);

TEST(Json, RefusesDeepNestingInBothEncodings) {
  EXPECT_FALSE(parse_json(std::string(100000, '['), "doc").ok());
  EXPECT_FALSE(parse_cbor(std::string(100000, '\x81'), "doc").ok());
  EXPECT_FALSE(parse_cbor(std::string(100000, '\x9f'), "doc").ok());
}

TEST(Json, CborRoundTripsAndRefusesEveryTruncation) {
  const Json document = {
      {"a", {1, -2, 3.5, nullptr, true}}, {"b", "text"}, {"c", Json::object()}, {"d", Json::array()}};
  const std::string bytes = to_cbor(document);
  EXPECT_EQ(parse_cbor(bytes, "doc").value(), document);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(parse_cbor(bytes.substr(0, n), "doc").ok()) << n;
  EXPECT_FALSE(parse_cbor(bytes + "x", "doc").ok());
}

TEST(Json, Base64RoundTrips) {
  for (int n = 0; n < 40; ++n) {
    std::string bytes;
    for (int i = 0; i < n; ++i) bytes += static_cast<char>(i * 37 + n);
    EXPECT_EQ(base64_decode(base64_encode(bytes)).value(), bytes);
  }
  EXPECT_FALSE(base64_decode("ab=").ok());
  EXPECT_FALSE(base64_decode("a*==").ok());
}

TEST(Hash, IsSha256) {
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(File, WritesAtomicallyAndNamesWhatIsMissing) {
  auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "x";
  ASSERT_TRUE(write_file_atomically(path, "one").ok());
  ASSERT_TRUE(write_file_atomically(path, "two").ok());
  EXPECT_EQ(read_file(path).value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_EQ(read_file(folder.path() / "y").error().message,
            (folder.path() / "y").string() + ": No such file or directory");
}

TEST(File, ANamedPipeWithoutAWriterIsNotWaitedFor) {
  auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "config.json";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_file(path).error().message, path.string() + ": is a pipe without a writer, expected a file");
  // A pipe with a writer is read to its end, in pieces if need be.
  Fd both(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  std::thread writer([&] {
    const Fd end(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    for (const char* piece : {"two ", "pieces"}) {
      EXPECT_GT(::write(end.get(), piece, std::strlen(piece)), 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    both.reset();
  });
  EXPECT_EQ(read_file(path).value(), "two pieces");
  writer.join();
}

// `-o /dev/null` by the superuser leaves a device there.
TEST(File, WhatIsNoFileIsWrittenTo) {
  auto folder = TemporaryFolder::create().value();
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const Fd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_file_atomically(path, "three").ok());
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  char got[16];
  EXPECT_EQ(::read(reader.get(), got, sizeof got), 5);
  EXPECT_EQ(write_file_atomically("/dev/full", "x").error().message, "/dev/full: No space left on device");
}

TEST(Memory, AvailableIsSomeOfWhatThereIs) {
  const int64_t page = ::sysconf(_SC_PAGESIZE), all = ::sysconf(_SC_PHYS_PAGES) * page;
  EXPECT_GT(available_memory(), 0);
  EXPECT_LE(available_memory(), all);
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  ThreadPool pool(4);
  for (int64_t count : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
    pool.parallel_for(count, [&](int64_t i, int thread) {
      EXPECT_LT(thread, 4);
      ++seen[static_cast<size_t>(i)];
    });
    for (auto& n : seen) EXPECT_EQ(n, 1);
  }
}

}  // namespace
}  // namespace nereid
