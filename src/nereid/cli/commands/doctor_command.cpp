// `nereid doctor`: what this machine can do, what is missing, and how to get it. Every check tries the thing
// itself: packages are imported, a file is traced in the jail, folders are written to.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/cli/traced.h"
#include "nereid/cli/version.h"
#include "nereid/gpu/driver.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/store/store.h"
#include "nereid/tracer/tracer.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDoctorHelp = R"(Examples:
  nereid doctor                     one line for each thing that Nereid needs or can use
  nereid doctor --json | jq .can    {"judge": true, "time": false, ...}

ok: it works; warning: something is limited; missing: Nereid cannot judge without it. Nothing is installed or
changed. Exit code 1: something is missing.)";

// What packaging/pyproject.toml asks for.
constexpr const char* kTorch = "2.11.";
constexpr const char* kTriton = "3.6.";
constexpr const char* kInstall = "-m pip install 'torch==2.11.*' 'triton==3.6.*' numpy";
constexpr double kMinGigabytes = 2;  // free, of a folder
constexpr double kSeconds = 180;     // of each check at most: a first import reads gigabytes

struct Check {
  enum class State { kOk, kWarning, kMissing, kSkipped };
  std::string name;
  State state;
  std::string found, fix = "";  // what there is; how to get what is not
};
using State = Check::State;

const char* word(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kWarning:
      return "warning";
    case State::kMissing:
      return "missing";
    case State::kSkipped:
      return "skipped";
  }
  return "";
}

Check missing(std::string name, std::string found, std::string fix) {
  return {std::move(name), State::kMissing, std::move(found), std::move(fix)};
}
Check warning(std::string name, std::string found, std::string fix) {
  return {std::move(name), State::kWarning, std::move(found), std::move(fix)};
}
Check fine(std::string name, std::string found) { return {std::move(name), State::kOk, std::move(found)}; }

std::string first_line(std::string_view text) {
  while (!text.empty() && std::strchr("\n ", text.back()) != nullptr) text.remove_suffix(1);
  const size_t last = text.rfind('\n');  // of a traceback the last one says what is wrong
  return std::string(last == std::string_view::npos ? text : text.substr(last + 1)).substr(0, 300);
}

// -- the program and its Python ----------------------------------------------------------------------------

Check program_check() {
  std::error_code failure;
  const fs::path bin = fs::read_symlink("/proc/self/exe", failure).parent_path();
  std::string absent;
  for (const char* part : {"nereid-jail", "nereid-replay", "nereid-worker-pool", "libnereid_jail.so"})
    if (!fs::exists(bin / part, failure)) absent += std::string(absent.empty() ? "" : ", ") + part;
  if (!absent.empty())
    return missing("program", fmt::format("no {} in {}", absent, bin.string()),
                   "install the wheel again, or run `make`");
  return fine("program", fmt::format("nereid {} in {}", NEREID_VERSION, bin.string()));
}

// What Python says of itself and of the packages, each imported.
constexpr const char* kQuestion = R"(
import gc, json, os, sys, sysconfig
gc.disable()
found = {"version": list(sys.version_info[:3]), "executable": sys.executable, "packages": {}}
for name in ("torch", "triton", "numpy"):
    try:
        module = __import__(name)
        found["packages"][name] = {"version": module.__version__}
        if name == "torch":
            found["cuda"] = module.version.cuda
        if name == "triton":
            nvidia = os.path.join(os.path.dirname(module.__file__), "backends", "nvidia")
            found["ptxas"] = os.path.join(nvidia, "bin", "ptxas")
    except BaseException as error:
        found["packages"][name] = {"error": f"{type(error).__name__}: {error}"}
found["header"] = os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print("\n" + json.dumps(found), flush=True)
os._exit(0)  # taking torch down takes half a second
)";

struct Python {
  std::string cuda;      // of torch: "13.0"; empty where torch is missing or built without
  bool header = false;   // Python.h, which Triton compiles launchers with
  bool packages = true;  // all are there
};

Check package_check(const std::string& name, const Json& said, const char* version,
                    const std::string& python) {
  const std::string fix = python + " " + kInstall;
  if (said.contains("error")) return missing(name, first_line(said["error"].get<std::string>()), fix);
  const auto found = said["version"].get<std::string>();
  if (version != nullptr && !found.starts_with(version))
    return missing(name, fmt::format("{} {}, expected {}*", name, found, version), fix);
  return fine(name, found);
}

