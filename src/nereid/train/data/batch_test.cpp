#include "nereid/train/data/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/token_set.h"

namespace nereid::train {
namespace {

class Batches : public testing::Test {
 protected:
  void SetUp() override { write_token_set(folder_.path() / "a", 3, 40, 60, 500); }
  TokenSet set() const { return TokenSet::open({(folder_.path() / "a").string()}).value(); }
  TemporaryFolder folder_ = TemporaryFolder::create().value();
  const BatchSettings settings_{
      .packing = {.row_length = 64, .window = 30, .seed = 2}, .global_batch_size = 4, .micro_batch_size = 2};
};

// Each place of each row against the document it came from.
TEST_F(Batches, TargetsAreTheAnswersOneTokenOn) {
  const TokenSet set = this->set();
  auto maker = BatchMaker::create(set, settings_).value();
  Packer packer = Packer::create(
                      [&] {
                        std::vector<uint32_t> lengths;
                        for (uint64_t d = 0; d < set.documents(); ++d) {
                          const Span answer = set.answers(d).front();
                          lengths.push_back(answer.end > std::max(answer.begin, 1u) ? set.length(d) : 0);
                        }
                        return lengths;
                      }(),
                      settings_.packing)
                      .value();
  for (int s = 0; s < 12; ++s) {
    const StepData step = maker.next().value();
    ASSERT_EQ(step.batches.size(), 2u);
    int64_t targets = 0, documents = 0, tokens = 0;
    for (const Batch& batch : step.batches) {
      size_t at = 0, segment = 0;
      for (int64_t r = 0; r < batch.rows; ++r) {
        for (const uint64_t d : packer.next()) {
          EXPECT_EQ(batch.cumulative_lengths[segment++], static_cast<int32_t>(at));
          std::vector<int32_t> expected(set.length(d));
          ASSERT_TRUE(set.read(d, expected.data()).ok());
          const Span answer = set.answers(d).front();
          for (size_t i = 0; i < expected.size(); ++i, ++at) {
            EXPECT_EQ(batch.tokens[at], expected[i]);
            EXPECT_EQ(batch.positions[at], static_cast<int32_t>(i));
            const bool learnt = i + 1 >= answer.begin && i + 1 < answer.end;
            EXPECT_EQ(batch.targets[at], learnt ? expected[i + 1] : kNoTarget);
            targets += learnt;
          }
          ++documents, tokens += std::ssize(expected);
        }
        const auto end = static_cast<size_t>(64 * (r + 1));
        if (at < end) {
          EXPECT_EQ(batch.cumulative_lengths[segment++], static_cast<int32_t>(at));
        }
        for (int32_t i = 0; at < end; ++at, ++i) {
          EXPECT_EQ(batch.tokens[at], 0);
          EXPECT_EQ(batch.targets[at], kNoTarget);
          EXPECT_EQ(batch.positions[at], i);
        }
      }
      EXPECT_EQ(batch.tokens.size(), 128u);
      EXPECT_EQ(batch.cumulative_lengths.size(), segment + 1);
      EXPECT_EQ(batch.cumulative_lengths.back(), 128);
    }
    EXPECT_EQ(step.targets, targets);
    EXPECT_EQ(step.documents, documents);
    EXPECT_EQ(step.tokens, tokens);
  }
}

TEST_F(Batches, RanksShareTheRowsOfOneOrder) {
  const TokenSet set = this->set();
  auto all = BatchMaker::create(set, settings_).value();
  std::vector<BatchMaker> ranks;
  for (int64_t rank = 0; rank < 2; ++rank) {
    auto settings = settings_;
    settings.rank = rank, settings.ranks = 2;
    ranks.push_back(BatchMaker::create(set, settings).value());
  }
  for (int s = 0; s < 8; ++s) {
    const StepData whole = all.next().value();
    for (size_t rank = 0; rank < 2; ++rank) {
      const StepData part = ranks[rank].next().value();
      ASSERT_EQ(part.batches.size(), 1u);
      EXPECT_EQ(part.batches[0].tokens, whole.batches[rank].tokens);
      EXPECT_EQ(part.targets, whole.targets);
      EXPECT_EQ(part.next, whole.next);
    }
  }
}

TEST_F(Batches, GoOnAfterEveryStep) {
  const TokenSet set = this->set();
  BatchStream whole(BatchMaker::create(set, settings_).value());
  Place place;
  for (int s = 0; s < 20; ++s) {
    const StepData expected = whole.next().value();
    const StepData resumed = BatchMaker::create(set, settings_, place)->next().value();
    for (size_t b = 0; b < 2; ++b) {
      EXPECT_EQ(resumed.batches[b].tokens, expected.batches[b].tokens);
      EXPECT_EQ(resumed.batches[b].targets, expected.batches[b].targets);
    }
    place = expected.next;
    EXPECT_EQ(resumed.next, place);
  }
}

TEST_F(Batches, LeaveOutWhatFitsNoRowAndWhatHasNothingToLearn) {
  const TokenSet set = this->set();
  auto settings = settings_;
  settings.packing.row_length = 40;
  const auto maker = BatchMaker::create(set, settings).value();
  uint64_t longer = 0;
  for (uint64_t d = 0; d < set.documents(); ++d) longer += set.length(d) > 40;
  EXPECT_GT(longer, 0u);
  EXPECT_EQ(maker.too_long(), longer);
  settings.packing.row_length = 1;
  EXPECT_THAT(BatchMaker::create(set, settings).error().message,
              testing::HasSubstr("none of 120 documents is of use"));
  settings = settings_;
  settings.ranks = 3;
  EXPECT_EQ(BatchMaker::create(set, settings).error().message,
            "global_batch_size (4) is not a multiple of micro_batch_size (2) times 3 ranks");
}

TEST_F(Batches, ADamagedShardEndsTheStreamWithItsName) {
  const auto path = folder_.path() / "a" / "00001.tokens";
  std::string bytes = read_file(path).value();
  bytes[200] ^= 4;
  ASSERT_TRUE(write_file_atomically(path, bytes).ok());
  // Token blocks lie with the index in one block here: it is found when it is opened.
  EXPECT_THAT(TokenSet::open({(folder_.path() / "a").string()}).error().message,
              testing::HasSubstr("00001.tokens: block 0 at offset 128"));

  write_token_set(folder_.path() / "b", 1, 400, 900, 500);
  const auto larger = folder_.path() / "b" / "00000.tokens";
  bytes = read_file(larger).value();
  bytes[200] ^= 4;
  ASSERT_TRUE(write_file_atomically(larger, bytes).ok());
  const TokenSet set = TokenSet::open({(folder_.path() / "b").string()}).value();
  auto settings = settings_;
  settings.packing.row_length = 1000;
  BatchStream stream(BatchMaker::create(set, settings).value());
  std::string message;
  for (int s = 0; s < 400 && message.empty(); ++s)
    if (const auto step = stream.next(); !step.ok()) message = step.error().message;
  EXPECT_THAT(message, testing::HasSubstr("b/00000.tokens: block 0 at offset 128 should have the checksum"));
  EXPECT_EQ(stream.next().error().message, message);
}

TEST_F(Batches, ASetIsRefusedWhereItIsNotWhatItsListSays) {
  const std::string a = (folder_.path() / "a").string();
  ShardList list = ShardList::read(a).value();
  const auto with = [&](const ShardList& other) {
    EXPECT_TRUE(other.write(a).ok());
    const auto opened = TokenSet::open({a});
    return opened.ok() ? "" : opened.error().message;
  };
  ShardList other = list;
  other.done = false;
  EXPECT_THAT(with(other), testing::HasSubstr("/a: is not finished"));
  other = list;
  ++other.shards[1].tokens;
  EXPECT_THAT(with(other), testing::HasSubstr("00001.tokens: expected 40 documents of"));
  other = list;
  other.shards[2].file = "../x";
  EXPECT_THAT(with(other), testing::HasSubstr("shards[2].file: expected a file's name, got \"../x\""));
  other = list;
  other.shards[0].file = "gone.tokens";
  EXPECT_THAT(with(other), testing::HasSubstr("gone.tokens: No such file"));
  EXPECT_EQ(with(list), "");
  EXPECT_EQ(ShardList::read(a).value(), list);
  EXPECT_THAT(TokenSet::open({}).error().message, testing::HasSubstr("no documents in"));
  write_token_set(folder_.path() / "c", 1, 2, 60, 501);
  EXPECT_THAT(TokenSet::open({a, (folder_.path() / "c").string()}).error().message,
              testing::HasSubstr("c/00000.tokens: was made with tokenizer"));
}

TEST_F(Batches, ASetsFingerprintIsItsContents) {
  const auto fingerprint = [&](const char* name) {
    return TokenSet::open({(folder_.path() / name).string()})->fingerprint();
  };
  write_token_set(folder_.path() / "same", 3, 40, 60, 500);
  write_token_set(folder_.path() / "other", 3, 40, 60, 500, 9);
  EXPECT_EQ(fingerprint("a"), fingerprint("same"));
  EXPECT_NE(fingerprint("a"), fingerprint("other"));
}

}  // namespace
}  // namespace nereid::train
