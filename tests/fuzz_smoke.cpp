// fuzz_smoke SECONDS SEED LAST FOLDER...: gives a fuzz target what lies in the folders, each file as it is
// and then changed at random: bytes, words of other files, pieces cut, doubled and swapped. Built with
// everything else, unlike libFuzzer's targets, which are compiled anew with coverage and sanitizers
// (tools/fuzz, `make slow`). The input under way lies in LAST, so that one that ends the process is there to
// be looked at.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Random = std::mt19937_64;

size_t below(Random& random, size_t end) { return end == 0 ? 0 : random() % end; }

// A few changes to one of the seeds.
std::string changed(const std::vector<std::string>& seeds, Random& random) {
  std::string text = seeds[below(random, seeds.size())];
  for (size_t left = 1 + below(random, 6); left > 0; --left) {
    const size_t at = below(random, text.size() + 1),
                 length = below(random, std::min<size_t>(64, text.size() - at) + 1);
    const std::string& other = seeds[below(random, seeds.size())];
    const size_t from = below(random, other.size());
    switch (below(random, 5)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, other, from, below(random, 64));
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      default:
        text.replace(at, length, other, from, length);
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: fuzz_smoke SECONDS SEED LAST FOLDER...\n");
    return 2;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  Random random(std::strtoull(argv[2], nullptr, 10));
  std::vector<std::string> seeds;
  for (int i = 4; i < argc; ++i)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  if (seeds.empty()) {
    std::fprintf(stderr, "fuzz_smoke: the folders hold no file\n");
    return 2;
  }
  std::sort(seeds.begin(), seeds.end());
  size_t inputs = 0;
  const auto give = [&](const std::string& text) {
    std::ofstream(argv[3], std::ios::binary | std::ios::trunc) << text;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    ++inputs;
  };
  for (const std::string& seed : seeds) give(seed);
  while (std::chrono::steady_clock::now() < end) give(changed(seeds, random));
  std::filesystem::remove(argv[3]);
  std::printf("%zu inputs\n", inputs);
}
