// Memory that every forward has to leave as it found it (LeftAsFound): whether one did not.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>

#include "nereid/trace/trace.h"

namespace nereid::replay {

class Replay;

class FoundMemory {
 public:
  void clear() { found_.clear(), changed_before_.clear(); }

  // Keeps a copy of the bytes of what that step is the first to write something of any inputs to.
  void before_step(const Replay& replay, size_t phase, int step);
  // A forward before the judged one is done.
  void after_forward(const Replay& replay) { changed_before_ = changed(replay); }

  // Storages that some forward changed: an earlier one, or the judged one as it ran last.
  std::set<trace::StorageId> changed(const Replay& replay) const;

 private:
  std::map<trace::StorageId, at::Tensor> found_;
  std::set<trace::StorageId> changed_before_;
};

}  // namespace nereid::replay
