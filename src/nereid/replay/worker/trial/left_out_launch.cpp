// What memory holds after a launch that a trial leaves out.

#include <ATen/ops/where.h>

#include <algorithm>
#include <vector>

#include "nereid/replay/worker/replay.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

using trace::StorageId;

namespace {

// More is not copied: integers stay poisoned, too.
constexpr int64_t kMaxSaved = int64_t{1} << 29;  // bytes

// The signed type of an integer storage's elements; nothing where some value of it is no integer.
std::optional<c10::ScalarType> integers_in(const trace::Trace& trace, StorageId storage) {
  std::optional<c10::ScalarType> type;
  for (const auto& value : trace.values) {
    if (value.storage != storage) continue;
    if (!trace::is_integral(value.dtype) || value.dtype == trace::DType::kBool) return {};
    switch (trace::element_bytes(value.dtype)) {
      case 1:
        type = c10::kByte;
        break;
      case 2:
        type = c10::kShort;
        break;
      case 4:
        type = c10::kInt;
        break;
      default:
        type = c10::kLong;
    }
  }
  return type;
}

}  // namespace

void Replay::leave_out(const PreparedLaunch& launch, int step, const RunOptions& options) {
  struct Before {
    StorageId storage;
    at::Tensor all, copy;
    std::optional<c10::ScalarType> integers;
  };
  std::vector<Before> written;
  int64_t total = 0;
  for (const auto id : program_.written_by(step)) {
    if (!storages_[id].storage) continue;
    const int64_t bytes = program_.trace().storages[id].bytes;
    written.push_back({id, bytes_of(storage(id), bytes), {}, integers_in(program_.trace(), id)});
    total += bytes;
  }
  if (total > kMaxSaved ||
      std::ranges::none_of(written, &std::optional<c10::ScalarType>::has_value, &Before::integers))
    return;
  has_stand_ins_ = true;
  for (auto& before : written) before.copy = before.all.clone();
  const auto& first = launch.alternatives.at(0);
  for (const auto& prepared_call : first.before) run_call(prepared_call);
  run_alternative(launch, 0, step, true, options);
  const int64_t usual = options.other_stand_ins ? 1 : 0;
  for (auto& before : written) {
    const auto type = before.integers.value_or(c10::kByte);
    const int64_t whole = before.all.numel() - before.all.numel() % int64_t(c10::elementSize(type));
    const auto now = before.all.narrow(0, 0, whole).view(type);
    const auto was = before.copy.narrow(0, 0, whole).view(type);
    if (before.integers) {
      const auto stand_in = at::where(now.eq(usual), 1 - usual, usual).to(type);
      now.copy_(at::where(now.ne(was), stand_in, was));
    } else {
      now.copy_(was);
    }
  }
}

}  // namespace nereid::replay
