#include "nereid/verify/batch/batch_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "nereid/verify/rules/rules.h"

namespace nereid::verify {
namespace {

constexpr size_t kMaxDepth = 64;

// A recursive descent; what fails throws Wrong, caught in parse_loose_json.
struct Wrong {
  std::string what;
};

class LooseParser {
 public:
  explicit LooseParser(std::string_view text) : text_(text) {}

  Json document(std::string& id) {
    id_ = &id;
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    Json value = this->value(0);
    skip_space();
    if (at_ < text_.size()) wrong("the end of the line");
    return value;
  }

 private:
  [[noreturn]] void wrong(std::string_view expected) const {
    const std::string found =
        at_ < text_.size() ? fmt::format("byte 0x{:02x}", static_cast<unsigned char>(text_[at_])) : "the end";
    throw Wrong{fmt::format("column {}: expected {}, got {}", at_ + 1, expected, found)};
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool take(char c) {
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there ? 1 : 0;
    return there;
  }

  Json value(size_t depth) {
    if (depth > kMaxDepth) wrong(fmt::format("at most {} levels", kMaxDepth));
    skip_space();
    if (at_ == text_.size()) wrong("a value");
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      default:
        return scalar();
    }
  }

  Json object(size_t depth) {
    Json out = Json::object();
    ++at_;
    skip_space();
    if (take('}')) return out;
    do {
      skip_space();
      if (at_ == text_.size() || text_[at_] != '"') wrong("a key");
      const std::string key = string();
      skip_space();
      if (!take(':')) wrong("':'");
      skip_space();
      const size_t begin = at_;
      Json item = value(depth + 1);
      if (depth == 0 && key == "id" && id_->empty()) *id_ = std::string(text_.substr(begin, at_ - begin));
      if (!out.emplace(key, std::move(item)).second) wrong(fmt::format("no second key '{}'", key));
      skip_space();
    } while (take(','));
    if (!take('}')) wrong("',' or '}'");
    return out;
  }

  Json array(size_t depth) {
    Json out = Json::array();
    ++at_;
    skip_space();
    if (take(']')) return out;
    do {
      out.push_back(value(depth + 1));
      skip_space();
    } while (take(','));
    if (!take(']')) wrong("',' or ']'");
    return out;
  }

  // A number or a word, by the strict reader.
  Json scalar() {
    size_t end = at_;
    while (end < text_.size() &&
           std::string_view(" \t\r\n,]}\":[{").find(text_[end]) == std::string_view::npos)
      ++end;
    Json value = Json::parse(text_.substr(at_, end - at_), nullptr, /*allow_exceptions=*/false);
    if (value.is_discarded() || value.is_structured()) {
      const std::string_view word = text_.substr(at_, end - at_);
      const bool digits = !word.empty() && word.find_first_not_of("+-.0123456789eE") == word.npos;
      if (digits) wrong("a number that a double holds");
      wrong(word.ends_with("NaN") || word.ends_with("Infinity")
                ? "a value (JSON has neither NaN nor infinities)"
                : "a value");
    }
    at_ = end;
    return value;
  }

  uint32_t hex4() {
    if (text_.size() - at_ < 4) wrong("four hexadecimal digits");
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = text_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) wrong("a hexadecimal digit");
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    return code;
  }

  static void append(std::string& out, uint32_t code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xc0 | code >> 6), out += static_cast<char>(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xe0 | code >> 12), out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (code & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | code >> 18), out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (code >> 6 & 0x3f)), out += static_cast<char>(0x80 | (code & 0x3f));
    }
  }

  void escape(std::string& out) {
    if (at_ == text_.size()) wrong("an escape");
    constexpr std::string_view kNames = "\"\\/bfnrt", kEscapedCharacters = "\"\\/\b\f\n\r\t";
    if (const size_t i = kNames.find(text_[at_]); i != std::string_view::npos) {
      out += kEscapedCharacters[i], ++at_;
      return;
    }
    if (!take('u')) wrong("an escape");
    uint32_t code = hex4();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
      const size_t before = at_;
      at_ += 2;
      const uint32_t low = hex4();
      if (low >= 0xdc00 && low < 0xe000)
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
      else
        at_ = before;  // half of a pair, and then another escape
    }
    append(out, code);
  }

  std::string string() {
    std::string out;
    for (++at_; !take('"');) {
      if (at_ == text_.size()) wrong("'\"'");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) wrong("no control character in a string");
      ++at_;
      if (c == '\\')
        escape(out);
      else
        out += c;
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
  std::string* id_ = nullptr;
};

