// Which documents share a row, and in which order rows come: a function of the seed, the lengths and the
// settings.
//
// Each epoch goes through all documents in an order of its own. That order is cut into windows; a window's
// documents are packed into rows of `row_length` tokens by best fit, the longest first; its rows are then put
// in an order drawn for that window. Epoch, window and row are the whole state: a resumed run packs
// one window again.
#pragma once

#include <cstdint>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

struct PackingSettings {
  int64_t row_length = 4096;
  int64_t window = 4096;  // documents
  uint64_t seed = 0;
};

// The next row.
struct Place {
  int64_t epoch = 0, window = 0, row = 0;
  bool operator==(const Place&) const = default;
};

using Row = std::vector<uint64_t>;  // documents

class Packer {
 public:
  // `lengths` of the documents; 0 leaves one out. An error (blamed on the input) where all are left out, or
  // where one is longer than a row.
  static Result<Packer> create(std::vector<uint32_t> lengths, const PackingSettings& settings,
                               const Place& place = {});

  const Row& next();
  Place place() const { return place_; }

 private:
  Packer(std::vector<uint32_t> lengths, const PackingSettings& settings)
      : lengths_(std::move(lengths)), settings_(settings) {}
  int64_t windows() const;
  void pack();

  std::vector<uint32_t> lengths_;
  PackingSettings settings_;
  Place place_;
  std::vector<Row> rows_;  // of the window at place_
};

// A permutation of [0, size) that is computed a place at a time: another one for each key.
uint64_t permuted(uint64_t index, uint64_t size, uint64_t key);

}  // namespace nereid::train
