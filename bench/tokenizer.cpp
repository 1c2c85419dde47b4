// Tokens a second on one thread, and how long a vocabulary takes to load: bench/tokenizer.md, and
// bench/tokenizer.py, which runs this against the `tokenizers` package.
//
//     bench_tokenizer TOKENIZER.json TEXTS [seconds]
//
// TEXTS is a file of texts with a NUL after each.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/lm/tokenizer/tokenizer.h"

namespace {

using namespace nereid;

// Of this thread's processor time: what a core to itself would do, whatever else runs on the machine.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status measure(const char* tokenizer_file, const char* text_file, double seconds) {
  double start = processor_seconds();
  NEREID_TRY(const auto tokenizer, lm::Tokenizer::load(tokenizer_file));
  const double loading = processor_seconds() - start;
  NEREID_TRY(const std::string file, read_file(text_file));
  std::vector<std::string_view> texts;
  size_t bytes = 0;
  for (std::string_view left = file; !left.empty();) {
    const size_t end = std::min(left.find('\0'), left.size());
    texts.push_back(left.substr(0, end));
    bytes += end;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  const double megabytes = static_cast<double>(bytes) / 1e6;

  std::vector<std::vector<lm::TokenId>> ids(texts.size());
  size_t tokens = 0;
  lm::Encoder encoder(tokenizer);
  const auto pass = [&]() -> Status {
    tokens = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      ids[i].clear();
      NEREID_TRY_STATUS(encoder.encode(texts[i], {}, ids[i]));
      tokens += ids[i].size();
    }
    return ok_status();
  };
  // The first pass meets every word for the first time, and is reported apart from those that know them.
  start = processor_seconds();
  NEREID_TRY_STATUS(pass());
  const double first = megabytes / (processor_seconds() - start);
  int passes = 0;
  start = processor_seconds();
  while (passes == 0 || processor_seconds() - start < seconds) {
    NEREID_TRY_STATUS(pass());
    ++passes;
  }
  const double again = passes * megabytes / (processor_seconds() - start);
  start = processor_seconds();
  size_t decoded = 0;
  for (const auto& row : ids) decoded += tokenizer->decode(row).size();
  const double decoding = megabytes / (processor_seconds() - start);
  std::printf(
      "{\"load_s\": %.4f, \"bytes\": %zu, \"decoded\": %zu, \"tokens\": %zu, \"first\": %.2f, \"again\": "
      "%.2f, \"decode\": "
      "%.2f}\n",
      loading, bytes, decoded, tokens, first, again, decoding);
  return ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_tokenizer TOKENIZER.json TEXTS [seconds]\n");
    return 2;
  }
  const nereid::Status done = measure(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 2);
  if (!done.ok()) std::fprintf(stderr, "bench_tokenizer: %s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
