// Steps on CUDA streams without an order that write the same bytes of memory: found while a replay runs, for
// a step that is given a whole tensor says nothing about which part of it it writes. What such steps read is
// known without a replay (verify/rules/stream_order.h).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nereid/replay/worker/prepared_launch.h"
#include "nereid/trace/access.h"

namespace nereid::replay {

// Sets bits [first, last) of a bitmap, LSB first.
inline void set_bits(uint8_t* bits, int64_t first, int64_t last) {
  while (first < last && first % 8) bits[first / 8] |= 1 << (first % 8), ++first;
  if (last - first >= 8)
    std::memset(bits + first / 8, 0xFF, (last - first) / 8), first += (last - first) / 8 * 8;
  while (first < last) bits[first / 8] |= 1 << (first % 8), ++first;
}

// Sets the bits of a view's bytes, one run of adjacent elements at a time.
inline void set_bits_of(uint8_t* bits, const trace::Value& value, int64_t element, size_t dim,
                        int64_t offset) {
  int64_t run = 1;
  size_t d = value.sizes.size();
  while (d > dim && (value.strides[d - 1] == run || value.sizes[d - 1] == 1)) run *= value.sizes[--d];
  if (d == dim) return set_bits(bits, offset * element, (offset + run) * element);
  for (int64_t i = 0; i < value.sizes[dim]; ++i)
    set_bits_of(bits, value, element, dim + 1, offset + i * value.strides[dim]);
}

// Of one run of a forward, step by step.
class StreamWrites {
 public:
  StreamWrites(const trace::Trace& trace, const trace::Phase& phase) : trace_(trace), phase_(phase) {}

  static bool has_streams(const trace::Phase& phase) {
    return std::ranges::any_of(phase.steps,
                               [](const trace::Step& step) { return order_of(step).stream != 0; });
  }

  // Before a launch: what it writes, but does not read, is noted in bitmaps of its own.
  void begin(const PreparedAlternative& alternative, LaunchRequest& request) {
    now_.clear();
    for (size_t b = 0; b < request.buffers.size(); ++b) {
      auto& buffer = request.buffers[b];
      if (!alternative.written[b] || alternative.read[b]) continue;
      auto& noted = now_[buffer.storage];
      noted.bits.assign(static_cast<size_t>((buffer.bytes + 7) / 8), 0);
      noted.was = std::exchange(buffer.written, noted.bits.data());
    }
  }
  // After it, or after a call. Findings name both steps.
  void end_launch(int step, std::vector<ttir::Finding>& findings, int64_t& count) {
    const auto& launch = std::get<trace::Launch>(phase_.steps[static_cast<size_t>(step)]);
    const auto& kernel = trace_.kernels[static_cast<size_t>(launch.alternatives.at(0).kernel)];
    for (auto& [storage, noted] : now_) {
      for (size_t i = 0; noted.was != nullptr && i < noted.bits.size(); ++i) noted.was[i] |= noted.bits[i];
      look_at(storage, {&launch.order, kernel.name, std::move(noted.bits)}, kernel.place, findings, count);
    }
    now_.clear();
  }
  void end_call(int step, const PreparedCall& prepared, std::vector<ttir::Finding>& findings,
                int64_t& count) {
    const auto& call = std::get<trace::Call>(phase_.steps[static_cast<size_t>(step)]);
    for (const auto id : prepared.writes()) {
      const auto& value = trace_.values[static_cast<size_t>(id)];
      const auto bytes = trace_.storages[static_cast<size_t>(value.storage)].bytes;
      std::vector<uint8_t> bits(static_cast<size_t>((bytes + 7) / 8), 0);
      if (trace::element_count(value) > 0)
        set_bits_of(bits.data(), value, trace::element_bytes(value.dtype), 0, value.offset);
      look_at(value.storage, {&call.order, call.op, std::move(bits)}, call.place, findings, count);
    }
  }

 private:
  static constexpr size_t kMaxWrites = 64;  // of a storage, that are kept
  struct Noted {
    std::vector<uint8_t> bits;
    uint8_t* was = nullptr;
  };
  struct Write {
    const trace::StreamOrder* order;
    std::string by;
    std::vector<uint8_t> bits;
  };

  static const trace::StreamOrder& order_of(const trace::Step& step) {
    return std::visit([](const auto& one) -> const trace::StreamOrder& { return one.order; }, step);
  }
  static bool comes_before(const trace::StreamOrder& a, const trace::StreamOrder& b) {
    return a.stream == b.stream || std::ranges::any_of(b.after, [&](const auto& entry) {
             return entry.first == a.stream && entry.second > a.number;
           });
  }
  static std::string name_of(int32_t stream) {
    return stream == 0 ? "the caller's stream" : fmt::format("stream {}", stream);
  }

  void look_at(trace::StorageId storage, Write write, const trace::Place& place,
               std::vector<ttir::Finding>& findings, int64_t& count) {
    auto& earlier = writes_[storage];
    for (const auto& other : earlier) {
      if (comes_before(*other.order, *write.order)) continue;
      const auto byte = first_common(other.bits, write.bits);
      if (byte < 0) continue;
      ttir::Finding finding;
      finding.kind = ttir::FindingKind::kRace;
      finding.kernel = write.by, finding.file = place.file, finding.line = place.line, finding.index = byte;
      finding.sentence = fmt::format(
          "race: {} on {} writes byte {} of a tensor that {} on {} writes, and does not wait for it",
          write.by, name_of(write.order->stream), byte, other.by, name_of(other.order->stream));
      findings.push_back(std::move(finding)), ++count;
      break;
    }
    if (earlier.size() >= kMaxWrites)
      std::erase_if(earlier, [&](const Write& other) { return comes_before(*other.order, *write.order); });
    earlier.push_back(std::move(write));
  }

  // -1: there is none.
  static int64_t first_common(const std::vector<uint8_t>& a, const std::vector<uint8_t>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      for (int k = 0; k < 8; ++k)
        if ((a[i] & b[i]) >> k & 1) return static_cast<int64_t>(8 * i) + k;
    return -1;
  }

  const trace::Trace& trace_;
  const trace::Phase& phase_;
  std::map<trace::StorageId, Noted> now_;
  std::map<trace::StorageId, std::vector<Write>> writes_;
};

}  // namespace nereid::replay
