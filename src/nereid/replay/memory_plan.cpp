#include "nereid/replay/memory_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nereid::replay {
namespace {

// A comparison's element ranges, and temporaries of them.
constexpr int64_t kRangeBytes = int64_t{512} << 20;
// The parts in which inputs are changed.
constexpr int64_t kParts = int64_t{128} << 20;
constexpr int64_t kMaxRaceLog = int64_t{1} << 30;

}  // namespace

std::vector<Moment> plan_memory(const TaskFootprint& task, bool frugal) {
  const auto& own = task.reference.own;
  const auto& candidate = task.candidate;
  const Footprint upcast = task.reference.upcast.value_or(own);
  const auto truths =
      task.reference.upcast ? task.reference.upcast_outputs : 0;  // else its own answer is the truth
  const auto blocks = task.inputs_block + task.outputs_block;
  // With the sanitizer: a bit for each byte, and what programs touched.
  const auto watching =
      task.device == Device::kCuda ? 0 : candidate.forward / 8 + std::min(candidate.forward / 4, kMaxRaceLog);
  const auto candidate_runs =
      std::max(candidate.start, candidate.forward) + candidate.saved + candidate.scratch + watching;
  const auto candidate_rests = frugal ? 0 : candidate.forward + candidate.saved;
  const auto remembered = std::max(truths, task.reference.outputs);
  const auto reference_rests = own.standing + own.saved - (frugal ? task.reference.moved : 0) +
                               (remembered <= kMaxRemembered ? remembered : 0);
  const auto kept_copies = frugal ? 0 : task.outputs_block;  // of the candidate's outputs
  const auto comparing = blocks + reference_rests + candidate_rests + kept_copies;
  const auto answers = truths + task.reference.outputs;
  const auto ranges = std::min(10 * (task.reference.outputs + truths), kRangeBytes);
  std::vector<Moment> moments = {
      {"while inputs are made", blocks + reference_rests - own.standing + task.reference.moved * frugal +
                                    std::max(own.start, own.standing) + own.scratch +
                                    std::min(4 * task.inputs_block, kParts) + candidate_rests},
      {"while the candidate runs", blocks + reference_rests + candidate_runs},
      {"while the float64 reference runs", comparing + upcast.forward + upcast.scratch},
      {"while the reference runs", comparing + truths + own.forward - own.standing + own.scratch},
      {"while outputs are compared", comparing + answers + ranges},
      {"while another float64 reference runs, by which the reference's own error is measured",
       comparing + answers + upcast.forward + upcast.scratch + ranges}};
  // Not captured and captured forwards of both sides, one of which is timed at a time.
  if (task.device == Device::kCuda)
    moments.push_back({"while both are timed", blocks + reference_rests + candidate_runs +
                                                   2 * (own.forward - own.standing) + own.scratch +
                                                   candidate.forward - candidate.standing});
  return moments;
}

Moment largest(const std::vector<Moment>& moments) {
  return *std::max_element(moments.begin(), moments.end(),
                           [](const Moment& a, const Moment& b) { return a.bytes < b.bytes; });
}

bool is_whole(const trace::Trace& trace, trace::ValueId id) {
  const auto& value = trace.values[id];
  if (value.offset != 0 || value.conj || value.neg) return false;
  int64_t stride = 1;
  for (size_t d = value.sizes.size(); d-- > 0; stride *= value.sizes[d])
    if (value.sizes[d] != 1 && value.strides[d] != stride) return false;
  return stride * trace::element_bytes(value.dtype) == trace.storages[value.storage].bytes;
}

int64_t block_bytes(const trace::Trace& trace, const std::vector<trace::ValueId>& values) {
  int64_t bytes = 0;
  for (const auto id : values) {
    const auto size = trace::element_count(trace.values[id]) * trace::element_bytes(trace.values[id].dtype);
    bytes += (size + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  }
  return bytes;
}

void to_json(nlohmann::json& json, const Footprint& f) {
  json = {{"start", f.start},
          {"standing", f.standing},
          {"forward", f.forward},
          {"saved", f.saved},
          {"scratch", f.scratch}};
}

void from_json(const nlohmann::json& json, Footprint& f) {
  json.at("start").get_to(f.start);
  json.at("standing").get_to(f.standing);
  json.at("forward").get_to(f.forward);
  json.at("saved").get_to(f.saved);
  json.at("scratch").get_to(f.scratch);
}

}  // namespace nereid::replay
