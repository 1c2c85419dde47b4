// --include, --class, --init and --inputs of the commands that take a module, and the module's text by them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace CLI {
class App;
}

namespace nereid::cli {

struct ModuleFlags {
  std::vector<std::string> include;  // folders of Python files, and other files
  std::string class_name, init, inputs;
  bool alias = true;  // Model becomes another name of class_name; else the caller asks for that class
};
void add_module_flags(CLI::App& command, ModuleFlags& flags);
void add_include_flag(CLI::App& command, ModuleFlags& flags);

// The text of `file` with what the flags set (class Model, get_inputs, get_init_inputs after its own lines)
// and the files that it imports from its own package and folder and those of --include
// (base/program/included_files.h).
Result<std::string> read_module(const std::filesystem::path& file, const ModuleFlags& flags);

// The text of a candidate's file with absolute imports and the files that it imports from the folders of
// --include alone.
Result<std::string> read_candidate(const std::filesystem::path& file, const ModuleFlags& flags);

// `source` of a candidate, with the files that it imports from the folders of --include alone.
Result<std::string> with_includes_of_candidate(std::string source, const ModuleFlags& flags);

}  // namespace nereid::cli
