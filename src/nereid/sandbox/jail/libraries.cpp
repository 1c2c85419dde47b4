#include "nereid/sandbox/jail/libraries.h"

#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

int note_object(dl_phdr_info* info, size_t, void* objects) {
  if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/')
    static_cast<std::set<std::string>*>(objects)->insert(info->dlpi_name);
  return 0;
}

}  // namespace

std::string with_its_family(const std::string& folder) {
  constexpr std::string_view kFamily = "/site-packages/nvidia/";
  const auto at = (folder + "/").find(kFamily);
  return at == std::string::npos ? folder : folder.substr(0, at + kFamily.size() - 1);
}

std::vector<std::string> library_folders() {
  std::set<std::string> objects, folders;
  dl_iterate_phdr(note_object, &objects);
  const auto add = [&](const fs::path& folder) {
    // Its own name and where that leads: opening a link follows it.
    std::error_code missing;
    const auto real = fs::canonical(folder, missing);
    if (!missing && real != real.root_path()) folders.insert(with_its_family(real.string()));
  };
  for (const auto& object : objects) {
    std::error_code missing;
    add(fs::path(object).parent_path());
    add(fs::canonical(object, missing).parent_path());
  }
  const char* searched = std::getenv("LD_LIBRARY_PATH");
  std::istringstream path(searched != nullptr ? searched : "");
  for (std::string folder; std::getline(path, folder, ':');)
    if (folder.starts_with('/')) add(folder);
  return {folders.begin(), folders.end()};
}

}  // namespace nereid::sandbox
