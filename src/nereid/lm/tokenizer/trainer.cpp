#include "nereid/lm/tokenizer/trainer.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "nereid/base/json.h"
#include "nereid/lm/text/byte_level.h"
#include "nereid/lm/text/unicode.h"
#include "nereid/lm/text/word_scanner.h"
#include "nereid/lm/tokenizer/pair_merger.h"

namespace nereid::lm {
namespace {

Json file_without_model(const TrainerOptions& options, const std::vector<std::string>& phrases,
                        size_t first_phrase) {
  const bool qwen = options.family == TokenizerFamily::kQwen;
  const std::string_view pattern = qwen                                         ? kQwenPattern
                                   : options.family == TokenizerFamily::kLlama3 ? kLlama3Pattern
                                                                                : kCodePattern;
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  const Json split = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  Json added = Json::array();
  const auto add = [&](size_t id, const std::string& content, bool special) {
    added.push_back({{"id", id},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", special}});
  };
  for (size_t i = 0; i < options.special.size(); ++i) add(i, options.special[i], true);
  for (size_t i = 0; i < phrases.size(); ++i) add(first_phrase + i, phrases[i], false);
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", qwen ? Json{{"type", "NFC"}} : Json()},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}}},
          {"post_processor", bytes},
          {"decoder", bytes}};
}

std::string quoted(const std::string& text) { return Json(text).dump(); }

// The model by hand: a Json object would sort 100,000 tokens by their spelling.
std::string model_text(const LearnedVocabulary& learned) {
  std::string text = R"({"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
                     R"("end_of_word_suffix":null,)"
                     R"("fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{)";
  for (size_t id = 0; id < learned.tokens.size(); ++id)
    text += fmt::format("{}{}:{}", id == 0 ? "" : ",\n", quoted(learned.tokens[id]), id);
  text += "},\"merges\":[";
  for (size_t i = 0; i < learned.merges.size(); ++i) {
    const auto [left, right] = learned.merges[i];
    text += fmt::format("{}[{},{}]", i == 0 ? "" : ",\n", quoted(learned.tokens[left]),
                        quoted(learned.tokens[right]));
  }
  return text + "]}";
}

// The parts of a text between phrases: a tokenizer cuts it at them as at added tokens.
std::vector<std::string_view> between(std::string_view text, const std::vector<std::string>& phrases) {
  std::vector<std::string_view> parts;
  std::vector<size_t> next(phrases.size(), 0);  // where each phrase is found next
  size_t from = 0;
  while (true) {
    size_t best = phrases.size();
    for (size_t i = 0; i < phrases.size(); ++i) {
      if (phrases[i].empty()) continue;  // train() refuses it
      if (next[i] != std::string_view::npos && (next[i] < from || from == 0))
        next[i] = text.find(phrases[i], from);
      if (next[i] == std::string_view::npos) continue;
      if (best == phrases.size() || next[i] < next[best] ||
          (next[i] == next[best] && phrases[i].size() > phrases[best].size()))
        best = i;
    }
    const size_t end = best == phrases.size() ? text.size() : next[best];
    if (end > from) parts.push_back(text.substr(from, end - from));
    if (best == phrases.size()) return parts;
    from = end + phrases[best].size();
  }
}

}  // namespace

Trainer::Trainer(TrainerOptions options) : options_(std::move(options)) {
  if (options_.family != TokenizerFamily::kCode) return;
  auto pattern = Pattern::compile(*to_pcre2(kCodePattern));
  NEREID_CHECK(pattern.ok(), "a constant");
  for (const std::string& word : options_.phrase_words)
    if (std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; }))
      for (size_t length = 1; length <= word.size(); ++length)
        compound_begins_.insert(word.substr(0, length));
  by_pattern_.emplace();
  by_pattern_->steps.push_back({.pattern = *std::move(pattern)});
}

void Trainer::add(std::string_view text) {
  if (!is_utf8(text)) {
    lossless_.clear();
    append_lossy(text, lossless_);
    text = lossless_;
  }
  const bool qwen = options_.family == TokenizerFamily::kQwen;
  if (qwen && may_need_nfc(text)) {
    normalized_.clear();
    append_nfc(text, normalized_);
    text = normalized_;
  }
  if (!by_pattern_) {
    for (WordScanner scanner(text, qwen ? 1 : 3); !scanner.done();) count(scanner.next());
    return;
  }
  for (const std::string_view part : between(text, options_.whole_phrases)) add_between_phrases(part);
}

void Trainer::add_between_phrases(std::string_view text) {
  const auto done = PreTokenizerRun(*by_pattern_).words(text, [&](std::string_view word) {
    count(word);
    if (options_.phrases > 0) join_compounds(word);
  });
  NEREID_CHECK(done.ok(), "this expression never goes back");
  end_compound();
  end_phrase();
}

void Trainer::count(std::string_view word) {
  const auto found = words_.find(word);
  if (found != words_.end()) {
    ++found->second;
  } else {
    words_.emplace(word, 1);
  }
}

namespace {

std::string_view without_space_or_dot(std::string_view word) {
  return word.substr(word.starts_with(' ') || word.starts_with('.') ? 1 : 0);
}

}  // namespace

