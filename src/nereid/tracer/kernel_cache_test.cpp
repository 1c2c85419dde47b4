// What several processes do to one cache at once, and what a kill -9 in the middle of a write leaves.
#include "nereid/tracer/kernel_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"

namespace nereid::tracer {
namespace {

namespace fs = std::filesystem;

std::string key_of(int entry) { return sha256_hex("entry " + std::to_string(entry)); }

// One of several kernels that an entry may hold: after an ELF file's first bytes its code is `letter` over
// and over.
CompiledKernel kernel_of(char letter, size_t bytes) {
  CompiledKernel kernel;
  kernel.name = std::string("kernel_") + letter;
  kernel.cubin =
      "\x7f"
      "ELF" +
      std::string(bytes, letter);
  kernel.params = {"!tt.ptr<f32>"};
  return kernel;
}

// All of one writer's, from the first byte to the last.
bool is_whole(const CompiledKernel& kernel, size_t bytes) {
  return kernel.name.size() == 8 && kernel.cubin == kernel_of(kernel.name[7], bytes).cubin;
}

// Runs in a process of its own, which ends with status 0 where `body` gives true.
pid_t start(const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(body() ? 0 : 1);
  return pid;
}

int status_of(pid_t pid) {
  int status = -1;
  ::waitpid(pid, &status, 0);
  return status;
}

std::vector<fs::path> temporary_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code gone;
  for (auto file = fs::recursive_directory_iterator(folder, gone); file != fs::recursive_directory_iterator();
       file.increment(gone))
    if (file->path().extension() == ".tmp") found.push_back(file->path());
  return found;
}

class KernelCacheTest : public testing::Test {
 protected:
  TemporaryFolder folder_ = TemporaryFolder::create("kernel-cache").value();
};

TEST_F(KernelCacheTest, ProcessesThatWriteTheSameEntriesLeaveThemWhole) {
  constexpr int kWriters = 4, kRounds = 10, kEntries = 3;
  constexpr size_t kBytes = 300000;
  std::vector<pid_t> writers;
  for (int w = 0; w < kWriters; ++w)
    writers.push_back(start([&] {
      KernelCache cache(folder_.path());
      bool whole = true;
      for (int round = 0; round < kRounds; ++round)
        for (int entry = 0; entry < kEntries; ++entry) {
          cache.keep(key_of(entry), kernel_of(static_cast<char>('a' + w), kBytes));
          const auto found = cache.find(key_of(entry));  // of whichever writer came last
          whole = whole && found && is_whole(*found, kBytes);
        }
      return whole && cache.trouble().empty();
    }));
  for (const auto pid : writers) EXPECT_EQ(status_of(pid), 0);
  EXPECT_TRUE(temporary_files(folder_.path()).empty());
}

TEST_F(KernelCacheTest, AWriterKilledInTheMiddleLeavesWhatWasThere) {
  constexpr size_t kBytes = size_t{6} << 20;
  KernelCache cache(folder_.path());
  int in_the_middle = 0;
  for (int attempt = 0; attempt < 30 && in_the_middle < 4; ++attempt) {
    // The first ones find nothing, the others an entry.
    const bool before = in_the_middle >= 2;
    if (before) cache.keep(key_of(0), kernel_of('a', kBytes));
    const auto left_before = temporary_files(folder_.path()).size();
    const pid_t writer = start([&] {
      KernelCache(folder_.path()).keep(key_of(0), kernel_of('b', kBytes));
      return true;
    });
    std::error_code gone;
    const auto writes = [&] {
      const auto files = temporary_files(folder_.path());
      return std::ranges::any_of(files, [&](const auto& file) {
        const auto size = fs::file_size(file, gone);
        return files.size() > left_before && !gone && size > 0 && size < kBytes;
      });
    };
    while (!writes() && ::waitpid(writer, nullptr, WNOHANG) == 0) {
    }
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
    const auto left = temporary_files(folder_.path());
    in_the_middle += left.size() > left_before;
    const auto found = cache.find(key_of(0));
    if (left.size() > left_before) {
      EXPECT_EQ(found ? found->name : "none", before ? "kernel_a" : "none");
    }
    EXPECT_TRUE(!found || is_whole(*found, kBytes));
    fs::remove(cache.path_of(key_of(0)));
  }
  EXPECT_EQ(in_the_middle, 4);
  cache.keep(key_of(0), kernel_of('c', 10));
  EXPECT_EQ(cache.find(key_of(0)).value().name, "kernel_c") << "and the next lookup writes it";
}

TEST_F(KernelCacheTest, WhatAKilledWriterLeftGoesInTime) {
  KernelCache cache(folder_.path());
  const auto path = cache.path_of(key_of(0));
  fs::create_directories(path.parent_path());
  const auto old = path.string() + ".0123.tmp", young = path.string() + ".4567.tmp";
  for (const auto& name : {old, young}) std::ofstream(name) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache.keep(key_of(0), kernel_of('a', 10));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "its writer may be at work";
}

}  // namespace
}  // namespace nereid::tracer
