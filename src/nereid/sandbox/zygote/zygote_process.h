// One living zygote: its launcher, its control socket, and the thread that listens to both. zygote.h starts
// another when this one is lost.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/sandbox/zygote/fork_loop.h"
#include "nereid/sandbox/zygote/python_home.h"
#include "nereid/sandbox/zygote/zygote.h"

namespace nereid::sandbox {

class ZygoteProcess {
 public:
  struct Ready {
    Isolation isolation;
    std::string about;
  };
  struct Exit {
    int status = 0;        // as waitpid gives it
    bool entered = false;  // it was in the jail; else `why` says why not
    std::string why;
    double cpu = 0;  // seconds of processor time
  };

  // A new one, or one that an earlier command left (worker_pool.h).
  static Result<std::shared_ptr<ZygoteProcess>> start(const ZygoteOptions& options, const PythonHome& home);
  // Leaves an idle one to the next command with NEREID_KEEP_WARM. Else it cuts the lifeline and waits until
  // the launcher, and with it everything else, is gone.
  ~ZygoteProcess();

  // Warm, or lost (an error with its last words), or past the deadline (an error), or Ctrl-C.
  Result<Ready> wait_ready(Deadline deadline);

  // A child for a request; nothing when the zygote is lost, and then lost() says so.
  std::optional<uint64_t> submit(int request, int answer);
  void kill(uint64_t child);
  // How the child ended; nothing when the zygote is lost or `deadline` passes first.
  std::optional<Exit> wait_for_exit(uint64_t child, Deadline deadline);
  struct ChildStatus {
    Fd process;  // a pidfd, to see what the child has had of the machine; invalid where it is gone
    std::optional<Entry> entry;  // nothing: it is not in its jail yet
  };
  // Nothing where the zygote is lost or too busy to answer.
  std::optional<ChildStatus> status_of(uint64_t child);
  // Every submitted child is forgotten once, when no more calls about it follow.
  void forget(uint64_t child);

  bool lost() const;
  int lost_fd() const { return lost_event_.get(); }  // readable once it is lost
  std::string last_words() const;                    // the end of what it wrote to stderr
  int launcher() const { return launcher_; }

 private:
  struct Request {
    bool forgotten = false;
    std::optional<Exit> exit;
    std::optional<ChildStatus> status;  // by the last StatusReply
  };

  ZygoteProcess() = default;
  Status spawn(struct SpawnSpec spec);
  bool adopt();
  bool leave();
  bool idle_soon();
  void stop_listening();
  void listen();
  bool handle_packet();
  bool take_ready(const std::string& packet);       // false: it makes no sense
  bool take_child_exit(const std::string& packet);  // likewise
  bool take_status_reply(const std::string& packet, std::vector<Fd> descriptors);
  void become_lost();

  pid_t launcher_ = 0;
  Fd launcher_process_;             // as pidfd_open gives it; it may be another command's child
  std::optional<std::string> key_;  // what it may be kept warm under
  double seconds_warm_ = 0;
  std::filesystem::path bin_;  // the worker pool's
  std::optional<TemporaryFolder>
      folder_;  // of the children's scratch folders, where there are no private ones
  Fd control_, lifeline_, errors_, stop_, lost_event_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint64_t, Request> requests_;
  uint64_t next_ = 1;
  std::optional<Ready> ready_;
  std::string first_packet_;
  bool lost_ = false;
  std::string words_;
  std::thread listener_;
};

}  // namespace nereid::sandbox