// The fields of one line, each taken once: what nothing has taken is unknown.
class Fields {
 public:
  Fields(const Json& json, const std::string& place) : json_(json), place_(place) {}

  const Json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  Error expected(const char* key, std::string_view what) const {
    const Json& got = json_.at(key);
    return input_error("{}: {}: expected {}, got {}", place_, key, what,
                       got.is_string()
                           ? fmt::format("text of {} bytes", got.get_ref<const std::string&>().size())
                           : got.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100));
  }
  Result<std::optional<std::string>> text(const char* key) {
    const Json* found = find(key);
    if (found == nullptr) return std::optional<std::string>();
    if (!found->is_string()) return expected(key, "text");
    return std::optional(found->get<std::string>());
  }
  Status flag(const char* key, std::optional<bool>& into) {
    const Json* found = find(key);
    if (found != nullptr && !found->is_boolean()) return expected(key, "true or false");
    if (found != nullptr) into = found->get<bool>();
    return ok_status();
  }
  Status number(const char* key, double least, double most, std::optional<double>& into) {
    const Json* found = find(key);
    if (found == nullptr) return ok_status();
    const double value = found->is_number() ? found->get<double>() : NAN;
    if (!(value >= least && value <= most))
      return expected(key, fmt::format("a number from {:g} to {:g}", least, most));
    into = value;
    return ok_status();
  }
  Status integer(const char* key, uint64_t least, uint64_t most, std::optional<uint64_t>& into) {
    const Json* found = find(key);
    if (found == nullptr) return ok_status();
    const bool whole =
        found->is_number_unsigned() || (found->is_number_integer() && found->get<int64_t>() >= 0);
    if (!whole || found->get<uint64_t>() < least || found->get<uint64_t>() > most)
      return expected(key, fmt::format("an integer from {} to {}", least, most));
    into = found->get<uint64_t>();
    return ok_status();
  }
  Result<std::string> choice(const char* key, std::initializer_list<const char*> words) {
    NEREID_TRY(const auto found, text(key));
    if (!found) return std::string();
    std::string names;
    for (const char* word : words) {
      if (*found == word) return *found;
      names += (names.empty() ? "" : ", ") + std::string(word);
    }
    return input_error("{}: {}: expected one of {}", place_, key, names);
  }
  Status no_others() const {
    for (const auto& [key, value] : json_.items())
      if (!known_.contains(key))
        return input_error("{}: unknown key '{}': expected one of {}", place_, key.substr(0, 100),
                           fmt::join(known_, ", "));
    return ok_status();
  }

 private:
  const Json& json_;
  const std::string& place_;
  std::set<std::string> known_;
};

// Settings of this pair in place of the run's: each is one line here, one in PairSettings and one in
// docs/batch_protocol.md.
Status read_settings(Fields& fields, PairSettings& settings) {
  NEREID_TRY(settings.policy, fields.choice("policy", {"strict", "mostly", "hybrid"}));
  NEREID_TRY(settings.protocol, fields.choice("protocol", {"nereid", "kernelbench"}));
  NEREID_TRY(settings.device, fields.choice("device", {"cpu", "cuda"}));
  NEREID_TRY_STATUS(fields.integer("trials", 1, 1000, settings.trials));
  NEREID_TRY_STATUS(fields.integer("seed", 0, (uint64_t{1} << 53) - 1, settings.seed));
  NEREID_TRY_STATUS(fields.number("time_limit", 0.1, 86400, settings.time_limit));
  NEREID_TRY_STATUS(fields.number("verdict_limit", 0.1, 10 * 86400, settings.verdict_limit));
  NEREID_TRY_STATUS(fields.number("rtol", 0, 1e30, settings.rtol));
  NEREID_TRY_STATUS(fields.number("atol", 0, 1e30, settings.atol));
  NEREID_TRY_STATUS(fields.flag("allow_tf32", settings.allow_tf32));
  NEREID_TRY_STATUS(fields.flag("fast_inputs", settings.fast_inputs));
  NEREID_TRY_STATUS(fields.flag("shrink", settings.shrink));
  return fields.flag("ignore_rules", settings.ignore_rules);
}

