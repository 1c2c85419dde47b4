#include "nereid/train/data/shard_maker.h"

#include <algorithm>
#include <fstream>

#include "nereid/base/hash.h"
#include "nereid/base/program/given_file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/thread_pool.h"
#include "nereid/lm/chat/chat_template.h"

namespace nereid::train {
namespace {

constexpr size_t kLinesAtOnce = 512;
constexpr size_t kLongestLine = size_t{64} << 20;

struct InputLine {
  std::string text;
  uint64_t number = 0;
};

// The lines of all files, one after the other, from a place on.
class LineReader {
 public:
  LineReader(const std::vector<std::string>& files, uint64_t file, uint64_t byte, uint64_t line)
      : files_(&files), file_(file), byte_(byte), line_(line) {}

  uint64_t file() const { return file_; }
  uint64_t byte() const { return byte_; }
  uint64_t line() const { return line_; }  // lines of the file before that place

  // The next lines of one file; empty at the end of all. An error where a file cannot be read.
  Result<std::vector<InputLine>> next() {
    std::vector<InputLine> lines;
    while (lines.empty() && file_ < files_->size()) {
      NEREID_TRY_STATUS(open());
      InputLine line;
      while (lines.size() < kLinesAtOnce && read_line(line.text)) {
        byte_ += line.text.size() + (stream_.eof() ? 0 : 1);
        line.number = ++line_;
        if (line.text.size() > kLongestLine)
          return input_error("{}:{}: a line of more than {} bytes", (*files_)[file_], line_, kLongestLine);
        if (!line.text.empty()) lines.push_back(std::move(line));
      }
      if (stream_.bad()) return input_error("{}: cannot be read", (*files_)[file_]);
      if (!lines.empty()) break;
      stream_.close();
      ++file_, byte_ = line_ = 0;
    }
    return lines;
  }

 private:
  // Up to a newline, or one byte more than the longest line has: a file may be one line without end.
  bool read_line(std::string& line) {
    line.clear();
    while (line.size() <= kLongestLine) {
      const int byte = stream_.get();
      if (byte == std::char_traits<char>::eof()) return !line.empty();
      if (byte == '\n') return true;
      line.push_back(static_cast<char>(byte));
    }
    return true;
  }

  Status open() {
    if (stream_.is_open()) return ok_status();
    stream_.clear();
    stream_.open((*files_)[file_], std::ios::binary);
    stream_.seekg(static_cast<std::streamoff>(byte_));
    if (!stream_) return input_error("{}: {}", (*files_)[file_], std::strerror(errno));
    return ok_status();
  }

  const std::vector<std::string>* files_;
  std::ifstream stream_;
  uint64_t file_, byte_, line_;
};

struct EncodedLine {
  std::vector<uint32_t> tokens;
  uint32_t answer = 0;  // where it begins
  const char* left_out = nullptr;
  std::optional<Error> error;
};

class ShardMaker {
 public:
  ShardMaker(const ShardMakerSettings& settings, std::shared_ptr<const lm::Tokenizer> tokenizer,
             ShardList list)
      : settings_(settings),
        pool_(settings.threads),
        tokenizer_(std::move(tokenizer)),
        list_(std::move(list)) {
    for (int thread = 0; thread < pool_.threads(); ++thread) encoders_.emplace_back(tokenizer_);
  }

  Status make() {
    LineReader reader(settings_.inputs, list_.next_file, list_.next_byte, list_.next_line);
    NEREID_TRY_STATUS(measure());
    while (true) {
      if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
      NEREID_TRY(const auto lines, reader.next());
      if (lines.empty()) break;
      encode(lines, settings_.inputs[reader.file()]);
      NEREID_TRY_STATUS(write(lines.size()));
      if (settings_.report) settings_.report(before_[reader.file()] + reader.byte(), before_.back());
      // A shard is closed between two batches of lines: there the reader's place is what comes next.
      if (shard_ && shard_->counts().tokens >= settings_.shard_tokens)
        NEREID_TRY_STATUS(close(reader, false));
    }
    return close(reader, true);
  }

  const ShardList& list() const { return list_; }

 private:
  Status measure() {
    for (const auto& file : settings_.inputs) {
      std::error_code error;
      const auto bytes = std::filesystem::file_size(file, error);
      if (error) return input_error("{}: {}", file, error.message());
      before_.push_back(before_.back() + bytes);
    }
    return ok_status();
  }

  void encode(const std::vector<InputLine>& lines, const std::string& file) {
    encoded_.assign(lines.size(), {});
    pool_.parallel_for(std::ssize(lines), [&](int64_t i, int thread) {
      EncodedLine& line = encoded_[static_cast<size_t>(i)];
      const auto& input = lines[static_cast<size_t>(i)];
      if (auto done = encode_line(input.text, fmt::format("{}:{}", file, input.number),
                                  encoders_[static_cast<size_t>(thread)], line);
          !done.ok())
        line.error = done.error();
    });
  }

