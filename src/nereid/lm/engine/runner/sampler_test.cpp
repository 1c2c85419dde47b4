#include "nereid/lm/engine/runner/sampler.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "nereid/lm/engine/runner/uniform.h"

namespace nereid::lm {
namespace {

TEST(Uniform, IsPhilox) {
  // The paper's own test vectors.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  double sum = 0;
  for (uint64_t i = 0; i < 10000; ++i) sum += uniform_at(5, i);
  EXPECT_NEAR(sum / 10000, 0.5, 0.01);
}

// What sampler.h says, word by word, for one row.
std::vector<double> distribution(const std::vector<double>& logits, const DrawParameters& p) {
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> share;
  for (const size_t token : order)
    share.push_back(std::exp((logits[token] - logits[order[0]]) / p.temperature));
  if (p.top_k > 0 && static_cast<size_t>(p.top_k) < share.size()) share.resize(static_cast<size_t>(p.top_k));
  const double left = std::accumulate(share.begin(), share.end(), 0.0);
  size_t kept = 0;
  for (double sum = 0; kept < share.size() && sum < p.top_p * left; ++kept) sum += share[kept];
  share.resize(kept);
  std::vector<double> result(logits.size());
  double total = 0;
  for (size_t i = 0; i < share.size(); ++i)
    if (share[i] >= p.min_p * share[0]) total += result[order[i]] = share[i];
  for (double& x : result) x /= total;
  return result;
}

const std::vector<double> kLogits = {0.5, 2.0, -1.0, 2.0, 0.0, 1.25, -3.0, 1.0};

at::Tensor rows_of_logits(size_t rows) {
  return at::tensor(kLogits, at::kFloat).unsqueeze(0).expand({static_cast<int64_t>(rows), -1});
}

TEST(Sampler, DrawsFromTheDistributionItSays) {
  constexpr size_t kDraws = 20000;
  for (const auto& p :
       {DrawParameters{}, DrawParameters{.temperature = 0.5}, DrawParameters{.top_k = 3},
        DrawParameters{.top_p = 0.7}, DrawParameters{.min_p = 0.3},
        DrawParameters{.temperature = 2, .top_k = 6, .top_p = 0.9, .min_p = 0.1}, DrawParameters{.top_k = 1},
        DrawParameters{.top_p = 1e-9}, DrawParameters{.top_k = 100}}) {
    std::vector<DrawParameters> parameters(kDraws, p);
    for (size_t i = 0; i < kDraws; ++i) parameters[i].seed = 11, parameters[i].index = i;
    const auto drawn = draw(rows_of_logits(kDraws), parameters);
    const auto expected = distribution(kLogits, p);
    std::vector<double> counts(kLogits.size());
    double normaliser = 0;
    for (const double logit : kLogits) normaliser += std::exp(logit);
    for (size_t i = 0; i < kDraws; ++i) {
      const auto token = static_cast<size_t>(drawn.tokens[i]);
      ++counts[token];
      ASSERT_GT(expected[token], 0) << "token " << token;
      ASSERT_NEAR(drawn.drawn_logprobs[i], std::log(expected[token]), 1e-5);
      ASSERT_NEAR(drawn.logprobs[i], kLogits[token] - std::log(normaliser), 1e-5);
    }
    // Chi-square over what can be drawn: beyond mean + 6 deviations once in a billion.
    double chi_square = 0;
    int possible = 0;
    for (size_t token = 0; token < kLogits.size(); ++token) {
      if (expected[token] == 0) continue;
      ++possible;
      chi_square += std::pow(counts[token] - kDraws * expected[token], 2) / (kDraws * expected[token]);
    }
    EXPECT_LT(chi_square, possible - 1 + 6 * std::sqrt(2.0 * possible));
  }
}

// Large vocabularies, peaked and flat, with many equal logits: the token where the running sum of the
// distribution passes the uniform number.
TEST(Sampler, LargeVocabulariesAreCutTheSame) {
  constexpr int64_t kVocabulary = 3000;
  std::vector<DrawParameters> parameters;
  std::vector<std::vector<double>> rows;
  std::mt19937 random(2);
  for (uint64_t i = 0; i < 120; ++i) {
    parameters.push_back({.temperature = i % 2 ? 1 : 0.7,
                          .top_k = std::array<int64_t, 4>{0, 40, 2000, 0}[i % 4],
                          .top_p = std::array<double, 3>{1, 0.9, 0.5}[i % 3],
                          .min_p = std::array<double, 5>{0, 0, 0.2, 0.01, 0}[i % 5],
                          .seed = 8,
                          .index = i});
    rows.emplace_back();
    const double spread = i % 7 == 0 ? 0.1 : 4;
    for (int64_t k = 0; k < kVocabulary; ++k)
      rows.back().push_back(std::round(spread * 8 * (static_cast<double>(random() % 1000) / 1000)) / 8 - 2);
  }
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kFloat).unsqueeze(0));
  const auto drawn = draw(at::cat(tensors), parameters);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto expected = distribution(rows[i], parameters[i]);
    const auto token = static_cast<size_t>(drawn.tokens[i]);
    ASSERT_GT(expected[token], 0) << i;
    EXPECT_NEAR(drawn.drawn_logprobs[i], std::log(expected[token]), 1e-5) << i;
    const auto& p = parameters[i];
    if (p.top_k == 0 && p.top_p == 1 && p.min_p == 0)
      continue;  // drawn in the order of numbers, not of logits
    double before = 0;
    for (size_t other = 0; other < expected.size(); ++other)
      if (rows[i][other] > rows[i][token] || (rows[i][other] == rows[i][token] && other < token))
        before += expected[other];
    const double uniform = uniform_at(p.seed, p.index);
    EXPECT_LE(before, uniform + 1e-9) << i;
    EXPECT_GE(before + expected[token], uniform - 1e-9) << i;
  }
}

