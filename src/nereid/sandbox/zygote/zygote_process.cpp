#include "nereid/sandbox/zygote/zygote_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/sandbox/jail/policy_json.h"
#include "nereid/sandbox/layers/outer.h"
#include "nereid/sandbox/zygote/channel.h"
#include "nereid/sandbox/zygote/fork_loop.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/sandbox/zygote/worker_pool.h"

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxWords = 8192;
constexpr double kSecondsToBeIdle = 0.5;  // before a worker that might be kept is given up
constexpr auto kLongestStatus = std::chrono::seconds(2);
constexpr auto kLossReportTimeout = std::chrono::seconds(10);  // of a worker that takes no more orders

// Python's own name for a folder of bytecode, for installations that keep none with their sources.
// It is read, never written.
constexpr const char* kBytecode = "PYTHONPYCACHEPREFIX";

std::vector<std::string> readable_trees(const ZygoteOptions& options, const PythonHome& home) {
  auto trees = system_trees();
  trees.insert(trees.end(), home.trees.begin(), home.trees.end());
  trees.push_back(fs::weakly_canonical(options.installation.package).string());
  for (const auto& path : options.python_path) trees.push_back(fs::weakly_canonical(path).string());
  if (const char* bytecode = std::getenv(kBytecode); bytecode && fs::is_directory(bytecode))
    trees.push_back(fs::weakly_canonical(bytecode).string());
  return trees;
}

// The programs, and the loader that starts them.
std::vector<std::string> find_executables(const ZygoteOptions& options,
                                          const std::vector<std::string>& trees) {
  std::vector<std::string> found;
  for (const auto& name : options.executables)
    for (const auto& tree : trees)
      if (fs::exists(fs::path(tree) / name)) found.push_back((fs::path(tree) / name).string());
  if (!options.executables.empty()) {
    for (const char* loader : {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"})
      if (fs::exists(loader)) found.push_back(fs::canonical(loader).string());
  }
  return found;
}

Json settings_of(const ZygoteOptions& options, const std::vector<std::string>& trees,
                 const fs::path& folder) {
  const Policy policy{.readable = trees,
                      .executables = find_executables(options, trees),
                      .needs_scratch = options.needs_scratch,
                      .namespaces = options.namespaces,
                      .limits = options.limits};
  return {{"library", (options.installation.bin / "libnereid_jail.so").string()},
          {"folder", folder.string()},
          {"policy", to_json(policy)}};
}

// Everything that changes what a worker does is fixed; of the user's own only where to find libraries.
std::vector<std::string> worker_environment(const ZygoteOptions& options) {
  std::string python_path = fs::weakly_canonical(options.installation.package).parent_path().string();
  for (const auto& path : options.python_path) python_path += ":" + fs::weakly_canonical(path).string();
  if (const char* inherited = std::getenv("PYTHONPATH")) python_path += std::string(":") + inherited;
  std::vector<std::string> environment = {"PATH=/usr/bin:/bin",
                                          "LANG=C.UTF-8",
                                          "USER=nobody",
                                          "PYTHONHASHSEED=0",
                                          "PYTHONDONTWRITEBYTECODE=1",
                                          "OMP_NUM_THREADS=1",
                                          "MKL_NUM_THREADS=1",
                                          "CUDA_VISIBLE_DEVICES=",
                                          "PYTHONPATH=" + python_path,
                                          kHugeHeap};
  for (const char* name : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "TRITON_HOME"})
    environment.push_back(std::string(name) + "=" + kScratch);
  for (const char* name : {"LD_LIBRARY_PATH", kBytecode})
    if (const char* value = std::getenv(name)) environment.push_back(std::string(name) + "=" + value);
  return environment;
}

Isolation isolation_from(const Json& json) {
  Isolation isolation;
  isolation.user = json.at("user"), isolation.mount = json.at("mount"),
  isolation.network = json.at("network");
  isolation.pid = json.at("pid"), isolation.ipc = json.at("ipc"), isolation.landlock = json.at("landlock");
  isolation.seccomp = json.at("seccomp"), isolation.limits = json.at("limits"),
  isolation.scratch = json.at("scratch");
  isolation.notes = json.at("notes").get<std::vector<std::string>>();
  return isolation;
}

// Whatever makes one worker another: what it is started with, and the files it is made of (their times and
// sizes; of the installed packages the folders that hold them).
std::string key_of(const SpawnSpec& spec, const ZygoteOptions& options,
                   const std::vector<std::string>& trees) {
  std::string all;
  const auto add = [&](const std::string& word) { all += word, all += '\0'; };
  const auto add_file = [&](const fs::path& path) {
    if (const std::string stamp = stamp_of(path); !stamp.empty()) add(stamp);
  };
  for (const auto& word : spec.words) add(word);
  for (const auto& word : spec.environment) add(word);
  for (const auto& tree : trees) add_file(tree);
  std::error_code unreadable;
  std::vector<fs::path> files;
  for (const auto& folder : options.python_path)
    for (const auto& entry : fs::directory_iterator(folder, unreadable)) files.push_back(entry.path());
  // Its packages' sources; bytecode changes with the first import.
  for (const auto& entry : fs::recursive_directory_iterator(options.installation.package, unreadable))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& file : files) add_file(file);
  for (const char* name : {"nereid-jail", "libnereid_jail.so"}) add_file(options.installation.bin / name);
  return sha256_hex(all);
}