// The name of a remark, or a list of them.
Status read_forbidden(Fields& fields, std::set<std::string>& into) {
  const Json* found = fields.find("forbid");
  if (found == nullptr) return ok_status();
  for (const Json& name : found->is_array() ? *found : Json::array({*found})) {
    const bool known =
        name.is_string() && std::ranges::find(kForbiddable, name.get<std::string>()) != kForbiddable.end();
    if (!known)
      return fields.expected("forbid",
                             fmt::format("{}, or a list of these", fmt::join(kForbiddable, " or ")));
    into.insert(name.get<std::string>());
  }
  return ok_status();
}

// A reference or a candidate: under `key` a path, under `key`_source its text, under `key`_name how it is
// shown.
Status read_side(Fields& fields, const std::string& key, const std::string& place,
                 const std::filesystem::path& folder, bool candidate, Pair& pair) {
  const std::string source_key = key + "_source", name_key = key + "_name";
  NEREID_TRY(auto path, fields.text(key.c_str()));
  NEREID_TRY(auto source, fields.text(source_key.c_str()));
  NEREID_TRY(auto name, fields.text(name_key.c_str()));
  if (path.has_value() == source.has_value())
    return input_error("{}: expected `{}` or `{}`{}", place, key, source_key, path ? ", got both" : "");
  if (path) {
    if (path->find('\0') != std::string::npos)
      return input_error("{}: {}: expected a path, got a zero byte", place, key);
    NEREID_TRY_STATUS(candidate ? read_candidate(folder / *path, pair)
                                : read_reference(folder / *path, pair));
  } else {
    (candidate ? pair.candidate_text : pair.reference_source) = *std::move(source);
    (candidate ? pair.candidate_name : pair.reference_name) = key + ".py";
  }
  if (name) (candidate ? pair.candidate_name : pair.reference_name) = *std::move(name);
  return ok_status();
}

Result<Pair> read_pair_of(const Json& json, const std::string& place, const std::filesystem::path& folder) {
  Pair pair;
  Fields fields(json, place);
  fields.find("id");
  NEREID_TRY(const std::string form, fields.choice("form", {"answer", "source"}));
  NEREID_TRY(auto trace, fields.text("trace"));
  pair.trace = trace.value_or("");
  NEREID_TRY_STATUS(read_settings(fields, pair.settings));
  NEREID_TRY_STATUS(read_forbidden(fields, pair.forbid));
  // All keys before any file is read; the sides' keys are known whether they are there or not.
  for (const char* key :
       {"reference", "reference_source", "reference_name", "candidate", "candidate_source", "candidate_name"})
    fields.find(key);
  NEREID_TRY_STATUS(fields.no_others());
  NEREID_TRY_STATUS(read_side(fields, "reference", place, folder, false, pair));
  NEREID_TRY_STATUS(read_side(fields, "candidate", place, folder, true, pair));
  if (form == "answer") pair.form = Pair::Form::kAnswer;
  if (form == "source") pair.form = Pair::Form::kSource;
  return pair;
}

}  // namespace

LooseJson parse_loose_json(std::string_view text) {
  LooseJson out;
  try {
    out.value = LooseParser(text).document(out.id);
  } catch (const Wrong& wrong) {
    out.error = wrong.what;
  }
  return out;
}

BatchLine read_batch_line(std::string_view line, bool cut, const std::string& place,
                          const std::filesystem::path& folder) {
  LooseJson json = parse_loose_json(line);
  if (json.id.size() > kMaxIdBytes || json.id == "null") json.id.clear();
  if (cut) return {json.id, input_error("{}: expected at most {} bytes a line", place, kMaxLineBytes)};
  if (!json.error.empty()) return {json.id, input_error("{}: {}", place, json.error)};
  if (!json.value.is_object()) return {json.id, input_error("{}: expected an object with an `id`", place)};
  if (json.id.empty())
    return {json.id,
            input_error("{}: expected an `id` other than null, of at most {} bytes", place, kMaxIdBytes)};
  return {json.id, read_pair_of(json.value, place, folder)};
}

std::string id_text(const std::string& id) {
  // Escapes stay as they are; only bytes that are no UTF-8 cannot.
  const std::string quoted = Json(id).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

}  // namespace nereid::verify
