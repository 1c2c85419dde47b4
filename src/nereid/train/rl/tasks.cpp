#include "nereid/train/rl/tasks.h"

#include <algorithm>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/train/data/packer.h"

namespace nereid::train {
namespace {

constexpr size_t kMostText = size_t{16} << 20;

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
    NEREID_TRY(task.source, field.text(kMostText));
    NEREID_TRY(task.forward, root.text_at("forward", kMostText));
  }
  if (tasks.empty()) return input_error("{}: expected at least one task", path);
  return tasks;
}

Result<TaskSource> TaskSource::open(const std::vector<std::string>& files, uint64_t seed) {
  TaskSource source;
  source.seed_ = seed;
  for (const auto& file : files) {
    NEREID_TRY(auto tasks, read_tasks(file));
    source.tasks_.push_back(std::move(tasks));
  }
  source.drawn_.resize(files.size(), 0);
  return source;
}

size_t TaskSource::next(int64_t of_class) {
  const auto c = static_cast<size_t>(of_class);
  const uint64_t size = tasks_[c].size(), number = drawn_[c]++;
  return permuted(number % size, size, seed_ * 1'000'003 + number / size * 1'009 + c);
}

}  // namespace nereid::train