std::string_view bytes_of(const Order& order) {
  return {reinterpret_cast<const char*>(&order), sizeof order};
}

Result<std::pair<Fd, Fd>> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return our_error("pipe: {}", strerror(errno));
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

// `folder`: of the children's scratch folders, or empty.
SpawnSpec spec_of(const ZygoteOptions& options, const std::vector<std::string>& trees,
                  const fs::path& folder) {
  OuterSpec outer{.trees = trees, .devices = {"/dev/null", "/dev/zero", "/dev/urandom"}};
  outer.namespaces = options.namespaces;
  if (!folder.empty()) outer.folders.push_back(folder.string());
  outer.trees.push_back((options.installation.bin / "libnereid_jail.so").string());
  outer.trees.push_back((options.installation.bin.parent_path() / "lib").string());
  return {.words = {(options.installation.bin / "nereid-jail").string(), to_json(outer).dump(),
                    fs::absolute(options.installation.python).string(), "-m", "nereid._worker.zygote",
                    options.module, settings_of(options, trees, folder).dump()},
          .environment = worker_environment(options),
          .own_session = true};
}

}  // namespace

Result<std::shared_ptr<ZygoteProcess>> ZygoteProcess::start(const ZygoteOptions& options,
                                                            const PythonHome& home) {
  std::shared_ptr<ZygoteProcess> process(new ZygoteProcess());
  const auto trees = readable_trees(options, home);
  process->bin_ = options.installation.bin;
  process->seconds_warm_ = seconds_kept_warm();
  if (process->seconds_warm_ > 0) {
    std::error_code missing;  // reported where the folder is created
    const auto base = options.needs_scratch ? fs::temp_directory_path(missing) : fs::path();
    process->key_ = key_of(spec_of(options, trees, base), options, trees);
  }
  process->stop_ = Fd(::eventfd(0, EFD_CLOEXEC));
  process->lost_event_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!process->adopt()) {
    if (options.needs_scratch) {
      NEREID_TRY(process->folder_, TemporaryFolder::create("nereid-scratch"));
    }
    const fs::path folder = process->folder_ ? process->folder_->path() : fs::path();
    NEREID_TRY_STATUS(process->spawn(spec_of(options, trees, folder)));
  }
  process->listener_ = std::thread([raw = process.get()] { raw->listen(); });
  return process;
}

Status ZygoteProcess::spawn(SpawnSpec spec) {
  NEREID_TRY(auto channel, make_channel());
  NEREID_TRY(auto life, make_pipe());
  NEREID_TRY(auto errors, make_pipe());
  spec.descriptors = {{errors.second.get(), 2}, {channel.second.get(), 3}, {life.first.get(), kLifeline}};
  NEREID_TRY(launcher_, sandbox::spawn(spec));
  launcher_process_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, launcher_, 0)));
  control_ = std::move(channel.first);
  lifeline_ = std::move(life.second);
  errors_ = std::move(errors.first);
  return ok_status();
}

