#include "nereid/lm/checkpoint/parameters.h"

#include <gtest/gtest.h>

#include <set>

namespace nereid::lm {
namespace {

TEST(Parameters, LieInOneBufferWithoutOverlap) {
  for (const Family family : {Family::kQwen3, Family::kQwen2, Family::kLlama}) {
    for (const bool biased : {false, true}) {
      if (family == Family::kQwen2 && !biased) continue;
      const Config config{.family = family,
                          .vocab_size = 11,
                          .hidden_size = 10,
                          .intermediate_size = 7,
                          .layers = 2,
                          .heads = 4,
                          .key_value_heads = 2,
                          .head_dim = 6,
                          .tie_word_embeddings = biased,
                          .attention_bias = biased,
                          .mlp_bias = biased && family == Family::kLlama};
      const auto layout = lay_out_parameters(config);
      int64_t end = 0, total = 0;
      std::set<std::string> names;
      for (const auto& parameter : layout.parameters) {
        EXPECT_GE(parameter.offset, end) << parameter.info.name;
        EXPECT_EQ(static_cast<size_t>(parameter.elements) * 4, parameter.info.bytes());
        const bool follows = parameter.role == Role::kKey || parameter.role == Role::kValue ||
                             parameter.role == Role::kUp || parameter.role == Role::kKeyBias ||
                             parameter.role == Role::kValueBias || parameter.role == Role::kUpBias;
        if (follows)
          EXPECT_EQ(parameter.offset, end) << parameter.info.name;
        else
          EXPECT_EQ(parameter.offset % kAlignment, 0) << parameter.info.name;
        end = parameter.offset + parameter.elements;
        total += parameter.elements;
        EXPECT_TRUE(names.insert(parameter.info.name).second);
      }
      EXPECT_EQ(end, layout.elements);
      EXPECT_EQ(total, config.parameter_count());
    }
  }
}

}  // namespace
}  // namespace nereid::lm
