#include "nereid/lm/tokenizer/tokenizer_document.h"

#include <optional>

namespace nereid::lm {
namespace {

constexpr size_t kDeepest = 64;

class Reader : public nlohmann::json_sax<Json> {
 public:
  Reader(TokenizerDocument& out, std::string_view what) : out_(out), what_(what) {}

  const std::optional<Error>& error() const { return error_; }

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_float(double value, const std::string&) override { return scalar(value); }
  bool binary(Json::binary_t&) override { return scalar(nullptr); }
  bool number_integer(int64_t value) override { return list_ == kVocabulary ? id(value) : scalar(value); }
  bool number_unsigned(uint64_t value) override {
    if (list_ != kVocabulary) return scalar(value);
    return id(value < static_cast<uint64_t>(TokenizerDocument::kIdLimit) ? static_cast<int64_t>(value) : -1);
  }

  bool string(std::string& value) override {
    switch (list_) {
      case kMerges: {
        const size_t space = value.find(' ');
        if (space == std::string::npos) return no_merge();
        return merge(std::string_view(value).substr(0, space), std::string_view(value).substr(space + 1));
      }
      case kPair:
        if (halves_ == 0) left_ = value;
        if (halves_ == 1) right_ = value;
        ++halves_;
        return true;
      default:
        return scalar(std::move(value));
    }
  }

  bool start_object(size_t) override {
    if (list_ != kNone) return scalar(nullptr);
    if (opens_list("vocab")) list_ = kVocabulary;
    return open(Json::object());
  }
  bool key(std::string& name) override {
    if (list_ == kVocabulary) {
      out_.spellings.add(name);
    } else {
      key_ = std::move(name);
    }
    return true;
  }
  bool end_object() override {
    list_ = kNone;
    open_.pop_back();
    return true;
  }

  bool start_array(size_t) override {
    if (list_ == kMerges) {
      list_ = kPair;
      halves_ = 0;
      return true;
    }
    if (list_ != kNone) return scalar(nullptr);
    if (opens_list("merges")) list_ = kMerges;
    return open(Json::array());
  }
  bool end_array() override {
    if (list_ == kPair) {
      list_ = kMerges;
      return halves_ == 2 ? merge(left_, right_) : no_merge();
    }
    list_ = kNone;
    open_.pop_back();
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& e) override {
    error_ = input_error("{}: {}", what_, e.what());
    return false;
  }

 private:
  enum List { kNone, kVocabulary, kMerges, kPair };

  // Whether what begins here is this member of root.model.
  bool opens_list(std::string_view name) const {
    return open_.size() == 2 && model_ == open_.back() && key_ == name;
  }

  bool open(Json empty) {
    if (open_.size() >= kDeepest) {
      error_ = input_error("{}: nested deeper than {} levels", what_, kDeepest);
      return false;
    }
    const bool model = open_.size() == 1 && key_ == "model";
    open_.push_back(put(std::move(empty)));
    if (model) model_ = open_.back();
    return true;
  }

  // What the containers hold stays where it is while they are open: of an array only the last one is.
  Json* put(Json value) {
    if (open_.empty()) return &(out_.rest = std::move(value));
    Json& into = *open_.back();
    if (into.is_array()) return &into.emplace_back(std::move(value));
    return &(into[key_] = std::move(value));
  }

  // A value that is no container, or one where only others are expected.
  bool scalar(Json value) {
    if (list_ == kVocabulary) return id(-1);
    if (list_ == kMerges || list_ == kPair) return no_merge();
    put(std::move(value));
    return true;
  }

  bool id(int64_t value) {
    if (value < 0 || value >= TokenizerDocument::kIdLimit) {
      error_ = input_error("{}.model.vocab.{}: expected an id from 0 to {}", what_,
                           out_.spellings[out_.spellings.size() - 1], TokenizerDocument::kIdLimit - 1);
      return false;
    }
    out_.ids.push_back(static_cast<TokenId>(value));
    return true;
  }

  bool no_merge() {
    error_ = input_error("{}.model.merges[{}]: expected two tokens", what_, out_.lefts.size());
    return false;
  }
  bool merge(std::string_view left, std::string_view right) {
    if (left.empty() || right.empty()) return no_merge();
    out_.lefts.add(left);
    out_.rights.add(right);
    return true;
  }

  TokenizerDocument& out_;
  std::string_view what_;
  std::optional<Error> error_;
  std::vector<Json*> open_;
  const Json* model_ = nullptr;
  std::string key_;
  List list_ = kNone;
  std::string left_, right_;
  int halves_ = 0;
};

}  // namespace

Result<TokenizerDocument> TokenizerDocument::parse(std::string_view text, std::string_view what) {
  TokenizerDocument document;
  Reader reader(document, what);
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) return *reader.error();
  return document;
}

}  // namespace nereid::lm
