// A folder of token shards with its list, tokens.json; and several of them read as one row of documents.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "nereid/train/data/token_shard.h"

namespace nereid::train {

// tokens.json, replaced after each shard: what is there, and where the input goes on.
struct ShardList {
  static constexpr const char* kName = "tokens.json";
  struct Shard {
    std::string file;
    uint64_t documents = 0, tokens = 0, answer_tokens = 0;
    bool operator==(const Shard&) const = default;
  };
  std::string tokenizer;  // SHA-256 of its file
  uint32_t vocab_size = 0;
  std::string made_by;  // the options that decide what the shards hold
  bool done = false;
  std::vector<Shard> shards{};
  uint64_t next_file = 0, next_byte = 0, next_line = 0;  // of the input: what the shards do not hold yet
  std::map<std::string, uint64_t> left_out{};            // lines, by the reason
  bool operator==(const ShardList&) const = default;

  static Result<ShardList> read(const std::filesystem::path& folder);
  Status write(const std::filesystem::path& folder) const;
};

// The documents of some finished folders, numbered through. Reading is thread-safe.
class TokenSet {
 public:
  // An error where a shard is missing, is damaged or has other counts than the list, or where folders were
  // made with different tokenizers.
  static Result<TokenSet> open(const std::vector<std::string>& folders);

  uint64_t documents() const { return first_.back(); }
  uint32_t vocab_size() const { return shards_.front().vocab_size(); }
  const std::string& tokenizer() const { return shards_.front().tokenizer(); }
  // Another set has another one. Names of folders and files are no part of it.
  const std::string& fingerprint() const { return fingerprint_; }

  uint32_t length(uint64_t document) const;
  std::span<const Span> answers(uint64_t document) const;
  Status read(uint64_t document, int32_t* tokens) const;

 private:
  TokenSet() = default;
  std::pair<const ShardReader*, uint64_t> place(uint64_t document) const;
  std::vector<ShardReader> shards_;
  std::vector<uint64_t> first_{0};  // documents in front of each shard, and all
  std::string fingerprint_;
};

}  // namespace nereid::train
