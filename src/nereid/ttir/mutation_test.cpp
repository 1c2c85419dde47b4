// Golden kernels with characters, words and lines changed at random: none may do harm, whatever becomes of
// it. A small sibling of parser_fuzz.cpp that every test run can afford.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "nereid/base/file.h"
#include "nereid/ttir/exec/executor.h"

namespace nereid::ttir {
namespace {

std::string mutated(std::string text, std::mt19937& random) {
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    const size_t at = below(text.size());
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(32 + below(95));
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), below(20)));
        break;
      case 3: {  // another number
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos)
          text.replace(digit, 1, std::to_string(below(2) == 0 ? below(10) : below(5000000000)));
        break;
      }
      default: {  // a line twice, or gone
        const size_t start = text.rfind('\n', at), end = text.find('\n', at);
        if (start == std::string::npos || end == std::string::npos) break;
        if (below(2) == 0)
          text.insert(end, text.substr(start, end - start));
        else
          text.erase(start, end - start);
      }
    }
  }
  return text;
}

void run(const Kernel& kernel) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<Buffer> buffers;
  Launch launch;
  launch.grid = {2, 2, 1};
  for (const Parameter& p : kernel.parameters()) {
    if (p.type.rfind("!tt.ptr", 0) != 0) {
      launch.arguments.emplace_back(Scalar{100});
      continue;
    }
    launch.arguments.emplace_back(Pointer{static_cast<int>(buffers.size()), 0});
    memory.emplace_back(4096);
    buffers.emplace_back();
    buffers.back().data = memory.back().data();
    buffers.back().bytes = 4096;
  }
  RunOptions options;
  options.deadline = Deadline::after(0.02);
  (void)kernel.run(launch, buffers, options);
  (void)kernel.cost(launch);
}

TEST(Mutation, ChangedKernelsDoNoHarm) {
  std::mt19937 random(2026);
  int loaded = 0, refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(NEREID_SOURCE_DIR "/tests/ttir/golden")) {
    if (entry.path().extension() != ".ttir") continue;
    const auto text = read_file(entry.path());
    ASSERT_TRUE(text.ok());
    for (int k = 0; k < 60; ++k) {
      const auto kernel = Kernel::load(mutated(*text, random));
      if (!kernel) {
        EXPECT_FALSE(kernel.error().message.empty());
        ++refused;
        continue;
      }
      ++loaded;
      run(*kernel);
    }
  }
  EXPECT_GT(loaded, 50);
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace nereid::ttir