bool ZygoteProcess::adopt() {
  if (!key_) return false;
  auto worker = take_warm(*key_);
  if (!worker || !take_ready(worker->ready)) return false;
  launcher_ = worker->pid, next_ = worker->next_child;
  launcher_process_ = std::move(worker->process), control_ = std::move(worker->control);
  lifeline_ = std::move(worker->lifeline), errors_ = std::move(worker->errors);
  folder_ = std::move(worker->folder);
  return true;
}

// Children that have answered, or were killed by an interrupt, are still on their way out.
bool ZygoteProcess::idle_soon() {
  std::unique_lock lock(mutex_);
  const Deadline deadline = Deadline::after(kSecondsToBeIdle);
  const auto alive = [&] { return std::ranges::any_of(requests_, [](auto& r) { return !r.second.exit; }); };
  while (ready_ && !lost_ && alive() && !deadline.passed())
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  return ready_ && !lost_ && !alive();
}

bool ZygoteProcess::leave() {
  if (!key_ || !launcher_process_.valid() || !idle_soon()) return false;
  stop_listening();
  WarmWorker worker{.pid = launcher_, .next_child = next_, .ready = first_packet_};
  worker.control = std::move(control_), worker.lifeline = std::move(lifeline_);
  worker.errors = std::move(errors_), worker.process = std::move(launcher_process_);
  worker.folder = std::move(folder_);
  if (lost_) return true;  // it ended meanwhile, and its descriptors go here
  const Status left = leave_warm(bin_, *key_, std::move(worker), seconds_warm_);
  if (!left.ok()) spdlog::debug("no worker is kept warm: {}", left.error().message);
  return true;
}

void ZygoteProcess::stop_listening() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t said = ::write(stop_.get(), &one, sizeof one);
  if (listener_.joinable()) listener_.join();
}

ZygoteProcess::~ZygoteProcess() {
  if (leave()) return;
  lifeline_.reset();
  if (launcher_process_.valid()) {
    pollfd gone{launcher_process_.get(), POLLIN, 0};
    while (::poll(&gone, 1, -1) < 0 && errno == EINTR) continue;
  }
  if (launcher_ > 0)  // ours, if no other command's; then it is gone already where the kernel has pidfd
    while (::waitpid(launcher_, nullptr, 0) < 0 && errno == EINTR) continue;
  stop_listening();
}

void ZygoteProcess::listen() {
  bool control_open = true, errors_open = true;
  for (;;) {
    pollfd all[3] = {{stop_.get(), POLLIN, 0},
                     {control_open ? control_.get() : -1, POLLIN, 0},
                     {errors_open ? errors_.get() : -1, POLLIN, 0}};
    if (::poll(all, 3, -1) < 0) continue;
    if (all[2].revents != 0) {
      char buffer[4096];
      const ssize_t got = ::read(errors_.get(), buffer, sizeof buffer);
      errors_open = got > 0;
      const std::lock_guard lock(mutex_);
      if (got > 0) words_.append(buffer, static_cast<size_t>(got));
      if (words_.size() > kMaxWords) words_.erase(0, words_.size() - kMaxWords);
    } else if (all[1].revents != 0) {
      control_open = handle_packet();
    }
    // Last words first: the error about the loss quotes them.
    if (!control_open && (!errors_open || all[2].revents == 0)) become_lost();
    if (all[0].revents != 0) return;
  }
}

bool ZygoteProcess::handle_packet() {
  std::vector<Fd> descriptors;
  const auto packet = receive_packet(control_.get(), &descriptors);
  if (!packet.ok() || !packet->has_value()) return false;
  // A zygote that makes no sense is no better than a lost one.
  const std::lock_guard lock(mutex_);
  const bool reply = ready_ && (*packet)->size() == sizeof(StatusReply);
  const bool understood = reply    ? take_status_reply(**packet, std::move(descriptors))
                          : ready_ ? take_child_exit(**packet)
                                   : take_ready(**packet);
  if (understood) changed_.notify_all();
  return understood;
}

