// A folder of tasks in KernelBench's format: Python files with class Model, get_inputs() and
// get_init_inputs().
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::eval {

struct TaskFile {
  std::string id;  // the path below the folder, without its ending: "level1/19_ReLU"
  std::filesystem::path path;
};

// Every .py file below the folder that defines a class Model, in the order of their ids with numbers as
// numbers. Hidden files and folders are passed over; `others` gets the other Python files. An error where
// there is none.
Result<std::vector<TaskFile>> find_tasks(const std::filesystem::path& folder,
                                         std::vector<std::string>* others = nullptr);

// "a2" before "a10".
bool natural_less(const std::string& a, const std::string& b);

}  // namespace nereid::eval
