// nereid-replay: the process that runs traces.
//
//   nereid-replay --serve [--no-jail] [--accept-weak-isolation]   serves the judge on descriptor 3
//   nereid-replay [--whole] --seed S (--trace FILE --dump DIR)...  replays on the CPU, for developers

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/replay/worker/roles/dump.h"
#include "nereid/replay/worker/roles/server.h"

int main(int argc, char** argv) {
  std::vector<std::string> traces, dumps;
  uint64_t seed = 0;
  nereid::replay::ServeOptions options;
  bool whole = false, serve = false, understood = argc > 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const bool has_value = i + 1 < argc;
    if (option == "--serve")
      serve = true;
    else if (option == "--no-jail")
      options.jail = false;
    else if (option == "--accept-weak-isolation")
      options.accept_weak_isolation = true;
    else if (option == "--whole")
      whole = true;
    else if (option == "--trace" && has_value)
      traces.push_back(argv[++i]);
    else if (option == "--dump" && has_value)
      dumps.push_back(argv[++i]);
    else if (option == "--seed" && has_value)
      seed = std::strtoull(argv[++i], nullptr, 10);
    else
      understood = false;
  }
  if (understood && serve)
    ::_exit(nereid::replay::run_server(3, options));  // libtorch's tables of operators take long to take down
  if (!understood || traces.empty() || traces.size() != dumps.size()) {
    std::fprintf(stderr, "usage: nereid-replay [--whole] --seed S (--trace FILE --dump DIR)...\n");
    return 2;
  }
  at::set_num_threads(1);
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto status = nereid::replay::dump_replay(traces[i], seed, dumps[i], whole);
    if (status.ok()) continue;
    std::fprintf(stderr, "nereid-replay: %s\n", status.error().message.c_str());
    return status.error().blame == nereid::Blame::kInput ? 2 : 3;
  }
  return 0;
}
