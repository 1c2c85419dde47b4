#include "nereid/train/data/packer.h"

#include <algorithm>
#include <bit>
#include <map>

#include "nereid/base/check.h"

namespace nereid::train {
namespace {

// A bijection of 64-bit words that looks random (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
uint64_t mixed(uint64_t word) {
  word += 0x9E3779B97F4A7C15;
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

uint64_t key_of(uint64_t seed, int64_t epoch, int64_t window) {
  return mixed(mixed(mixed(seed) ^ static_cast<uint64_t>(epoch)) ^ static_cast<uint64_t>(window));
}

constexpr int64_t kOrderOfDocuments = -1;  // in place of a window

}  // namespace

// A Feistel network over the next even number of bits; what falls outside is sent through again, which ends,
// for the network is a permutation itself and the index began inside. Networks of fewer bits have too few
// permutations.
uint64_t permuted(uint64_t index, uint64_t size, uint64_t key) {
  NEREID_CHECK(index < size, "an index below {}, got {}", size, index);
  const int half = std::max(4, (static_cast<int>(std::bit_width(size - 1)) + 1) / 2);
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = index >> half, right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint64_t next = left ^ (mixed(key ^ mixed(right * 8 + round)) & mask);
      left = right, right = next;
    }
    index = left << half | right;
  } while (index >= size);
  return index;
}

Result<Packer> Packer::create(std::vector<uint32_t> lengths, const PackingSettings& settings,
                              const Place& place) {
  if (std::ranges::all_of(lengths, [](uint32_t length) { return length == 0; }))
    return input_error("none of {} documents is of use: none has an answer and fits a row of {} tokens",
                       lengths.size(), settings.row_length);
  for (size_t d = 0; d < lengths.size(); ++d)
    if (lengths[d] > settings.row_length)
      return input_error("document {} has {} tokens, a row {}", d, lengths[d], settings.row_length);
  Packer packer(std::move(lengths), settings);
  if (place.epoch < 0 || place.window < 0 || place.window >= packer.windows() || place.row < 0)
    return input_error("expected a window below {}, got epoch {}, window {}, row {}", packer.windows(),
                       place.epoch, place.window, place.row);
  packer.place_ = place;
  packer.pack();
  if (place.row > std::ssize(packer.rows_))
    return input_error("expected at most {} rows in window {} of epoch {}, got row {}", packer.rows_.size(),
                       place.window, place.epoch, place.row);
  return packer;
}

int64_t Packer::windows() const { return (std::ssize(lengths_) + settings_.window - 1) / settings_.window; }

void Packer::pack() {
  const uint64_t key = key_of(settings_.seed, place_.epoch, kOrderOfDocuments);
  const int64_t begin = place_.window * settings_.window;
  const int64_t end = std::min(begin + settings_.window, std::ssize(lengths_));
  Row documents;
  for (int64_t i = begin; i < end; ++i) {
    const uint64_t document = permuted(static_cast<uint64_t>(i), lengths_.size(), key);
    if (lengths_[document] > 0) documents.push_back(document);
  }
  std::ranges::stable_sort(documents, std::greater{}, [&](uint64_t document) { return lengths_[document]; });
  std::vector<Row> rows;
  std::multimap<int64_t, size_t> room;  // of rows, by remaining length
  for (const uint64_t document : documents) {
    const int64_t length = lengths_[document];
    size_t row = rows.size();
    int64_t left = settings_.row_length;
    if (const auto best = room.lower_bound(length); best != room.end()) {
      left = best->first, row = best->second;
      room.erase(best);
    } else {
      rows.emplace_back();
    }
    rows[row].push_back(document);
    room.emplace(left - length, row);
  }
  rows_.resize(rows.size());
  const uint64_t order = key_of(settings_.seed, place_.epoch, place_.window);
  for (size_t i = 0; i < rows.size(); ++i) rows_[i] = std::move(rows[permuted(i, rows.size(), order)]);
}

const Row& Packer::next() {
  while (place_.row >= std::ssize(rows_)) {
    place_ = place_.window + 1 < windows() ? Place{.epoch = place_.epoch, .window = place_.window + 1}
                                           : Place{.epoch = place_.epoch + 1};
    pack();
  }
  return rows_[static_cast<size_t>(place_.row++)];
}

}  // namespace nereid::train
