// Reading a tokenizer.json: every part is either understood as `tokenizers` understands it, or refused with
// its place.
#include <algorithm>
#include <initializer_list>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/lm/text/byte_level.h"
#include "nereid/lm/text/unicode.h"
#include "nereid/lm/text/word_scanner.h"
#include "nereid/lm/tokenizer/tokenizer.h"
#include "nereid/lm/tokenizer/tokenizer_document.h"

namespace nereid::lm {
namespace {

constexpr TokenId kIdLimit = TokenizerDocument::kIdLimit;
constexpr size_t kMaxItems = 1 << 20;

// Members that are not listed may change what the file means.
Status only(const JsonField& object, std::initializer_list<std::string_view> known) {
  return object.each_member(kMaxItems, [&](const std::string& name, const JsonField& member) -> Status {
    if (std::ranges::find(known, name) != known.end()) return ok_status();
    return input_error("{}: not a member that is known here", member.path());
  });
}

Result<bool> absent(const JsonField& object, std::string_view key) {
  NEREID_TRY(const auto member, object.find(key));
  return !member || member->json().is_null();
}

Status must_be_absent(const JsonField& object, std::string_view key) {
  NEREID_TRY(const bool none, absent(object, key));
  if (none) return ok_status();
  NEREID_TRY(const JsonField member, object.at(key));
  return member.expected("null (anything else is not supported)");
}

Result<std::string> type_of(const JsonField& object) {
  NEREID_TRY(const JsonField type, object.at("type"));
  return type.text();
}

Error unknown_type(const JsonField& object, std::string_view expected, const std::string& type) {
  return input_error("{}.type: expected {}, got '{}'", object.path(), expected, type);
}

}  // namespace

class TokenizerFile {
 public:
  TokenizerFile(const TokenizerDocument& document, std::string_view what)
      : document_(document), root_(document.rest, what) {}

  Result<std::shared_ptr<const Tokenizer>> read() {
    NEREID_TRY_STATUS(only(root_, {"version", "truncation", "padding", "added_tokens", "normalizer",
                                   "pre_tokenizer", "post_processor", "decoder", "model"}));
    NEREID_TRY_STATUS(must_be_absent(root_, "truncation"));
    NEREID_TRY_STATUS(must_be_absent(root_, "padding"));
    NEREID_TRY(const JsonField model, root_.at("model"));
    NEREID_TRY_STATUS(read_model(model));
    NEREID_TRY(const bool no_normalizer, absent(root_, "normalizer"));
    if (!no_normalizer) {
      NEREID_TRY(const JsonField normalizer, root_.at("normalizer"));
      NEREID_TRY_STATUS(read_normalizer(normalizer));
    }
    NEREID_TRY(const JsonField pre_tokenizer, root_.at("pre_tokenizer"));
    NEREID_TRY_STATUS(read_pre_tokenizer(pre_tokenizer));
    if (!byte_level_) return pre_tokenizer.expected("ByteLevel, or a Sequence that ends with it");
    const PreTokenizer& cuts = out_->pre_tokenizer_;
    if (cuts.steps.size() != 1 || cuts.add_prefix_space || cuts.byte_level_pattern)
      out_->pre_tokenizer_.scanner_digits = 0;
    NEREID_TRY(const bool no_added, absent(root_, "added_tokens"));
    if (!no_added) {
      NEREID_TRY(const JsonField added, root_.at("added_tokens"));
      NEREID_TRY_STATUS(read_added_tokens(added));
    }
    NEREID_TRY(const bool no_post_processor, absent(root_, "post_processor"));
    if (!no_post_processor) {
      NEREID_TRY(const JsonField post_processor, root_.at("post_processor"));
      NEREID_TRY_STATUS(read_post_processor(post_processor));
    }
    NEREID_TRY(const JsonField decoder, root_.at("decoder"));
    NEREID_TRY_STATUS(read_decoder(decoder));
    return std::shared_ptr<const Tokenizer>(std::move(out_));
  }

