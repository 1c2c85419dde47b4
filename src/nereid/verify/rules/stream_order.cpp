#include "nereid/verify/rules/stream_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace nereid::verify {
namespace {

using trace::StorageId;
using trace::StreamOrder;

constexpr size_t kMaxAccesses = 256;  // of a storage, that are kept apart

const StreamOrder& order_of(const trace::Step& step) {
  return std::visit([](const auto& one) -> const StreamOrder& { return one.order; }, step);
}

bool is_done(const std::vector<std::pair<int32_t, int64_t>>& clock, int32_t stream, int64_t number) {
  return std::ranges::any_of(
      clock, [&](const auto& entry) { return entry.first == stream && entry.second > number; });
}

bool comes_before(int32_t stream, int64_t number, const StreamOrder& order) {
  return stream == order.stream || is_done(order.after, stream, number);
}

std::string name_of(int32_t stream) {
  return stream == 0 ? "the caller's stream" : fmt::format("stream {}", stream);
}

// What a step did to bytes [first, last) of a storage.
struct Touch {
  int32_t stream = 0;
  int64_t number = 0;
  int64_t first = 0, last = 0;
  bool reads = false, writes = false;
  std::string by{};
};

class Follower {
 public:
  Follower(const TraceAnalysis& facts, size_t phase)
      : trace_(*facts.trace), phase_(trace_.phases[phase]), steps_(facts.phases[phase].steps) {}

  std::optional<Evidence> find() {
    if (std::ranges::all_of(phase_.steps, [](const auto& step) { return order_of(step).stream == 0; }))
      return std::nullopt;
    for (const auto value : trace::tensors_in(phase_.inputs)) {
      const auto storage = trace_.values[static_cast<size_t>(value)].storage;
      touches_[storage] = {{.last = bytes(storage), .writes = true, .by = "the caller"}};
    }
    for (size_t i = 0; i < steps_.size(); ++i)
      if (auto found = look_at(steps_[i], phase_.steps[i])) return found;
    return std::nullopt;
  }

 private:
  int64_t bytes(StorageId storage) const { return trace_.storages[static_cast<size_t>(storage)].bytes; }

  std::optional<Evidence> look_at(const StepAnalysis& facts, const trace::Step& step) {
    const auto& order = order_of(step);
    std::map<StorageId, Touch> now;
    add(facts, order, now);
    for (const auto& before : facts.before) add(before, order, now);
    // Views do nothing.
    if (std::ranges::none_of(now, [](const auto& one) { return one.second.writes; })) return std::nullopt;
    const auto extents = extents_of(step);
    for (auto& [storage, touch] : now) {
      const auto extent = extents.find(storage);
      touch.first = extent == extents.end() ? 0 : extent->second.first;
      touch.last = extent == extents.end() ? bytes(storage) : extent->second.second;
      for (const auto& earlier : touches_[storage])
        if (conflict(earlier, touch) && !comes_before(earlier.stream, earlier.number, order))
          return evidence(
              facts, fmt::format("{} on {} {} what {} on {} {}, and does not wait for it.", facts.name,
                                 name_of(touch.stream), earlier.writes && touch.reads ? "reads" : "writes",
                                 earlier.by, name_of(earlier.stream),
                                 earlier.writes && touch.reads ? "writes" : "reads"));
      keep(touches_[storage], touch, order);
    }
    if (order.stream != 0 && !is_done(phase_.joined, order.stream, order.number))
      return evidence(facts, fmt::format("{} runs on {}, and the caller's stream does not wait for it.",
                                         facts.name, name_of(order.stream)));
    return std::nullopt;
  }

  static void add(const StepAnalysis& facts, const StreamOrder& order, std::map<StorageId, Touch>& now) {
    const auto touch = [&](StorageId storage) -> Touch& {
      return now.try_emplace(storage, Touch{.stream = order.stream, .number = order.number, .by = facts.name})
          .first->second;
    };
    for (const auto storage : facts.reads) touch(storage).reads = true;
    for (const auto storage : facts.writes) touch(storage).writes = true;
  }

