#include "nereid/ttir/exec/races/race_log.h"

#include <algorithm>
#include <tuple>

namespace nereid::ttir {
namespace {

constexpr int kPageShift = 12;

bool conflicts(const Span& a, const Span& b) {
  if (a.program == b.program) return false;
  if (a.kind == AccessKind::kRead && b.kind == AccessKind::kRead) return false;
  return !(a.kind == AccessKind::kAtomic && b.kind == AccessKind::kAtomic);
}

}  // namespace

bool RaceLog::page_kept(int64_t page, int level) {
  uint64_t h = static_cast<uint64_t>(page) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  return (h >> (64 - level)) == 0;
}

void ProgramLog::compact() {
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
    return std::tie(a.kind, a.low, a.high, a.location) < std::tie(b.kind, b.low, b.high, b.location);
  });
  size_t kept = 0;
  for (const Span& s : spans_) {
    if (kept > 0) {
      Span& last = spans_[kept - 1];
      if (last.kind == s.kind && s.low <= last.high) {
        last.high = std::max(last.high, s.high);
        continue;
      }
    }
    spans_[kept++] = s;
  }
  spans_.resize(kept);
  compact_at_ = std::max(compact_at_, 2 * kept);
}

void RaceLog::keep_pages(std::vector<Span>& spans, int level) const {
  std::vector<Span> kept;
  for (const Span& s : spans)
    for (int64_t page = s.low >> kPageShift; page <= (s.high - 1) >> kPageShift; ++page) {
      if (!page_kept(page, level)) continue;
      Span piece = s;
      piece.low = std::max(s.low, page << kPageShift);
      piece.high = std::min(s.high, (page + 1) << kPageShift);
      kept.push_back(piece);
    }
  spans.swap(kept);
}

void RaceLog::add(ProgramLog& log, int thread) {
  log.compact();
  auto& spans = log.spans();
  auto& mine = threads_[static_cast<size_t>(thread)];
  const int level = level_;
  if (level > 0) keep_pages(spans, level);
  mine.insert(mine.end(), spans.begin(), spans.end());
  const int64_t total = total_ += static_cast<int64_t>(spans.size());
  log.clear();
  // Each thread thins out its own spans when it next finds the limit passed.
  if (total <= kMaxSpans) return;
  int wanted = level;
  if (level_.compare_exchange_strong(wanted, level + 1)) wanted = level + 1;
  const auto before = static_cast<int64_t>(mine.size());
  keep_pages(mine, std::max(wanted, level_.load()));
  total_ -= before - static_cast<int64_t>(mine.size());
}

std::vector<Race> RaceLog::find() {
  for (auto& spans : threads_) {
    if (level_ > 0) keep_pages(spans, level_);
    all_.insert(all_.end(), spans.begin(), spans.end());
    std::vector<Span>().swap(spans);
  }
  std::sort(all_.begin(), all_.end(), [](const Span& a, const Span& b) {
    return std::tie(a.low, a.high, a.program, a.kind, a.location) <
           std::tie(b.low, b.high, b.program, b.kind, b.location);
  });
  std::vector<Race> races;
  std::vector<const Span*> active[3];  // by kind
  int64_t budget = 400'000'000;
  constexpr size_t kMaxRaces = 100000;
  for (const Span& s : all_) {
    if (races.size() >= kMaxRaces) break;
    longest_ = std::max(longest_, s.high - s.low);
    bool found = false;
    for (size_t kind = 0; kind < 3 && !found; ++kind) {
      const auto other_kind = static_cast<AccessKind>(kind);
      const bool pointless = (s.kind == AccessKind::kRead && other_kind == AccessKind::kRead) ||
                             (s.kind == AccessKind::kAtomic && other_kind == AccessKind::kAtomic);
      if (pointless || active[kind].empty()) continue;
      auto& list = active[kind];
      size_t kept = 0;
      for (size_t k = 0; k < list.size(); ++k) {
        const Span& other = *list[k];
        if (other.high <= s.low) continue;  // over before this one begins
        list[kept++] = list[k];
        if (found || --budget < 0 || !conflicts(s, other)) continue;
        found = true;
        races.push_back(s.program > other.program ? Race{s, other} : Race{other, s});
      }
      list.resize(kept);
    }
    auto& mine = active[static_cast<size_t>(s.kind)];
    if (mine.size() > 64 && mine.size() % 64 == 0)
      mine.erase(std::remove_if(mine.begin(), mine.end(), [&](const Span* o) { return o->high <= s.low; }),
                 mine.end());
    mine.push_back(&s);
  }
  return races;
}

bool RaceLog::written_by_another(int64_t low, int64_t high, int32_t program) const {
  auto at = std::lower_bound(all_.begin(), all_.end(), low - longest_,
                             [](const Span& s, int64_t l) { return s.low < l; });
  for (; at != all_.end() && at->low < high; ++at)
    if (at->high > low && at->program != program && at->kind != AccessKind::kRead) return true;
  return false;
}

}  // namespace nereid::ttir
