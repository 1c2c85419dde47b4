// Reading a TOML file key by key into plain structs. Whatever is wrong is collected, so that one reading
// reports all of it, each with its line:
//
//   runs/a.toml:7: optimizer.clip_norm: expected a number above 0 and at most 1e+06, got -1
//   runs/a.toml:9: optimizer has no key 'betas'; it has beta1, beta2, ...
#pragma once

#define TOML_EXCEPTIONS 0  // so it is compiled here: the library that Debian has throws
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::train {

// One key that a reader looked up: for a list of all keys (rl/objective/run_file_keys.h).
struct TomlKey {
  std::string path;     // "optimizer.clip_norm"
  std::string type;     // "number", "one of adamw, muon"
  std::string initial;  // the default as TOML; "required", or empty where the key has no default
  bool operator==(const TomlKey&) const = default;
};

// The document after all of its tables; it outlives them.
class TomlDocument {
 public:
  // `name` stands in front of every error.
  static Result<TomlDocument> parse(std::string_view text, std::string name);
  // Everything that its tables found wrong, in the order of the lines; ok if nothing was.
  Status status() const;
  // Every key that was looked up so far, once each.
  const std::vector<TomlKey>& keys() const { return keys_; }

 private:
  friend class TomlTable;
  void wrong(uint32_t line, std::string message) { wrong_.emplace_back(line, std::move(message)); }
  std::string name_;
  toml::table root_;
  std::vector<std::pair<uint32_t, std::string>> wrong_;
  std::vector<TomlKey> keys_;
};

struct Interval {
  double lowest = 0, highest = 1;
  bool above = false;  // without its lower end
  bool below = false;  // without its upper end
};

// One table. A reader leaves its value as it is where the key is absent. What was not asked for when the
// table goes is an unknown key.
class TomlTable {
 public:
  explicit TomlTable(TomlDocument& document) : TomlTable(document, document.root_, "") {}
  TomlTable(TomlTable&& other) noexcept;
  TomlTable& operator=(TomlTable&&) = delete;
  ~TomlTable();

  bool has(std::string_view key);
  void integer(std::string_view key, int64_t& value, int64_t lowest, int64_t highest);
  void real(std::string_view key, double& value, Interval interval);
  void boolean(std::string_view key, bool& value);
  void text(std::string_view key, std::string& value);
  void texts(std::string_view key, std::vector<std::string>& values);
  void integers(std::string_view key, std::vector<int64_t>& values, int64_t lowest, int64_t highest);
  void reals(std::string_view key, std::vector<double>& values, Interval interval);
  template <typename Enum>
  void choice(std::string_view key, Enum& value, std::initializer_list<std::pair<const char*, Enum>> names) {
    std::vector<std::string_view> all;
    std::string initial;
    for (const auto& [name, named] : names) {
      all.push_back(name);
      if (named == value) initial = name;
    }
    note_choice(key, all, initial);
    if (const auto index = chosen(key, all)) value = (names.begin() + *index)->second;
  }
  // The table under that key, if it is there.
  std::optional<TomlTable> table(std::string_view key);

  // An error that needs several keys: reported with the key's line, or the table's where the key is absent.
  void wrong(std::string_view key, std::string_view expected);
  // Wrong unless it is there.
  void required(std::string_view key, std::string_view expected);

 private:
  TomlTable(TomlDocument& document, const toml::table& table, std::string path)
      : document_(&document), table_(&table), path_(std::move(path)) {}
  const toml::node* find(std::string_view key);
  void note(std::string_view key, std::string type, std::string initial);
  void note_choice(std::string_view key, const std::vector<std::string_view>& names,
                   std::string_view initial);
  std::string path_of(std::string_view key) const;
  void expected(const toml::node& node, const std::string& path, std::string_view expected);
  std::optional<int64_t> integer_of(const toml::node& node, const std::string& path, int64_t lowest,
                                    int64_t highest);
  std::optional<double> real_of(const toml::node& node, const std::string& path, const Interval& interval);
  std::optional<std::string> text_of(const toml::node& node, const std::string& path);
  std::optional<int> chosen(std::string_view key, const std::vector<std::string_view>& names);
  template <typename T, typename Read>
  void list(std::string_view key, std::vector<T>& values, std::string_view what, const Read& read);

  TomlDocument* document_;
  const toml::table* table_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
  std::set<std::string, std::less<>> without_default_;  // required, or asked for with has()
};

}  // namespace nereid::train
