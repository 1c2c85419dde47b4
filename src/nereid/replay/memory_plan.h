// How much memory a session takes, moment by moment. What a session does between two requests (which side
// holds and frees which tensors) and these formulas are one plan: change both.
//
// A task of some size is replayed *frugally*:
//
//   moment      reference's worker                              candidate's worker          blocks
//   prepare     makes inputs, moves them into the block         nothing                     inputs, outputs
//   run         rests: its inputs are the block                 copies inputs, runs         inputs, outputs
//   truth       inputs in float64, going as they are used up    nothing                     inputs, outputs
//   compare     truth, and its own answer                       nothing                     inputs, outputs
//   widen       ... and one more truth at a time                nothing                     inputs, outputs
//   time        its own forward                                 inputs again, its forward   inputs, outputs
//
// A small one keeps all it can from one moment to the next, copies of the blocks included.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "nereid/replay/report.h"
#include "nereid/trace/trace.h"

namespace nereid::replay {

// Bytes of the storages of one program, as it lets go of them.
struct Footprint {
  int64_t start = 0;     // at most, before the judged forward
  int64_t standing = 0;  // when the judged forward begins
  int64_t forward = 0;   // at most while it runs, what stands included
  int64_t saved = 0;     // copies of what it may write
  int64_t scratch = 0;   // allowed for what operators make inside
};

struct ReferenceFootprint {
  Footprint own;
  std::optional<Footprint> upcast;  // in float64: begins with its inputs, which go after their last use
  int64_t outputs = 0, upcast_outputs = 0;
  int64_t moved = 0;  // of what stands: inputs and state that can be in the block itself
};

struct TaskFootprint {
  ReferenceFootprint reference;
  Footprint candidate;
  int64_t inputs_block = 0, outputs_block = 0;
  Device device = Device::kCpu;
};

struct Moment {
  const char* what;  // "while the float64 reference runs"
  int64_t bytes = 0;
};
std::vector<Moment> plan_memory(const TaskFootprint& task, bool frugal);
Moment largest(const std::vector<Moment>& moments);

// Whether a value can be what is in the block: all of its storage, in order.
bool is_whole(const trace::Trace& trace, trace::ValueId value);
// What a block of these values takes.
int64_t block_bytes(const trace::Trace& trace, const std::vector<trace::ValueId>& values);
inline constexpr int64_t kBlockAlignment = 256;
// The first trial's truth is kept for comparison where it takes no more than this.
inline constexpr int64_t kMaxRemembered = int64_t{1} << 28;

void to_json(nlohmann::json& json, const Footprint& footprint);
void from_json(const nlohmann::json& json, Footprint& footprint);

}  // namespace nereid::replay