Check ptxas_check(const Json& said) {
  const char* fix = "install triton 3.6 again: its wheel holds ptxas";
  if (!said.contains("ptxas")) return {"ptxas", State::kSkipped, "triton is missing", ""};
  const auto path = said["ptxas"].get<std::string>();
  auto version = sandbox::run_program({.words = {path, "--version"}}, Deadline::after(kSeconds));
  if (!version.ok()) return missing("ptxas", version.error().message, fix);
  const size_t release = version->find("release ");
  const std::string number = release == std::string::npos
                                 ? first_line(*version)
                                 : version->substr(release, version->find(',', release) - release);
  return fine("ptxas", fmt::format("{} in {}", number, fs::path(path).parent_path().string()));
}

Python python_checks(std::vector<Check>& checks) {
  Python known;
  const auto skip = [&] {
    known.packages = false;
    for (const char* name : {"torch", "triton", "numpy", "ptxas"})
      checks.push_back({name, State::kSkipped, "there is no Python", ""});
  };
  const auto installation = Installation::locate();
  if (!installation.ok()) {
    checks.push_back(
        missing("python", installation.error().message, "run `make setup`, or set NEREID_PYTHON"));
    skip();
    return known;
  }
  const std::string python = installation->python.string();
  auto text = sandbox::run_program(
      {.words = {python, "-c", kQuestion}, .environment = sandbox::own_environment(), .descriptors = {}},
      Deadline::after(kSeconds));
  auto said = text.ok() ? parse_json(first_line(*text).empty() ? "" : text->substr(text->rfind("\n{") + 1),
                                     "what " + python + " says of itself")
                        : Result<Json>(text.error());
  if (!said.ok()) {
    checks.push_back(missing("python", first_line(said.error().message),
                             "set NEREID_PYTHON to a Python of 3.10 to 3.13 with torch and triton"));
    skip();
    return known;
  }
  const auto version = (*said)["version"].get<std::vector<int>>();
  const std::string name = fmt::format("{}.{}.{}, {}", version[0], version[1], version[2], python);
  const bool known_version = version[0] == 3 && version[1] >= 10 && version[1] <= 13;
  checks.push_back(known_version ? fine("python", name)
                                 : missing("python", name, "set NEREID_PYTHON to a Python of 3.10 to 3.13"));
  const Json& packages = (*said)["packages"];
  checks.push_back(package_check("torch", packages["torch"], kTorch, python));
  checks.push_back(package_check("triton", packages["triton"], kTriton, python));
  checks.push_back(package_check("numpy", packages["numpy"], nullptr, python));
  checks.push_back(ptxas_check(*said));
  for (const auto& check : checks) known.packages &= check.state == State::kOk;
  if (said->contains("cuda") && (*said)["cuda"].is_string()) known.cuda = (*said)["cuda"].get<std::string>();
  known.header = (*said)["header"].get<bool>();
  return known;
}

// -- isolation ---------------------------------------------------------------------------------------------

constexpr const char* kSmallModule = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x): return torch.relu(x)
def get_inputs(): return [torch.randn(2, 2)]
def get_init_inputs(): return []
)";
constexpr const char* kIsolationFix =
    "a kernel from 5.13 with Landlock, or unprivileged user namespaces (sysctl "
    "kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container --security-opt seccomp=unconfined)";

void isolation_checks(std::vector<Check>& checks, bool possible) {
  const auto skip = [&](const char* name, const char* why) {
    checks.push_back({name, State::kSkipped, why, ""});
  };
  if (!possible) {
    skip("isolation", "it needs the Python packages");
    return skip("tracing", "it needs the Python packages");
  }
  const auto installation = Installation::locate();
  auto tracer = tracer::Tracer::start({.installation = *installation, .workers = 1, .limits = {}});
  auto isolation = tracer.ok() ? (*tracer)->isolation(Deadline::after(kSeconds))
                               : Result<sandbox::Isolation>(tracer.error());
  if (!isolation.ok()) {
    checks.push_back(missing("isolation", isolation.error().message, kIsolationFix));
    return skip("tracing", "it needs isolation");
  }
  const std::string layers = sandbox::describe(*isolation);
  const bool all = isolation->user && isolation->mount && isolation->network && isolation->pid &&
                   isolation->ipc && isolation->landlock > 0 && isolation->scratch;
  if (!isolation->enough())
    checks.push_back(missing("isolation", layers, kIsolationFix));
  else
    checks.push_back(all ? fine("isolation", layers) : warning("isolation", layers, kIsolationFix));
  const Stopwatch watch;
  auto answer = (*tracer)->trace({.source = kSmallModule}, Deadline::after(kSeconds));
  if (!answer.ok())
    checks.push_back(
        missing("tracing", answer.error().message, "report this: `nereid trace` does not work here"));
  else if (auto result = traced(*std::move(answer), "a module of one operator");
           const auto* why = std::get_if<NoTrace>(&result))
    checks.push_back(missing("tracing", why->text, "report this: `nereid trace` does not work here"));
  else
    checks.push_back(fine("tracing", fmt::format("a module of one operator in {:.2f} s", watch.seconds())));
}

