#include "nereid/ttir/exec/sanitizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

namespace nereid::ttir {
namespace {

std::string sentence(const Finding& f, const RawFinding& raw, const Buffer* buffer) {
  const std::string where =
      fmt::format("{}:{} in kernel {}, program ({}, {}, {})", f.file.empty() ? "?" : f.file, f.line, f.kernel,
                  f.program[0], f.program[1], f.program[2]);
  const int64_t elements =
      buffer == nullptr ? 0 : buffer->bytes / std::max<int64_t>(1, buffer->element_bytes);
  switch (f.kind) {
    case FindingKind::kOutOfBounds:
      if (!raw.detail.empty()) return fmt::format("out of bounds: {} ({})", raw.detail, where);
      if (buffer == nullptr)
        return fmt::format("out of bounds: an address outside all tensors is accessed at {}", where);
      return fmt::format("out of bounds: element {} of {}, which has {} elements, is accessed at {}", f.index,
                         f.buffer, elements, where);
    case FindingKind::kUninitializedRead:
      return fmt::format(
          "uninitialized read: element {} of {} is read before anything was written there, at {}", f.index,
          f.buffer, where);
    case FindingKind::kRace:
      return fmt::format("race: element {} of {} is accessed at {}, {}", f.index, f.buffer, where,
                         raw.detail);
    case FindingKind::kMisaligned:
      if (!raw.detail.empty()) return fmt::format("misaligned: {}, at {}", raw.detail, where);
      return fmt::format("misaligned: byte {} of {} is not a multiple of the element's size, at {}",
                         raw.offset, f.buffer, where);
    case FindingKind::kOffsetOverflow:
      return fmt::format("offset overflow: an integer in an address computation wraps at {}", where);
    case FindingKind::kDivisionByZero:
      return fmt::format("division by zero: an integer is divided by zero at {}", where);
    case FindingKind::kAssertion:
      return fmt::format("assertion failed: \"{}\" at {}", raw.detail, where);
    case FindingKind::kDeadlock:
      return fmt::format("deadlock: a program polls at {}, {}", where, raw.detail);
    case FindingKind::kMissingBarrier:
      return fmt::format("missing barrier: element {} of {} is accessed at {}, {}", f.index, f.buffer, where,
                         raw.detail);
    case FindingKind::kOrderDependent:
      return fmt::format("order dependent: element {} of {} is written at {}, {}", f.index, f.buffer, where,
                         raw.detail);
  }
  return where;
}

}  // namespace

std::string_view to_string(FindingKind kind) {
  switch (kind) {
    case FindingKind::kOutOfBounds:
      return "out_of_bounds";
    case FindingKind::kUninitializedRead:
      return "uninitialized_read";
    case FindingKind::kRace:
      return "race";
    case FindingKind::kMisaligned:
      return "misaligned";
    case FindingKind::kOffsetOverflow:
      return "offset_overflow";
    case FindingKind::kDivisionByZero:
      return "division_by_zero";
    case FindingKind::kAssertion:
      return "assertion";
    case FindingKind::kDeadlock:
      return "deadlock";
    case FindingKind::kMissingBarrier:
      return "missing_barrier";
    case FindingKind::kOrderDependent:
      return "order_dependent";
  }
  return "unknown";
}

void Sanitizer::add(RawFinding finding) {
  std::lock_guard lock(mutex_);
  ++count_;
  const auto key = std::make_tuple(finding.kind, finding.location, finding.buffer);
  const auto [entry, is_new] = first_.try_emplace(key, finding);
  if (!is_new && finding.linear < entry->second.linear) entry->second = std::move(finding);
}

void Sanitizer::add(UninitializedRead read) {
  constexpr size_t kMost = size_t{1} << 20;
  std::lock_guard lock(mutex_);
  if (reads_.size() < kMost) reads_.push_back(std::move(read));
}

void Sanitizer::conclude(const LaunchContext& context, RaceLog* races) {
  std::vector<Race> found;
  if (races != nullptr) found = races->find();
  for (UninitializedRead& read : reads_) {
    // Where programs are ordered they ran one at a time, and what a read saw is what it would see again.
    const bool ordered = context.history != nullptr;
    if (!ordered && races != nullptr &&
        races->written_by_another(read.low, read.high, static_cast<int32_t>(read.finding.linear)))
      continue;
    add(std::move(read.finding));
  }
  for (const Race& race : found) add(context, race);
}

void Sanitizer::add(const LaunchContext& context, const Race& race) {
  const auto& grid = context.launch->grid;
  const auto program_of = [&](int64_t linear) {
    return std::array<int64_t, 3>{linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]};
  };
  const auto verb = [](AccessKind kind) {
    return kind == AccessKind::kRead ? "reads" : kind == AccessKind::kWrite ? "writes" : "updates";
  };
  RawFinding f;
  f.kind = FindingKind::kRace;
  f.linear = race.span.program;
  f.program = program_of(race.span.program);
  f.location = race.span.location;
  const int64_t at = std::max(race.span.low, race.other.low);
  f.buffer = buffer_of(at);
  f.offset = offset_of(at);
  const auto other = program_of(race.other.program);
  const SourceLine unknown;
  const SourceLine& line =
      race.other.location < 0 ? unknown : (*context.lines)[static_cast<size_t>(race.other.location)];
  if (race.not_covered) {
    f.kind = FindingKind::kMissingBarrier;
    f.detail = fmt::format(
        "which {} it after program ({}, {}, {}) {} it at line {} and released; other lanes than the "
        "releasing one "
        "are covered only after tl.debug_barrier()",
        verb(race.span.kind), other[0], other[1], other[2], verb(race.other.kind), line.line);
    return add(std::move(f));
  }
  f.detail = fmt::format(
      "which {} it while program ({}, {}, {}) {} it at line {}, without atomics or order between them",
      verb(race.span.kind), other[0], other[1], other[2], verb(race.other.kind), line.line);
  add(std::move(f));
}