  Status encode_line(std::string_view text, const std::string& where, lm::Encoder& encoder,
                     EncodedLine& line) const {
    NEREID_TRY(const Json json, parse_json(text, where));
    NEREID_TRY(const auto found, example_of(json, where, settings_.examples));
    if (const auto* out = std::get_if<LeftOut>(&found)) {
      line.left_out = out->why;
      return ok_status();
    }
    const auto& example = std::get<Example>(found);
    std::vector<lm::TokenId> ids;
    // Apart, so that the answer begins with a token of its own, as it does when a model writes it.
    NEREID_TRY_STATUS(encoder.encode(example.prompt, {.add_special = !example.has_special}, ids));
    line.answer = static_cast<uint32_t>(ids.size());
    NEREID_TRY_STATUS(encoder.encode(example.answer, {.add_special = false}, ids));
    line.tokens.assign(ids.begin(), ids.end());
    if (line.tokens.size() == line.answer)
      line.left_out = "has no answer";
    else if (std::ssize(line.tokens) > settings_.longest)
      line.left_out = "is too long";
    return ok_status();
  }

  Status write(size_t lines) {
    for (size_t i = 0; i < lines; ++i) {
      const EncodedLine& line = encoded_[i];
      if (line.error) return *line.error;
      if (line.left_out != nullptr) {
        ++list_.left_out[line.left_out];
        continue;
      }
      if (!shard_) {
        const auto path = settings_.folder / fmt::format("{:05}.tokens", list_.shards.size());
        NEREID_TRY(auto shard, ShardWriter::create(path, list_.tokenizer, list_.vocab_size));
        shard_.emplace(std::move(shard));
      }
      const std::vector<Span> answers = {{line.answer, static_cast<uint32_t>(line.tokens.size())}};
      NEREID_TRY_STATUS(shard_->add(line.tokens, answers));
    }
    return ok_status();
  }

  Status close(const LineReader& reader, bool done) {
    if (shard_) {
      NEREID_TRY_STATUS(shard_->finish());
      const auto& counts = shard_->counts();
      list_.shards.push_back({fmt::format("{:05}.tokens", list_.shards.size()), counts.documents,
                              counts.tokens, counts.answer_tokens});
      shard_.reset();
    }
    list_.next_file = reader.file(), list_.next_byte = reader.byte(), list_.next_line = reader.line(),
    list_.done = done;
    return list_.write(settings_.folder);
  }

  const ShardMakerSettings& settings_;
  ThreadPool pool_;
  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  std::vector<lm::Encoder> encoders_;  // of each thread
  ShardList list_;
  std::optional<ShardWriter> shard_;
  std::vector<EncodedLine> encoded_;
  std::vector<uint64_t> before_{0};  // bytes in front of each file, and all
};

// What a run that was killed while it wrote its list has left of it.
void remove_half_written(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(fmt::format("{}.", ShardList::kName)) && name.ends_with(".tmp"))
      std::filesystem::remove(entry.path(), error);
  }
}

}  // namespace

Result<ShardSummary> make_shards(ShardMakerSettings settings) {
  NEREID_TRY(const std::string text, read_file(settings.tokenizer));
  NEREID_TRY(const auto tokenizer, lm::Tokenizer::parse(text, settings.tokenizer));
  for (const auto& input : settings.inputs) NEREID_TRY_STATUS(can_be_read(input));
  auto& chat = settings.examples.chat;
  NEREID_TRY(chat,
             lm::read_chat_template(std::filesystem::path(settings.tokenizer).parent_path(), *tokenizer));
  std::error_code error;
  std::filesystem::create_directories(settings.folder, error);
  if (error) return input_error("{}: cannot be made: {}", settings.folder.string(), error.message());
  remove_half_written(settings.folder);
  ShardList list;
  list.tokenizer = sha256_hex(text);
  list.vocab_size = tokenizer->size();
  Json made_by = {{"inputs", settings.inputs},
                  {"split", settings.examples.split},
                  {"asked_with", sha256_hex(settings.asked_with)},
                  {"longest", settings.longest},
                  {"shard_tokens", settings.shard_tokens}};
  // Only where it is so: folders from before there was such a choice go on.
  if (settings.examples.without_plans) made_by["without_plans"] = true;
  if (chat.family != lm::ChatTemplate::Family::kQwen3)
    made_by["chat"] = {static_cast<int>(chat.family), chat.usual_system, chat.date};
  list.made_by = made_by.dump();
  ShardSummary made;
  if (std::filesystem::exists(settings.folder / ShardList::kName, error)) {
    NEREID_TRY(ShardList before, ShardList::read(settings.folder));
    if (before.made_by != list.made_by || before.tokenizer != list.tokenizer)
      return input_error("{}: was made with other inputs, options or another tokenizer: {}, tokenizer {:.12}",
                         settings.folder.string(), before.made_by, before.tokenizer);
    made.resumed_shards = before.shards.size();
    list = std::move(before);
  }
  if (!list.done) {
    ShardMaker maker(settings, tokenizer, std::move(list));
    NEREID_TRY_STATUS(maker.make());
    list = maker.list();
  }
  made.list = std::move(list);
  return made;
}

}  // namespace nereid::train
