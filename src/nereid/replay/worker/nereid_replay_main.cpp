// nereid-replay: the process that runs traces.
//
//   nereid-replay                                          serves the judge on descriptor 3
//   nereid-replay --trace FILE --seed S --dump DIR [--whole] one replay on the CPU, for developers

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "nereid/replay/worker/dump.h"

int main(int argc, char** argv) {
  std::string trace, dump;
  uint64_t seed = 0;
  bool whole = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool has_value = i + 1 < argc;
    if (option == "--whole") {
      whole = true;
    } else if (option == "--trace" && has_value) {
      trace = argv[++i];
    } else if (option == "--dump" && has_value) {
      dump = argv[++i];
    } else if (option == "--seed" && has_value) {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::fprintf(stderr, "usage: nereid-replay --trace FILE --seed S --dump DIR [--whole]\n");
      return 2;
    }
  }
  const auto status = nereid::replay::dump_replay(trace, seed, dump, whole);
  if (!status.ok()) {
    std::fprintf(stderr, "nereid-replay: %s\n", status.error().message.c_str());
    return status.error().blame == nereid::Blame::kInput ? 2 : 3;
  }
  return 0;
}
