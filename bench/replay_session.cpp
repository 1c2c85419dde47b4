// How long the replay part of a CPU verdict takes: a one-kernel candidate at a small shape, begin to end.
//
//   bench/replay_session [N [SESSIONS]]
#include <cstdio>
#include <cstdlib>

#include "nereid/base/deadline.h"
#include "nereid/replay/host/client.h"
#include "tests/support/replay_sample.h"

int main(int argc, char** argv) {
  using namespace nereid;
  using namespace nereid::replay;
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 4096;
  const int sessions = argc > 2 ? std::atoi(argv[2]) : 50;
  auto server = Server::start({});
  if (!server.ok()) return std::fprintf(stderr, "%s\n", server.error().message.c_str()), 3;
  const auto reference = sample_reference(n), candidate = sample_candidate("addf", n, n);
  double begin = 0, trials = 0, mutation = 0, end = 0;
  for (int i = 0; i < sessions; ++i) {
    Stopwatch watch;
    double mark = 0;
    const auto lap = [&](double& sum) {
      sum += watch.seconds() - mark;
      mark = watch.seconds();
    };
    auto session = (*server)->begin(reference, candidate, {}, Deadline::after(60));
    if (!session.ok()) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 3;
    lap(begin);
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const auto report = (*session)->trial({.seed = seed}, {}, Deadline::after(60));
      if (!report.ok() || !report->ok())
        return std::fprintf(stderr, "the candidate is correct, but: not verified\n"), 3;
    }
    lap(trials);
    for (const auto launch : (*session)->facts().launches)
      if (!(*session)->leave_out({launch.step}, Deadline::after(60)).value().changed) return 3;
    lap(mutation);
    session->reset();
    lap(end);
  }
  const double scale = 1e3 / sessions;
  std::printf("n = %ld: %.2f ms a session: begin %.2f, 3 trials %.2f, launch left out %.2f, end %.2f\n",
              static_cast<long>(n), (begin + trials + mutation + end) * scale, begin * scale, trials * scale,
              mutation * scale, end * scale);
  return 0;
}