std::vector<Finding> Sanitizer::take(const LaunchContext& context, int max_findings) const {
  std::vector<const RawFinding*> sorted;
  for (const auto& [key, finding] : first_) sorted.push_back(&finding);
  std::stable_sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->linear < b->linear; });
  if (static_cast<int>(sorted.size()) > max_findings)
    sorted.resize(static_cast<size_t>(std::max(0, max_findings)));
  std::vector<Finding> findings;
  for (const RawFinding* raw : sorted) {
    Finding f;
    f.kind = raw->kind;
    f.kernel = context.kernel;
    if (raw->location >= 0) {
      const SourceLine& line = (*context.lines)[static_cast<size_t>(raw->location)];
      f.file = line.file;
      f.line = line.line;
    }
    f.program = raw->program;
    const Buffer* buffer = raw->buffer >= 0 ? &(*context.buffers)[static_cast<size_t>(raw->buffer)] : nullptr;
    if (buffer != nullptr) {
      f.buffer = buffer->name;
      const int64_t size = std::max<int64_t>(1, buffer->element_bytes);
      f.index = raw->offset >= 0 ? raw->offset / size : -((-raw->offset + size - 1) / size);
    }
    f.sentence = sentence(f, *raw, buffer);
    findings.push_back(std::move(f));
  }
  return findings;
}

void report(Machine& m, FindingKind kind, LocationId location, int64_t buffer, int64_t offset,
            std::string detail) {
  RawFinding finding;
  finding.linear = m.linear;
  finding.kind = kind;
  finding.location = location;
  finding.buffer = buffer;
  finding.offset = offset;
  finding.program = m.program;
  finding.detail = std::move(detail);
  m.context().sanitizer->add(std::move(finding));
}

void report_uninitialized(Machine& m, LocationId location, int64_t buffer, int64_t first, int64_t last) {
  UninitializedRead read;
  read.finding.linear = m.linear;
  read.finding.kind = FindingKind::kUninitializedRead;
  read.finding.location = location;
  read.finding.buffer = buffer;
  read.finding.offset = first;
  read.finding.program = m.program;
  read.low = address_of(buffer, first);
  read.high = address_of(buffer, last);
  m.context().sanitizer->add(std::move(read));
}

void report_out_of_bounds(Machine& m, LocationId location, int64_t address) {
  const int64_t buffer = buffer_of(address);
  const bool known = buffer >= 0 && buffer < m.buffer_count();
  if (m.overflow_location >= 0)
    return report(m, FindingKind::kOffsetOverflow, m.overflow_location, known ? buffer : -1,
                  known ? offset_of(address) : 0);
  report(m, FindingKind::kOutOfBounds, location, known ? buffer : -1, known ? offset_of(address) : 0);
}

int64_t first_unwritten(const uint8_t* bitmap, int64_t first, int64_t last) {
  int64_t at = first;
  while (at < last && (at & 63) != 0) {
    if (((bitmap[at >> 3] >> (at & 7)) & 1) == 0) return at;
    ++at;
  }
  while (at + 64 <= last) {
    uint64_t word;
    std::memcpy(&word, bitmap + (at >> 3), sizeof word);
    if (word != ~uint64_t{0}) return at + __builtin_ctzll(~word);
    at += 64;
  }
  for (; at < last; ++at)
    if (((bitmap[at >> 3] >> (at & 7)) & 1) == 0) return at;
  return last;
}

bool all_written(const uint8_t* bitmap, int64_t first, int64_t last) {
  return first_unwritten(bitmap, first, last) == last;
}

void mark_written(uint8_t* bitmap, int64_t first, int64_t last) {
  // Whole bytes of the bitmap belong to this range; those at its ends may be shared with another thread's.
  const auto mark = [bitmap](int64_t byte, uint8_t bits) {
    if ((bitmap[byte] & bits) != bits)
      std::atomic_ref<uint8_t>(bitmap[byte]).fetch_or(bits, std::memory_order_relaxed);
  };
  if (first >= last) return;
  const int64_t first_byte = first >> 3, last_byte = (last - 1) >> 3;
  const auto head = static_cast<uint8_t>(0xff << (first & 7));
  const auto tail = static_cast<uint8_t>(0xff >> (7 - ((last - 1) & 7)));
  if (first_byte == last_byte) return mark(first_byte, head & tail);
  mark(first_byte, head);
  if (last_byte > first_byte + 1)
    std::memset(bitmap + first_byte + 1, 0xff, static_cast<size_t>(last_byte - first_byte - 1));
  mark(last_byte, tail);
}

}  // namespace nereid::ttir
