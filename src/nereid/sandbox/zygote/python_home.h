// What of the file system a Python interpreter needs to run, asked of the interpreter itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"

namespace nereid::sandbox {

struct PythonHome {
  std::vector<std::string> trees;  // its prefix, standard library and every folder of sys.path
};

// Runs `python` once, unjailed, with this process's environment. An error says what the interpreter printed.
Result<PythonHome> query_python_home(const std::filesystem::path& python, Deadline deadline);

// What a dynamically linked program needs besides its own files: /usr and the loader's cache.
std::vector<std::string> system_trees();

}  // namespace nereid::sandbox