  static bool conflict(const Touch& a, const Touch& b) {
    const bool overlap = a.first < b.last && b.first < a.last;
    return overlap && ((a.writes && b.reads) || (a.reads && b.writes));
  }

  // By storage: the bytes from the first to the last of the views that the step is given and makes.
  std::map<StorageId, std::pair<int64_t, int64_t>> extents_of(const trace::Step& step) const {
    std::map<StorageId, std::pair<int64_t, int64_t>> extents;
    const auto add_value = [&](trace::ValueId id, int64_t from) {
      if (id < 0) return;
      const auto& value = trace_.values[static_cast<size_t>(id)];
      auto [first, last] = trace::byte_extent(value);
      first = std::min(first, first + from);
      const auto [at, made] = extents.try_emplace(value.storage, first, last);
      if (!made) at->second = {std::min(at->second.first, first), std::max(at->second.second, last)};
    };
    const auto add_call = [&](const trace::Call& call) {
      for (const auto& arg : call.args)
        for (const auto id : trace::tensors_in(arg)) add_value(id, 0);
      for (const auto& arg : call.kwargs)
        for (const auto id : trace::tensors_in(arg.second)) add_value(id, 0);
      for (const auto id : trace::tensors_in(call.result)) add_value(id, 0);
    };
    if (const auto* call = std::get_if<trace::Call>(&step)) add_call(*call);
    if (const auto* launch = std::get_if<trace::Launch>(&step))
      for (const auto& one : launch->alternatives) {
        for (const auto& call : one.before) add_call(call);
        for (const auto& arg : one.args) {
          if (const auto* pointer = std::get_if<trace::PointerArg>(&arg))
            add_value(pointer->value, pointer->offset);
          if (const auto* descriptor = std::get_if<trace::DescriptorArg>(&arg))
            add_value(descriptor->value, 0);
        }
      }
    return extents;
  }

  // What is done before a write of all of its bytes needs no look any more.
  static void keep(std::vector<Touch>& touches, const Touch& touch, const StreamOrder& order) {
    if (touch.writes)
      std::erase_if(touches, [&](const Touch& earlier) {
        return touch.first <= earlier.first && earlier.last <= touch.last &&
               comes_before(earlier.stream, earlier.number, order);
      });
    for (auto& earlier : touches)
      if (earlier.stream == touch.stream && earlier.first == touch.first && earlier.last == touch.last &&
          earlier.reads == touch.reads && earlier.writes == touch.writes) {
        earlier.number = std::max(earlier.number, touch.number);
        return;
      }
    if (touches.size() >= kMaxAccesses)  // one of all bytes
      for (auto& earlier : touches)
        if (earlier.stream == touch.stream) {
          earlier.number = std::max(earlier.number, touch.number);
          earlier.first = std::min(earlier.first, touch.first);
          earlier.last = std::max(earlier.last, touch.last);
          earlier.reads |= touch.reads, earlier.writes |= touch.writes;
          return;
        }
    touches.push_back(touch);
  }

  static Evidence evidence(const StepAnalysis& facts, std::string sentence) {
    Evidence e{.rule = "stream-order",
               .sentence = std::move(sentence),
               .file = facts.place.file,
               .line = facts.place.line};
    if (facts.work == Work::kTriton) e.kernel = facts.name;
    return e;
  }

  const trace::Trace& trace_;
  const trace::Phase& phase_;
  const std::vector<StepAnalysis>& steps_;
  std::map<StorageId, std::vector<Touch>> touches_;
};

}  // namespace

std::optional<Evidence> unordered_work(const TraceAnalysis& facts) {
  for (size_t p = 0; p < facts.phases.size(); ++p)
    if (facts.phases[p].kind == trace::PhaseKind::kForward)
      if (auto found = Follower(facts, p).find()) return found;
  return std::nullopt;
}

}  // namespace nereid::verify
