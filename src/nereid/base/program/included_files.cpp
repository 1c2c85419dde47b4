#include "nereid/base/program/included_files.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "nereid/base/file.h"

namespace nereid {
namespace {

constexpr std::string_view kBegins = "# nereid-include ", kData = "# nereid-include-data ", kLine = "#|";

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 128;
}

// The statements of a file, one a line: without strings and comments, lines in brackets joined.
std::vector<std::string> statements(std::string_view source) {
  std::vector<std::string> found{""};
  int depth = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '#') {
      i = std::min(source.find('\n', i), source.size()) - 1;
    } else if (c == '"' || c == '\'') {
      const bool three = source.substr(i, 3) == std::string(3, c);
      const std::string quotes(three ? 3 : 1, c);
      for (i += quotes.size(); i < source.size() && source.substr(i, quotes.size()) != quotes; ++i) {
        if (source[i] == '\\')
          ++i;
        else if (!three && source[i] == '\n')
          break;
      }
      i += quotes.size() - 1;
      found.back() += "''";
    } else if (c == '\\' && i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    } else if ((c == '\n' || c == ';' || c == ':') && depth == 0) {
      found.emplace_back();
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
      found.back() += std::isspace(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
    }
  }
  return found;
}

// Words of a statement: names with their dots, and every other character by itself.
std::vector<std::string> words_of(std::string_view statement) {
  std::vector<std::string> words;
  for (size_t i = 0; i < statement.size(); ++i) {
    if (statement[i] == ' ') continue;
    size_t end = i;
    while (end < statement.size() && (in_name(statement[end]) || statement[end] == '.')) ++end;
    if (end == i) ++end;
    words.emplace_back(statement.substr(i, end - i));
    i = end - 1;
  }
  return words;
}

// "a.b" of ".b" in the package "a"; nothing where the dots lead out of it.
std::optional<std::string> absolute(std::string name, std::string_view package) {
  const size_t dots = std::min(name.find_first_not_of('.'), name.size());
  if (dots == 0) return name;
  std::string base(package);
  for (size_t up = 1; up < dots; ++up) {
    if (base.empty()) return std::nullopt;
    base.resize(base.find('.') == base.npos ? 0 : base.rfind('.'));
  }
  if (base.empty()) return std::nullopt;
  name.erase(0, dots);
  return name.empty() ? base : base + "." + name;
}

struct Found {
  std::filesystem::path path, folder;
};

std::optional<Found> find(const std::string& path, const std::vector<std::filesystem::path>& folders) {
  for (const auto& folder : folders) {
    std::error_code failure;
    if (std::filesystem::is_regular_file(folder / path, failure)) return Found{folder / path, folder};
  }
  return std::nullopt;
}

bool below(const std::filesystem::path& path, const std::filesystem::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

Result<std::string> read_included(const Found& file, size_t most) {
  std::error_code failure;
  const auto real = std::filesystem::canonical(file.path, failure),
             folder = std::filesystem::canonical(file.folder, failure);
  if (failure) return input_error("{}: {}", file.path.string(), failure.message());
  if (!below(real, folder))
    return input_error("{}: expected a file in {}, got a link to {}", file.path.string(), folder.string(),
                       real.string());
  return read_file(real, most);
}

std::string section(const std::string& path, const std::string& text) {
  std::string made = fmt::format("{}{}\n", kBegins, path), line;
  const auto end_line = [&] {
    made += fmt::format("{}{}{}\n", kLine, line.empty() ? "" : " ", line);
    line.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    if (text[i] == '\n' || text[i] == '\r')
      end_line();
    else
      line += text[i];
  }
  if (!line.empty()) end_line();
  return made;
}

std::string chosen_lines(std::string_view source, bool included) {
  std::string made;
  bool inside = false;
  while (!source.empty()) {
    const size_t end = std::min(source.find('\n'), source.size() - 1) + 1;
    const std::string_view line = source.substr(0, end);
    inside = line.starts_with(kBegins) || line.starts_with(kData) || (inside && line.starts_with(kLine));
    if (inside == included) made += line;
    source.remove_prefix(end);
  }
  return made;
}

}  // namespace

