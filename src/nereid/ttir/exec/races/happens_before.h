// Races between programs that synchronise: looked for as they run, one at a time.
//
// Vector clocks (Lamport; FastTrack, Flanagan and Freund 2009). An atomic that releases publishes what its
// program knows at the atomic's address, one that acquires takes over what was published there before it.
// Reads and writes of an atomic are one chain, so every earlier release at the address counts. A volatile
// read acquires. What a program did up to its release number e is ordered before whatever knows of e.
//
// For every byte that is watched the last plain write and the reads and atomics since are kept, in pieces of
// pages of 4 KiB, so that a new access is compared with what it could race with and nothing else. Memory is
// bounded: past a limit only the pages that a hash picks are kept, fewer and fewer.
//
// A release is one lane's (docs/verdicts.md, `missing-barrier`): it covers what a tile's lanes did once a
// barrier stood between, and what the first lane did (a scalar's access) at once. So a tile's access belongs
// to a section that ends with the program's next barrier, and counts as done when that barrier was.
//
// Up to kDense programs a clock is an array; beyond, what is known is looked for in the releases themselves,
// within a budget of steps after which everything counts as ordered.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "nereid/ttir/exec/races/race_log.h"

namespace nereid::ttir {

class HappensBefore {
 public:
  explicit HappensBefore(int64_t programs);

  void acquire(int32_t program, int64_t address);
  void release(int32_t program, int64_t address);
  // All lanes of the program have arrived. `of_reads`: what they read is in use, and no more.
  enum class Barrier : uint8_t { kFull, kOfReads };
  void barrier(int32_t program, Barrier kind);

  // Notes an access to [low, high), by the first lane or by a tile's. An earlier one that it races with, if
  // there is one.
  enum class By : uint8_t { kFirstLane, kTile };
  std::optional<Race> access(AccessKind kind, int64_t low, int64_t high, int32_t program, LocationId location,
                             By by = By::kFirstLane);

 private:
  static constexpr int64_t kDense = 1024;
  static constexpr int64_t kMaxPieces = 3'000'000;
  using Clock = std::vector<uint32_t>;

  struct Entry {  // an access: which program's, and how many releases it had done
    int32_t program = -1;
    uint32_t epoch = 0;
    LocationId location = -1;
    int32_t section = -1;  // of a tile's access
    bool reads = false;
  };
  // The sections of one program that have ended: the epoch at their end. The one after them may be open.
  struct Sections {
    std::vector<uint32_t> ended;
    bool open = false;
  };
  struct Piece {
    int32_t low = 0, high = 0;  // within the page
    Entry write;
    std::vector<Entry> reads, atomics;  // since then; one of each program, by its number
  };
  using Page = std::vector<Piece>;  // by `low`

  // With many programs: releases by address and by program, and what was acquired.
  struct Release {
    int64_t address;
    uint32_t position, epoch;
  };
  struct Published {
    int32_t program;
    uint32_t epoch;
  };
  struct Acquired {
    int64_t address;
    uint32_t prefix;  // of the releases there
    uint32_t epoch;   // of the program, when it did
  };

  Clock& clock(int32_t program);
  uint32_t epoch(int32_t program);
  std::optional<uint32_t> covered_from(const Entry& access) const;  // the first release that covers it
  static void end(Sections& sections, uint32_t epoch);
  bool ordered(const Entry& before, int32_t after);
  bool released_before(const Entry& before, int32_t after);
  bool ordered_sparsely(const Entry& before, int32_t after);
  const std::unordered_map<int64_t, uint32_t>& closure(int32_t program);
  static void note(std::vector<Entry>& entries, const Entry& entry);
  std::optional<Entry> conflict(const Piece& piece, AccessKind kind, int32_t program, AccessKind& other);
  void thin_out();

  const bool dense_;
  std::vector<Clock> clocks_;
  std::unordered_map<int64_t, Clock> published_;

  std::vector<uint32_t> epochs_;
  std::unordered_map<int64_t, std::vector<Published>> by_address_;
  std::unordered_map<int32_t, std::vector<Release>> by_program_;
  std::unordered_map<int32_t, std::vector<Acquired>> acquired_;
  std::unordered_map<int32_t, std::unordered_map<int64_t, uint32_t>> closures_;  // of the present epochs
  int64_t budget_ = 200'000'000;

  std::unordered_map<int32_t, std::array<Sections, 2>>
      sections_;  // of each program: writes and atomics, reads

  std::unordered_map<int64_t, Page> pages_;
  int64_t pieces_ = 0;
  int level_ = 0;
};

}  // namespace nereid::ttir
