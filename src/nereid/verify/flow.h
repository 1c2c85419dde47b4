// Where data comes from and where it goes, storage by storage, through all phases of a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "nereid/verify/facts.h"

namespace nereid::verify {

// What a storage's contents derive from.
enum Origin : uint32_t {
  kInputs0 = 1,
  kInputs1 = 2,
  kInputs2 = 4,     // of the three calls
  kState = 8,       // parameters and buffers
  kLaunchNow = 16,  // went through a Triton launch of the judged call
  kComputed = 32,   // went through any work that is not free
  kRandom = 64,     // a random draw of the judged call
};
constexpr uint32_t inputs_of(int call) { return 1U << call; }

struct StaleRead {
  int step = 0;  // of the judged forward
  trace::StorageId storage = -1;
  uint32_t origins = 0;
};

struct Flow {
  std::vector<uint32_t> origins;  // of each storage, at the end
  std::vector<bool> live;         // of each step of the judged forward: its result reaches an output
  std::vector<bool> made_before;  // of each storage: it was there before the judged forward began
  std::vector<StaleRead>
      stale_reads;  // live reads of something made by an earlier call, before this call wrote it
  std::vector<trace::StorageId>
      reused;  // storages made from the state before the judged call, and read by it (live)
  std::vector<uint32_t> step_origins;  // of each step of the judged forward: what it reads derives from
};

Flow follow(const TraceFacts& facts);

// What each step of the forward `call` reads derives from (for comparing calls).
std::vector<uint32_t> origins_of_call(const TraceFacts& facts, int call);

}  // namespace nereid::verify
