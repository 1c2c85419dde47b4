#include "nereid/store/identity.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"

namespace nereid::store {
namespace {

namespace fs = std::filesystem;

// Size and age of the files that an answer is made by.
std::string state_of(const std::vector<fs::path>& files) {
  std::string all;
  std::error_code failure;
  for (const auto& file : files) {
    const auto size = fs::file_size(file, failure);
    const auto time = fs::last_write_time(file, failure).time_since_epoch().count();
    all += fmt::format("{}:{}:{},", file.filename().string(), failure ? 0 : size, failure ? 0 : time);
  }
  return sha256_hex(all).substr(0, 12);
}

// "2.11.0" of lib/python3.11/site-packages/torch-2.11.0.dist-info, without asking Python (which takes a
// second).
std::string package_version(const fs::path& python, const std::string& package) {
  std::error_code failure;
  std::vector<std::string> found;
  const fs::path root = python.parent_path().parent_path();
  for (const auto& lib : fs::directory_iterator(root / "lib", failure)) {
    if (!lib.path().filename().string().starts_with("python")) continue;
    for (const auto& entry : fs::directory_iterator(lib.path() / "site-packages", failure)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(package + "-") && name.ends_with(".dist-info"))
        found.push_back(name.substr(package.size() + 1, name.size() - package.size() - 11));
    }
  }
  std::sort(found.begin(), found.end());
  return found.empty() ? "unknown" : found.back();
}

}  // namespace

std::string versions(const Installation& installation, const std::string& program_version) {
  std::error_code failure;
  std::vector<fs::path> files;
  for (const char* program : {"nereid", "nereid-replay", "nereid-replay-cuda"})
    files.push_back(installation.bin / program);
  std::vector<fs::path> scripts;
  for (const auto& entry : fs::recursive_directory_iterator(installation.package, failure))
    if (entry.path().extension() == ".py") scripts.push_back(entry.path());
  std::sort(scripts.begin(), scripts.end());
  files.insert(files.end(), scripts.begin(), scripts.end());
  return fmt::format("nereid {} {}, torch {}, triton {}", program_version, state_of(files),
                     package_version(installation.python, "torch"),
                     package_version(installation.python, "triton"));
}

std::string gpu_name() {
  std::map<std::string, int> models;
  std::error_code failure;
  for (const auto& gpu : fs::directory_iterator("/proc/driver/nvidia/gpus", failure)) {
    const auto text = read_file(gpu.path() / "information", size_t{1} << 16);
    if (!text.ok()) continue;
    const size_t at = text->find("Model:");
    if (at == std::string::npos) continue;
    const size_t end = std::min(text->find('\n', at), text->size());
    const size_t first = text->find_first_not_of(" \t", at + 6);
    if (first < end) ++models[text->substr(first, end - first)];
  }
  std::string name;
  for (const auto& [model, count] : models)
    name +=
        fmt::format("{}{}{}", name.empty() ? "" : ", ", model, count > 1 ? fmt::format(" x{}", count) : "");
  return name;
}

}  // namespace nereid::store
