// For tests: a zygote whose module runs the Python text of a request, as the worst candidate could.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/sandbox/zygote/zygote.h"

namespace nereid::sandbox {

class HostileWorker {
 public:
  static constexpr const char* kModule = R"(
import ctypes, errno, json, os, resource, signal, socket, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def name_of(call):
    try:
        return repr(call())
    except BaseException as problem:
        return type(problem).__name__
def system_call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *arguments)
    return errno.errorcode.get(ctypes.get_errno(), str(result)) if result == -1 else str(result)
def warm():
    return {"python": sys.version.split()[0]}
def handle(request):
    scope = {"request": request, **globals()}
    exec(request["code"], scope)
    return {"result": scope.get("result")}
)";

  explicit HostileWorker(bool namespaces = true) {
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    std::ofstream(folder_.path() / "worst.py") << kModule;
    options_ = {.installation = Installation::locate().value(), .module = "worst", .namespaces = namespaces};
    options_.python_path = {folder_.path()};
    options_.limits.memory_bytes = int64_t{512} << 20;
    options_.limits.scratch_bytes = 8 << 20;
    options_.limits.file_bytes = 4 << 20;
    options_.max_answer_bytes = 4 << 20;
  }

  ZygoteOptions& options() { return options_; }
  Zygote& zygote() {
    const std::lock_guard lock(starting_);
    if (!zygote_) zygote_ = Zygote::start(options_).value();
    return *zygote_;
  }
  void stop() { zygote_.reset(); }

  Result<Outcome> run(const std::string& code, double seconds = 30) {
    return zygote().run(Json{{"code", code}}.dump(), seconds, Deadline::after(200));
  }
  // What the code leaves in `result`, or how its process ended, in words.
  Json result(const std::string& code, double seconds = 30) {
    auto outcome = run(code, seconds);
    if (!outcome.ok()) return "error: " + outcome.error().message;
    if (auto* killed = std::get_if<Killed>(&*outcome)) return killed->limit;
    if (std::holds_alternative<OutOfTime>(*outcome)) return "out of time";
    auto answer = parse_json(std::get<Answer>(*outcome).bytes, "answer");
    if (!answer.ok()) return answer.error().message;
    return answer->contains("result") ? (*answer)["result"] : *answer;
  }

  // Processes of this worker that live: launcher, zygote, children, whatever they started.
  std::set<int> processes() const {
    std::set<int> found;
    std::error_code vanished;
    for (auto at = std::filesystem::directory_iterator("/proc", vanished), end = decltype(at)();
         at != end && !vanished; at.increment(vanished)) {
      const auto& entry = *at;
      const int pid = std::atoi(entry.path().filename().c_str());
      if (pid <= 0 || pid == ::getpid()) continue;
      std::ifstream file(entry.path() / "cmdline");
      std::string words;  // getline: an iterator throws where the process goes while it is read
      std::getline(file, words, '\n');
      if (words.find(folder_.path().string()) != std::string::npos) found.insert(pid);
    }
    return found;
  }
  // Killed processes take a moment to go.
  bool all_gone_soon() const {
    for (int i = 0; i < 1500; ++i, ::usleep(20000))
      if (processes().empty()) return true;
    return false;
  }
  bool only_these_soon(size_t count) const {
    for (int i = 0; i < 1500; ++i, ::usleep(20000))
      if (processes().size() == count) return true;
    return false;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_ = TemporaryFolder::create("worst").value();
  ZygoteOptions options_;
  std::mutex starting_;
  std::unique_ptr<Zygote> zygote_;
};

}  // namespace nereid::sandbox
