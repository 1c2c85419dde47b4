// A task in several files as one text: Python files of its folder that it imports, after its own lines.
//
//   # nereid-include layers.py
//   #| import torch
//   #| class Gate(torch.nn.Module):
//
// Each line of a file stands behind "#|"; for Python the section is a comment. The tracer finds these files
// when the task, or a candidate that is judged with it, imports them
// (python/nereid/_tracer/included_files.py). Files are found by the import statements in the text, so that
// nothing else of a folder reaches a sandbox. Files of other kinds are included by name, in base64 under "#
// nereid-include-data".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid {

inline constexpr size_t kMostIncludedFiles = 256;
inline constexpr size_t kMostIncludedBytes = size_t{4} << 20;  // of all of a task's

// The names that import statements ask for, in order and each once: "a" and "a.b" of `from a import b`.
// `package`: of the importing file, for relative imports, "" of a task. Statements in strings do not count.
std::vector<std::string> imported_names(std::string_view source, std::string_view package = "");

// `source` with the files under one of `folders` that it imports, directly or through one another; the first
// folder that has a file gives it. A symbolic link that leads out of its folder, more than
// kMostIncludedFiles or more than kMostIncludedBytes is an error.
Result<std::string> with_included_files(std::string source,
                                        const std::vector<std::filesystem::path>& folders);

// `source` with the bytes of a file under this name, which is relative: the tracer writes it into the scratch
// folder, where the task reads it. More than kMostIncludedBytes is an error.
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
