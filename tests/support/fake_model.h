// A model whose keys and values say what they are of: each place holds a hash of its token and of the place
// before it. A forward checks, for every sequence, that its blocks hold one unbroken chain, so that a block
// which was lost, overwritten or shared wrongly is found at once; and a token is drawn from the whole chain's
// hash.
#pragma once

#include <cstdint>
#include <vector>

#include "nereid/base/check.h"
#include "nereid/lm/engine/scheduler.h"

namespace nereid::lm {

inline uint64_t fake_hash(uint64_t before, int64_t token, int64_t position) {
  uint64_t x =
      before ^ (static_cast<uint64_t>(token) * 0x9E3779B97F4A7C15u) ^ (static_cast<uint64_t>(position) << 40);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

constexpr TokenId kFakeVocabulary = 50;

inline TokenId fake_token(uint64_t chain, const SamplingParameters& sampling, int64_t sample, int64_t index) {
  return static_cast<TokenId>(fake_hash(chain ^ sampling.seed, sample, index) % kFakeVocabulary);
}

// What a sample draws, without any engine.
inline std::vector<TokenId> fake_continuation(const Request& request, int64_t sample, int64_t tokens) {
  uint64_t chain = 0;
  int64_t position = 0;
  for (const TokenId token : request.prompt) chain = fake_hash(chain, token, position++);
  std::vector<TokenId> drawn;
  while (static_cast<int64_t>(drawn.size()) < tokens) {
    drawn.push_back(fake_token(chain, request.sampling, sample, static_cast<int64_t>(drawn.size())));
    const auto& stops = request.sampling.stop_tokens;
    if (std::find(stops.begin(), stops.end(), drawn.back()) != stops.end()) break;
    chain = fake_hash(chain, drawn.back(), position++);
  }
  return drawn;
}

class FakeModel {
 public:
  FakeModel(BlockId blocks, int64_t block_size)
      : block_size_(block_size), places_(static_cast<size_t>(blocks * block_size)) {}

  int64_t computed() const { return computed_; }

  std::vector<TokenId> run(const Batch& batch) {
    for (const auto& [from, to] : batch.copies)
      for (int64_t i = 0; i < block_size_; ++i) at(to * block_size_ + i) = at(from * block_size_ + i);
    const Step& step = batch.step;
    NEREID_CHECK(step.starts.size() == step.sequences() + 1 &&
                     step.starts.back() == static_cast<int64_t>(step.tokens.size()),
                 "where each of {} sequences begins", step.sequences());
    std::vector<uint64_t> chains(step.tokens.size());
    for (size_t i = 0; i < step.sequences(); ++i) {
      const int64_t begin = step.starts[i], end = step.starts[i + 1], length = step.lengths[i];
      const auto& blocks = step.blocks[i];
      NEREID_CHECK(
          begin < end && static_cast<int64_t>(blocks.size()) == (length + block_size_ - 1) / block_size_,
          "blocks for {} keys", length);
      const auto slot = [&](int64_t position) {
        return blocks[static_cast<size_t>(position / block_size_)] * block_size_ + position % block_size_;
      };
      uint64_t chain = 0;
      for (int64_t position = 0; position < length; ++position) {
        const int64_t own = begin + position - (length - (end - begin));
        if (own >= begin) {
          const auto n = static_cast<size_t>(own);
          NEREID_CHECK(step.positions[n] == position && step.slots[n] == slot(position),
                       "token {} at position {}", n, position);
          at(slot(position)) = {chain, step.tokens[n], fake_hash(chain, step.tokens[n], position)};
          ++computed_;
        }
        const Place& place = at(slot(position));
        NEREID_CHECK(place.before == chain && place.chain == fake_hash(chain, place.token, position),
                     "an unbroken chain at position {} of sequence {}", position, i);
        chain = place.chain;
        if (own >= begin) chains[static_cast<size_t>(own)] = chain;
      }
    }
    std::vector<TokenId> tokens;
    for (const Draw& draw : batch.draws)
      tokens.push_back(fake_token(chains[static_cast<size_t>(step.wanted[draw.row])], *draw.sampling,
                                  draw.id.sample, draw.index));
    return tokens;
  }

 private:
  struct Place {
    uint64_t before = 1;
    int64_t token = 0;
    uint64_t chain = 0;
  };
  Place& at(int64_t slot) { return places_[static_cast<size_t>(slot)]; }

  int64_t block_size_;
  std::vector<Place> places_;
  int64_t computed_ = 0;
};

}  // namespace nereid::lm
