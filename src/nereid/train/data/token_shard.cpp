#include "nereid/train/data/token_shard.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "nereid/train/data/crc32c.h"

namespace nereid::train {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian, and read as they lie");

constexpr char kShardMagic[8] = {'N', 'R', 'D', 'T', 'O', 'K', 'E', 'N'};
constexpr uint32_t kShardVersion = 1;
constexpr uint64_t kBlock = 1 << 16;
constexpr uint64_t kMaxTotal = uint64_t{1} << 40;  // sums of sizes stay far from overflow

struct ShardHeader {
  char magic[8];
  uint32_t version, width;
  unsigned char tokenizer[32];
  uint64_t tokens, documents, spans, answer_tokens;
  uint32_t vocab_size, block_bytes;
  unsigned char zero[36];
  uint32_t checksum;  // of all before it
};
static_assert(sizeof(ShardHeader) == 128);

struct ShardLayout {
  uint64_t index, spans, checksums, end;  // offsets
};
ShardLayout layout_of(const ShardCounts& counts, uint64_t width) {
  ShardLayout layout{};
  layout.index = sizeof(ShardHeader) + (counts.tokens * width + 7) / 8 * 8;
  layout.spans = layout.index + (counts.documents + 1) * 16;
  layout.checksums = layout.spans + counts.spans * sizeof(Span);
  layout.end = layout.checksums + ((layout.checksums - sizeof(ShardHeader) + kBlock - 1) / kBlock + 1) * 4;
  return layout;
}

int digit_of(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

}  // namespace

Error ShardWriter::failed(const char* what) const {
  return our_error("{}: cannot {}: {}", temporary_.string(), what, std::strerror(errno));
}

Result<ShardWriter> ShardWriter::create(const std::filesystem::path& path, const std::string& tokenizer,
                                        uint32_t vocab_size) {
  ShardWriter writer;
  NEREID_CHECK(tokenizer.size() == 64, "64 hexadecimal digits, got '{}'", tokenizer);
  for (size_t i = 0; i < 64; i += 2) {
    NEREID_CHECK(digit_of(tokenizer[i]) >= 0 && digit_of(tokenizer[i + 1]) >= 0,
                 "hexadecimal digits, got '{}'", tokenizer);
    writer.tokenizer_ += static_cast<char>(digit_of(tokenizer[i]) * 16 + digit_of(tokenizer[i + 1]));
  }
  writer.path_ = path;
  writer.temporary_ = path.string() + ".tmp";
  writer.vocab_size_ = vocab_size;
  writer.width_ = vocab_size <= 1 << 16 ? 2 : 4;
  writer.fd_ = Fd(::open(writer.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!writer.fd_.valid()) return writer.failed("write");
  if (::lseek(writer.fd_.get(), sizeof(ShardHeader), SEEK_SET) < 0) return writer.failed("seek");
  return writer;
}

ShardWriter::~ShardWriter() {
  if (fd_.valid()) ::unlink(temporary_.c_str());
}

Status ShardWriter::flush() {
  for (size_t at = 0; at < buffer_.size();) {
    const ssize_t wrote = ::write(fd_.get(), buffer_.data() + at, buffer_.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return failed("write");
    at += static_cast<size_t>(wrote);
  }
  buffer_.clear();
  return ok_status();
}

// The buffer is never more than the block that is being filled.
Status ShardWriter::append(const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const size_t part = std::min<size_t>(size, kBlock - buffer_.size());
    buffer_.append(at, part);
    at += part, size -= part;
    if (buffer_.size() < kBlock) break;
    checksums_.push_back(crc32c(buffer_.data(), buffer_.size()));
    NEREID_TRY_STATUS(flush());
  }
  return ok_status();
}

Status ShardWriter::add(std::span<const uint32_t> tokens, std::span<const Span> answers) {
  NEREID_CHECK(!tokens.empty() && tokens.size() <= INT32_MAX, "1 to 2^31 - 1 tokens, got {}", tokens.size());
  uint32_t before = 0;
  index_.push_back(counts_.tokens), index_.push_back(counts_.spans);
  for (const Span& span : answers) {
    NEREID_CHECK(span.begin >= before && span.begin < span.end && span.end <= tokens.size(),
                 "spans in order inside {} tokens, got [{}, {})", tokens.size(), span.begin, span.end);
    before = span.end;
    spans_.push_back(span);
    counts_.answer_tokens += span.end - span.begin;
  }
  for (const uint32_t token : tokens)
    NEREID_CHECK(token < vocab_size_, "an id below {}, got {}", vocab_size_, token);
  counts_.tokens += tokens.size(), counts_.spans += answers.size(), ++counts_.documents;
  if (width_ == 4) return append(tokens.data(), tokens.size_bytes());
  narrow_.clear();
  for (const uint32_t token : tokens) narrow_ += {static_cast<char>(token), static_cast<char>(token >> 8)};
  return append(narrow_.data(), narrow_.size());
}

Status ShardWriter::finish() {
  const uint64_t zero = 0;
  NEREID_TRY_STATUS(append(&zero, (8 - counts_.tokens * width_ % 8) % 8));
  index_.push_back(counts_.tokens), index_.push_back(counts_.spans);
  NEREID_TRY_STATUS(append(index_.data(), index_.size() * 8));
  NEREID_TRY_STATUS(append(spans_.data(), spans_.size() * sizeof(Span)));
  if (!buffer_.empty()) checksums_.push_back(crc32c(buffer_.data(), buffer_.size()));
  NEREID_TRY_STATUS(flush());
  checksums_.push_back(crc32c(checksums_.data(), checksums_.size() * 4));
  buffer_.assign(reinterpret_cast<const char*>(checksums_.data()), checksums_.size() * 4);
  NEREID_TRY_STATUS(flush());

  ShardHeader header{};
  std::memcpy(header.magic, kShardMagic, 8);
  std::memcpy(header.tokenizer, tokenizer_.data(), 32);
  header.version = kShardVersion, header.width = width_, header.vocab_size = vocab_size_,
  header.block_bytes = kBlock;
  header.tokens = counts_.tokens, header.documents = counts_.documents;
  header.spans = counts_.spans, header.answer_tokens = counts_.answer_tokens;
  header.checksum = crc32c(&header, offsetof(ShardHeader, checksum));
  if (::pwrite(fd_.get(), &header, sizeof header, 0) != sizeof header) return failed("write");
  if (::fsync(fd_.get()) != 0) return failed("sync");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("rename");
  fd_.reset();
  return ok_status();
}

ShardReader::ShardReader(ShardReader&& other) noexcept
    : path_(std::move(other.path_)),
      tokenizer_(std::move(other.tokenizer_)),
      vocab_size_(other.vocab_size_),
      width_(other.width_),
      counts_(other.counts_),
      mark_(other.mark_),
      map_(std::exchange(other.map_, nullptr)),
      map_bytes_(other.map_bytes_),
      checksums_at_(other.checksums_at_),
      index_(other.index_),
      spans_(other.spans_),
      checksums_(other.checksums_),
      checked_(std::move(other.checked_)) {}

ShardReader::~ShardReader() {
  if (map_ != nullptr) ::munmap(const_cast<char*>(map_), map_bytes_);
}

Result<ShardReader> ShardReader::open(const std::filesystem::path& path) {
  ShardReader reader;
  reader.path_ = path;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0)
    return input_error("{}: {}", path.string(), std::strerror(errno));
  const auto bytes = static_cast<uint64_t>(info.st_size);
  if (!S_ISREG(info.st_mode) || bytes < sizeof(ShardHeader))
    return input_error("{}: expected a token shard of at least {} bytes, got {}", path.string(),
                       sizeof(ShardHeader), bytes);
  void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return our_error("{}: cannot be mapped: {}", path.string(), std::strerror(errno));
  reader.map_ = static_cast<const char*>(map), reader.map_bytes_ = bytes;
  NEREID_TRY_STATUS(reader.check_layout(bytes));
  NEREID_TRY_STATUS(reader.check_index());
  return reader;
}

Status ShardReader::check_layout(uint64_t file_bytes) {
  ShardHeader header;
  std::memcpy(&header, map_, sizeof header);
  const auto name = path_.string();
  if (std::memcmp(header.magic, kShardMagic, 8) != 0)
    return input_error("{}: is not a token shard: it does not begin with NRDTOKEN", name);
  if (header.version != kShardVersion)
    return input_error("{}: expected format version {}, got {}", name, kShardVersion, header.version);
  const uint32_t found = crc32c(&header, offsetof(ShardHeader, checksum));
  if (found != header.checksum)
    return input_error("{}: the header's checksum should be {:08x}, but it is {:08x}: the file is damaged",
                       name, header.checksum, found);
  if (header.width != (header.vocab_size <= 1 << 16 ? 2 : 4) || header.block_bytes != kBlock ||
      header.vocab_size == 0)
    return input_error(
        "{}: expected blocks of {} bytes and tokens of 2 or 4, got {} and {} for a vocabulary of {}", name,
        kBlock, header.block_bytes, header.width, header.vocab_size);
  if (std::max({header.tokens, header.documents, header.spans}) > kMaxTotal)
    return input_error("{}: expected at most 2^40 of anything, got {} tokens, {} documents, {} spans", name,
                       header.tokens, header.documents, header.spans);
  counts_ = {header.tokens, header.documents, header.spans, header.answer_tokens};
  const ShardLayout layout = layout_of(counts_, header.width);
  if (layout.end != file_bytes)
    return input_error("{}: expected {} bytes for {} tokens in {} documents, got {}", name, layout.end,
                       counts_.tokens, counts_.documents, file_bytes);
  width_ = header.width, vocab_size_ = header.vocab_size, checksums_at_ = layout.checksums;
  for (const unsigned char byte : header.tokenizer) tokenizer_ += fmt::format("{:02x}", byte);
  index_ = reinterpret_cast<const uint64_t*>(map_ + layout.index);
  spans_ = reinterpret_cast<const Span*>(map_ + layout.spans);
  checksums_ = reinterpret_cast<const uint32_t*>(map_ + layout.checksums);
  const uint64_t blocks = (layout.end - layout.checksums) / 4 - 1;
  if (crc32c(checksums_, blocks * 4) != checksums_[blocks])
    return input_error("{}: the checksums at offset {} are damaged", name, layout.checksums);
  mark_ = uint64_t{header.checksum} << 32 | checksums_[blocks];
  checked_ = std::make_unique<std::atomic<bool>[]>(blocks);
  return check_blocks(layout.index, layout.checksums);
}

Status ShardReader::check_index() const {
  const auto name = path_.string();
  uint64_t answers = 0;
  if (index_[0] != 0 || index_[1] != 0)
    return input_error("{}: document 0 does not begin at token 0, span 0", name);
  for (uint64_t d = 0; d < counts_.documents; ++d) {
    const uint64_t* here = index_ + 2 * d;
    if (here[2] <= here[0] || here[2] - here[0] > INT32_MAX || here[2] > counts_.tokens ||
        here[3] < here[1] || here[3] > counts_.spans)
      return input_error("{}: document {} has tokens {} to {} of {}, and spans {} to {} of {}", name, d,
                         here[0], here[2], counts_.tokens, here[1], here[3], counts_.spans);
    uint64_t before = 0;
    for (const Span& span : this->answers(d)) {
      if (span.begin < before || span.end <= span.begin || span.end > length(d))
        return input_error("{}: document {} of {} tokens has an answer [{}, {}) after {}", name, d, length(d),
                           span.begin, span.end, before);
      before = span.end, answers += span.end - span.begin;
    }
  }
  const uint64_t* last = index_ + 2 * counts_.documents;
  if (last[0] != counts_.tokens || last[1] != counts_.spans || answers != counts_.answer_tokens)
    return input_error("{}: expected {} tokens, {} spans and {} answer tokens, got {}, {} and {}", name,
                       counts_.tokens, counts_.spans, counts_.answer_tokens, last[0], last[1], answers);
  return ok_status();
}

Status ShardReader::check_blocks(uint64_t begin, uint64_t end) const {
  if (begin == end) return ok_status();
  for (uint64_t block = (begin - sizeof(ShardHeader)) / kBlock;
       block <= (end - 1 - sizeof(ShardHeader)) / kBlock; ++block) {
    if (checked_[block].load(std::memory_order_relaxed)) continue;
    const uint64_t from = sizeof(ShardHeader) + block * kBlock;
    const uint32_t found = crc32c(map_ + from, std::min(kBlock, checksums_at_ - from));
    if (found != checksums_[block])
      return input_error(
          "{}: block {} at offset {} should have the checksum {:08x}, but it has {:08x}: the file is damaged",
          path_.string(), block, from, checksums_[block], found);
    checked_[block].store(true, std::memory_order_relaxed);
  }
  return ok_status();
}

std::span<const Span> ShardReader::answers(uint64_t document) const {
  return {spans_ + index_[2 * document + 1], spans_ + index_[2 * document + 3]};
}

Status ShardReader::read(uint64_t document, int32_t* tokens) const {
  NEREID_CHECK(document < counts_.documents, "a document below {}, got {}", counts_.documents, document);
  const uint64_t begin = sizeof(ShardHeader) + first_token(document) * width_;
  const uint32_t count = length(document);
  NEREID_TRY_STATUS(check_blocks(begin, begin + uint64_t{count} * width_));
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t id = 0;
    std::memcpy(&id, map_ + begin + uint64_t{i} * width_, width_);
    if (id >= vocab_size_)
      return input_error("{}: document {}, token {}: expected an id below {}, got {}", path_.string(),
                         document, i, vocab_size_, id);
    tokens[i] = static_cast<int32_t>(id);
  }
  return ok_status();
}

}  // namespace nereid::train
