#include "nereid/sandbox/layers/outer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

Status failure(const char* what, const std::string& path) {
  return our_error("{} {}: {}", what, path, strerror(errno));
}

// A detached copy of the mounts at and below `path`, read-only unless it is a device.
struct Tree {
  std::string path;
  int fd = -1;
  bool folder = false;
};

Result<Tree> copy_tree(const std::string& path, bool device) {
  Tree tree{.path = path, .fd = -1, .folder = fs::is_directory(path)};
  tree.fd = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (tree.fd < 0) return failure("copy the mount of", path).error();
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | (device ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_NODEV);
  if (::syscall(SYS_mount_setattr, tree.fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr) != 0)
    return failure("make read-only", path).error();
  return tree;
}

Status place_tree(const Tree& tree) {
  const fs::path below = "." + tree.path;
  std::error_code failed;
  fs::create_directories(tree.folder ? below : below.parent_path(), failed);
  if (!tree.folder) {
    const int file = ::open(below.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0444);
    if (file >= 0) ::close(file);
  }
  if (::syscall(SYS_move_mount, tree.fd, "", AT_FDCWD, below.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return failure("mount in the new root", tree.path);
  ::close(tree.fd);
  return ok_status();
}

std::string below(const std::string& path) { return "." + path; }

// In the folder of the new root.
Status place_proc(OuterSpec::Proc proc) {
  constexpr const char* kProc = "./proc";
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mkdir(kProc, 0755) != 0) return failure("make", kProc);
  const bool fresh = proc == OuterSpec::Proc::kOfThisNamespace;
  if (fresh && ::mount("proc", kProc, "proc", kFlags, nullptr) != 0) return failure("mount a new", kProc);
  if (!fresh && ::mount("/proc", kProc, nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return failure("mount", kProc);
  // Taken while it can be written. The rest must not be: of root's process much of it could be, without any
  // right but root's number.
  const int threads = static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, "./proc/self/task", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (threads < 0) return failure("copy the mount of", "/proc/self/task");
  mount_attr attr{};
  attr.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, kProc, AT_RECURSIVE, &attr, sizeof attr) != 0)
    return failure("make read-only", kProc);
  if (::syscall(SYS_move_mount, threads, "", AT_FDCWD, "./proc/self/task", MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return failure("mount in the new root", "/proc/self/task");
  ::close(threads);
  return ok_status();
}

bool inside(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

// Parents first, and nothing twice.
std::vector<std::string> outermost(std::vector<std::string> paths) {
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> kept;
  for (const auto& path : paths) {
    const auto covers = [&](const std::string& folder) { return inside(path, folder); };
    if (fs::exists(path) && std::none_of(kept.begin(), kept.end(), covers)) kept.push_back(path);
  }
  return kept;
}

Status mount_tmpfs(const char* where, int64_t bytes, const char* mode, unsigned long flags) {
  const std::string options = fmt::format("size={},nr_inodes=16384,mode={}", bytes, mode);
  if (::mount("nereid", where, "tmpfs", MS_NOSUID | MS_NODEV | flags, options.c_str()) != 0)
    return failure("mount a tmpfs on", where);
  return ok_status();
}

// The root's own entries that merely point into /usr on a merged system.
std::vector<std::pair<std::string, std::string>> root_links() {
  std::vector<std::pair<std::string, std::string>> links;
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"})
    if (fs::is_symlink(name)) links.emplace_back(name, fs::read_symlink(name).string());
  return links;
}

}  // namespace

nlohmann::json to_json(const OuterSpec& spec) {
  return {{"trees", spec.trees},
          {"devices", spec.devices},
          {"folders", spec.folders},
          {"scratch_bytes", spec.scratch_bytes},
          {"namespaces", spec.namespaces}};
}

Result<OuterSpec> outer_spec_from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    OuterSpec spec;
    spec.trees = json.at("trees").get<std::vector<std::string>>();
    spec.devices = json.at("devices").get<std::vector<std::string>>();
    spec.folders = json.at("folders").get<std::vector<std::string>>();
    spec.scratch_bytes = json.at("scratch_bytes").get<int64_t>();
    spec.namespaces = json.at("namespaces").get<bool>();
    return spec;
  } catch (const nlohmann::json::exception& e) {
    return input_error("the outer jail's description: {}", e.what());
  }
}

Isolation outer_isolation() {
  Isolation isolation;
  const char* names = std::getenv("NEREID_ISOLATION");
  const std::string padded = " " + std::string(names != nullptr ? names : "") + " ";
  auto stands = [&](const char* name) { return padded.find(fmt::format(" {} ", name)) != std::string::npos; };
  isolation.user = stands("user"), isolation.mount = stands("mount"), isolation.network = stands("network");
  isolation.pid = stands("pid"), isolation.ipc = stands("ipc");
  return isolation;
}

std::string read_own_proc(const char* name) {
  int fd = ::openat(kProcDescriptor, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fd = ::open((std::string("/proc/self/") + name).c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char buffer[65536];
  for (ssize_t got; fd >= 0 && (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  if (fd >= 0) ::close(fd);
  return text;
}

Status enter_root(const OuterSpec& spec) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return failure("make private", "/");
  // Sources are taken while this is still the user who can reach them; afterwards it owns the new root alone.
  std::vector<Tree> trees;
  const auto links = root_links();
  auto wanted = spec.trees;
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"})
    if (fs::is_directory(name) && !fs::is_symlink(name)) wanted.emplace_back(name);
  for (const auto& path : outermost(wanted)) {
    NEREID_TRY(Tree tree, copy_tree(path, false));
    trees.push_back(tree);
  }
  for (const auto& path : outermost(spec.devices)) {
    NEREID_TRY(Tree tree, copy_tree(path, true));
    trees.push_back(tree);
  }
  ::setgroups(0, nullptr);  // not allowed, and not needed, for an ordinary user
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0)
    return failure("become the namespace's user in", "/");

  NEREID_TRY_STATUS(mount_tmpfs("/tmp", 1 << 20, "0755", 0));
  if (::chdir("/tmp") != 0) return failure("enter", "/tmp");
  for (const auto& [name, target] : links)
    if (::symlink(target.c_str(), below(name).c_str()) != 0) return failure("link", name);
  if (::mkdir(below(kScratch).c_str(), 0755) != 0) return failure("make", kScratch);
  NEREID_TRY_STATUS(mount_tmpfs(below(kScratch).c_str(), spec.scratch_bytes, "0700", MS_NOEXEC));
  for (const auto& tree : trees) NEREID_TRY_STATUS(place_tree(tree));
  if (spec.proc != OuterSpec::Proc::kNone) NEREID_TRY_STATUS(place_proc(spec.proc));
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return failure("pivot_root to", "/tmp");
  if (::umount2(".", MNT_DETACH) != 0) return failure("let go of the old", "/");
  if (::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) != 0)
    return failure("make read-only", "/");
  if (::chdir("/") != 0) return failure("enter", "/");
  return ok_status();
}

}  // namespace nereid::sandbox
