// `plan_sizes_check PAIRS.jsonl...`: how many of the steps in plans PlanSizes completes, and whether as they
// are written there. One JSON object of counts by operator; exit code 1 where a completed step differs.
#include <fmt/format.h>

#include <iostream>

#include <fstream>
#include "nereid/base/json_field.h"
#include "nereid/lm/plan_sizes/plan_sizes.h"

namespace nereid::lm {
namespace {

struct Counts {
  int64_t steps = 0, completed = 0, wrong = 0;
  Json example;
};

void check(const std::string& task, const std::string& plan, std::map<std::string, Counts>& counts) {
  PlanSizes sizes(task);
  for (size_t at = 0; at < plan.size();) {
    const size_t end = std::min(plan.find('\n', at), plan.size() - 1);
    const std::string line = plan.substr(at, end + 1 - at);
    at = end + 1;
    const size_t name = line.find(' ') + 1, open = line.find('(');
    if (!line.starts_with('#') || open == line.npos || name > open) {
      if (line.starts_with("returns")) return;
      sizes.push(line);
      continue;
    }
    size_t close = open;
    for (int depth = 0; close < line.size(); ++close) {
      depth += (line[close] == '(') - (line[close] == ')');
      if (depth == 0) break;
    }
    Counts& own = counts[line.substr(name, open - name)];
    ++own.steps;
    const std::string rest = line.substr(std::min(close + 1, line.size()));
    const std::string said = sizes.push(line.substr(0, close + 1));
    if (said.empty()) {
      sizes.push(rest);
      continue;
    }
    ++own.completed;
    if (said == rest) continue;
    if (own.wrong++ == 0) own.example = {{"line", line}, {"completed", said}, {"plan", plan}};
    return;
  }
}

int run(const std::vector<std::string>& files) {
  std::map<std::string, Counts> counts;
  Counts all;
  for (const std::string& path : files) {
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
      const Json line = Json::parse(text);
      if (line.contains("plan")) check(line.at("task"), line.at("plan"), counts);
    }
  }
  Json operators;
  for (const auto& [name, own] : counts) {
    all.steps += own.steps, all.completed += own.completed, all.wrong += own.wrong;
    operators[name] = {{"steps", own.steps}, {"completed", own.completed}, {"wrong", own.wrong}};
    if (own.wrong > 0) operators[name]["example"] = own.example;
  }
  std::cout << Json({{"steps", all.steps},
                     {"completed", all.completed},
                     {"wrong", all.wrong},
                     {"operators", operators}})
                   .dump(1)
            << "\n";
  return all.wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace nereid::lm

int main(int argc, char** argv) { return nereid::lm::run({argv + 1, argv + argc}); }
