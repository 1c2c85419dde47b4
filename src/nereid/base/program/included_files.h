// A task in several files as one text: Python files of its folder that it imports, after its own lines.
//
//   # nereid-include layers.py
//   #| import torch
//   #| class Gate(torch.nn.Module):
//
// Each line of a file stands behind "#|"; for Python the section is a comment. The tracer finds these files
// when the task, or a candidate that is judged with it, imports them
// (python/nereid/_task/included_files.py). Files are found by the import statements in the text, so that
// nothing else of a folder reaches a sandbox. Files of other kinds are included by name, in base64 under "#
// nereid-include-data".
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid {

inline constexpr size_t kMaxIncludedFiles = 256;
inline constexpr size_t kMaxIncludedBytes = size_t{4} << 20;  // of all of a task's

// The names that import statements ask for, in order and each once: "a" and "a.b" of `from a import b`.
// `package`: of the importing file, for relative imports, "" of a task. Statements in strings do not count.
std::vector<std::string> imported_names(std::string_view source, std::string_view package = "");

// The text of a file by its path below the folder of a task, "a/b.py"; nothing where there is no such file.
using FindFile = std::function<Result<std::optional<std::string>>(const std::string& path)>;

// `source` with the files that it imports, directly or through one another. More than kMaxIncludedFiles or
// more than kMaxIncludedBytes is an error.
Result<std::string> with_imported_files(std::string source, const FindFile& find);

// Files under one of `folders`: the first that has a file gives it. A symbolic link that leads out of its
// folder is an error.
Result<std::string> with_included_files(std::string source,
                                        const std::vector<std::filesystem::path>& folders);

// The regular package that a file is part of: its folder and those above it, as far as each has an
// `__init__.py` and a Python name, and may be included (may_be_included). Not above `within`, where given.
struct OwnPackage {
  std::string name;              // "a.b", of a/b/model.py; "" where the file is part of none
  std::filesystem::path folder;  // of "a"
};
OwnPackage package_of(const std::filesystem::path& file, const std::filesystem::path& within = {});

// `source` of a file in `package` with absolute names in its relative imports: a task and the file that is
// written for it are no part of a package. An import that leads out of the package stays as it is.
std::string with_absolute_imports(std::string source, std::string_view package);

// The text of the task in `file`, whose own lines are `source`: absolute imports, and the files that it
// imports from its package, its own folder and `folders`. Its package is not above `within`, where given.
Result<std::string> task_with_files(std::string source, const std::filesystem::path& file,
                                    const std::vector<std::filesystem::path>& folders = {},
                                    const std::filesystem::path& within = {});

// The same of a text that comes with its files, by path: "a/b.py". `name` is the text's own path, "" where it
// has none; its folder is its package. A path that is none of Python's modules is an error.
Result<std::string> text_with_files(std::string source, const std::string& name,
                                    const std::map<std::string, std::string>& files);

// `source` with the bytes of a file under this name, which is relative: the tracer writes it into the scratch
// folder, where the task reads it. More than kMaxIncludedBytes is an error.
Result<std::string> with_data_file(std::string source, const std::filesystem::path& file,
                                   const std::string& name);

// An error, in words, where `folder` is none, or is the root, the home directory or above it.
Status may_be_included(const std::filesystem::path& folder);

// `source` of a candidate with the files that the text of its task carries.
std::string with_files_of(std::string source, std::string_view task);

// The lines of the section, and all other lines.
std::string included_files(std::string_view source);
std::string without_included_files(std::string_view source);

}  // namespace nereid
