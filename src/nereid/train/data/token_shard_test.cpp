#include "nereid/train/data/token_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <random>

#include "nereid/train/data/crc32c.h"

namespace nereid::train {
namespace {

const std::string kTokenizer(64, 'a');

struct Written {
  std::vector<std::vector<uint32_t>> tokens;
  std::vector<std::vector<Span>> answers;
};

Written sample(uint32_t vocab, int documents, uint32_t longest) {
  std::mt19937 random(5);
  Written all;
  for (int d = 0; d < documents; ++d) {
    auto& tokens = all.tokens.emplace_back(1 + random() % longest);
    for (auto& token : tokens) token = random() % vocab;
    auto& answers = all.answers.emplace_back();
    for (uint32_t at = 0; d % 3 != 0 && at < tokens.size();) {
      const uint32_t begin = at + random() % 40, end = begin + 1 + random() % 60;
      if (end <= tokens.size()) answers.push_back({begin, end});
      at = end;
    }
  }
  return all;
}

void write(const std::filesystem::path& path, const Written& all, uint32_t vocab) {
  auto writer = ShardWriter::create(path, kTokenizer, vocab).value();
  for (size_t d = 0; d < all.tokens.size(); ++d) ASSERT_TRUE(writer.add(all.tokens[d], all.answers[d]).ok());
  ASSERT_TRUE(writer.finish().ok());
}

// Without a sync: it is written a thousand times.
void overwrite(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Opens it and reads all of it: the first error, or none.
std::string trouble(const std::filesystem::path& path) {
  const auto reader = ShardReader::open(path);
  if (!reader.ok()) return reader.error().message;
  for (uint64_t d = 0; d < reader->counts().documents; ++d) {
    std::vector<int32_t> tokens(reader->length(d));
    if (const auto read = reader->read(d, tokens.data()); !read.ok()) return read.error().message;
  }
  return "";
}

class TokenShard : public testing::Test {
 protected:
  TemporaryFolder folder_ = TemporaryFolder::create().value();
  const std::filesystem::path path_ = folder_.path() / "0.tokens";
};

TEST_F(TokenShard, ReadsBackWhatWasWritten) {
  for (const uint32_t vocab : {300u, 65'536u, 65'537u, 151'936u}) {
    const Written all = sample(vocab, 400, 900);  // several blocks
    write(path_, all, vocab);
    const auto reader = ShardReader::open(path_).value();
    EXPECT_EQ(reader.tokenizer(), kTokenizer);
    EXPECT_EQ(reader.vocab_size(), vocab);
    ASSERT_EQ(reader.counts().documents, 400u);
    for (uint64_t d = 0; d < 400; ++d) {
      std::vector<int32_t> tokens(reader.length(d));
      ASSERT_TRUE(reader.read(d, tokens.data()).ok());
      EXPECT_EQ(std::vector<uint32_t>(tokens.begin(), tokens.end()), all.tokens[d]);
      const auto answers = reader.answers(d);
      EXPECT_EQ(std::vector<Span>(answers.begin(), answers.end()), all.answers[d]);
    }
    EXPECT_FALSE(std::filesystem::exists(path_.string() + ".tmp"));
  }
}

TEST_F(TokenShard, AShardOfNothingIsAShard) {
  write(path_, {}, 10);
  EXPECT_EQ(trouble(path_), "");
  EXPECT_EQ(ShardReader::open(path_)->counts().documents, 0u);
}

TEST_F(TokenShard, EveryDamagedByteAndEveryTruncationIsFound) {
  write(path_, sample(300, 6, 60), 300);
  const std::string whole = read_file(path_).value();
  const auto other = folder_.path() / "other.tokens";
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x10);
    overwrite(other, bytes);
    EXPECT_THAT(trouble(other), testing::HasSubstr("other.tokens: ")) << i;
  }
  for (size_t size = 0; size < whole.size(); size += 7) {
    overwrite(other, whole.substr(0, size));
    EXPECT_THAT(trouble(other), testing::HasSubstr("other.tokens: expected ")) << size;
  }
  overwrite(other, whole + "x");
  EXPECT_THAT(trouble(other), testing::HasSubstr(fmt::format("expected {} bytes", whole.size())));
}

TEST_F(TokenShard, ADamagedBlockIsNamedAndTheOthersStayReadable) {
  const Written all = sample(300, 400, 900);
  write(path_, all, 300);
  std::string bytes = read_file(path_).value();
  bytes[128 + 65'536 + 5] ^= 1;
  overwrite(path_, bytes);
  EXPECT_THAT(trouble(path_),
              testing::HasSubstr("0.tokens: block 1 at offset 65664 should have the checksum "));
  const auto reader = ShardReader::open(path_).value();
  std::vector<int32_t> tokens(reader.length(0));
  EXPECT_TRUE(reader.read(0, tokens.data()).ok());
}

// Even with right checksums a file cannot make a reader leave it.
TEST_F(TokenShard, AnIndexWithRightChecksumsIsStillHostile) {
  write(path_, {.tokens = {{1, 2, 3}, {4, 5}}, .answers = {{{1, 3}}, {{0, 2}}}}, 300);
  const std::string whole = read_file(path_).value();
  const size_t index = 128 + 16, spans = index + 48;
  const auto with = [&](size_t at, uint64_t value, size_t size) {
    std::string bytes = whole;
    std::memcpy(bytes.data() + at, &value, size);
    const size_t end = bytes.size() - 8;
    const uint32_t block = crc32c(bytes.data() + 128, end - 128);
    std::memcpy(bytes.data() + end, &block, 4);
    const uint32_t last = crc32c(&block, 4);
    std::memcpy(bytes.data() + end + 4, &last, 4);
    overwrite(path_, bytes);
    return trouble(path_);
  };
  EXPECT_EQ(with(index, 0, 8), "");
  EXPECT_THAT(with(index, 1, 8), testing::HasSubstr("document 0 does not begin at token 0"));
  EXPECT_THAT(with(index + 16, UINT64_MAX, 8),
              testing::HasSubstr("document 0 has tokens 0 to 18446744073709551615"));
  EXPECT_THAT(with(index + 16, 0, 8), testing::HasSubstr("document 0 has tokens 0 to 0 of 5"));
  EXPECT_THAT(with(index + 24, 9, 8), testing::HasSubstr("and spans 0 to 9 of 2"));
  EXPECT_THAT(with(spans + 4, 4, 4), testing::HasSubstr("document 0 of 3 tokens has an answer [1, 4)"));
  EXPECT_THAT(with(spans, 3, 4), testing::HasSubstr("has an answer [3, 3)"));
  EXPECT_THAT(with(spans, 2, 4), testing::HasSubstr("and 4 answer tokens, got 5, 2 and 3"));
  EXPECT_THAT(with(128, 300, 2),
              testing::HasSubstr("document 0, token 0: expected an id below 300, got 300"));
}

TEST_F(TokenShard, AFullDiskLeavesNothingBehind) {
  const rlimit before = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    return limit;
  }();
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  {
    auto writer = ShardWriter::create(path_, kTokenizer, 300).value();
    const std::vector<uint32_t> tokens(10'000, 7);
    for (int i = 0; i < 20 && message.empty(); ++i)
      if (const auto added = writer.add(tokens, {}); !added.ok()) message = added.error().message;
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, testing::HasSubstr("0.tokens.tmp: cannot write: File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST(Crc32c, IsTheOneOfRfc3720) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  const std::string zeros(32, '\0');
  EXPECT_EQ(crc32c(zeros.data(), 32), 0x8A9136AAu);
  for (size_t cut = 0; cut <= 9; ++cut)
    EXPECT_EQ(crc32c("123456789" + cut, 9 - cut, crc32c("123456789", cut)), 0xE3069283u);
}

}  // namespace
}  // namespace nereid::train
