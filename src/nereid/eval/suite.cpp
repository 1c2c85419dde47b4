#include "nereid/eval/suite.h"

#include <algorithm>
#include <cctype>

#include "nereid/base/file.h"

namespace nereid::eval {
namespace {

namespace fs = std::filesystem;

bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

bool is_task(const fs::path& path) {
  const auto text = read_file(path, size_t{16} << 20);
  return text.ok() &&
         (text->starts_with("class Model") || text->find("\nclass Model") != std::string::npos) &&
         text->find("def get_inputs") != std::string::npos;
}

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      const auto number = [](const std::string& s, size_t& at) {
        while (at + 1 < s.size() && s[at] == '0' && digit(s[at + 1])) ++at;
        const size_t from = at;
        while (at < s.size() && digit(s[at])) ++at;
        return s.substr(from, at - from);
      };
      const std::string x = number(a, i), y = number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
    }
  }
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

Result<std::vector<TaskFile>> find_tasks(const fs::path& folder, std::vector<std::string>* others) {
  std::error_code failure;
  if (!fs::is_directory(folder, failure))
    return input_error("{}: expected a folder of tasks", folder.string());
  std::vector<TaskFile> tasks;
  for (auto entry =
           fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, failure);
       !failure && entry != fs::recursive_directory_iterator(); entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(".") || name == "__pycache__") {
      if (entry->is_directory()) entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file() || entry->path().extension() != ".py") continue;
    const fs::path inside = entry->path().lexically_relative(folder);
    if (is_task(entry->path()))
      tasks.push_back({fs::path(inside).replace_extension().string(), entry->path()});
    else if (others != nullptr)
      others->push_back(inside.string());
  }
  if (failure) return input_error("{}: {}", folder.string(), failure.message());
  if (tasks.empty())
    return input_error("{}: no tasks: no Python file with class Model and get_inputs()", folder.string());
  std::sort(tasks.begin(), tasks.end(),
            [](const TaskFile& a, const TaskFile& b) { return natural_less(a.id, b.id); });
  if (others != nullptr) std::sort(others->begin(), others->end());
  return tasks;
}

}  // namespace nereid::eval
