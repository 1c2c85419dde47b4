// What a jailed child costs: `bench_sandbox [MODULE] [REQUEST.json] [COUNT]`. Processor time a request over
// all processes (fork, jail, the module's work, the end), and the median of the time until its answer, one
// request at a time. Without arguments: a module that does nothing, so that the rest is the sandbox's
// own.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "nereid/base/file.h"
#include "nereid/sandbox/zygote/zygote.h"

namespace {

using namespace nereid;

double processor_seconds_of_children() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

struct Cost {
  double processor = 0;          // of the whole life of a worker, seconds
  std::vector<double> answered;  // seconds until each answer
};

Cost serve(const sandbox::ZygoteOptions& options, const std::string& request, int count) {
  const double before = processor_seconds_of_children();
  Cost cost;
  {
    auto zygote = sandbox::Zygote::start(options).value();
    std::printf("isolation: %s\n", describe(zygote->isolation(Deadline::after(300)).value()).c_str());
    for (int i = 0; i < count; ++i) {
      const Stopwatch watch;
      const auto outcome = zygote->run(request, 60, Deadline::after(300)).value();
      NEREID_CHECK(std::holds_alternative<sandbox::Answer>(outcome), "an answer to request {}", i);
      cost.answered.push_back(watch.seconds());
    }
  }
  cost.processor = processor_seconds_of_children() - before;
  return cost;
}

}  // namespace

int main(int count, char** words) {
  const auto folder = TemporaryFolder::create("bench").value();
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  std::ofstream(folder.path() / "nothing.py") << "def warm(): pass\ndef handle(request): return {}\n";
  sandbox::ZygoteOptions options{.installation = Installation::locate().value(), .module = "nothing"};
  options.python_path = {folder.path()};
  options.children = 1;
  std::string request = "{}";
  if (count > 1) options.module = words[1];
  if (count > 2) request = read_file(words[2]).value();
  const int requests = count > 3 ? std::atoi(words[3]) : 200;

  const Cost idle = serve(options, request, 1);
  Cost busy = serve(options, request, requests + 1);
  std::sort(busy.answered.begin(), busy.answered.end());
  std::printf("%s: %.2f ms of processor time a request, answered after %.2f ms (median), %.2f ms (fastest)\n",
              options.module.c_str(), 1e3 * (busy.processor - idle.processor) / requests,
              1e3 * busy.answered[busy.answered.size() / 2], 1e3 * busy.answered.front());
  return 0;
}
