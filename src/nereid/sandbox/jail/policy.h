// What a jailed process may do, and its isolation layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nereid::sandbox {

struct Limits {
  int64_t memory_bytes = int64_t{4} << 30;    // address space beyond what the process maps when it enters
  int64_t scratch_bytes = int64_t{64} << 20;  // the private writable folder
  int64_t file_bytes = int64_t{64} << 20;     // one file
  int64_t cpu_seconds = 600;
  int64_t open_files = 128;
  int64_t tasks = 64;  // threads and processes together
};

struct Policy {
  std::vector<std::string> readable = {};  // trees that may be read (and mapped executable)
  std::vector<std::string> executables =
      {};  // files that may be run; with none the process can neither fork nor exec
  // Allows memory to be shared and its size to be set by descriptor (memfd_create): for workers that hand out
  // tensors.
  bool shared_memory = false;
  // Allows sendmsg and recvmsg on the sockets it already has; new sockets are never allowed.
  bool messages = false;
  // Needs a writable folder. Where no private one can be had, a folder on disk that the parent names will do:
  // then only the size of each file is bounded.
  bool needs_scratch = false;
  // Device files, and folders of them, that may be opened for writing and controlled: a GPU's. Such a process
  // may use its own /proc folder, and the system calls that a GPU's driver makes. Its driver reserves more
  // addresses than there is memory, so the limit is on what it writes instead.
  std::vector<std::string> devices = {};
  // Where the process is in no outer jail: a root of its own that holds the readable trees, the devices and
  // the /proc of its pid namespace, read-only but for the names of its own threads, and nothing else.
  bool own_root = false;
  bool namespaces = true;     // false: behave as on a kernel without them
  bool pid_namespace = true;  // false: without this one. A driver's process has one only with its own root
  bool landlock = true;       // false: behave as on a kernel without it
  Limits limits = {};
};

// The folder of the outer jail's root that a jailed process may write into; its working directory. Not /tmp,
// below which a Python installation may be.
inline constexpr const char* kScratch = "/scratch";

// The isolation layers in force. `notes` says why a layer is missing.
struct Isolation {
  bool user = false, mount = false, network = false, pid = false, ipc = false;  // namespaces
  int landlock = 0;                                                             // its ABI; 0: none
  bool seccomp = false, limits = false;
  bool scratch = false;  // a private writable folder of limited size; without it nothing can be written
  std::vector<std::string> notes;

  // What no run may do without: files, the network and system calls are closed, by any layer.
  bool enough() const { return seccomp && limits && (mount || landlock > 0); }
};
// "user mount network pid ipc landlock(7) seccomp limits scratch", and what is missing.
std::string describe(const Isolation& isolation);

}  // namespace nereid::sandbox