std::vector<std::string> imported_names(std::string_view source, std::string_view package) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (name.starts_with('.') || name.ends_with('.') || name.find("..") != name.npos) return;  // no Python
    for (size_t dot = name.find('.');; dot = name.find('.', dot + 1)) {
      const std::string prefix = name.substr(0, dot);
      if (!prefix.empty() && std::ranges::find(names, prefix) == names.end()) names.push_back(prefix);
      if (dot == name.npos) return;
    }
  };
  for (const std::string& statement : statements(source)) {
    const auto words = words_of(statement);
    if (words.size() < 2) continue;
    if (words[0] == "import") {
      for (size_t i = 1; i < words.size(); ++i)
        if (i == 1 || words[i - 1] == ",") add(words[i]);
      continue;
    }
    const auto base = words[0] == "from" ? absolute(words[1], package) : std::nullopt;
    if (!base) continue;
    add(*base);
    for (size_t i = 3; i < words.size(); ++i)
      if (in_name(words[i].front()) && words[i - 1] != "as" && words[i] != "as") add(*base + "." + words[i]);
  }
  return names;
}

Result<std::string> with_included_files(std::string source,
                                        const std::vector<std::filesystem::path>& folders) {
  std::map<std::string, std::string> texts;  // by path
  std::set<std::string> seen;
  std::deque<std::string> wanted;
  size_t bytes = 0;
  const std::string known = included_files(source);
  for (auto& name : imported_names(source)) wanted.push_back(std::move(name));
  for (; !wanted.empty(); wanted.pop_front()) {
    if (!seen.insert(wanted.front()).second) continue;
    std::string base = wanted.front();
    std::ranges::replace(base, '.', '/');
    for (const bool package : {true, false}) {
      const std::string path = base + (package ? "/__init__.py" : ".py");
      const auto file = find(path, folders);
      if (!file || known.find(fmt::format("{}{}\n", kBegins, path)) != known.npos) continue;
      NEREID_TRY(std::string text, read_included(*file, kMostIncludedBytes));
      bytes += text.size();
      if (bytes > kMostIncludedBytes || texts.size() == kMostIncludedFiles)
        return input_error("{}: the task imports more than {} MiB or {} files of {}", file->path.string(),
                           kMostIncludedBytes >> 20, kMostIncludedFiles, file->folder.string());
      const std::string own =
          package ? wanted.front()
                  : wanted.front().substr(
                        0, wanted.front().find('.') == std::string::npos ? 0 : wanted.front().rfind('.'));
      for (auto& name : imported_names(text, own)) wanted.push_back(std::move(name));
      texts.emplace(path, std::move(text));
      break;
    }
  }
  if (texts.empty()) return source;
  if (!source.empty() && source.back() != '\n') source += '\n';
  for (const auto& [path, text] : texts) source += section(path, text);
  return source;
}

Result<std::string> with_data_file(std::string source, const std::filesystem::path& file,
                                   const std::string& name) {
  NEREID_TRY(const std::string bytes, read_file(file, kMostIncludedBytes));
  if (!source.empty() && source.back() != '\n') source += '\n';
  source += fmt::format("{}{}\n", kData, name);
  constexpr size_t kBytesALine = 75;
  for (size_t at = 0; at < bytes.size(); at += kBytesALine) {
    const std::string_view part = std::string_view(bytes).substr(at, kBytesALine);
    unsigned char text[(kBytesALine + 2) / 3 * 4 + 1];
    const int length = EVP_EncodeBlock(text, reinterpret_cast<const unsigned char*>(part.data()),
                                       static_cast<int>(part.size()));
    source += fmt::format("{} {}\n", kLine,
                          std::string_view(reinterpret_cast<char*>(text), static_cast<size_t>(length)));
  }
  return source;
}

Status may_be_included(const std::filesystem::path& folder) {
  std::error_code failure;
  const auto real = std::filesystem::canonical(folder, failure);
  if (failure) return input_error("--include {}: {}", folder.string(), failure.message());
  if (!std::filesystem::is_directory(real, failure))
    return input_error("--include {}: expected a folder, got a file", folder.string());
  const char* home = std::getenv("HOME");
  const auto own = home == nullptr || *home == '\0' ? std::filesystem::path()
                                                    : std::filesystem::weakly_canonical(home, failure);
  if (real == real.root_path() || (!own.empty() && below(own, real)))
    return input_error("--include {}: expected a folder of a project, got {}", folder.string(),
                       real == real.root_path() ? "the root of the file system"
                       : real == own            ? "the home directory"
                                                : "a folder above the home directory");
  return ok_status();
}

std::string with_files_of(std::string source, std::string_view task) {
  if (task.find("# nereid-include") == task.npos) return source;
  if (!source.empty() && source.back() != '\n') source += '\n';
  return source + included_files(task);
}

std::string included_files(std::string_view source) { return chosen_lines(source, true); }
std::string without_included_files(std::string_view source) { return chosen_lines(source, false); }

}  // namespace nereid
