#include "nereid/lm/engine/block_manager.h"

#include <algorithm>

#include "nereid/base/check.h"
#include "nereid/base/hash.h"

namespace nereid::lm {

BlockManager::BlockManager(BlockId blocks, int64_t block_size, bool share)
    : block_size_(block_size), share_(share), blocks_(static_cast<size_t>(std::max<BlockId>(blocks, 0))) {
  NEREID_CHECK(blocks >= 2 && block_size >= 1, "two blocks or more with places for tokens, got {} of {}",
               blocks, block_size);
  for (BlockId block = blocks - 1; block > 0; --block) free_.push_back(block);
}

std::string BlockManager::next_name(const BlockTable& table, std::span<const TokenId> tokens) const {
  const auto size = static_cast<size_t>(block_size_);
  const auto own = tokens.subspan(table.named * size, size);
  std::string text = table.named == 0 ? std::to_string(table.epoch) : table.name;
  text.append(reinterpret_cast<const char*>(own.data()), own.size_bytes());
  return sha256_hex(text);
}

int64_t BlockManager::share(BlockTable& table, std::span<const TokenId> tokens) {
  NEREID_CHECK(table.blocks.empty(), "an empty table, got one of {} blocks", table.blocks.size());
  table.epoch = epoch_;
  if (!share_ || tokens.empty()) return 0;
  const size_t most = (tokens.size() - 1) / static_cast<size_t>(block_size_);
  while (table.named < most) {
    std::string name = next_name(table, tokens);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) break;
    hold(found->second);
    table.blocks.push_back(found->second);
    table.name = std::move(name);
    ++table.named;
  }
  return static_cast<int64_t>(table.named) * block_size_;
}

int64_t BlockManager::needed(const BlockTable& table, int64_t from, int64_t to) const {
  const auto have = static_cast<int64_t>(table.blocks.size());
  const bool into_last = from % block_size_ != 0;
  NEREID_CHECK(blocks_for(from) == have, "to write where the table's {} blocks end, got token {}", have,
               from);
  return std::max<int64_t>(0, blocks_for(to) - have) +
         (into_last && to > from && holders(table.blocks.back()) > 1);
}

void BlockManager::prepare(BlockTable& table, int64_t from, int64_t to,
                           std::vector<std::pair<BlockId, BlockId>>& copies) {
  NEREID_CHECK(needed(table, from, to) <= available(), "{} blocks to be available, got {}",
               needed(table, from, to), available());
  if (from % block_size_ != 0 && to > from && holders(table.blocks.back()) > 1) {
    const BlockId own = take();
    copies.emplace_back(table.blocks.back(), own);
    release_block(table.blocks.back());
    table.blocks.back() = own;
  }
  while (static_cast<int64_t>(table.blocks.size()) < blocks_for(to)) table.blocks.push_back(take());
}

void BlockManager::offer(BlockTable& table, std::span<const TokenId> tokens, int64_t computed) {
  if (!share_) return;
  for (; static_cast<int64_t>(table.named + 1) * block_size_ <= computed; ++table.named) {
    table.name = next_name(table, tokens);
    Block& block = at(table.blocks[table.named]);
    // An equal block that was computed before is found; this one stays its holder's own.
    if (block.name.empty() && by_name_.emplace(table.name, table.blocks[table.named]).second)
      block.name = table.name;
  }
}

BlockTable BlockManager::fork(const BlockTable& table) {
  for (const BlockId block : table.blocks) hold(block);
  return table;
}

void BlockManager::release(BlockTable& table) {
  // The last first: of unheld blocks the ends of sequences go before their beginnings.
  for (size_t i = table.blocks.size(); i-- > 0;) release_block(table.blocks[i]);
  table = {};
}

BlockId BlockManager::take() {
  BlockId block = 0;
  if (!free_.empty()) {
    block = free_.back();
    free_.pop_back();
  } else {
    NEREID_CHECK(!unheld_.empty(), "a block to be available, all {} are held", capacity());
    block = unheld_.front();
    unheld_.pop_front();
    by_name_.erase(at(block).name);
    at(block).name.clear();
  }
  at(block).holders = 1;
  return block;
}

void BlockManager::hold(BlockId block) {
  if (at(block).holders++ == 0) unheld_.erase(at(block).place);
}

void BlockManager::release_block(BlockId block) {
  Block& b = at(block);
  NEREID_CHECK(b.holders > 0, "block {} to be held", block);
  if (--b.holders > 0) return;
  if (b.name.empty()) {
    free_.push_back(block);
  } else {
    b.place = unheld_.insert(unheld_.end(), block);
  }
}

void BlockManager::check(std::span<const BlockTable* const> tables) const {
  std::vector<int64_t> held(blocks_.size()), spare(blocks_.size());
  for (const BlockTable* table : tables) {
    for (const BlockId block : table->blocks) {
      NEREID_CHECK(block > 0 && static_cast<size_t>(block) < blocks_.size(), "a block from 1 to {}, got {}",
                   capacity(), block);
      ++held[static_cast<size_t>(block)];
    }
  }
  for (const BlockId block : free_) ++spare[static_cast<size_t>(block)];
  for (const BlockId block : unheld_) ++spare[static_cast<size_t>(block)];
  for (size_t i = 1; i < blocks_.size(); ++i) {
    NEREID_CHECK(blocks_[i].holders == held[i], "block {} to have {} holders, got {}", i, held[i],
                 blocks_[i].holders);
    NEREID_CHECK(spare[i] == (held[i] == 0), "block {} to be held or spare, once: {} holders, {} times spare",
                 i, held[i], spare[i]);
    const auto named = by_name_.find(blocks_[i].name);
    NEREID_CHECK(
        blocks_[i].name.empty() || (named != by_name_.end() && static_cast<size_t>(named->second) == i),
        "block {} to be found by its name", i);
  }
  NEREID_CHECK(spare[0] == 0 && held[0] == 0, "block 0 to be unheld");
  NEREID_CHECK(std::ranges::count_if(blocks_, [](const Block& b) { return !b.name.empty(); }) ==
                   static_cast<int64_t>(by_name_.size()),
               "every name to be a block's");
}

}  // namespace nereid::lm
