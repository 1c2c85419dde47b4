// How many programs a second one core samples, judges and hashes, and how many files it writes:
// bench/synth.md.
//
//     bench_synth [seconds for each figure]
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "nereid/base/file.h"
#include "nereid/synth/sample/maker.h"

namespace {

using namespace nereid;

// Of this thread's processor time: what a core to itself would do, whatever else runs on the machine.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <typename Body>
double per_second(double seconds, const Body& body) {
  const double start = processor_seconds();
  uint64_t done = 0;
  while (processor_seconds() - start < seconds)
    for (int i = 0; i < 64; ++i) body(done++);
  return static_cast<double>(done) / (processor_seconds() - start);
}

void measure(const synth::Space& space, int length, synth::Uniform uniform, double seconds) {
  const double start = processor_seconds();
  synth::Maker maker(space, {.length = length, .uniform = uniform, .seed = 1});
  const double ready = processor_seconds() - start;
  synth::Made made;
  uint64_t next = 0;
  // What is drawn the first time is worked out and kept; a run of a million programs pays that once.
  per_second(seconds, [&](uint64_t) { maker.draw(next++, 0, made); });
  synth::Draft draft;
  synth::Sampler sampler(space, length, uniform);
  for (uint64_t i = 0; i < next; ++i) sampler.draw(1, i, draft);
  uint64_t sampled_next = next;
  const double sampled = per_second(seconds, [&](uint64_t) { sampler.draw(1, sampled_next++, draft); });
  const double drawn = per_second(seconds, [&](uint64_t) { maker.draw(next++, 0, made); });
  const double good = per_second(seconds, [&](uint64_t) {
    do maker.draw(next++, 0, made);
    while (made.outcome != synth::Outcome::kMade);
  });
  const double written = per_second(seconds, [&](uint64_t) {
    do maker.draw(next++, 0, made);
    while (made.outcome != synth::Outcome::kMade);
    maker.write(made);
  });
  auto folder = TemporaryFolder::create("bench_synth");
  const double text_only = per_second(seconds, [&](uint64_t) { maker.write(made); });
  const double files = per_second(seconds, [&](uint64_t i) {
    maker.write(made);
    const std::string path = folder->path().string() + "/" + std::to_string(i) + ".py";
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (::write(file.get(), made.code.data(), made.code.size()) < 0) std::abort();
  });
  std::printf("| %d | %s | %.1f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", length,
              uniform == synth::Uniform::kSequences ? "sequences" : "programs", ready, sampled, drawn, good,
              written, text_only, files);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 2;
  std::vector<const ops::Operator*> all;
  for (const auto& op : ops::catalogue()) all.push_back(&op);
  const synth::Space space(all, {});
  std::printf(
      "| length | uniform over | seconds to count | sampled /s | and judged /s | kept /s | kept and written "
      "/s | texts /s | "
      "files /s |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  for (const int length : {1, 2, 5, 20})
    for (const auto uniform : {synth::Uniform::kSequences, synth::Uniform::kPrograms})
      measure(space, length, uniform, seconds);
}
