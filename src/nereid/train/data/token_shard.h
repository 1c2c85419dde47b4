// A shard: documents as tokens, and which of them are answers. docs/data.md has the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::train {

// Tokens [begin, end) of a document are an answer: their loss counts.
struct Span {
  uint32_t begin = 0, end = 0;
  bool operator==(const Span&) const = default;
};

struct ShardCounts {
  uint64_t tokens = 0, documents = 0, spans = 0, answer_tokens = 0;
};

// Writes to a temporary name next to `path`, which is there, whole and synced, once `finish` has returned.
class ShardWriter {
 public:
  // `tokenizer`: its file's SHA-256, 64 hexadecimal digits. Ids are below `vocab_size`: 2 bytes each up to
  // 65,536.
  static Result<ShardWriter> create(const std::filesystem::path& path, const std::string& tokenizer,
                                    uint32_t vocab_size);
  ShardWriter(ShardWriter&&) = default;
  ShardWriter& operator=(ShardWriter&&) = delete;
  ~ShardWriter();

  // Spans are in order, apart from each other, not empty, and inside the document; a check fails otherwise,
  // as for a document of no tokens or more than 2^31 - 1.
  Status add(std::span<const uint32_t> tokens, std::span<const Span> answers);
  const ShardCounts& counts() const { return counts_; }
  Status finish();

 private:
  ShardWriter() = default;
  Status append(const void* bytes, size_t size);
  Status flush();
  Error failed(const char* what) const;

  std::filesystem::path path_, temporary_;
  Fd fd_;
  std::string tokenizer_;  // 32 bytes
  uint32_t vocab_size_ = 0, width_ = 4;
  ShardCounts counts_;
  std::string buffer_, narrow_;
  std::vector<uint64_t> index_;  // first token and first span, by turns
  std::vector<Span> spans_;
  std::vector<uint32_t> checksums_;
};

// Maps the file and treats it as hostile. Header, index and sizes are checked when it is opened; a block of
// tokens when it is first read. What is mapped must not be cut short meanwhile. Reading is thread-safe.
class ShardReader {
 public:
  static Result<ShardReader> open(const std::filesystem::path& path);
  ShardReader(ShardReader&& other) noexcept;
  ShardReader& operator=(ShardReader&&) = delete;
  ~ShardReader();

  const std::filesystem::path& path() const { return path_; }
  const std::string& tokenizer() const { return tokenizer_; }  // 64 hexadecimal digits
  uint32_t vocab_size() const { return vocab_size_; }
  const ShardCounts& counts() const { return counts_; }
  uint64_t mark() const { return mark_; }  // made of its checksums: other contents, another mark
  uint32_t length(uint64_t document) const {
    return static_cast<uint32_t>(first_token(document + 1) - first_token(document));
  }
  std::span<const Span> answers(uint64_t document) const;
  // All `length` tokens of it. An error names file, block and offset where the checksum is another, or file
  // and document where an id is not below vocab_size.
  Status read(uint64_t document, int32_t* tokens) const;

 private:
  ShardReader() = default;
  uint64_t first_token(uint64_t document) const { return index_[2 * document]; }
  Status check_layout(uint64_t file_bytes);
  Status check_index() const;
  Status check_blocks(uint64_t begin, uint64_t end) const;  // bytes of the file

  std::filesystem::path path_;
  std::string tokenizer_;
  uint32_t vocab_size_ = 0, width_ = 4;
  ShardCounts counts_;
  uint64_t mark_ = 0;
  const char* map_ = nullptr;
  uint64_t map_bytes_ = 0, checksums_at_ = 0;
  const uint64_t* index_ = nullptr;
  const Span* spans_ = nullptr;
  const uint32_t* checksums_ = nullptr;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // of each block
};

}  // namespace nereid::train
