#include "nereid/cli/module_flags.h"

#include <CLI/CLI.hpp>

#include "nereid/base/file.h"
#include "nereid/base/program/included_files.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLargestModule = size_t{16} << 20;

bool is_name(const std::string& text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(
             text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

// Whether a line of the text begins with `statement`, as a top-level definition does.
bool defines(std::string_view text, std::string_view statement) {
  for (size_t at = text.find(statement); at != text.npos; at = text.find(statement, at + 1)) {
    const size_t end = at + statement.size();
    const bool whole =
        end == text.size() || (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '_');
    if (whole && (at == 0 || text[at - 1] == '\n')) return true;
  }
  return false;
}

Status one_line(const char* option, const std::string& expression) {
  if (expression.find_first_of("\n\r") == std::string::npos) return ok_status();
  return input_error("{}: expected a Python expression in one line, got several lines", option);
}

// What the flags define, after the file's own lines.
Result<std::string> with_definitions(std::string source, const std::string& file, const ModuleFlags& flags) {
  if (flags.class_name.empty() && flags.init.empty() && flags.inputs.empty()) return source;
  NEREID_TRY_STATUS(one_line("--init", flags.init));
  NEREID_TRY_STATUS(one_line("--inputs", flags.inputs));
  std::string more;
  if (flags.alias && !flags.class_name.empty() && flags.class_name != "Model") {
    if (!is_name(flags.class_name))
      return input_error("--class {}: expected the name of a class in {}", flags.class_name, file);
    if (defines(source, "class Model") || defines(source, "def Model"))
      return input_error("--class {}: {} has a 'Model' of its own: rename it, or leave out --class",
                         flags.class_name, file);
    more += fmt::format("\nModel = {}\n", flags.class_name);
  }
  const auto function = [&](const char* name, const std::string& expression) {
    more += fmt::format("\n\ndef {}():\n    return {}\n", name, expression);
  };
  if (!flags.inputs.empty()) function("get_inputs", flags.inputs);
  if (!flags.init.empty())
    function("get_init_inputs", flags.init);
  else if (!defines(source, "def get_init_inputs"))
    function("get_init_inputs", "[]");
  if (!source.empty() && source.back() != '\n') source += '\n';
  return source + (defines(source, "import torch") ? "" : "\nimport torch\n") + more;
}

struct Included {
  std::vector<fs::path> folders, files;
};

Result<Included> included_of(const ModuleFlags& flags) {
  Included found;
  for (const auto& path : flags.include) {
    std::error_code failure;
    if (fs::is_regular_file(path, failure)) {
      found.files.emplace_back(path);
      continue;
    }
    NEREID_TRY_STATUS(may_be_included(path));
    found.folders.emplace_back(path);
  }
  return found;
}

// Relative to the task's folder where the file is below it, else the file's own name.
std::string name_of(const fs::path& file, const fs::path& folder) {
  std::error_code failure;
  const auto relative = fs::proximate(file, folder, failure);
  return failure || relative.empty() || *relative.begin() == ".." ? file.filename().string()
                                                                  : relative.string();
}

}  // namespace

void add_include_flag(CLI::App& command, ModuleFlags& flags) {
  command
      .add_option("--include", flags.include,
                  "Folder of Python files that the module imports, or a data file that it reads; repeatable "
                  "(default: the module's own package and folder, for imports)")
      ->allow_extra_args(false);
}

void add_module_flags(CLI::App& command, ModuleFlags& flags) {
  add_include_flag(command, flags);
  command.add_option("-c,--class", flags.class_name,
                     "Class or function that stands for Model (default: Model)");
  command.add_option(
      "--init", flags.init,
      "Python expression for get_init_inputs(): arguments of the class (default: the file's, or [])");
  command.add_option("--inputs", flags.inputs,
                     "Python expression for get_inputs(): arguments of forward (default: the file's)");
}

Result<std::string> read_module(const fs::path& file, const ModuleFlags& flags) {
  NEREID_TRY(std::string source, read_file(file, kLargestModule));
  NEREID_TRY(source, with_definitions(std::move(source), file.string(), flags));
  NEREID_TRY(Included included, included_of(flags));
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  NEREID_TRY(source, task_with_files(std::move(source), file, included.folders));
  for (const fs::path& data : included.files) {
    NEREID_TRY(source, with_data_file(std::move(source), data, name_of(data, folder)));
  }
  return source;
}

Result<std::string> read_candidate(const fs::path& file, const ModuleFlags& flags) {
  NEREID_TRY(std::string source, read_file(file, kLargestModule));
  return with_includes_of_candidate(with_absolute_imports(std::move(source), package_of(file).name), flags);
}

Result<std::string> with_includes_of_candidate(std::string source, const ModuleFlags& flags) {
  NEREID_TRY(const Included included, included_of(flags));
  return included.folders.empty() ? Result<std::string>(std::move(source))
                                  : with_included_files(std::move(source), included.folders);
}

}  // namespace nereid::cli
