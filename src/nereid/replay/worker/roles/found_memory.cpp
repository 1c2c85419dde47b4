#include "nereid/replay/worker/roles/found_memory.h"

#include "nereid/replay/worker/operators.h"
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

at::Tensor FoundMemory::changed_bytes(const Replay& replay, trace::StorageId storage) const {
  const auto& found = found_.at(storage);
  const auto now = bytes_in(replay, storage);
  if (same_bits(found, now)) return {};
  auto changed = found.ne(now);
  if (const auto dirty = dirty_.find(storage); dirty != dirty_.end())
    changed.logical_and_(dirty->second.logical_not());
  return changed.any().item().toBool() ? changed : at::Tensor();
}

void FoundMemory::after_forward(const Replay& replay) {
  for (const auto& [id, bytes] : found_) {
    if (!replay.bound(id)) {
      changed_before_.insert(id);
      continue;
    }
    auto changed = changed_bytes(replay, id);
    if (!changed.defined()) continue;
    auto& all = changed_bytes_[id];
    all = all.defined() ? all.logical_or_(changed) : changed;
  }
}

std::set<trace::StorageId> FoundMemory::begin_judged(const Replay& replay, bool tracked) {
  tracked_ = tracked_ || tracked;
  for (const auto& one : replay.program().left_as_found()) {
    const auto changed = changed_bytes_.find(one.storage);
    if (changed == changed_bytes_.end() || !replay.bound(one.storage)) continue;
    if (one.may_be_dirty && tracked_)
      dirty_[one.storage] = changed->second;
    else
      changed_before_.insert(one.storage);
  }
  return dirty();
}

std::set<trace::StorageId> FoundMemory::add_changed(const Replay& replay) {
  std::set<trace::StorageId> more;
  for (const auto& one : replay.program().left_as_found()) {
    const auto id = one.storage;
    if (!one.may_be_dirty || !tracked_ || !found_.contains(id) || !replay.bound(id)) continue;
    const auto changed = changed_bytes(replay, id);
    if (!changed.defined()) continue;
    auto& dirty = dirty_[id];
    dirty = dirty.defined() ? dirty.logical_or(changed) : changed;
    more.insert(id);
  }
  return more;
}

void FoundMemory::spoil(const Replay& replay, trace::StorageId storage, bool tracked,
                        std::vector<uint8_t>& written) const {
  const auto& bytes = dirty_.at(storage);
  const auto now = bytes_in(replay, storage);
  const auto before = now.clone();
  poison(replay.storage(storage), now.numel(), replay.type_in(storage));
  now.copy_(at::where(bytes, now.clone(), before));
  if (!tracked) return;
  if (written.empty()) written.assign((now.numel() + 7) / 8, 0xFF);
  const auto on_host = bytes.to(at::kCPU).contiguous();
  const auto* changed = on_host.const_data_ptr<bool>();
  for (int64_t i = 0; i < now.numel(); ++i)
    if (changed[i]) written[i / 8] &= static_cast<uint8_t>(~(1U << (i % 8)));
}

std::set<trace::StorageId> FoundMemory::changed(const Replay& replay) const {
  auto changed = changed_before_;
  for (const auto& one : replay.program().left_as_found()) {
    // What nothing was found in was made by the step itself (a copy of an input).
    const auto id = one.storage;
    if (!found_.contains(id) || !replay.bound(id) || changed_bytes(replay, id).defined()) changed.insert(id);
  }
  return changed;
}

std::set<trace::StorageId> FoundMemory::dirty() const {
  std::set<trace::StorageId> storages;
  for (const auto& [id, bytes] : dirty_) storages.insert(id);
  return storages;
}

}  // namespace nereid::replay
