#include "nereid/ttir/exec/races/lane_log.h"

#include <algorithm>

namespace nereid::ttir {

void LaneLog::cut(int64_t address) {
  auto at = pieces_.upper_bound(address);
  if (at == pieces_.begin()) return;
  --at;
  if (at->first == address || at->second.high <= address) return;
  Piece rest = at->second;
  at->second.high = address;
  for (Holder* holder : {&rest.written, &rest.read})
    if (!holder->none()) holder->lane += (address - at->first) / holder->element;
  pieces_.emplace_hint(std::next(at), address, rest);
}

std::optional<LaneLog::Conflict> LaneLog::access(LaneAccess kind, const LaneRow& row) {
  if (pieces_.size() >= kMaxPieces) return std::nullopt;
  const int64_t low = row.address, high = row.address + row.bytes;
  const bool writes = kind != LaneAccess::kRead;
  cut(low);
  cut(high);
  std::optional<Conflict> conflict;
  int64_t from = low;
  auto at = pieces_.lower_bound(low);
  while (from < high) {
    Holder mine{row.lane + (from - low) / row.element, row.lanes, row.element, row.location, number_,
                kind == LaneAccess::kAtomic,           false};
    if (at == pieces_.end() || at->first > from) {  // a gap
      const int64_t end = at == pieces_.end() ? high : std::min(high, at->first);
      Piece fresh{end, {}, {}};
      (writes ? fresh.written : fresh.read) = mine;
      pieces_.emplace_hint(at, from, fresh);
      from = end;
      continue;
    }
    Piece& piece = at->second;
    const auto unordered = [&](const Holder& before) {
      return !before.none() && before.number != number_ && !before.same(mine) &&
             !(before.atomic && mine.atomic);
    };
    const bool after_write = unordered(piece.written), after_read = writes && unordered(piece.read);
    if (!conflict && (after_write || after_read))
      conflict = Conflict{from, after_write ? piece.written.location : piece.read.location, after_write};
    Holder& kept = writes ? piece.written : piece.read;
    mine.several = (kind != LaneAccess::kWrite || kept.number == number_) && !kept.none() && !kept.same(mine);
    kept = mine;
    if (writes) piece.read = {};
    from = piece.high;
    ++at;
  }
  return conflict;
}

}  // namespace nereid::ttir
