// Memory that every forward has to leave as it found it (LeftAsFound): whether one did not.
//
// Bytes that a forward changes are no harm where no later one reads them. Where unwritten bytes are tracked,
// what an earlier forward changed counts as unwritten in the judged one, and a kernel that reads it is found
// out. All other bytes hold in each call what they held in the first.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "nereid/replay/report.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

class Replay;

class FoundMemory {
 public:
  void clear() { found_.clear(), changed_bytes_.clear(), dirty_.clear(), changed_before_.clear(); }

  // Keeps a copy of the bytes of what that step is the first to write something of any inputs to.
  void before_step(const Replay& replay, size_t phase, int step);
  // A forward before the judged one is done.
  void after_forward(const Replay& replay);
  // The judged forward begins. Storages of which some bytes may hold anything: earlier forwards changed them,
  // kernels alone read the storage, and reads of unwritten bytes are found out (`tracked`) in this run or in
  // one before it.
  std::set<trace::StorageId> begin_judged(const Replay& replay, bool tracked);
  // The judged forward is done. Storages of which it changed other bytes: these, too, may hold anything, once
  // it has begun again and has not read them.
  std::set<trace::StorageId> add_changed(const Replay& replay);
  // Puts poison there, and counts them as unwritten where `tracked` (`written`: one bit a byte, none: all).
  void spoil(const Replay& replay, trace::StorageId storage, bool tracked,
             std::vector<uint8_t>& written) const;

  // Storages that some forward changed: an earlier one, or the judged one as it ran last.
  std::set<trace::StorageId> changed(const Replay& replay) const;
  // Storages of which some bytes may hold anything.
  std::set<trace::StorageId> dirty() const;

 private:
  // Bytes that are not as they were found, but for those that may hold anything; undefined: none.
  at::Tensor changed_bytes(const Replay& replay, trace::StorageId storage) const;

  std::map<trace::StorageId, at::Tensor> found_;
  std::map<trace::StorageId, at::Tensor> changed_bytes_;  // by earlier forwards
  std::map<trace::StorageId, at::Tensor> dirty_;          // of this run
  std::set<trace::StorageId> changed_before_;
  bool tracked_ = false;  // reads of unwritten bytes, in some run
};

}  // namespace nereid::replay
