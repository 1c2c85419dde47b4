#include "nereid/sandbox/zygote/process_times.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace nereid::sandbox {
namespace {

constexpr int kMaxDescendants = 256;  // processes that are looked at below one: a jailed one has at most 64

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Fields 14 to 17 of /proc/PID/stat, after the name in parentheses: utime, stime, and those of dead
// children.
std::optional<double> processor_seconds_of(pid_t process) {
  const std::string line = first_line(fmt::format("/proc/{}/stat", process));
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double ticks = 0, sum = 0;
  for (int field = 14; field <= 17 && rest >> ticks; ++field) sum += ticks;
  return sum / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// The second number of /proc/PID/schedstat, in nanoseconds.
std::optional<double> waited_seconds_of(pid_t process) {
  std::istringstream line(first_line(fmt::format("/proc/{}/schedstat", process)));
  double ran = 0, waited = 0;
  if (!(line >> ran >> waited)) return {};
  return 1e-9 * waited;
}

}  // namespace

std::optional<ProcessTimes> times_of(pid_t process) {
  ProcessTimes times;
  std::vector<pid_t> all = {process};
  for (size_t i = 0; i < all.size() && i < kMaxDescendants; ++i) {
    const auto processor = processor_seconds_of(all[i]);
    const auto waited = waited_seconds_of(all[i]);
    if (i == 0 && (!processor || !waited)) return {};
    times.processor += processor.value_or(0), times.waited += waited.value_or(0);
    std::istringstream children(first_line(fmt::format("/proc/{0}/task/{0}/children", all[i])));
    for (pid_t child = 0; children >> child;) all.push_back(child);
  }
  return times;
}

pid_t process_of(const Fd& pidfd) {
  if (!pidfd.valid()) return 0;
  std::ifstream info(fmt::format("/proc/self/fdinfo/{}", pidfd.get()));
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("Pid:")) return static_cast<pid_t>(std::max(0, std::atoi(line.c_str() + 4)));
  return 0;
}

double seconds_at_work(double wall, const std::optional<ProcessTimes>& times) {
  if (!times) return wall;
  return std::min(wall, std::max(wall - times->waited, times->processor));
}

}  // namespace nereid::sandbox