// -- the GPU -----------------------------------------------------------------------------------------------

void gpu_checks(std::vector<Check>& checks, const Python& python) {
  const char* without =
      "kernels are judged on the CPU, not timed: use a machine with an NVIDIA GPU and its driver";
  const auto driver = gpu::Driver::open();
  if (!driver.ok()) {
    checks.push_back(warning("gpu", driver.error().message, without));
    return;
  }
  int version = 0, count = 0;
  if ((*driver)->cuDriverGetVersion(&version) != CUDA_SUCCESS) version = 0;
  if ((*driver)->cuDeviceGetCount(&count) != CUDA_SUCCESS) count = 0;
  for (int i = 0; i < count; ++i) {
    const std::string name = count == 1 ? "gpu" : fmt::format("gpu {}", i);
    const auto facts = gpu::device_facts(**driver, i);
    if (!facts.ok()) {
      checks.push_back(warning(name, facts.error().message, without));
      continue;
    }
    const std::string text =
        fmt::format("{}, compute capability {}.{}, {:.0f} GB", facts->name, facts->arch / 10,
                    facts->arch % 10, static_cast<double>(facts->memory_bytes) / 1e9);
    if (facts->arch < 75)
      checks.push_back(warning(name, text, "torch 2.11 needs a compute capability from 7.5"));
    else if (!facts->virtual_memory)
      checks.push_back(warning(name, text + ", without virtual memory management",
                               "kernels on this GPU cannot be watched for accesses out of bounds"));
    else
      checks.push_back(fine(name, text));
  }
  const std::string found = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  int major = 0, minor = 0;
  if (std::sscanf(python.cuda.c_str(), "%d.%d", &major, &minor) == 2 && version / 1000 < major)
    checks.push_back(warning("driver", fmt::format("{}, torch is built for {}", found, python.cuda),
                             "a newer NVIDIA driver, or the torch wheel for an older CUDA"));
  else if (!python.cuda.empty() || !python.packages)
    checks.push_back(fine("driver", found));
  else
    checks.push_back(warning("driver", found + ", torch is built without CUDA", "the torch wheel with CUDA"));
}

std::string on_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return ::access(program.c_str(), X_OK) == 0 ? program : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = rest.find(':');
    const fs::path file = fs::path(rest.substr(0, end)) / program;
    std::error_code failure;
    if (fs::is_regular_file(file, failure) && ::access(file.c_str(), X_OK) == 0) return file.string();
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return "";
}

// Triton compiles a launcher for each kernel in the user's own process.
Check compiler_check(const Python& python) {
  const char* named = std::getenv("CC");
  std::vector<std::string> names = {"gcc", "clang", "cc"};
  if (named != nullptr && *named != '\0') names = {named};
  for (const auto& name : names) {
    const std::string path = on_path(name);
    if (path.empty()) continue;
    if (python.packages && !python.header)
      return warning("c compiler", path + ", but no Python.h",
                     "Triton needs Python's headers to launch kernels on a GPU: Debian's python3-dev");
    return fine("c compiler", path);
  }
  return warning(
      "c compiler", names.size() == 1 ? "$CC is " + names[0] + ", which is not a program" : "none on PATH",
      "Triton needs one to launch kernels on a GPU in your own program: Debian's gcc; judging does not");
}

// -- folders and the machine -------------------------------------------------------------------------------

// Writes a file into the folder, which is made where it is not there.
Status writable(const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) return input_error("{}: {}", folder.string(), failure.message());
  const fs::path file = folder / fmt::format(".nereid-doctor-{}", ::getpid());
  const auto written = write_file_atomically(file, "doctor\n");
  fs::remove(file, failure);
  return written;
}

Check folder_check(const std::string& name, const fs::path& folder, const std::string& fix) {
  if (const Status status = writable(folder); !status.ok()) return warning(name, status.error().message, fix);
  std::error_code failure;
  const auto space = fs::space(folder, failure);
  const double gigabytes = failure ? 0 : static_cast<double>(space.available) / 1e9;
  const std::string text = fmt::format("{}, {:.1f} GB free", folder.string(), gigabytes);
  return gigabytes < kMinGigabytes ? warning(name, text, "free some space; " + fix) : fine(name, text);
}

