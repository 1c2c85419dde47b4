#include "nereid/sandbox/zygote/worker_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/json.h"
#include "nereid/sandbox/zygote/channel.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMemoryOfOne = int64_t{1}
                                 << 30;  // of the machine's, for each that is kept; it has some 300 MB
constexpr const char* kSocket =
    "worker-pool-2";                   // another with other messages, as an earlier build's pool has
constexpr double kIdleSeconds = 2;     // of a worker pool that keeps nothing
constexpr int kPatienceSeconds = 1;    // of either side, once connected
constexpr double kMaxSeconds = 86400;  // a day

size_t max_kept() {
  const int64_t memory = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return static_cast<size_t>(std::clamp<int64_t>(memory / kMemoryOfOne, 3, 16));
}

// Ours alone, or nothing.
std::optional<fs::path> pool_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const fs::path folder = runtime != nullptr && *runtime == '/'
                              ? fs::path(runtime) / "nereid"
                              : fs::path("/tmp") / ("nereid-" + std::to_string(::geteuid()));
  ::mkdir(folder.c_str(), 0700);
  struct stat info{};
  const bool ours = ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                    info.st_uid == ::geteuid() && (info.st_mode & 0077) == 0;
  if (!ours || (folder / kSocket).string().size() >= sizeof(sockaddr_un::sun_path)) return {};
  return folder;
}

sockaddr_un address_in(const fs::path& folder) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder / kSocket;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

void set_socket_timeouts(int socket) {
  const timeval patience{.tv_sec = kPatienceSeconds, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
}

Fd new_socket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

Fd connect_to_pool(const fs::path& folder) {
  Fd socket = new_socket();
  const sockaddr_un address = address_in(folder);
  if (!socket.valid()) return {};
  set_socket_timeouts(socket.get());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return same_user(socket.get()) ? std::move(socket) : Fd();
}

// Listens and hands the socket to a new worker pool; connections made meanwhile wait for it.
Status start_pool(const fs::path& bin, const fs::path& folder) {
  const Fd lock(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0)
    return our_error("{}: {}", (folder / "lock").string(), strerror(errno));
  if (connect_to_pool(folder).valid()) return ok_status();  // another process was faster
  const sockaddr_un address = address_in(folder);
  Fd socket = new_socket();
  ::unlink(address.sun_path);
  if (!socket.valid() ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 16) != 0)
    return our_error("{}: {}", address.sun_path, strerror(errno));
  NEREID_TRY([[maybe_unused]] const pid_t pool, spawn({.words = {(bin / "nereid-worker-pool").string()},
                                                       .environment = own_environment(),
                                                       .descriptors = {{socket.get(), 3}},
                                                       .own_session = true}));
  return ok_status();
}

std::string packet_of(const WarmWorker& worker) {
  return Json{{"pid", worker.pid},
              {"next_child", worker.next_child},
              {"ready", worker.ready},
              {"folder", worker.folder ? worker.folder->path().string() : ""}}
      .dump();
}

std::vector<int> descriptors_of(const WarmWorker& worker) {
  std::vector<int> all = {worker.control.get(), worker.process.get()};
  if (worker.lifeline.valid()) all.insert(all.end(), {worker.lifeline.get(), worker.errors.get()});
  return all;
}

std::optional<WarmWorker> worker_from(const Json& json, std::vector<Fd> descriptors) {
  if (descriptors.size() != 2 && descriptors.size() != 4) return {};
  WarmWorker worker;
  worker.pid = json.at("pid"), worker.next_child = json.at("next_child");
  worker.ready = json.at("ready");
  const std::string folder = json.at("folder");
  if (!folder.empty()) worker.folder = TemporaryFolder::adopt(folder);
  worker.control = std::move(descriptors[0]), worker.process = std::move(descriptors[1]);
  if (descriptors.size() == 4)
    worker.lifeline = std::move(descriptors[2]), worker.errors = std::move(descriptors[3]);
  return worker;
}

// The other side holds it from now on.
Status hand_over(int socket, const std::string& packet, WarmWorker& worker) {
  NEREID_TRY_STATUS(send_packet(socket, packet, descriptors_of(worker)));
  if (worker.folder) (void)worker.folder->release();
  return ok_status();
}

bool has_unexpected_data(const Fd& descriptor) {
  pollfd one{descriptor.get(), POLLIN, 0};
  return ::poll(&one, 1, 0) != 0;
}