TEST(Sampler, ADrawDependsOnItsOwnRowAlone) {
  const auto other = at::tensor({1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 2.0}, at::kFloat).unsqueeze(0);
  const DrawParameters cut{.temperature = 0.8, .top_k = 5, .top_p = 0.9, .seed = 3, .index = 17};
  for (uint64_t index = 0; index < 200; ++index) {
    for (DrawParameters own : {cut, DrawParameters{.seed = 9}}) {
      own.index = index;
      const auto alone = draw(rows_of_logits(1), {own});
      const auto among = draw(at::cat({other, rows_of_logits(1), other, other}),
                              {cut, own, DrawParameters{.temperature = 0}, DrawParameters{.seed = index}});
      ASSERT_EQ(alone.tokens[0], among.tokens[1]);
      ASSERT_EQ(alone.drawn_logprobs[0], among.drawn_logprobs[1]);
      ASSERT_EQ(among.tokens[2], 2);
      ASSERT_EQ(among.drawn_logprobs[2], 0);
    }
  }
}

TEST(Sampler, GreedyIsTheMostProbable) {
  const auto drawn = draw(rows_of_logits(2).to(at::kBFloat16),
                          {{.temperature = 0}, {.temperature = 0, .top_k = 2, .seed = 4}});
  EXPECT_EQ(drawn.tokens, (std::vector<int64_t>{1, 1}));
}

TEST(Sampler, ReturnsTheLikeliest) {
  const auto likely = likeliest(rows_of_logits(3).to(at::kBFloat16), {3, 0, 99});
  EXPECT_TRUE(likely[1].empty());
  std::vector<int64_t> all;
  double sum = 0;
  for (const auto& [token, logprob] : likely[2]) all.push_back(token), sum += std::exp(logprob);
  EXPECT_EQ(all, (std::vector<int64_t>{1, 3, 5, 7, 0, 4, 2, 6}));  // of equals the lower first
  EXPECT_NEAR(sum, 1, 1e-6);
  ASSERT_EQ(likely[0].size(), 3u);
  EXPECT_EQ(likely[0][2].token, 5);
  EXPECT_FLOAT_EQ(likely[0][1].logprob - likely[0][2].logprob, 0.75f);
}

}  // namespace
}  // namespace nereid::lm