Check store_check() {
  const std::string address = store::Store::default_address();
  const fs::path path = address;
  const char* fix =
      "verdicts are not remembered: set NEREID_STORE to a file in a folder that you may write to";
  if (const auto parsed = store::Address::parse(address); !parsed.ok() || !parsed->is_file()) {
    const auto store = store::Store::open(address);
    return store.ok()
               ? fine("store", (*store)->name())
               : warning("store", store.error().message,
                         "verdicts are not remembered: name a PostgreSQL database that can be reached, or a "
                         "file, in NEREID_STORE");
  }
  Check folder = folder_check("store", fs::absolute(path).parent_path(), fix);
  if (folder.state != State::kOk) return folder;
  const auto store = store::Store::open(address);
  if (!store.ok()) return warning("store", store.error().message, fix);
  if (::access(path.c_str(), W_OK) != 0)
    return warning("store", fmt::format("{}: {}", path.string(), std::strerror(errno)), fix);
  return fine("store", path.string() + folder.found.substr(folder.found.rfind(',')));
}

Check memory_check() {
  struct sysinfo facts{};
  ::sysinfo(&facts);
  const double gigabytes = static_cast<double>(facts.totalram) * facts.mem_unit / 1e9;
  const std::string text =
      fmt::format("{} cores, {:.1f} GB of memory", std::thread::hardware_concurrency(), gigabytes);
  return gigabytes < 4 ? warning("machine", text, "4 GB: two workers with torch take 2 GB each")
                       : fine("machine", text);
}

Check model_check(const Installation& installation) {
  std::error_code failure;
  for (const auto& model : fs::directory_iterator(installation.models, failure))
    for (const auto& file : fs::directory_iterator(model.path(), failure))
      if (file.path().extension() == ".safetensors") return fine("language model", model.path().string());
  return warning("language model", "no checkpoint in " + installation.models.string(),
                 "`--proposers model` needs --model FOLDER; in a checkout `tools/weights unpack`");
}

// -- the command -------------------------------------------------------------------------------------------

std::vector<Check> examine(Progress& progress) {
  std::vector<Check> checks = {program_check()};
  progress.say("importing torch and triton");
  const Python python = python_checks(checks);
  if (interrupted()) return checks;
  progress.say("tracing a module in the jail");
  isolation_checks(checks, python.packages);
  progress.say("looking at GPUs and folders");
  gpu_checks(checks, python);
  checks.push_back(compiler_check(python));
  checks.push_back(store_check());
  if (const auto installation = Installation::locate(); installation.ok()) {
    checks.push_back(folder_check("cache", installation->cache,
                                  "compiled kernels are not kept: set NEREID_CACHE to a folder"));
    checks.push_back(model_check(*installation));
  }
  checks.push_back(folder_check("temporary folder", fs::temp_directory_path(), "set TMPDIR to a folder"));
  checks.push_back(memory_check());
  return checks;
}

Result<Answer> run(bool json) {
  std::vector<Check> checks;
  {
    Progress progress("doctor");
    const Ticker ticker(progress);
    checks = examine(progress);
  }
  if (interrupted())
    return Error{"interrupted", Blame::kInterrupted};  // a check that was stopped says nothing
  const auto state = [&](std::string_view name) {
    for (const auto& check : checks)
      if (check.name.starts_with(name) && check.state == State::kOk) return true;
    return false;
  };
  const bool judge = std::ranges::none_of(checks, [](const Check& c) { return c.state == State::kMissing; });
  const bool time = judge && state("gpu") && state("driver");
  const Json can = {{"judge", judge},
                    {"time", time},
                    {"run_kernels", time && state("c compiler")},
                    {"remember", state("store")},
                    {"propose_by_model", judge && state("language model")}};
  const Answer answer = judge ? Answer::kYes : Answer::kNo;
  if (json) {
    Json list = Json::array();
    for (const auto& check : checks)
      list.push_back({{"name", check.name},
                      {"state", word(check.state)},
                      {"found", check.found},
                      {"fix", check.fix.empty() ? Json() : Json(check.fix)}});
    NEREID_TRY_STATUS(write_stdout(json_line({{"version", NEREID_VERSION}, {"can", can}, {"checks", list}})));
    return answer;
  }
  std::string text;
  for (const auto& check : checks) {
    text += fmt::format("{:8} {:17} {}\n", word(check.state), check.name, check.found);
    if (!check.fix.empty()) text += fmt::format("{:26} mend: {}\n", "", check.fix);
  }
  text += !judge ? "\nNereid cannot judge here: see what is missing.\n"
          : time ? "\nNereid judges and times kernels here.\n"
                 : "\nNereid judges kernels on the CPU here, and times none.\n";
  NEREID_TRY_STATUS(write_text(text));
  return answer;
}

}  // namespace

void add_doctor_command(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("doctor", "Report what this machine can do, and what is missing");
  command->footer(kDoctorHelp);
  add_json_flag(*command, chosen, "Print one JSON object: can, and checks with name, state, found, fix");
  command->callback([&chosen] { chosen.run = [&chosen] { return run(chosen.json); }; });
}

}  // namespace nereid::cli