// What the worker pool keeps.
class Kept {
 public:
  void serve(int socket) {
    if (!same_user(socket)) return;
    set_socket_timeouts(socket);
    std::vector<Fd> descriptors;
    const auto packet = receive_packet(socket, &descriptors);
    if (!packet.ok() || !packet->has_value()) return;
    const auto said = parse_json(**packet, "a word to the worker pool");
    if (!said.ok()) return;
    try {
      if (said->contains("take")) return hand_out(said->at("take"), socket);
      auto worker = worker_from(said->at("worker"), std::move(descriptors));
      if (worker)
        all_.push_back({said->at("leave"), std::move(*worker), Deadline::after(said->at("seconds"))});
      if (all_.size() > max_kept_) all_.erase(all_.begin());
    } catch (const nlohmann::json::exception&) {  // not one of ours
    }
  }
  // Workers whose time is over, that ended, or that sent something without a request.
  void drop_expired() {
    std::erase_if(all_, [](const One& one) {
      return one.until.passed() || has_unexpected_data(one.worker.control) ||
             has_unexpected_data(one.worker.process);
    });
  }
  bool empty() const { return all_.empty(); }
  std::vector<pollfd> watched() const {
    std::vector<pollfd> list;
    for (const One& one : all_) list.push_back({one.worker.control.get(), POLLIN, 0});
    return list;
  }
  Deadline next() const {
    Deadline soonest = Deadline::never();
    for (const One& one : all_) soonest = Deadline::earlier(soonest, one.until);
    return soonest;
  }

 private:
  struct One {
    std::string key;
    WarmWorker worker;
    Deadline until;
  };

  void hand_out(const std::string& key, int socket) {
    const auto found =
        std::find_if(all_.rbegin(), all_.rend(), [&](const One& one) { return one.key == key; });
    if (found == all_.rend()) return;  // a closed connection says so
    One one = std::move(*found);
    all_.erase(std::next(found).base());
    (void)hand_over(socket, packet_of(one.worker), one.worker);
  }

  const size_t max_kept_ = max_kept();
  std::vector<One> all_;
};

}  // namespace

double seconds_kept_warm() {
  const char* text = std::getenv("NEREID_KEEP_WARM");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  return *end == '\0' && seconds > 0 && seconds <= kMaxSeconds ? seconds : 0;
}

std::optional<WarmWorker> take_warm(const std::string& key) {
  const auto folder = pool_folder();
  if (!folder) return {};
  const Fd socket = connect_to_pool(*folder);
  if (!socket.valid() || !send_packet(socket.get(), Json{{"take", key}}.dump()).ok()) return {};
  std::vector<Fd> descriptors;
  const auto packet = receive_packet(socket.get(), &descriptors);
  if (!packet.ok() || !packet->has_value()) return {};
  const auto said = parse_json(**packet, "the worker pool's answer");
  if (!said.ok()) return {};
  try {
    return worker_from(*said, std::move(descriptors));
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

Status leave_warm(const fs::path& bin, const std::string& key, WarmWorker worker, double seconds) {
  const auto folder = pool_folder();
  if (!folder) return our_error("there is no folder that only this user may enter");
  Fd socket = connect_to_pool(*folder);
  if (!socket.valid()) {
    NEREID_TRY_STATUS(start_pool(bin, *folder));
    socket = connect_to_pool(*folder);
  }
  if (!socket.valid()) return our_error("the worker pool does not listen");
  const Json packet{{"leave", key}, {"seconds", seconds}, {"worker", Json::parse(packet_of(worker))}};
  return hand_over(socket.get(), packet.dump(), worker);
}

std::string stamp_of(const fs::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return {};
  return fmt::format("{} {} {} {}.{}", file.string(), info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

void keep(Fd listening) {
  Kept kept;
  for (;;) {
    auto watched = kept.watched();
    watched.push_back({listening.get(), POLLIN, 0});
    const Deadline until = kept.empty() ? Deadline::after(kIdleSeconds) : kept.next();
    const int ready = ::poll(watched.data(), watched.size(), until.poll_milliseconds());
    if (ready == 0 && kept.empty()) return;
    kept.drop_expired();
    if (ready <= 0 || watched.back().revents == 0) continue;
    const Fd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.valid()) kept.serve(socket.get());
  }
}

}  // namespace nereid::sandbox