 private:
  Status read_model(const JsonField& model) {
    NEREID_TRY(const std::string type, type_of(model));
    if (type != "BPE") return unknown_type(model, "'BPE'", type);
    NEREID_TRY_STATUS(
        only(model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                     "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
    for (const std::string_view name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      NEREID_TRY(const auto affix, model.find(name));
      if (affix && affix->json() != "") NEREID_TRY_STATUS(must_be_absent(model, name));
    }
    NEREID_TRY(const auto dropout, model.find("dropout"));
    if (dropout && dropout->json() != 0.0) NEREID_TRY_STATUS(must_be_absent(model, "dropout"));
    NEREID_TRY(const bool byte_fallback, model.boolean_at("byte_fallback", false));
    if (byte_fallback)
      return input_error("{}.byte_fallback: expected false: this is not a byte-level vocabulary",
                         model.path());
    NEREID_TRY(const JsonField vocabulary, model.at("vocab"));
    NEREID_TRY_STATUS(read_vocabulary(vocabulary));
    NEREID_TRY(const bool no_unknown, absent(model, "unk_token"));
    if (!no_unknown &&
        std::ranges::find(out_->model_.byte_tokens, kNoToken) != out_->model_.byte_tokens.end())
      return input_error("{}.unk_token: expected null, for the vocabulary lacks some bytes", model.path());
    NEREID_TRY(const JsonField merges, model.at("merges"));
    NEREID_TRY_STATUS(read_merges(merges));
    NEREID_TRY(const bool ignore_merges, model.boolean_at("ignore_merges", false));
    if (ignore_merges) {
      out_->whole_words_.reserve(document_.ids.size(), 8 * document_.ids.size());
      for (const TokenId id : document_.ids)
        if (byte_level_token_[static_cast<size_t>(id)]) out_->whole_words_.add(out_->bytes(id), id);
    }
    return ok_status();
  }

  Status read_vocabulary(const JsonField& vocabulary) {
    if (!vocabulary.json().is_object()) return vocabulary.expected("an object");
    const std::vector<TokenId>& ids = document_.ids;
    const TokenId highest = ids.empty() ? kNoToken : *std::ranges::max_element(ids);
    vocabulary_size_ = static_cast<TokenId>(ids.size());
    make_room(highest + 1);
    std::vector<bool> taken(static_cast<size_t>(highest + 1));
    out_->vocabulary_.reserve(ids.size() + 512, 8 * ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      const TokenId id = ids[i];
      const std::string_view spelling = document_.spellings[i];
      if (taken[static_cast<size_t>(id)])
        return input_error("{}.{}: the id {} has a token already", vocabulary.path(), spelling, id);
      taken[static_cast<size_t>(id)] = true;
      if (!out_->vocabulary_.add(spelling, id))
        return input_error("{}.{}: spelled twice", vocabulary.path(), spelling);
      set_bytes(id, spelling);
    }
    for (size_t byte = 0; byte < 256; ++byte)
      out_->model_.byte_tokens[byte] =
          out_->find(spelled(std::string(1, static_cast<char>(byte)))).value_or(kNoToken);
    return ok_status();
  }

  void make_room(TokenId size) {
    if (size <= out_->size()) return;
    out_->bytes_.resize(static_cast<size_t>(size));
    out_->special_.resize(static_cast<size_t>(size));
    byte_level_token_.resize(static_cast<size_t>(size));
  }

  void set_bytes(TokenId id, std::string_view spelling) {
    auto bytes = unspelled(spelling);
    byte_level_token_[static_cast<size_t>(id)] = bytes.has_value();
    out_->bytes_[static_cast<size_t>(id)] = bytes ? *std::move(bytes) : std::string(spelling);
  }

  Status read_merges(const JsonField& merges) {
    if (!merges.json().is_array()) return merges.expected("an array");
    const size_t count = document_.lefts.size();
    out_->model_.merges = MergeTable(count);
    const TokenTable& vocabulary = out_->vocabulary_;
    std::string both;
    for (size_t rank = 0; rank < count; ++rank) {
      const std::string_view left = document_.lefts[rank], right = document_.rights[rank];
      both = left;
      both += right;
      const TokenId left_id = vocabulary.find(left), right_id = vocabulary.find(right),
                    merged = vocabulary.find(both);
      for (const auto& [text, id] :
           {std::pair(left, left_id), {right, right_id}, {std::string_view(both), merged}})
        if (id == kNoToken)
          return input_error("{}[{}]: '{}' is not in the vocabulary", merges.path(), rank, text);
      out_->model_.merges.add(left_id, right_id, {static_cast<uint32_t>(rank), merged});
    }
    return ok_status();
  }

  Status read_normalizer(const JsonField& normalizer) {
    NEREID_TRY(const std::string type, type_of(normalizer));
    if (type == "NFC") {
      NEREID_TRY_STATUS(only(normalizer, {"type"}));
      out_->nfc_ = true;
      return ok_status();
    }
    if (type != "Sequence") return unknown_type(normalizer, "'NFC' or 'Sequence'", type);
    NEREID_TRY_STATUS(only(normalizer, {"type", "normalizers"}));
    NEREID_TRY(const JsonField parts, normalizer.at("normalizers"));
    return parts.each(kMaxItems, [this](const JsonField& part) { return read_normalizer(part); });
  }

  Status read_pre_tokenizer(const JsonField& cut) {
    if (byte_level_) return cut.expected("nothing after ByteLevel");
    NEREID_TRY(const std::string type, type_of(cut));
    if (type == "Split") return read_split(cut);
    if (type == "ByteLevel") {
      byte_level_ = true;
      NEREID_TRY_STATUS(only(cut, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
      NEREID_TRY(out_->pre_tokenizer_.add_prefix_space, cut.boolean_at("add_prefix_space", true));
      NEREID_TRY(const bool use_regex, cut.boolean_at("use_regex", true));
      if (use_regex) {
        NEREID_TRY(std::string pattern, to_pcre2(kGpt2Pattern));
        NEREID_TRY(out_->pre_tokenizer_.byte_level_pattern, Pattern::compile(std::move(pattern)));
      }
      return ok_status();
    }
    if (type == "Digits") {
      NEREID_TRY_STATUS(only(cut, {"type", "individual_digits"}));
      NEREID_TRY(const bool individual, cut.boolean_at("individual_digits", false));
      // Rust's own table of numbers is Unicode 17's.
      NEREID_TRY(std::string pattern, to_pcre2("[\\p{N}\U00011DE0-\U00011DE9\U00016FF4-\U00016FF6]"));
      NEREID_TRY(Pattern compiled, Pattern::compile(std::move(pattern)));
      out_->pre_tokenizer_.steps.push_back(
          {std::move(compiled), individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, false});
      return ok_status();
    }
    if (type != "Sequence") return unknown_type(cut, "'Split', 'Digits', 'ByteLevel' or 'Sequence'", type);
    NEREID_TRY_STATUS(only(cut, {"type", "pretokenizers"}));
    NEREID_TRY(const JsonField parts, cut.at("pretokenizers"));
    return parts.each(kMaxItems, [this](const JsonField& part) { return read_pre_tokenizer(part); });
  }

  Status read_split(const JsonField& cut) {
    static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kBehaviors = {
        {{"Isolated", SplitBehavior::kIsolated},
         {"Removed", SplitBehavior::kRemoved},
         {"MergedWithPrevious", SplitBehavior::kMergedWithPrevious},
         {"MergedWithNext", SplitBehavior::kMergedWithNext},
         {"Contiguous", SplitBehavior::kContiguous}}};
    NEREID_TRY_STATUS(only(cut, {"type", "pattern", "behavior", "invert"}));
    NEREID_TRY(const JsonField behavior, cut.at("behavior"));
    NEREID_TRY(const std::string name, behavior.text());
    const auto* known =
        std::ranges::find(kBehaviors, name, [](const auto& pair) -> std::string_view { return pair.first; });
    if (known == kBehaviors.end())
      return behavior.expected(
          "'Isolated', 'Removed', 'MergedWithPrevious', 'MergedWithNext' or 'Contiguous'");
    NEREID_TRY(const bool invert, cut.boolean_at("invert", false));
    NEREID_TRY(const JsonField pattern, cut.at("pattern"));
    NEREID_TRY_STATUS(only(pattern, {"Regex", "String"}));
    if (pattern.json().size() != 1) return pattern.expected("one of Regex and String");
    const bool regex = pattern.json().contains("Regex");
    NEREID_TRY(const JsonField field, pattern.at(regex ? "Regex" : "String"));
    NEREID_TRY(const std::string text, field.text());
    const auto in_place = [&](const Error& error) {
      return input_error("{}: {}", field.path(), error.message);
    };
    auto translated = regex ? to_pcre2(text) : Result<std::string>(quoted_pattern(text));
    if (!translated.ok()) return in_place(translated.error());
    auto compiled = Pattern::compile(*std::move(translated));
    if (!compiled.ok()) return in_place(compiled.error());
    out_->pre_tokenizer_.steps.push_back({*std::move(compiled), known->second, invert});
    if (regex && known->second == SplitBehavior::kIsolated)
      out_->pre_tokenizer_.scanner_digits = text == kQwenPattern ? 1 : text == kLlama3Pattern ? 3 : 0;
    return ok_status();
  }

  // `tokenizers` gives added tokens their ids anew, in the order of the file; one that says otherwise would
  // mean two things.
  Status read_added_tokens(const JsonField& added) {
    std::vector<AddedToken> tokens;
    TokenId highest = kNoToken;
    NEREID_TRY_STATUS(added.each(kMaxItems, [&](const JsonField& field) -> Status {
      NEREID_TRY_STATUS(
          only(field, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
      AddedToken token;
      NEREID_TRY(const JsonField content, field.at("content"));
      NEREID_TRY(token.content, content.text());
      if (token.content.empty()) return content.expected("a token that is not empty");
      NEREID_TRY(token.single_word, field.boolean_at("single_word", false));
      NEREID_TRY(token.lstrip, field.boolean_at("lstrip", false));
      NEREID_TRY(token.rstrip, field.boolean_at("rstrip", false));
      NEREID_TRY(token.normalized, field.boolean_at("normalized", true));
      NEREID_TRY(token.special, field.boolean_at("special", false));
      const auto known = out_->find(token.content);
      token.id = known ? *known : std::max(vocabulary_size_, highest + 1);
      NEREID_TRY(const JsonField id, field.at("id"));
      NEREID_TRY_STATUS(id.integer(token.id, token.id));
      highest = std::max(highest, token.id);
      if (token.id >= out_->size()) make_room(token.id + 1);
      out_->vocabulary_.add(token.content, token.id);
      // What a normalized token decodes to is normal; and one that is spelled otherwise then is not known to
      // be special.
      const std::string text = looked_for(token);
      set_bytes(token.id, text);
      if (token.special) out_->special_[static_cast<size_t>(token.id)] = text == token.content;
      tokens.push_back(std::move(token));
      return ok_status();
    }));
    // Special ones first: where two are one text, that one is found.
    // (Not std::ranges': clang 14, which builds the fuzzers, cannot compile what it returns.)
    std::stable_partition(tokens.begin(), tokens.end(),
                          [](const AddedToken& token) { return token.special; });
    for (const AddedToken& token : tokens)
      (token.normalized ? out_->normalized_added_ : out_->raw_added_).add(token, looked_for(token));
    return ok_status();
  }

  std::string looked_for(const AddedToken& token) const {
    if (!token.normalized || !out_->nfc_) return token.content;
    std::string normal;
    append_nfc(token.content, normal);
    return normal;
  }

  Status read_post_processor(const JsonField& processor) {
    NEREID_TRY(const std::string type, type_of(processor));
    if (type == "ByteLevel") return ok_status();  // moves offsets alone
    if (type == "TemplateProcessing") return read_template(processor);
    if (type != "Sequence")
      return unknown_type(processor, "'ByteLevel', 'TemplateProcessing' or 'Sequence'", type);
    NEREID_TRY_STATUS(only(processor, {"type", "processors"}));
    NEREID_TRY(const JsonField parts, processor.at("processors"));
    return parts.each(kMaxItems, [this](const JsonField& part) { return read_post_processor(part); });
  }

  Status read_template(const JsonField& processor) {
    NEREID_TRY_STATUS(only(processor, {"type", "single", "pair", "special_tokens"}));
    NEREID_TRY(const JsonField special, processor.at("special_tokens"));
    NEREID_TRY(const JsonField single, processor.at("single"));
    std::vector<TokenId> before, after;
    bool seen = false;
    NEREID_TRY_STATUS(single.each(kMaxItems, [&](const JsonField& piece) -> Status {
      NEREID_TRY_STATUS(only(piece, {"SpecialToken", "Sequence"}));
      NEREID_TRY(const auto sequence, piece.find("Sequence"));
      if (sequence) {
        if (seen || sequence->json().value("id", "") != "A") return piece.expected("the sequence A, once");
        seen = true;
        return ok_status();
      }
      NEREID_TRY(const JsonField token, piece.at("SpecialToken"));
      NEREID_TRY(const JsonField name, token.at("id"));
      NEREID_TRY(const std::string spelling, name.text());
      NEREID_TRY(const JsonField entry, special.at(spelling));
      NEREID_TRY(const JsonField ids, entry.at("ids"));
      return ids.each(kMaxItems, [&](const JsonField& id) -> Status {
        NEREID_TRY(const int64_t value, id.integer(0, out_->size() - 1));
        (seen ? after : before).push_back(static_cast<TokenId>(value));
        return ok_status();
      });
    }));
    if (!seen) return single.expected("the sequence A, once");
    out_->before_.insert(out_->before_.begin(), before.begin(), before.end());
    out_->after_.insert(out_->after_.end(), after.begin(), after.end());
    return ok_status();
  }

  Status read_decoder(const JsonField& decoder) {
    if (!decoder.json().is_object()) return decoder.expected("ByteLevel");
    NEREID_TRY(const std::string type, type_of(decoder));
    if (type == "ByteLevel") return ok_status();
    if (type != "Sequence") return unknown_type(decoder, "'ByteLevel'", type);
    NEREID_TRY(const JsonField parts, decoder.at("decoders"));
    NEREID_TRY(const size_t count, parts.size(kMaxItems));
    if (count != 1) return parts.expected("ByteLevel alone");
    return read_decoder(parts.item(0));
  }

  const TokenizerDocument& document_;
  JsonField root_;
  std::shared_ptr<Tokenizer> out_{new Tokenizer};
  TokenId vocabulary_size_ = 0;         // of the model's own tokens
  std::vector<bool> byte_level_token_;  // by id: it is spelled in the alphabet of bytes
  bool byte_level_ = false;
};

Result<std::shared_ptr<const Tokenizer>> Tokenizer::parse(std::string_view json, std::string_view what) {
  NEREID_TRY(const TokenizerDocument document, TokenizerDocument::parse(json, what));
  return TokenizerFile(document, what).read();
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::load(const std::filesystem::path& path) {
  NEREID_TRY(const std::string text, read_file(path));
  return parse(text, path.string());
}

}  // namespace nereid::lm
