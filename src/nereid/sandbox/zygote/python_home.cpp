#include "nereid/sandbox/zygote/python_home.h"

#include <nlohmann/json.hpp>

#include "nereid/base/json.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

// A prefix of "/usr" stands in system_trees() already; one of "/" or a bare home folder would show
// everything.
constexpr const char* kQuestion = R"(
import json, os, sys, sysconfig
paths = [p for p in sys.path if p and os.path.exists(p)]
paths += [sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib'), sys.prefix, sys.exec_prefix]
paths += [os.path.dirname(os.path.realpath(sys.executable))]
library = sysconfig.get_config_var('LIBDIR')
if library and not library.startswith('/usr') and os.path.exists(library): paths.append(library)
if sys.base_prefix not in ('/', '/usr', '/usr/local'): paths.append(sys.base_prefix)
real = {os.path.realpath(p) for p in paths} | {os.path.abspath(p) for p in paths}
forbidden = {'/', os.path.expanduser('~'), '/home', '/etc', '/root'}
print(json.dumps(sorted(real - forbidden)))
)";

}  // namespace

Result<PythonHome> query_python_home(const fs::path& python, Deadline deadline) {
  SpawnSpec spec{
      .words = {python.string(), "-c", kQuestion}, .environment = own_environment(), .descriptors = {}};
  NEREID_TRY(const std::string text, run_program(std::move(spec), deadline));
  NEREID_TRY(const Json json, parse_json(text, "the paths of " + python.string()));
  try {
    return PythonHome{json.get<std::vector<std::string>>()};
  } catch (const nlohmann::json::exception& e) {
    return our_error("the paths of {}: {}", python.string(), e.what());
  }
}

std::vector<std::string> system_trees() { return {"/usr", "/etc/ld.so.cache", "/etc/alternatives"}; }

}  // namespace nereid::sandbox
