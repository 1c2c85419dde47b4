#include "nereid/replay/worker/roles/found_memory.h"

#include "nereid/replay/worker/replay.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

at::Tensor bytes_in(const Replay& replay, trace::StorageId id) {
  return bytes_of(replay.storage(id), replay.program().trace().storages[id].bytes);
}

}  // namespace

void FoundMemory::before_step(const Replay& replay, size_t phase, int step) {
  for (const auto& one : replay.program().left_as_found())
    if (one.phase == static_cast<int>(phase) && one.step == step && replay.bound(one.storage))
      found_[one.storage] = bytes_in(replay, one.storage).clone();
}

std::set<trace::StorageId> FoundMemory::changed(const Replay& replay) const {
  auto changed = changed_before_;
  for (const auto& [id, bytes] : found_)
    if (!replay.bound(id) || !same_bits(bytes, bytes_in(replay, id))) changed.insert(id);
  return changed;
}

}  // namespace nereid::replay
