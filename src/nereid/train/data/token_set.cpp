#include "nereid/train/data/token_set.h"

#include <algorithm>

#include "nereid/base/hash.h"
#include "nereid/base/json_field.h"

namespace nereid::train {
namespace {

constexpr int kListVersion = 1;
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr size_t kMaxShards = 1 << 20;

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && !name.starts_with('.');
}

}  // namespace

Result<ShardList> ShardList::read(const std::filesystem::path& folder) {
  const auto path = folder / kName;
  NEREID_TRY(const std::string text, read_file(path));
  NEREID_TRY(const Json json, parse_json(text, path.string()));
  const std::string named = path.string();  // a field refers to its name
  const JsonField root(json, named);
  NEREID_TRY(const auto version_field, root.at("nereid_tokens"));
  NEREID_TRY([[maybe_unused]] const auto version, version_field.integer(kListVersion, kListVersion));
  ShardList list;
  NEREID_TRY(list.tokenizer, root.text_at("tokenizer"));
  NEREID_TRY(const int64_t vocab, root.integer_at("vocab_size", 0, 1, UINT32_MAX));
  list.vocab_size = static_cast<uint32_t>(vocab);
  NEREID_TRY(list.made_by, root.text_at("made_by"));
  NEREID_TRY(list.done, root.boolean_at("done", false));
  for (const auto& [key, field] : {std::pair{"next_file", &list.next_file},
                                   {"next_byte", &list.next_byte},
                                   {"next_line", &list.next_line}}) {
    NEREID_TRY(const int64_t value, root.integer_at(key, 0, 0, INT64_MAX));
    *field = static_cast<uint64_t>(value);
  }
  NEREID_TRY(const auto shards, root.at("shards"));
  NEREID_TRY_STATUS(shards.each(kMaxShards, [&](const JsonField& item) -> Status {
    Shard& shard = list.shards.emplace_back();
    NEREID_TRY(const auto file, item.at("file"));
    NEREID_TRY(shard.file, file.text(255));
    if (!is_plain_name(shard.file)) return file.expected("a file's name");
    for (const auto& [key, field] : {std::pair{"documents", &shard.documents},
                                     {"tokens", &shard.tokens},
                                     {"answer_tokens", &shard.answer_tokens}}) {
      NEREID_TRY(const int64_t value, item.integer_at(key, -1, 0, kMaxCount));
      *field = static_cast<uint64_t>(value);
    }
    return ok_status();
  }));
  NEREID_TRY(const auto left_out, root.find("left_out"));
  if (left_out)
    NEREID_TRY_STATUS(
        left_out->each_member(1000, [&](const std::string& why, const JsonField& count) -> Status {
          NEREID_TRY(const int64_t value, count.integer(0, kMaxCount));
          list.left_out[why] = static_cast<uint64_t>(value);
          return ok_status();
        }));
  return list;
}

Status ShardList::write(const std::filesystem::path& folder) const {
  Json shard_list = Json::array();
  for (const Shard& shard : shards)
    shard_list.push_back({{"file", shard.file},
                          {"documents", shard.documents},
                          {"tokens", shard.tokens},
                          {"answer_tokens", shard.answer_tokens}});
  const Json json = {{"nereid_tokens", kListVersion},
                     {"tokenizer", tokenizer},
                     {"vocab_size", vocab_size},
                     {"made_by", made_by},
                     {"done", done},
                     {"shards", shard_list},
                     {"next_file", next_file},
                     {"next_byte", next_byte},
                     {"next_line", next_line},
                     {"left_out", left_out}};
  return write_file_atomically(folder / kName, json.dump(1) + "\n");
}

Result<TokenSet> TokenSet::open(const std::vector<std::string>& folders) {
  TokenSet set;
  std::string marks;
  for (const std::filesystem::path folder : folders) {
    NEREID_TRY(const ShardList list, ShardList::read(folder));
    if (!list.done)
      return input_error("{}: is not finished: run the command that made it to resume", folder.string());
    for (const auto& expected : list.shards) {
      NEREID_TRY(ShardReader shard, ShardReader::open(folder / expected.file));
      const auto& counts = shard.counts();
      if (counts.documents != expected.documents || counts.tokens != expected.tokens ||
          counts.answer_tokens != expected.answer_tokens)
        return input_error(
            "{}: expected {} documents of {} tokens, {} in answers, as {} has it, got {}, {} and {}",
            shard.path().string(), expected.documents, expected.tokens, expected.answer_tokens,
            ShardList::kName, counts.documents, counts.tokens, counts.answer_tokens);
      const bool alike = set.shards_.empty() ||
                         (shard.tokenizer() == set.tokenizer() && shard.vocab_size() == set.vocab_size());
      if (!alike)
        return input_error("{}: was made with tokenizer {:.12}, {} with {:.12}", shard.path().string(),
                           shard.tokenizer(), set.shards_.front().path().string(), set.tokenizer());
      marks += fmt::format("{:016x}", shard.mark());
      set.first_.push_back(set.first_.back() + counts.documents);
      set.shards_.push_back(std::move(shard));
    }
  }
  if (set.shards_.empty() || set.documents() == 0) {
    std::string all;
    for (const auto& folder : folders) all += (all.empty() ? "" : ", ") + folder;
    return input_error("no documents in {}", all);
  }
  set.fingerprint_ = sha256_hex(marks);
  return set;
}

std::pair<const ShardReader*, uint64_t> TokenSet::place(uint64_t document) const {
  NEREID_CHECK(document < documents(), "a document below {}, got {}", documents(), document);
  const auto behind = std::ranges::upper_bound(first_, document);
  const auto shard = static_cast<size_t>(behind - first_.begin() - 1);
  return {&shards_[shard], document - first_[shard]};
}

uint32_t TokenSet::length(uint64_t document) const {
  const auto [shard, within] = place(document);
  return shard->length(within);
}

std::span<const Span> TokenSet::answers(uint64_t document) const {
  const auto [shard, within] = place(document);
  return shard->answers(within);
}

Status TokenSet::read(uint64_t document, int32_t* tokens) const {
  const auto [shard, within] = place(document);
  return shard->read(within, tokens);
}

}  // namespace nereid::train
