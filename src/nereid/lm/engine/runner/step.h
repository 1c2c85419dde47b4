// What one forward computes: some tokens of some sequences, over blocks of keys and values.
#pragma once

#include <cstdint>
#include <vector>

namespace nereid::lm {

// Sequences are one after another; those with one token (they decode) may stand anywhere among those with
// more (their prompts are read).
struct Step {
  std::vector<int64_t> tokens = {};     // [tokens]
  std::vector<int64_t> positions = {};  // [tokens], of each in its sequence
  std::vector<int64_t> slots =
      {};  // [tokens]: where its key and value go: block * block_size + place in the block
  std::vector<int32_t> starts =
      {};  // [sequences + 1]: a sequence's tokens are those from starts[i] up to starts[i + 1]
  std::vector<int32_t> lengths =
      {};  // [sequences]: of keys that the last of its tokens sees, itself included
  std::vector<std::vector<int32_t>> blocks =
      {};                            // [sequences]: its blocks, in order; they hold at least `lengths` keys
  std::vector<int64_t> wanted = {};  // the places in `tokens` whose logits are wanted, increasing

  size_t sequences() const { return lengths.size(); }
};

}  // namespace nereid::lm