void Trainer::join_compounds(std::string_view word) {
  std::string begun;
  for (const std::string_view part : compound_) begun += part;
  if (compound_begins_.contains(without_space_or_dot(begun + std::string(word)))) {
    compound_.push_back(word);
    return;
  }
  end_compound();
  if (compound_begins_.contains(without_space_or_dot(word)))
    compound_.push_back(word);
  else
    join(word);
}

void Trainer::end_compound() {
  std::string whole;
  for (const std::string_view part : compound_) whole += part;
  if (options_.phrase_words.contains(std::string(without_space_or_dot(whole))))
    join(whole);
  else
    for (const std::string_view part : compound_) join(part);
  compound_.clear();
}

// A nought is of phrases, too, but within: tl.program_id(0).
void Trainer::join(std::string_view word) {
  const std::string_view name = without_space_or_dot(word);
  const bool named = !name.empty() && (std::isalnum(static_cast<unsigned char>(name[0])) != 0 ||
                                       name[0] == '_' || (static_cast<unsigned char>(name[0]) & 0x80) != 0);
  if (named && word != "0" && !options_.phrase_words.contains(std::string(name))) return end_phrase();
  auto found = joined_.find(word);
  if (found == joined_.end()) found = joined_.emplace(word, static_cast<uint32_t>(joined_.size())).first;
  phrase_.push_back(found->second);
}

void Trainer::end_phrase() {
  if (phrase_.size() > 1) ++seen_phrases_[phrase_];
  phrase_.clear();
}

std::vector<std::string> Trainer::phrases() const {
  std::vector<std::string> tokens(joined_.size());
  for (const auto& [word, id] : joined_) tokens[id] = word;
  const size_t words = tokens.size(), merges = options_.phrases * 3 / 2;
  PairMerger merger(std::move(tokens));
  for (const auto& [symbols, count] : seen_phrases_) merger.add(symbols, count);
  // More than there are to be: many are parts of longer ones and spare little.
  const LearnedVocabulary learned = merger.learn(words + merges, 2);
  std::unordered_map<std::string, uint64_t> length;
  for (size_t id = 0; id < learned.tokens.size(); ++id) length[learned.tokens[id]] = 1;
  std::map<std::string, uint64_t> spared;
  for (size_t i = 0; i < learned.merges.size(); ++i) {
    const std::string &left = learned.tokens[learned.merges[i].first],
                      &right = learned.tokens[learned.merges[i].second];
    const std::string text = left + right;
    length[text] = length[left] + length[right];
    if (text.front() == '0' || text.back() == '0') continue;
    uint64_t& most = spared[text];
    most = std::max(most, learned.seen[i] * (length[text] - 1));
  }
  std::vector<std::pair<uint64_t, std::string>> best;
  for (const auto& [text, tokens_spared] : spared) best.emplace_back(tokens_spared, text);
  std::ranges::stable_sort(best, std::greater<>(), &std::pair<uint64_t, std::string>::first);
  best.resize(std::min(best.size(), options_.phrases));
  std::vector<std::string> made;
  for (auto& each : best) made.push_back(std::move(each.second));
  return made;
}

Result<std::string> Trainer::train() const {
  std::vector<std::string> phrases = options_.whole_phrases;
  for (std::string& phrase : this->phrases())
    if (std::ranges::count(options_.whole_phrases, phrase) == 0) phrases.push_back(std::move(phrase));
  for (const std::string& phrase : options_.whole_phrases)
    if (phrase.empty() || std::ranges::count(phrases, phrase) > 1)
      return input_error("phrase {}: expected one that is not empty, given once", quoted(phrase));
  // The symbols of bytes have the ids after the special tokens, in the order of their code points.
  std::vector<std::string> tokens = options_.special;
  std::array<uint16_t, 256> symbols = byte_symbols();
  std::ranges::sort(symbols);
  for (const uint16_t symbol : symbols) append_code_point(symbol, tokens.emplace_back());
  for (const std::string& token : tokens)
    if (token.empty() || std::ranges::count(tokens, token) > 1)
      return input_error(
          "special token '{}': expected one that is not empty, given once, and no byte's symbol", token);
  if (options_.vocabulary < tokens.size() + phrases.size())
    return input_error(
        "a vocabulary of {} tokens: expected at least {}, for 256 bytes, {} special tokens and {} phrases",
        options_.vocabulary, tokens.size() + phrases.size(), options_.special.size(), phrases.size());

  std::array<uint32_t, 256> byte_tokens{};
  for (uint32_t id = 0; id < 256; ++id) {
    const std::string byte = *unspelled(tokens[options_.special.size() + id]);
    byte_tokens[static_cast<unsigned char>(byte[0])] = static_cast<uint32_t>(options_.special.size()) + id;
  }
  PairMerger merger(std::move(tokens));
  std::vector<uint32_t> symbols_of_word;
  for (const auto& [word, count] : words_) {
    symbols_of_word.clear();
    for (const char byte : word) symbols_of_word.push_back(byte_tokens[static_cast<unsigned char>(byte)]);
    merger.add(symbols_of_word, count);
  }
  const LearnedVocabulary learned =
      merger.learn(options_.vocabulary - phrases.size(), options_.min_frequency);

  std::string text = file_without_model(options_, phrases, learned.tokens.size()).dump();
  text.pop_back();
  return text + ",\"model\":" + model_text(learned) + "}\n";
}

}  // namespace nereid::lm
