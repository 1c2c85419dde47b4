#include "nereid/sandbox/zygote/python_home.h"

#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

// Each path ends with a NUL. `json` is not imported: that takes as long as all the rest.
// A prefix of "/usr" stands in system_trees() already; one of "/" or a bare home folder would show
// everything.
constexpr const char* kQuestion = R"(
import os, sys, sysconfig
paths = [p for p in sys.path if p and os.path.exists(p)]
paths += [sysconfig.get_path('stdlib'), sysconfig.get_path('platstdlib'), sys.prefix, sys.exec_prefix]
paths += [os.path.dirname(os.path.realpath(sys.executable))]
library = sysconfig.get_config_var('LIBDIR')
if library and not library.startswith('/usr') and os.path.exists(library): paths.append(library)
if sys.base_prefix not in ('/', '/usr', '/usr/local'): paths.append(sys.base_prefix)
real = {os.path.realpath(p) for p in paths} | {os.path.abspath(p) for p in paths}
forbidden = {'/', os.path.expanduser('~'), '/home', '/etc', '/root'}
sys.stdout.buffer.write(b''.join(os.fsencode(p) + b'\0' for p in sorted(real - forbidden)))
)";

}  // namespace

Result<PythonHome> query_python_home(const fs::path& python, Deadline deadline) {
  SpawnSpec spec{
      .words = {python.string(), "-c", kQuestion}, .environment = own_environment(), .descriptors = {}};
  NEREID_TRY(const std::string text, run_program(std::move(spec), deadline));
  PythonHome home;
  for (std::string_view rest = text; !rest.empty() || home.trees.empty();) {
    const size_t end = rest.find('\0');
    if (end == rest.npos || !rest.starts_with('/'))
      return our_error("the paths of {}: expected absolute paths that end with a NUL, got {}",
                       python.string(), text.substr(0, 200));
    home.trees.emplace_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return home;
}

std::vector<std::string> system_trees() { return {"/usr", "/etc/ld.so.cache", "/etc/alternatives"}; }

}  // namespace nereid::sandbox
