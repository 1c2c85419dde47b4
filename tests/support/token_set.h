// A folder of shards of random documents.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "nereid/train/data/token_set.h"

namespace nereid::train {

inline void write_token_set(const std::filesystem::path& folder, int shards, int documents, uint32_t longest,
                            uint32_t vocab, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::filesystem::create_directories(folder);
  ShardList list{.tokenizer = std::string(64, 'b'), .vocab_size = vocab, .made_by = "test", .done = true};
  for (int s = 0; s < shards; ++s) {
    const std::string name = fmt::format("{:05}.tokens", s);
    auto writer = ShardWriter::create(folder / name, list.tokenizer, vocab).value();
    for (int d = 0; d < documents; ++d) {
      std::vector<uint32_t> tokens(2 + random() % (longest - 1));
      for (auto& token : tokens) token = 1 + random() % (vocab - 1);
      const auto size = static_cast<uint32_t>(tokens.size()), begin = static_cast<uint32_t>(random()) % size;
      const std::vector<Span> answers{{begin, size}};
      ASSERT_TRUE(writer.add(tokens, answers).ok());
    }
    ASSERT_TRUE(writer.finish().ok());
    const auto& counts = writer.counts();
    list.shards.push_back({name, counts.documents, counts.tokens, counts.answer_tokens});
  }
  ASSERT_TRUE(list.write(folder).ok());
}

}  // namespace nereid::train
