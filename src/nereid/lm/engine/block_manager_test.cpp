#include "nereid/lm/engine/block_manager.h"

#include <gtest/gtest.h>

#include <random>

namespace nereid::lm {
namespace {

using Tokens = std::vector<TokenId>;
using Copies = std::vector<std::pair<BlockId, BlockId>>;

Tokens counted(TokenId tokens) {
  Tokens made;
  for (TokenId i = 0; i < tokens; ++i) made.push_back(i);
  return made;
}

TEST(BlockManager, FullBlocksAreFoundAgain) {
  BlockManager manager(10, 4);
  Copies copies;
  BlockTable first;
  manager.prepare(first, 0, 10, copies);
  manager.offer(first, counted(10), 10);
  EXPECT_EQ(first.blocks, (std::vector<BlockId>{1, 2, 3}));
  BlockTable second;
  EXPECT_EQ(manager.share(second, counted(12)), 8);
  EXPECT_EQ(second.blocks, (std::vector<BlockId>{1, 2}));
  manager.release(first);
  manager.release(second);
  EXPECT_EQ(manager.available(), 9);
  EXPECT_EQ(manager.share(second, counted(8)), 4);  // one token is left to compute
  Tokens other = counted(12);
  other[1] = 77;
  BlockTable third;
  EXPECT_EQ(manager.share(third, other), 0);  // equal tokens after others are not the same
  EXPECT_TRUE(copies.empty());
}

TEST(BlockManager, RoomIsTakenFromWhatWasUnusedLongestAndFromEndsFirst) {
  BlockManager manager(5, 2);
  Copies copies;
  BlockTable table;
  manager.prepare(table, 0, 6, copies);
  manager.offer(table, counted(6), 6);
  manager.release(table);  // 3 named blocks, 1 free
  BlockTable other;
  manager.prepare(other, 0, 4, copies);
  EXPECT_EQ(other.blocks, (std::vector<BlockId>{4, 3}));
  EXPECT_EQ(manager.share(table, counted(9)), 4);
}

TEST(BlockManager, ABlockOfSeveralIsCopiedBeforeOneWrites) {
  BlockManager manager(10, 4);
  Copies copies;
  BlockTable first;
  manager.prepare(first, 0, 6, copies);
  BlockTable second = manager.fork(first);
  EXPECT_EQ(manager.needed(second, 6, 7), 1);
  manager.prepare(second, 6, 7, copies);
  EXPECT_EQ(copies, (Copies{{2, 3}}));
  EXPECT_EQ(second.blocks, (std::vector<BlockId>{1, 3}));
  // The other is alone with it now.
  EXPECT_EQ(manager.needed(first, 6, 8), 0);
  manager.prepare(first, 6, 8, copies);
  EXPECT_EQ(copies.size(), 1u);
  const BlockTable* tables[] = {&first, &second};
  manager.check(tables);
}

TEST(BlockManager, WhatIsForgottenIsFoundNoMore) {
  BlockManager manager(20, 4);
  Copies copies;
  BlockTable old;
  EXPECT_EQ(manager.share(old, counted(13)), 0);
  manager.prepare(old, 0, 6, copies);
  manager.offer(old, counted(13), 6);
  manager.forget();
  BlockTable young;
  EXPECT_EQ(manager.share(young, counted(13)), 0);
  // Who began before goes on, and what it computes now is not for those after: it stands on what was before.
  manager.prepare(old, 6, 13, copies);
  manager.offer(old, counted(13), 13);
  EXPECT_EQ(manager.share(young, counted(13)), 0);
  manager.prepare(young, 0, 13, copies);
  manager.offer(young, counted(13), 13);
  BlockTable third;
  EXPECT_EQ(manager.share(third, counted(13)), 12);
  EXPECT_EQ(third.blocks[2], young.blocks[2]);
  const BlockTable* tables[] = {&old, &young, &third};
  manager.check(tables);
}

TEST(BlockManager, WithoutSharingNothingIsFound) {
  BlockManager manager(10, 2, false);
  Copies copies;
  BlockTable first, second;
  manager.prepare(first, 0, 6, copies);
  manager.offer(first, counted(6), 6);
  EXPECT_EQ(manager.share(second, counted(6)), 0);
}

TEST(BlockManagerDeathTest, TheBooksAreChecked) {
  BlockManager manager(4, 2);
  Copies copies;
  BlockTable table;
  manager.prepare(table, 0, 2, copies);
  EXPECT_DEATH(manager.check({}), "holders");
  EXPECT_DEATH(manager.prepare(table, 2, 20, copies), "blocks to be available");
  BlockTable twice = table;
  manager.release(table);
  EXPECT_DEATH(manager.release(twice), "to be held");
}

// Tables that grow, fork, share and end at random; every table's tokens are what was written through it.
TEST(BlockManager, RandomTablesKeepTheirTokens) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
    const int64_t size = 1 + below(4);
    BlockManager manager(static_cast<BlockId>(3 + below(20)), size, below(4) != 0);
    std::vector<TokenId> memory(static_cast<size_t>((manager.capacity() + 1) * size));
    struct Live {
      Tokens tokens;
      BlockTable table;
    };
    std::vector<Live> live;
    for (int operation = 0; operation < 300; ++operation) {
      const int64_t kind = below(8);
      if (kind == 0) {
        Live made = {.tokens = Tokens(static_cast<size_t>(1 + below(10)), static_cast<TokenId>(below(2))),
                     .table = {}};
        made.tokens.resize(static_cast<size_t>(manager.share(made.table, made.tokens)));
        live.push_back(std::move(made));
      } else if (!live.empty() && kind == 1) {
        auto& one = live[static_cast<size_t>(below(static_cast<int64_t>(live.size())))];
        live.push_back({one.tokens, manager.fork(one.table)});
      } else if (!live.empty() && kind == 2) {
        const auto at = live.begin() + below(static_cast<int64_t>(live.size()));
        manager.release(at->table);
        live.erase(at);
      } else if (!live.empty()) {
        Live& one = live[static_cast<size_t>(below(static_cast<int64_t>(live.size())))];
        const auto from = static_cast<int64_t>(one.tokens.size());
        const int64_t to = from + 1 + below(5);
        if (manager.needed(one.table, from, to) > manager.available()) continue;
        Copies copies;
        manager.prepare(one.table, from, to, copies);
        for (const auto& [source, target] : copies)
          std::copy_n(memory.begin() + source * size, size, memory.begin() + target * size);
        for (int64_t i = from; i < to; ++i) {
          one.tokens.push_back(static_cast<TokenId>(below(2)));
          memory[static_cast<size_t>(one.table.blocks[static_cast<size_t>(i / size)] * size + i % size)] =
              one.tokens.back();
        }
        manager.offer(one.table, one.tokens, to);
      }
      std::vector<const BlockTable*> tables;
      for (const Live& one : live) {
        tables.push_back(&one.table);
        for (size_t i = 0; i < one.tokens.size(); ++i)
          ASSERT_EQ(memory[static_cast<size_t>(one.table.blocks[i / static_cast<size_t>(size)] * size) +
                           i % static_cast<size_t>(size)],
                    one.tokens[i])
              << "seed " << seed << ", operation " << operation;
      }
      manager.check(tables);
    }
    for (Live& one : live) manager.release(one.table);
    EXPECT_EQ(manager.available(), manager.capacity());
  }
}

}  // namespace
}  // namespace nereid::lm
