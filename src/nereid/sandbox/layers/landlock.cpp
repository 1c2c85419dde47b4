#include "nereid/sandbox/layers/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace nereid::sandbox {
namespace {

// The kernel's interface, written out because Debian 12's headers stop at ABI 2.
struct RulesetAttr {
  uint64_t handled_fs, handled_net, scoped;
};
struct __attribute__((packed)) PathBeneathAttr {
  uint64_t allowed;
  int32_t parent_fd;
};
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3,
                   kRefer = 1 << 13, kTruncate = 1 << 14, kIoctlDevice = 1 << 15;
constexpr uint64_t kAllOfAbi1 = (1 << 13) - 1;
constexpr uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;
constexpr uint64_t kScopeAbstractSockets = 1 << 0, kScopeSignals = 1 << 1;
constexpr int kRulePathBeneath = 1;

long create_ruleset(const RulesetAttr* attr, size_t size, uint32_t flags) {
  return ::syscall(444, attr, size, flags);
}

Status add_path(int ruleset, const std::string& path, uint64_t allowed) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return ok_status();
  struct stat info{};
  ::fstat(fd, &info);
  constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
  if (!S_ISDIR(info.st_mode)) allowed &= kOfFiles;
  const PathBeneathAttr attr{allowed, fd};
  const long failed = ::syscall(445, ruleset, kRulePathBeneath, &attr, 0);
  const int why = errno;
  ::close(fd);
  if (failed != 0) return our_error("Landlock takes no rule for {}: {}", path, strerror(why));
  return ok_status();
}

uint64_t handled_files(int abi) {
  uint64_t handled = kAllOfAbi1;
  if (abi >= 2) handled |= kRefer;
  if (abi >= 3) handled |= kTruncate;
  if (abi >= 5) handled |= kIoctlDevice;
  return handled;
}

Status add_rules(int ruleset, const LandlockRules& rules, uint64_t handled) {
  for (const auto& path : rules.readable) NEREID_TRY_STATUS(add_path(ruleset, path, kReadFile | kReadDir));
  for (const auto& path : rules.executables) NEREID_TRY_STATUS(add_path(ruleset, path, kReadFile | kExecute));
  NEREID_TRY_STATUS(add_path(ruleset, "/dev/null", kReadFile | kWriteFile));
  const uint64_t device = handled & (kReadFile | kWriteFile | kReadDir | kIoctlDevice);
  for (const auto& path : rules.devices) NEREID_TRY_STATUS(add_path(ruleset, path, device));
  if (rules.own_proc) {
    NEREID_TRY_STATUS(add_path(ruleset, "/proc/self", kReadFile | kReadDir));
    NEREID_TRY_STATUS(
        add_path(ruleset, "/proc/self/task", handled & (kReadFile | kReadDir | kWriteFile | kTruncate)));
  }
  if (!rules.writable.empty())
    NEREID_TRY_STATUS(add_path(ruleset, rules.writable, handled & ~(kExecute | kIoctlDevice)));
  return ok_status();
}

}  // namespace

int landlock_abi() {
  const long abi = create_ruleset(nullptr, 0, 1);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Status landlock_restrict(const LandlockRules& rules) {
  const int abi = landlock_abi();
  if (abi == 0) return our_error("the kernel has no Landlock");
  RulesetAttr attr{handled_files(abi), abi >= 4 ? kBindTcp | kConnectTcp : 0,
                   abi >= 6 ? kScopeAbstractSockets | kScopeSignals : 0};
  const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
  const int ruleset = static_cast<int>(create_ruleset(&attr, size, 0));
  if (ruleset < 0) return our_error("Landlock makes no ruleset: {}", strerror(errno));
  auto added = add_rules(ruleset, rules, attr.handled_fs);
  if (added.ok() && ::syscall(446, ruleset, 0) != 0)
    added = our_error("Landlock does not restrict: {}", strerror(errno));
  ::close(ruleset);
  return added;
}

}  // namespace nereid::sandbox
