// nereid-replay-cuda: the processes that run traces on a GPU.
//
//   nereid-replay-cuda --serve [--device N] [--sessions N] [--no-jail] [--accept-weak-isolation]
//
// serves the judge on descriptor 3.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "nereid/replay/cuda/cuda_server.h"
#include "nereid/sandbox/jail/cuda_isolation.h"

int main(int argc, char** argv) {
  nereid::replay::cuda::CudaServerOptions options;
  bool serve = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--serve") {
      serve = true;
    } else if (option == "--no-jail") {
      options.jail = false;
    } else if (option == "--accept-weak-isolation") {
      options.accept_weak_isolation = true;
    } else if (option == "--device" && i + 1 < argc) {
      options.device = std::atoi(argv[++i]);
    } else if (option == "--sessions" && i + 1 < argc) {
      // A reference's and a candidate's process each, and as many for those that a fault broke.
      options.spare = 2 * std::atoi(argv[++i]);
      options.most = options.spare + 4;
    } else {
      serve = false;
      break;
    }
  }
  if (!serve) {
    std::fprintf(stderr,
                 "usage: nereid-replay-cuda --serve [--device N] [--sessions N] [--no-jail] "
                 "[--accept-weak-isolation]\n");
    return 2;
  }
  nereid::sandbox::keep_no_caches();
  return nereid::replay::cuda::run_cuda_server(3, options);
}
