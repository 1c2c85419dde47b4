// Tokens a second on one thread, and how long a vocabulary takes to load: bench/tokenizer.md, and
// bench/tokenizer.py, which runs this beside the `tokenizers` package.
//
//     bench_tokenizer TOKENIZER.json TEXT [seconds]
#include <time.h>

#include <cstdio>
#include <cstdlib>

#include "nereid/base/file.h"
#include "nereid/model/tokenizer.h"

namespace {

using namespace nereid;

// Of this thread's processor time: what a core to itself would do, whoever else is on the machine.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Status measure(const char* tokenizer_file, const char* text_file, double seconds) {
  double start = processor_seconds();
  NEREID_TRY(const auto tokenizer, model::Tokenizer::load(tokenizer_file));
  const double loading = processor_seconds() - start;
  NEREID_TRY(const std::string text, read_file(text_file));
  std::vector<model::TokenId> ids;
  // The first pass over a text meets its words for the first time; later ones are told apart.
  start = processor_seconds();
  model::Encoder encoder(tokenizer);
  NEREID_TRY_STATUS(encoder.encode(text, {}, ids));
  const double first = processor_seconds() - start;
  const size_t tokens = ids.size();
  int passes = 0;
  start = processor_seconds();
  while (passes == 0 || processor_seconds() - start < seconds) {
    ids.clear();
    NEREID_TRY_STATUS(encoder.encode(text, {}, ids));
    ++passes;
  }
  const double again = (processor_seconds() - start) / passes;
  start = processor_seconds();
  const std::string decoded = tokenizer->decode(ids);
  const double decoding = processor_seconds() - start;
  const double megabytes = static_cast<double>(text.size()) / 1e6;
  std::printf(
      "{\"load_s\": %.4f, \"bytes\": %zu, \"tokens\": %zu, \"first_mb_s\": %.2f, \"again_mb_s\": %.2f, "
      "\"decode_mb_s\": %.2f}\n",
      loading, text.size(), tokens, megabytes / first, megabytes / again, megabytes / decoding);
  return decoded.empty() ? Status(our_error("nothing was decoded")) : ok_status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_tokenizer TOKENIZER.json TEXT [seconds]\n");
    return 2;
  }
  const nereid::Status done = measure(argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 2);
  if (!done.ok()) std::fprintf(stderr, "bench_tokenizer: %s\n", done.error().message.c_str());
  return done.ok() ? 0 : 1;
}
