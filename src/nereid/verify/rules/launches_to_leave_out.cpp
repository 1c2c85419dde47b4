#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "nereid/verify/rules/rules.h"

namespace nereid::verify {

std::vector<std::vector<int>> launches_to_leave_out(const TraceAnalysis& candidate,
                                                    const std::vector<int>& live, size_t most) {
  const auto& steps = candidate.phases.at(static_cast<size_t>(candidate.judged())).steps;
  std::vector<std::vector<int>> groups;
  std::map<std::string, size_t> known;  // by what is launched
  for (const int i : live) {
    const auto& same = steps[static_cast<size_t>(i)].same;
    const auto [at, fresh] =
        known.try_emplace(same.empty() ? fmt::format("step {}", i) : same, groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(i);
  }
  if (groups.size() <= most) return groups;
  std::map<std::string, std::pair<size_t, size_t>> ends;  // of each kernel
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto [at, fresh] = ends.try_emplace(steps[static_cast<size_t>(groups[g].front())].name, g, g);
    if (!fresh) at->second.second = g;
  }
  std::set<size_t> chosen;
  for (const auto& [name, pair] : ends)
    if (chosen.size() < most) chosen.insert(pair.second);
  for (const auto& [name, pair] : ends)
    if (chosen.size() < most) chosen.insert(pair.first);
  for (size_t g = 0; g < groups.size(); ++g)
    if (chosen.size() < most) chosen.insert(g);
  std::vector<std::vector<int>> found;
  for (const size_t g : chosen) found.push_back(groups[g]);
  return found;
}

}  // namespace nereid::verify
