// The allocator of key-value blocks. Bookkeeping alone: the blocks themselves are on the device.
//
// A block has places for `block_size` tokens. A sequence's blocks are its *table*; several tables may hold
// one block: forks of one sequence hold all that it had, and a full block is found again for
// the same tokens after the same tokens (its name is a SHA-256 of its tokens and of the name before it). A
// block without holders stays findable until its room is needed, the longest unused first.
//
// A full block is never written again. One that is not full and has several holders is copied before one of
// them writes.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "nereid/lm/tokenizer/bpe.h"

namespace nereid::lm {

using lm::TokenId;
using BlockId = int32_t;

struct BlockTable {
  std::vector<BlockId> blocks;  // block i holds the tokens from i * block_size on
  size_t named = 0;             // of these, from the front, have been offered for sharing
  std::string name;             // of the last of them: what is before it, too
  uint64_t epoch = 0;           // in which it began: see forget()
};

// Not thread-safe: one scheduler owns it.
class BlockManager {
 public:
  // Blocks 1 to blocks - 1 are given out: block 0 is never held (runner/paged_attention.h). `share`: full
  // blocks can be found again.
  BlockManager(BlockId blocks, int64_t block_size, bool share = true);

  int64_t block_size() const { return block_size_; }
  // Blocks that can be taken, and how many there are in all.
  int64_t available() const { return static_cast<int64_t>(free_.size() + unheld_.size()); }
  int64_t capacity() const { return static_cast<int64_t>(blocks_.size()) - 1; }
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }

  // Gives an empty table the blocks that are known for the beginning of `tokens`, and says how many tokens
  // they hold. Never all of them: one at least is left to compute, so that there are logits.
  int64_t share(BlockTable& table, std::span<const TokenId> tokens);

  // How many blocks must be taken before tokens [from, to) can be written, and takes them. `from` is where
  // the table's tokens end. prepare() wants them to be available; pairs of blocks (from, to) to be copied
  // before the write go to `copies`.
  int64_t needed(const BlockTable& table, int64_t from, int64_t to) const;
  void prepare(BlockTable& table, int64_t from, int64_t to, std::vector<std::pair<BlockId, BlockId>>& copies);

  // The first `computed` of `tokens` are in the table's blocks: those that are full may be shared from now
  // on.
  void offer(BlockTable& table, std::span<const TokenId> tokens, int64_t computed);

  // What was computed until now is found no more, by tables that begin after this: the model has other
  // weights. Tables that are there go on, and what they offer is for those of their own time.
  void forget() { ++epoch_; }

  // Another table with the same blocks.
  BlockTable fork(const BlockTable& table);
  // Gives all blocks back.
  void release(BlockTable& table);

  int64_t holders(BlockId block) const { return blocks_[static_cast<size_t>(block)].holders; }
  // Aborts unless every block is held, unheld or free, exactly once, with as many holders as these tables
  // say. For tests.
  void check(std::span<const BlockTable* const> tables) const;

 private:
  struct Block {
    int64_t holders = 0;
    std::string name;                    // empty: it cannot be found
    std::list<BlockId>::iterator place;  // in unheld_, where it is named and has no holder
  };
  Block& at(BlockId block) { return blocks_[static_cast<size_t>(block)]; }
  BlockId take();
  void hold(BlockId block);
  void release_block(BlockId block);
  // The name of the first of the table's blocks that has none yet.
  std::string next_name(const BlockTable& table, std::span<const TokenId> tokens) const;

  int64_t block_size_;
  bool share_;
  uint64_t epoch_ = 0;
  std::vector<Block> blocks_;
  std::vector<BlockId> free_;
  std::list<BlockId> unheld_;  // named blocks without holders, the longest unused first
  std::unordered_map<std::string, BlockId> by_name_;
};

}  // namespace nereid::lm