bool ZygoteProcess::take_ready(const std::string& packet) {
  try {
    const auto said = parse_json(packet, "a zygote's first packet");
    if (!said.ok()) return false;
    ready_ = Ready{isolation_from(said->at("isolation")), said->at("about").dump()};
    first_packet_ = packet;
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

bool ZygoteProcess::take_child_exit(const std::string& packet) {
  ChildExit note;
  if (packet.size() != sizeof note) return false;
  memcpy(&note, packet.data(), sizeof note);
  note.why[sizeof note.why - 1] = '\0';
  const auto found = requests_.find(note.child);
  if (found == requests_.end()) return true;
  found->second.exit = Exit{note.status, note.entered != 0, note.why, note.cpu};
  if (found->second.forgotten) requests_.erase(found);
  return true;
}

bool ZygoteProcess::take_status_reply(const std::string& packet, std::vector<Fd> descriptors) {
  StatusReply reply;
  memcpy(&reply, packet.data(), sizeof reply);
  const auto found = requests_.find(reply.child);
  if (found == requests_.end()) return true;
  ChildStatus& status = found->second.status.emplace();
  if (!descriptors.empty()) status.process = std::move(descriptors.front());
  if (reply.entered != 0) status.entry = reply.entry;
  return true;
}

void ZygoteProcess::become_lost() {
  const std::lock_guard lock(mutex_);
  if (lost_) return;
  lost_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t said = ::write(lost_event_.get(), &one, sizeof one);
  lifeline_.reset();
  changed_.notify_all();
}

Result<ZygoteProcess::Ready> ZygoteProcess::wait_ready(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!ready_ && !lost_) {
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (deadline.passed()) return our_error("the Python worker was not warm in time");
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
  if (!ready_)
    return our_error("the Python worker did not start: {}", words_.empty() ? "it said nothing" : words_);
  return *ready_;
}

std::optional<uint64_t> ZygoteProcess::submit(int request, int answer) {
  std::unique_lock lock(mutex_);
  if (lost_) return {};
  const Order order{Order::kRun, next_++};
  if (!send_packet(control_.get(), bytes_of(order), {request, answer}).ok()) {
    // It is on its way out, and the listener has not heard of it. A caller that asked for a living one now
    // would be given this one again.
    changed_.wait_for(lock, kLossReportTimeout, [&] { return lost_; });
    return {};
  }
  requests_[order.child];
  return order.child;
}

void ZygoteProcess::kill(uint64_t child) {
  const std::lock_guard lock(mutex_);
  const Order order{Order::kKill, child};
  [[maybe_unused]] const Status sent =
      send_packet(control_.get(), bytes_of(order));  // a lost one is noticed elsewhere
}

std::optional<ZygoteProcess::ChildStatus> ZygoteProcess::status_of(uint64_t child) {
  std::unique_lock lock(mutex_);
  const Order order{Order::kStatus, child};
  if (lost_ || !requests_.contains(child) || !send_packet(control_.get(), bytes_of(order)).ok()) return {};
  const auto answered = [&] {
    const auto found = requests_.find(child);
    return lost_ || found == requests_.end() || found->second.status.has_value();
  };
  changed_.wait_for(lock, kLongestStatus, answered);
  const auto found = requests_.find(child);
  return found == requests_.end() ? std::nullopt : std::exchange(found->second.status, std::nullopt);
}

std::optional<ZygoteProcess::Exit> ZygoteProcess::wait_for_exit(uint64_t child, Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = requests_.find(child);
    if (found != requests_.end() && found->second.exit) return found->second.exit;
    if (lost_ || interrupted() || deadline.passed()) return {};
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
}

void ZygoteProcess::forget(uint64_t child) {
  const std::lock_guard lock(mutex_);
  const auto found = requests_.find(child);
  if (found == requests_.end()) return;
  if (found->second.exit || lost_)
    requests_.erase(found);
  else
    found->second.forgotten = true;
}

bool ZygoteProcess::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::string ZygoteProcess::last_words() const {
  const std::lock_guard lock(mutex_);
  return words_;
}

}  // namespace nereid::sandbox
