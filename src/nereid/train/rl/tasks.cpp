#include "nereid/train/rl/tasks.h"

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/train/data/packer.h"

namespace nereid::train {
namespace {

constexpr size_t kMaxText = size_t{16} << 20;

Result<double> weight_of(const JsonField& root) {
  NEREID_TRY(const auto given, root.find("weight"));
  if (given) {
    NEREID_TRY(const double weight, given->number());
    if (!(weight > 0)) return given->expected("a number above 0");
    return weight;
  }
  NEREID_TRY(const auto share, root.find("roofline_share"));
  if (!share) return 1.0;
  NEREID_TRY(const double reached, share->number());
  return std::max(1 - reached, kMinWeight);
}

// Uniform in [0, 1): splitmix64 of both.
double uniform(uint64_t seed, uint64_t number) {
  uint64_t z = seed + (number + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

std::vector<double> sums_of_weights(const std::vector<Task>& tasks) {
  if (std::ranges::all_of(tasks, [&](const Task& task) { return task.weight == tasks.front().weight; }))
    return {};
  std::vector<double> sums;
  for (const Task& task : tasks) sums.push_back((sums.empty() ? 0 : sums.back()) + task.weight);
  return sums;
}

}  // namespace

Result<std::vector<Task>> read_tasks(const std::string& path) {
  NEREID_TRY(const std::string text, read_file(path));
  std::vector<Task> tasks;
  int64_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string where = fmt::format("{}:{}", path, ++number);
    if (line.empty()) continue;
    NEREID_TRY(const Json json, parse_json(line, where));
    const JsonField root(json, where);
    NEREID_TRY(const auto field, root.at(json.is_object() && json.contains("task") ? "task" : "code"));
    Task& task = tasks.emplace_back();
    NEREID_TRY(task.source, field.text(kMaxText));
    NEREID_TRY(task.forward, root.text_at("forward", kMaxText));
    NEREID_TRY(task.weight, weight_of(root));
  }
  if (tasks.empty()) return input_error("{}: expected at least one task", path);
  return tasks;
}

Result<TaskSource> TaskSource::open(const std::vector<std::string>& files, uint64_t seed) {
  TaskSource source;
  source.seed_ = seed;
  for (const auto& file : files) {
    NEREID_TRY(auto tasks, read_tasks(file));
    source.sums_.push_back(sums_of_weights(tasks));
    source.tasks_.push_back(std::move(tasks));
  }
  source.drawn_.resize(files.size(), 0);
  return source;
}

size_t TaskSource::next(int64_t of_class) {
  const auto c = static_cast<size_t>(of_class);
  const uint64_t size = tasks_[c].size(), number = drawn_[c]++;
  if (const auto& sums = sums_[c]; !sums.empty()) {
    const double drawn = sums.back() * uniform(seed_ * 1'000'003 + c, number);
    return std::min(static_cast<size_t>(std::ranges::upper_bound(sums, drawn) - sums.begin()), size - 1);
  }
  return permuted(number % size, size, seed_ * 1'000'003 + number / size * 1'009 + c);
}

}  // namespace nereid::train
