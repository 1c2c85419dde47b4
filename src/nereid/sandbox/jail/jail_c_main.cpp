// libnereid_jail.so: the jail for other languages than C++ (python/nereid/_worker/jail.py). Every function
// returns 0 or a positive size, or -1 with a sentence in `message`.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "nereid/sandbox/jail/jail.h"
#include "nereid/sandbox/jail/policy_json.h"
#include "nereid/sandbox/layers/arenas.h"
#include "nereid/sandbox/layers/compaction.h"
#include "nereid/sandbox/zygote/fork_loop.h"

namespace {

using nereid::sandbox::Jail;

int fail(char* message, size_t size, const std::string& text) {
  if (size > 0) {
    const size_t n = std::min(size - 1, text.size());
    std::memcpy(message, text.data(), n);
    message[n] = '\0';
  }
  return -1;
}

int done(const nereid::Status& status, char* message, size_t size) {
  return status.ok() ? 0 : fail(message, size, status.error().message);
}

}  // namespace

#define NEREID_EXPORT extern "C" __attribute__((visibility("default")))

NEREID_EXPORT void* nereid_jail_prepare(const char* policy, char* message, size_t size) {
  try {
    auto jail = Jail::prepare(nereid::sandbox::policy_from_json(nlohmann::json::parse(policy)));
    if (jail.ok()) return new Jail(std::move(jail).value());
    fail(message, size, jail.error().message);
  } catch (const std::exception& e) {
    fail(message, size, std::string("the jail's policy: ") + e.what());
  }
  return nullptr;
}

NEREID_EXPORT int nereid_jail_isolation(const void* jail, char* json, size_t size) {
  const auto& isolation = static_cast<const Jail*>(jail)->isolation();
  const nlohmann::json document = {{"user", isolation.user},       {"mount", isolation.mount},
                                   {"network", isolation.network}, {"pid", isolation.pid},
                                   {"ipc", isolation.ipc},         {"landlock", isolation.landlock},
                                   {"seccomp", isolation.seccomp}, {"limits", isolation.limits},
                                   {"scratch", isolation.scratch}, {"notes", isolation.notes}};
  const std::string text = document.dump();
  if (text.size() >= size) return -1;
  std::memcpy(json, text.c_str(), text.size() + 1);
  return static_cast<int>(text.size());
}

// Around a fork in the parent, and the two steps of a child that uses a device (jail.h).
NEREID_EXPORT int nereid_jail_before_fork(const void* jail, char* message, size_t size) {
  return done(static_cast<const Jail*>(jail)->before_fork(), message, size);
}
NEREID_EXPORT int nereid_jail_after_fork(const void* jail, char* message, size_t size) {
  return done(static_cast<const Jail*>(jail)->after_fork(), message, size);
}
NEREID_EXPORT int nereid_jail_begin(const void* jail, const int* keep, size_t count, char* message,
                                    size_t size) {
  return done(static_cast<const Jail*>(jail)->begin({keep, keep + count}), message, size);
}
NEREID_EXPORT int nereid_jail_finish(const void* jail, char* message, size_t size) {
  return done(static_cast<const Jail*>(jail)->finish(), message, size);
}

// Serves orders until the judge goes, see fork_loop.h. 1 in a child, which has `descriptors` (the request,
// the pipe for the answer); 0 at the end.
// `before`, `in_parent`, `in_child`: Python's callbacks around a fork, or null.
NEREID_EXPORT int nereid_serve(const void* jail, void* compaction, int control, const char* folder,
                               void (*before)(), void (*in_parent)(), void (*in_child)(), int* descriptors,
                               char* message, size_t size) {
  nereid::sandbox::ForkLoop loop(*static_cast<const Jail*>(jail),
                                 *static_cast<nereid::sandbox::Compaction*>(compaction), control, folder,
                                 {before, in_parent, in_child});
  nereid::sandbox::ForkLoop::Child child;
  const auto is_child = loop.run(child);
  if (!is_child.ok()) return fail(message, size, is_child.error().message);
  descriptors[0] = child.request, descriptors[1] = child.answer;
  return *is_child ? 1 : 0;
}

NEREID_EXPORT size_t nereid_file_pieces_in_use(uint64_t* pieces, size_t most) {
  const auto found = nereid::sandbox::file_pieces_in_use();
  const size_t count = std::min(most, found.size());
  std::copy_n(found.begin(), count, pieces);
  return count;
}

NEREID_EXPORT void* nereid_compaction_start(const uint64_t* file_pieces, size_t count) {
  return new nereid::sandbox::Compaction({file_pieces, file_pieces + count});
}

// 1 while there is more to do.
NEREID_EXPORT int nereid_compaction_step(void* compaction) {
  return static_cast<nereid::sandbox::Compaction*>(compaction)->step() ? 1 : 0;
}

// `set`: PyObject_SetArenaAllocator.
NEREID_EXPORT void nereid_reserve_arenas(size_t bytes, void (*set)(nereid::sandbox::ArenaAllocator*)) {
  auto allocator = nereid::sandbox::reserve_arenas(bytes);
  set(&allocator);
}

NEREID_EXPORT void nereid_close_arenas() { nereid::sandbox::close_arenas(); }
