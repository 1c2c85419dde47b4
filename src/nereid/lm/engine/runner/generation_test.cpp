#include "nereid/lm/engine/runner/generation.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <ranges>

#include "tests/support/random_batch.h"

namespace nereid::lm {
namespace {

class Generations : public testing::Test {
 protected:
  Generations() {
    at::set_num_threads(1);
    weights_ = lm::make_weights({.family = lm::Family::kLlama,
                                 .vocab_size = 61,
                                 .hidden_size = 32,
                                 .intermediate_size = 48,
                                 .layers = 2,
                                 .heads = 4,
                                 .key_value_heads = 2,
                                 .head_dim = 8,
                                 .max_position_embeddings = 64,
                                 .initializer_range = 0.3},
                                at::kCPU);
    lm::initialize(weights_, 4);
  }
  std::unique_ptr<Runner> runner(int64_t blocks, int64_t block_size, std::vector<int64_t> recorded = {}) {
    return std::move(Runner::create(
                         weights_, device_,
                         {.blocks = blocks, .block_size = block_size, .recorded_sizes = std::move(recorded)}))
        .value();
  }
  // By request and sample.
  using Texts = std::map<std::pair<size_t, int64_t>, std::vector<int64_t>>;
  static Texts run(Generation& generation) {
    Texts texts;
    while (!generation.idle())
      generation.step(
          [&](const Token& token) { texts[{token.request, token.sample}].push_back(token.token); });
    return texts;
  }
  lm::Weights weights_;
  Device device_;
};

const std::vector<Tokens> kPrompts = {
    {5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {9, 9, 9, 9}, {40, 3, 17, 22, 60, 0, 8}};

TEST_F(Generations, GreedyTokensAreTheDecodersOwn) {
  for (const int64_t budget : {2, 7, 1000}) {
    const auto engine = runner(100, 4, {1, 2, 4});
    Generation generation(*engine, {.max_sequences = 3, .max_step_tokens = budget});
    for (const auto& prompt : kPrompts)
      ASSERT_TRUE(generation.add({.prompt = prompt, .max_new = 9, .draw = {.temperature = 0}}).ok());
    const auto texts = run(generation);
    for (size_t i = 0; i < kPrompts.size(); ++i) {
      auto whole = kPrompts[i];
      whole.insert(whole.end(), texts.at({i, 0}).begin(), texts.at({i, 0}).end());
      EXPECT_EQ(whole, continued(weights_, kPrompts[i], 9)) << i << " " << budget;
    }
    EXPECT_EQ(generation.free_blocks(), 99);
  }
}

// What is given takes the place of what is drawn, is read like it, and the sample goes on from it; also where
// blocks are scarce and samples are read anew.
TEST_F(Generations, GivenTokensAreWhatASampleGoesOnFrom) {
  const std::vector<std::vector<int64_t>> given = {{7, 8, 9}, {3}, {}};
  for (const int64_t blocks : {9, 100}) {
    const auto engine = runner(blocks, 4);
    Generation generation(*engine, {});
    const auto& prompt = kPrompts[1];
    ASSERT_TRUE(
        generation
            .add({.prompt = prompt, .samples = 3, .max_new = 6, .draw = {.temperature = 0}, .given = given})
            .ok());
    const auto texts = run(generation);
    for (int64_t sample = 0; sample < 3; ++sample) {
      auto begun = prompt;
      const auto& own = given[static_cast<size_t>(sample)];
      begun.insert(begun.end(), own.begin(), own.end());
      auto whole = prompt;
      whole.insert(whole.end(), texts.at({0, sample}).begin(), texts.at({0, sample}).end());
      EXPECT_EQ(whole, continued(weights_, begun, 6 - std::ssize(own))) << sample << " " << blocks;
    }
  }
  // A given end token ends the sample.
  const auto engine = runner(100, 4);
  Generation generation(*engine, {});
  ASSERT_TRUE(generation.add({.prompt = {5}, .max_new = 9, .given = {{7, 8, 2}}, .end_tokens = {2}}).ok());
  EXPECT_EQ(run(generation).at({0, 0}), (std::vector<int64_t>{7, 8, 2}));
}

// A restricted sample draws its next token among some, greedily or not, and others as before; also where it
// has to be read anew before that.
TEST_F(Generations, ARestrictedSampleDrawsAmongWhatIsAllowed) {
  for (const int64_t blocks : {9, 100})
    for (const double temperature : {0.0, 1.5}) {
      const auto engine = runner(blocks, 4);
      Generation generation(*engine, {});
      const GenerationRequest request{
          .prompt = kPrompts[1], .samples = 3, .max_new = 6, .draw = {.temperature = temperature, .seed = 3}};
      ASSERT_TRUE(generation.add(request).ok());
      const auto free = run(generation);
      const std::vector<int64_t> allowed = {11, 50};
      ASSERT_TRUE(generation.add(request).ok());
      Texts texts;
      std::map<int64_t, float> logprob;
      while (!generation.idle())
        generation.step([&](const Token& token) {
          auto& own = texts[{token.request, token.sample}];
          own.push_back(token.token);
          if (own.size() == 3) logprob[token.sample] = token.logprob;
          if (own.size() == 2 && token.sample == 1) generation.restrict(token.request, token.sample, allowed);
        });
      EXPECT_EQ(texts.at({1, 0}), free.at({0, 0}));
      EXPECT_EQ(texts.at({1, 2}), free.at({0, 2}));
      const auto& restricted = texts.at({1, 1});
      EXPECT_TRUE(
          std::ranges::equal(restricted | std::views::take(2), free.at({0, 1}) | std::views::take(2)));
      ASSERT_EQ(restricted.size(), 6u);
      EXPECT_TRUE(restricted[2] == 11 || restricted[2] == 50) << restricted[2];
      EXPECT_GT(logprob[1], -20);  // of the two that remain
      if (temperature == 0) {
        // The token after it is not restricted any more.
        auto begun = kPrompts[1];
        begun.insert(begun.end(), restricted.begin(), restricted.begin() + 3);
        auto whole = kPrompts[1];
        whole.insert(whole.end(), restricted.begin(), restricted.end());
        EXPECT_EQ(whole, continued(weights_, begun, 3));
      }
    }
}

// A sample is the same whether it is drawn alone, with others that share its blocks, or when blocks are
// scarce and samples wait.
TEST_F(Generations, SamplesDependOnTheirSeedsAlone) {
  Texts expected;
  for (const bool scarce : {false, true}) {
    const auto engine = runner(scarce ? 9 : 200, 4);
    Generation generation(*engine, {});
    for (const auto& prompt : kPrompts)
      ASSERT_TRUE(generation
                      .add({.prompt = prompt,
                            .samples = 6,
                            .max_new = 10,
                            .draw = {.temperature = 1.5, .top_p = 0.95, .seed = 77}})
                      .ok());
    const auto texts = run(generation);
    EXPECT_EQ(generation.free_blocks(), scarce ? 8 : 199);
    EXPECT_EQ(generation.scheduler().preempted() > 0, scarce);
    if (scarce)
      EXPECT_EQ(texts, expected);
    else
      expected = texts;
  }
  ASSERT_EQ(expected.size(), kPrompts.size() * 6);
  EXPECT_NE(expected.at({1, 0}), expected.at({1, 1}));
  for (const int64_t sample : {0, 3}) {
    const auto engine = runner(50, 16);
    Generation alone(*engine, {});
    ASSERT_TRUE(alone
                    .add({.prompt = kPrompts[1],
                          .max_new = 10,
                          .draw = {.temperature = 1.5, .top_p = 0.95, .seed = seed_of_sample(77, sample)}})
                    .ok());
    EXPECT_EQ(run(alone).at({0, 0}), expected.at({1, sample}));
  }
}

// Drawn hot up to the token, greedily after it; a sample alone turns, and takes its turn along where it
// gives its blocks up.
TEST_F(Generations, ATokenTurnsTheTemperature) {
  const GenerationRequest hot{.prompt = kPrompts[0],
                              .samples = 40,
                              .max_new = 20,
                              .draw = {.temperature = 3, .seed = 7},
                              .likeliest = 1};
  const auto plain = runner(200, 4);
  Generation without(*plain, {});
  ASSERT_TRUE(without.add(hot).ok());
  std::map<int64_t, int> early;  // tokens of the samples' first halves
  for (const auto& [id, text] : run(without))
    for (size_t i = 0; i < 10; ++i) ++early[text[i]];
  const int64_t turning = std::ranges::max_element(early, {}, &std::pair<const int64_t, int>::second)->first;
  for (const int64_t blocks : {200, 9}) {
    const auto engine = runner(blocks, 4);
    Generation generation(*engine, {});
    GenerationRequest request = hot;
    request.turning_token = turning, request.turned_temperature = 0;
    ASSERT_TRUE(generation.add(std::move(request)).ok());
    std::map<int64_t, bool> turned;
    int64_t behind = 0, others = 0, likeliest = 0;
    while (!generation.idle())
      generation.step([&](const Token& token) {
        const bool first = token.token == token.likeliest.front().token;
        if (turned[token.sample]) {
          EXPECT_TRUE(first);
          ++behind;
        } else {
          ++others, likeliest += first;
        }
        turned[token.sample] |= token.token == turning;
      });
    EXPECT_GT(behind, 100);
    EXPECT_LT(likeliest, others / 2);
    EXPECT_EQ(generation.remembered(), 0U);
  }
}

// What was read for one prompt is not read again for another that begins with it, and the tokens are the
// decoder's own all the same.
TEST_F(Generations, PromptsShareWhatTheyBeginWith) {
  const auto engine = runner(100, 4);
  Generation generation(*engine, {});
  auto longer = kPrompts[1];
  longer.push_back(33);
  Texts texts;
  for (const auto& prompt : {kPrompts[1], longer, kPrompts[1]}) {
    ASSERT_TRUE(generation.add({.prompt = prompt, .max_new = 6, .draw = {.temperature = 0}}).ok());
    texts.merge(run(generation));
  }
  EXPECT_EQ(generation.scheduler().reused(), 2 * 8);
  EXPECT_EQ(texts.at({0, 0}), texts.at({2, 0}));
  longer.insert(longer.end(), texts.at({1, 0}).begin(), texts.at({1, 0}).end());
  EXPECT_EQ(longer, continued(weights_, {longer.begin(), longer.end() - 6}, 6));
}

// A fork draws what a request draws whose prompt is all of its beginning; and where it forks at the latest
// token nothing is computed again.
TEST_F(Generations, AForkDrawsWhatItsBeginningWouldAlone) {
  for (const int64_t drawn : {0, 1, 4, 5}) {
    const auto engine = runner(100, 4);
    Generation generation(*engine, {});
    const DrawParameters hot{.temperature = 1.5, .top_p = 0.95, .seed = 5};
    const size_t trunk =
        generation.add({.prompt = kPrompts[1], .max_new = 12, .draw = {.temperature = 1.5, .seed = 4}})
            .value();
    Texts texts;
    size_t fork = SIZE_MAX;
    while (!generation.idle())
      generation.step([&](const Token& token) {
        auto& text = texts[{token.request, token.sample}];
        text.push_back(token.token);
        if (token.request != trunk || text.size() != 5) return;
        fork =
            generation.fork(trunk, 0, drawn, {.prompt = {}, .samples = 3, .max_new = 6, .draw = hot}).value();
      });
    EXPECT_EQ(generation.free_blocks(), 99);
    EXPECT_EQ(generation.remembered(), 0U);
    EXPECT_EQ(texts.at({trunk, 0}).size(), 12u);
    auto beginning = kPrompts[1];
    beginning.insert(beginning.end(), texts.at({trunk, 0}).begin(), texts.at({trunk, 0}).begin() + drawn);
    const auto other = runner(100, 4);
    Generation alone(*other, {});
    ASSERT_TRUE(alone.add({.prompt = beginning, .samples = 3, .max_new = 6, .draw = hot}).ok());
    const Texts expected = run(alone);
    for (int64_t sample = 0; sample < 3; ++sample)
      EXPECT_EQ(texts.at({fork, sample}), expected.at({0, sample})) << drawn << " " << sample;
    // 15 of 16 tokens are there, and 16 of them for those that follow the first.
    if (drawn == 5) {
      EXPECT_EQ(generation.scheduler().reused(), 15 + 2 * 16);
    }
    EXPECT_FALSE(generation.fork(trunk, 0, 1, {.prompt = {}}).ok());  // it has ended
  }
}

// A branch is an independent sample given its beginning: the law of what the trunk and the branch draw next,
// counted, against the product of the model's own distributions, enumerated.
TEST_F(Generations, ABranchIsIndependentOfItsTrunk) {
  const auto next_of = [&](Tokens tokens) {
    const c10::NoGradGuard no_gradients;
    const auto length = static_cast<int32_t>(tokens.size());
    lm::PackedAttention attention({0, length}, at::kCPU);
    const auto hidden =
        lm::hidden_states(weights_, at::tensor(tokens), at::arange(length, at::kLong), attention);
    const auto logits = lm::logits_of(weights_, hidden).select(0, -1).to(at::kDouble);
    std::vector<std::pair<double, int64_t>> likely;
    for (int64_t i = 0; i < logits.size(0); ++i) likely.emplace_back(std::exp(logits[i].item<double>()), i);
    std::ranges::sort(likely, std::greater());
    const double sum = likely[0].first + likely[1].first + likely[2].first;
    std::map<int64_t, double> shares;
    for (int i = 0; i < 3; ++i)
      shares[likely[static_cast<size_t>(i)].second] = likely[static_cast<size_t>(i)].first / sum;
    return shares;
  };
  constexpr int64_t kTrunks = 3000;
  const auto engine = runner(400, 4);
  Generation generation(*engine, {.max_sequences = 64});
  DrawParameters drawn{.top_k = 3, .seed = 21};
  ASSERT_TRUE(generation.add({.prompt = kPrompts[1], .samples = kTrunks, .max_new = 2, .draw = drawn}).ok());
  std::map<size_t, int64_t> trunk_of;
  std::map<int64_t, std::array<int64_t, 3>> tokens;  // of each trunk: its two, and the branch's
  while (!generation.idle())
    generation.step([&](const Token& token) {
      if (token.request != 0) {
        tokens[trunk_of.at(token.request)][2] = token.token;
        return;
      }
      auto& own = tokens[token.sample];
      own[token.last ? 1 : 0] = token.token;
      if (token.last) return;
      drawn.seed = 1'000'000 + static_cast<uint64_t>(token.sample);
      trunk_of[generation.fork(0, token.sample, 1, {.prompt = {}, .max_new = 1, .draw = drawn}).value()] =
          token.sample;
    });
  std::map<std::array<int64_t, 3>, double> counts;
  for (const auto& [trunk, three] : tokens) ++counts[three];
  double chi_square = 0, expected_sum = 0;
  for (const auto& [first, share] : next_of(kPrompts[1])) {
    auto beginning = kPrompts[1];
    beginning.push_back(first);
    const auto next = next_of(beginning);
    for (const auto& [a, p] : next)
      for (const auto& [b, q] : next) {
        const double expected = kTrunks * share * p * q;
        const auto found = counts.find({first, a, b});
        const double off = (found == counts.end() ? 0 : found->second) - expected;
        chi_square += off * off / expected;
        expected_sum += expected;
      }
  }
  EXPECT_NEAR(expected_sum, kTrunks, 1e-6);
  EXPECT_LT(chi_square, 26 + 6 * std::sqrt(2.0 * 26));  // 27 cells
}

TEST_F(Generations, OtherWeightsUseNoKeysOfBefore) {
  const auto engine = runner(100, 4, {1, 2});
  Generation generation(*engine, {});
  const auto greedy = [&] {
    const size_t number =
        generation.add({.prompt = kPrompts[1], .max_new = 9, .draw = {.temperature = 0}}).value();
    auto whole = kPrompts[1];
    const auto drawn = run(generation).at({number, 0});
    whole.insert(whole.end(), drawn.begin(), drawn.end());
    return whole;
  };
  const auto before = greedy();
  EXPECT_EQ(before, continued(weights_, kPrompts[1], 9));
  weights_.flat.mul_(-0.8);
  generation.weights_changed();
  const auto after = greedy();
  EXPECT_EQ(after, continued(weights_, kPrompts[1], 9));
  EXPECT_NE(after, before);
  EXPECT_EQ(generation.scheduler().reused(), 0);
  EXPECT_EQ(greedy(), after);
  EXPECT_GT(generation.scheduler().reused(), 0);
}

TEST_F(Generations, EndWithAnEndTokenOrWhenCancelled) {
  const auto engine = runner(100, 4);
  const auto own = continued(weights_, kPrompts[1], 12);
  const int64_t end = own[kPrompts[1].size() + 4];
  const auto first = std::find(own.begin() + static_cast<ptrdiff_t>(kPrompts[1].size()), own.end(), end) -
                     own.begin() - static_cast<ptrdiff_t>(kPrompts[1].size());
  Generation generation(*engine, {});
  ASSERT_TRUE(
      generation.add({.prompt = kPrompts[1], .max_new = 12, .draw = {.temperature = 0}, .end_tokens = {end}})
          .ok());
  ASSERT_TRUE(generation.add({.prompt = kPrompts[0], .samples = 5, .max_new = 20}).ok());
  Texts texts;
  int steps = 0;
  while (!generation.idle()) {
    generation.step([&](const Token& token) {
      auto& text = texts[{token.request, token.sample}];
      text.push_back(token.token);
      if (token.request == 1 && text.size() == 3) generation.cancel(1, token.sample);
      if (token.request == 1 && token.sample == 4 && text.size() == 2) generation.cancel(1);
    });
    ASSERT_LT(++steps, 100);
  }
  EXPECT_EQ(static_cast<ptrdiff_t>(texts.at({0, 0}).size()), first + 1);
  for (int64_t sample = 0; sample < 4; ++sample) EXPECT_EQ(texts.at({1, sample}).size(), 2u);
  EXPECT_EQ(generation.free_blocks(), 99);
}

TEST_F(Generations, EnoughSamplesEndTheOthers) {
  const auto engine = runner(100, 4);
  Generation all(*engine, {});
  const GenerationRequest request = {.prompt = kPrompts[1],
                                     .samples = 8,
                                     .max_new = 30,
                                     .draw = {.temperature = 1.5},
                                     .end_tokens = {3, 9, 20, 40}};
  ASSERT_TRUE(all.add(request).ok());
  const auto whole = run(all);
  Generation some(*engine, {});
  auto fewer = request;
  fewer.enough = 3;
  ASSERT_TRUE(some.add(fewer).ok());
  ASSERT_TRUE(some.add({.prompt = kPrompts[0], .samples = 4, .max_new = 20, .enough = 2}).ok());
  Texts texts;
  int64_t ended = 0;
  while (!some.idle())
    some.step([&](const Token& token) {
      texts[{token.request, token.sample}].push_back(token.token);
      ended += token.last && token.request == 0;
      // Two samples whose texts are whole; nothing more comes of any of the four.
      if (token.request == 1) {
        ASSERT_LE(texts.at({1, token.sample}).size(), 5u);
        if (token.sample < 2 && texts.at({1, token.sample}).size() == 5) some.stop(1, token.sample);
      }
    });
  EXPECT_EQ(ended, 3);
  EXPECT_EQ(texts.at({1, 0}).size(), 5u);
  EXPECT_EQ(texts.at({1, 1}).size(), 5u);
  EXPECT_EQ(texts.at({1, 3}).size(), 4u);  // its fifth token came in the step that ended it
  EXPECT_EQ(some.free_blocks(), 99);
  for (const auto& [sample, tokens] : texts) {
    if (sample.first == 1) continue;
    const auto& own = whole.at(sample);
    EXPECT_EQ(tokens, std::vector<int64_t>(own.begin(), own.begin() + static_cast<ptrdiff_t>(tokens.size())));
  }
}

TEST_F(Generations, WhatDoesNotFitIsRefused) {
  const auto engine = runner(6, 4);
  Generation generation(*engine, {});
  EXPECT_EQ(generation.add({.prompt = {}}).error().message, "a prompt without tokens: expected at least one");
  EXPECT_EQ(generation.add({.prompt = {61}}).error().message, "a prompt with token 61: expected 0 to 60");
  EXPECT_EQ(generation.add({.prompt = Tokens(64, 1)}).error().message,
            "a prompt of 64 tokens: expected fewer than 64, as many as the model's context has");
  EXPECT_EQ(generation.add({.prompt = Tokens(10, 1), .max_new = 20}).error().message,
            "a prompt of 10 tokens and 20 more: expected at most 20, as many as the cache holds");
  EXPECT_TRUE(generation.add({.prompt = Tokens(10, 1), .max_new = 11}).ok());
  EXPECT_EQ(run(generation).at({0, 0}).size(), 11u);
}

// However a request ends, nothing is kept of it: a server lives long.
TEST_F(Generations, WhatIsOverIsForgotten) {
  const auto engine = runner(60, 4);
  Generation generation(*engine, {.max_sequences = 16});
  const auto round = [&](uint64_t seed) {
    const std::vector<DrawParameters> draws(4, {.seed = seed});
    const size_t first =
        generation.add({.prompt = kPrompts[seed % 4], .samples = 4, .max_new = 3, .draws = draws}).value();
    const size_t enough =
        generation.add({.prompt = kPrompts[0], .samples = 4, .max_new = 4, .draws = draws, .enough = 1})
            .value();
    const size_t stopped =
        generation.add({.prompt = kPrompts[2], .samples = 2, .max_new = 9, .draw = {.seed = seed}}).value();
    const size_t cancelled =
        generation.add({.prompt = kPrompts[3], .samples = 4, .max_new = 9, .draws = draws}).value();
    const size_t never =
        generation.add({.prompt = kPrompts[1], .samples = 4, .max_new = 9, .draws = draws}).value();
    ASSERT_EQ(generation.remembered(), 5u);
    generation.cancel(never);
    ASSERT_EQ(generation.remembered(), 4u);
    std::map<size_t, int64_t> tokens;
    while (!generation.idle())
      generation.step([&](const Token& token) {
        ++tokens[token.request];
        if (token.request == stopped) generation.stop(stopped, token.sample);
        if (token.request == cancelled) generation.cancel(cancelled);
      });
    generation.cancel(first), generation.cancel(first, 2), generation.stop(first, 1);  // it is over
    ASSERT_EQ(generation.remembered(), 0u);
    ASSERT_EQ(tokens, (std::map<size_t, int64_t>{{first, 12}, {enough, 13}, {stopped, 2}, {cancelled, 1}}));
  };
  for (uint64_t seed = 0; seed < 50; ++seed) round(seed);
  const auto before = mallinfo2().uordblks;
  for (uint64_t seed = 0; seed < 400; ++seed) round(seed);
  const auto after = mallinfo2().uordblks;
  EXPECT_LT(after, before + 100'000) << "2,000 requests; each had some 300 bytes";
  EXPECT_EQ(generation.free_blocks(), 59);
}

// The likeliest tokens are of the distribution that the drawn ones have their log-probabilities from; who
// asks for none gets none.
TEST_F(Generations, ReturnsTheLikeliestTokens) {
  const auto engine = runner(100, 4);
  Generation generation(*engine, {});
  const std::vector<int64_t> asked = {0, 3, 61, 1000};
  for (const int64_t count : asked)
    ASSERT_TRUE(generation
                    .add({.prompt = kPrompts[1],
                          .samples = 2,
                          .max_new = 5,
                          .draw = {.temperature = 0.7},
                          .likeliest = count})
                    .ok());
  int64_t tokens = 0;
  while (!generation.idle())
    generation.step([&](const Token& token) {
      ++tokens;
      ASSERT_EQ(std::ssize(token.likeliest), std::min<int64_t>(asked[token.request], 61));
      double sum = 0;
      for (size_t i = 0; i < token.likeliest.size(); ++i) {
        const Likely& likely = token.likeliest[i];
        sum += std::exp(likely.logprob);
        EXPECT_LE(likely.logprob, token.likeliest[i == 0 ? 0 : i - 1].logprob);
        EXPECT_NEAR(likely.logprob, likely.token == token.token ? token.logprob : likely.logprob, 1e-6);
      }
      EXPECT_NEAR(sum, asked[token.request] >= 61 ? 1 : sum, 1e-5);
    });
  EXPECT_EQ(tokens, 4 * 2 * 5);
}

}  // namespace
}  // namespace nereid::lm
