#include "nereid/ttir/exec/races/happens_before.h"

#include <algorithm>
#include <utility>

namespace nereid::ttir {
namespace {

constexpr int kPageBits = 12;

void join(std::vector<uint32_t>& into, const std::vector<uint32_t>& from) {
  for (size_t k = 0; k < into.size(); ++k) into[k] = std::max(into[k], from[k]);
}

}  // namespace

HappensBefore::HappensBefore(int64_t programs) : dense_(programs <= kDense) {
  if (dense_)
    clocks_.resize(static_cast<size_t>(programs));
  else
    epochs_.resize(static_cast<size_t>(programs), 1);
}

// A program's clock; its own entry is the number of the release that it will do next, from 1.
HappensBefore::Clock& HappensBefore::clock(int32_t program) {
  Clock& c = clocks_[static_cast<size_t>(program)];
  if (c.empty()) {
    c.resize(clocks_.size());
    c[static_cast<size_t>(program)] = 1;
  }
  return c;
}

uint32_t HappensBefore::epoch(int32_t program) {
  return dense_ ? clock(program)[static_cast<size_t>(program)] : epochs_[static_cast<size_t>(program)];
}

void HappensBefore::acquire(int32_t program, int64_t address) {
  if (dense_) {
    const auto found = published_.find(address);
    if (found != published_.end()) join(clock(program), found->second);
    return;
  }
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return;
  auto& acquired = acquired_[program];
  const auto prefix = static_cast<uint32_t>(found->second.size());
  const auto now = epoch(program);
  for (size_t k = acquired.size(); k > 0 && k + 8 > acquired.size(); --k)  // what a program polls
    if (acquired[k - 1].address == address && acquired[k - 1].epoch == now) {
      if (acquired[k - 1].prefix == prefix) return;
      acquired[k - 1].prefix = prefix;
      closures_.erase(program);
      return;
    }
  acquired.push_back({address, prefix, now});
  closures_.erase(program);
}

void HappensBefore::release(int32_t program, int64_t address) {
  if (dense_) {
    Clock& mine = clock(program);
    Clock& there = published_[address];
    if (there.empty()) there.resize(mine.size());
    join(there, mine);
    ++mine[static_cast<size_t>(program)];
    return;
  }
  auto& there = by_address_[address];
  const auto now = epochs_[static_cast<size_t>(program)]++;
  by_program_[program].push_back({address, static_cast<uint32_t>(there.size()), now});
  there.push_back({program, now});
}

void HappensBefore::end(Sections& sections, uint32_t epoch) {
  if (!std::exchange(sections.open, false)) return;
  sections.ended.push_back(epoch);
}

void HappensBefore::barrier(int32_t program, Barrier kind) {
  const auto found = sections_.find(program);
  if (found == sections_.end()) return;
  const auto now = epoch(program);
  if (kind == Barrier::kFull) end(found->second[0], now);
  end(found->second[1], now);
}

std::optional<uint32_t> HappensBefore::covered_from(const Entry& access) const {
  if (access.section < 0) return access.epoch;
  const auto& ended = sections_.at(access.program)[access.reads ? 1 : 0].ended;
  const auto at = static_cast<size_t>(access.section);
  if (at >= ended.size()) return std::nullopt;
  return ended[at];
}

bool HappensBefore::ordered(const Entry& before, int32_t after) {
  if (before.program == after) return true;
  const auto from = covered_from(before);
  if (!from) return false;
  Entry covered = before;
  covered.epoch = *from;
  return released_before(covered, after);
}

// Whether `after` knows of a release of `before`'s program that is its epoch's or a later one.
bool HappensBefore::released_before(const Entry& before, int32_t after) {
  if (dense_) return clock(after)[static_cast<size_t>(before.program)] >= before.epoch;
  return ordered_sparsely(before, after);
}

// Whether a release that `before`'s program did from its epoch on is among those that `after` acquired.
bool HappensBefore::ordered_sparsely(const Entry& before, int32_t after) {
  const auto released = by_program_.find(before.program);
  const auto acquired = acquired_.find(after);
  if (released == by_program_.end() || acquired == acquired_.end()) return false;
  if (budget_ < 0) return true;
  const auto among = [&](auto prefix_of) {
    for (auto r = released->second.rbegin(); r != released->second.rend() && r->epoch >= before.epoch; ++r) {
      --budget_;
      if (prefix_of(r->address) > r->position) return true;
    }
    return false;
  };
  const bool directly = among([&](int64_t address) {
    for (auto a = acquired->second.rbegin(); a != acquired->second.rend(); ++a, --budget_)
      if (a->address == address) return a->prefix;
    return 0u;
  });
  if (directly) return true;
  const auto& known = closure(after);
  return among([&](int64_t address) {
    const auto found = known.find(address);
    return found == known.end() ? 0u : found->second;
  });
}

// By address, how many releases a program knows of, by way of others too.
const std::unordered_map<int64_t, uint32_t>& HappensBefore::closure(int32_t program) {
  const auto [entry, is_new] = closures_.try_emplace(program);
  auto& known = entry->second;
  if (!is_new) return known;
  std::vector<std::pair<int64_t, uint32_t>> work;
  for (const Acquired& a : acquired_[program]) work.emplace_back(a.address, a.prefix);
  while (!work.empty() && budget_ >= 0) {
    const auto [address, prefix] = work.back();
    work.pop_back();
    uint32_t& done = known[address];
    const auto& releases = by_address_[address];
    for (; done < prefix; ++done, --budget_) {
      const Published& p = releases[done];
      const auto acquired = acquired_.find(p.program);
      if (acquired == acquired_.end()) continue;
      for (const Acquired& a : acquired->second) {
        if (a.epoch > p.epoch) break;
        const auto found = known.find(a.address);
        if (found == known.end() || found->second < a.prefix) work.emplace_back(a.address, a.prefix);
        --budget_;
      }
    }
  }
  return known;
}

void HappensBefore::note(std::vector<Entry>& entries, const Entry& entry) {
  if (entries.empty() || entries.back().program < entry.program) return entries.push_back(entry);
  const auto at = std::lower_bound(entries.begin(), entries.end(), entry.program,
                                   [](const Entry& e, int32_t program) { return e.program < program; });
  if (at != entries.end() && at->program == entry.program)
    *at = entry;
  else
    entries.insert(at, entry);
}

std::optional<HappensBefore::Entry> HappensBefore::conflict(const Piece& piece, AccessKind kind,
                                                            int32_t program, AccessKind& other) {
  const auto among = [&](const std::vector<Entry>& entries, AccessKind as) -> std::optional<Entry> {
    for (const Entry& e : entries)
      if (!ordered(e, program)) {
        other = as;
        return e;
      }
    return std::nullopt;
  };
  other = AccessKind::kWrite;
  if (piece.write.program >= 0 && !ordered(piece.write, program)) return piece.write;
  if (kind != AccessKind::kRead)
    if (auto e = among(piece.reads, AccessKind::kRead)) return e;
  if (kind != AccessKind::kAtomic)
    if (auto e = among(piece.atomics, AccessKind::kAtomic)) return e;
  return std::nullopt;
}

std::optional<Race> HappensBefore::access(AccessKind kind, int64_t low, int64_t high, int32_t program,
                                          LocationId location, By by) {
  std::optional<Race> race;
  Entry mine{program, epoch(program), location, -1, kind == AccessKind::kRead};
  if (by == By::kTile) {
    Sections& sections = sections_[program][mine.reads ? 1 : 0];
    sections.open = true;
    mine.section = static_cast<int32_t>(sections.ended.size());
  }
  for (int64_t number = low >> kPageBits; number <= (high - 1) >> kPageBits; ++number) {
    if (level_ > 0 && !RaceLog::page_kept(number, level_)) continue;
    const int64_t start = number << kPageBits;
    auto from = static_cast<int32_t>(std::max(low, start) - start);
    const auto to = static_cast<int32_t>(std::min(high, start + (int64_t{1} << kPageBits)) - start);
    Page& page = pages_[number];
    const auto before = static_cast<int64_t>(page.size());
    auto at = static_cast<size_t>(std::lower_bound(page.begin(), page.end(), from,
                                                   [](const Piece& p, int32_t l) { return p.high <= l; }) -
                                  page.begin());
    while (from < to) {
      if (at == page.size() || page[at].low >= to) {  // nothing there yet
        page.insert(page.begin() + static_cast<int64_t>(at), Piece{from, to, {}, {}, {}});
      } else if (page[at].low > from) {
        page.insert(page.begin() + static_cast<int64_t>(at), Piece{from, page[at].low, {}, {}, {}});
      } else if (page[at].low < from) {  // cut in two
        Piece first = page[at];
        first.high = page[at].low = from;
        page.insert(page.begin() + static_cast<int64_t>(at), std::move(first));
        ++at;
        continue;
      } else if (page[at].high > to) {
        Piece first = page[at];
        first.high = page[at].low = to;
        page.insert(page.begin() + static_cast<int64_t>(at), std::move(first));
      }
      Piece& piece = page[at];
      AccessKind other{};
      if (const auto e = conflict(piece, kind, program, other); e && !race) {
        const Span now{start + piece.low, start + piece.high, program, location, kind};
        race = Race{now, {now.low, now.high, e->program, e->location, other}, released_before(*e, program)};
      }
      if (kind == AccessKind::kWrite) {
        piece.write = mine;
        piece.reads.clear();
        piece.atomics.clear();
      } else {
        note(kind == AccessKind::kRead ? piece.reads : piece.atomics, mine);
      }
      from = piece.high;
      ++at;
    }
    pieces_ += static_cast<int64_t>(page.size()) - before;
  }
  if (pieces_ > kMaxPieces) thin_out();
  return race;
}

void HappensBefore::thin_out() {
  ++level_;
  std::erase_if(pages_, [&](const auto& page) {
    if (RaceLog::page_kept(page.first, level_)) return false;
    pieces_ -= static_cast<int64_t>(page.second.size());
    return true;
  });
}

}  // namespace nereid::ttir
