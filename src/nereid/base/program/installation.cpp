#include "nereid/base/program/installation.h"

#include <cstdlib>

#include "nereid/base/program/home.h"

namespace nereid {
namespace {

namespace fs = std::filesystem;

fs::path environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? fs::path(value) : fs::path();
}

fs::path cache_folder() {
  if (auto path = environment("NEREID_CACHE"); !path.empty()) return path;
  if (auto path = environment("XDG_CACHE_HOME"); !path.empty()) return path / "nereid";
  if (auto path = home_folder(); !path.empty()) return path / ".cache" / "nereid";
  return fs::temp_directory_path() / "nereid-cache";
}

}  // namespace

Result<Installation> Installation::locate() {
  Installation found;
  std::error_code failure;
  found.bin = fs::read_symlink("/proc/self/exe", failure).parent_path();
  found.cache = cache_folder();
  found.python = environment("NEREID_PYTHON");
  found.package = environment("NEREID_PACKAGE");
  for (fs::path root = found.bin; root != root.parent_path(); root = root.parent_path()) {
    if (!fs::exists(root / "python" / "nereid" / "_worker" / "zygote.py", failure)) continue;
    if (found.package.empty()) found.package = root / "python" / "nereid";
    if (found.python.empty()) found.python = root / ".venv" / "bin" / "python";
    found.models = root / "models";
    break;
  }
  if (found.package.empty())
    return our_error("no Python package 'nereid' near {}; set NEREID_PACKAGE", found.bin.string());
  // A wheel has them in the package.
  if (fs::exists(found.package / "models", failure)) found.models = found.package / "models";
  if (!fs::exists(found.python, failure))
    return our_error(
        "no Python at '{}'; run 'make setup', or set NEREID_PYTHON to one with torch 2.11 and triton 3.6",
        found.python.string());
  return found;
}

}  // namespace nereid
