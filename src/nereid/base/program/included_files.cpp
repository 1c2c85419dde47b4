#include "nereid/base/program/included_files.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <optional>
#include <set>

#include "nereid/base/file.h"

namespace nereid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegins = "# nereid-include ", kData = "# nereid-include-data ", kLine = "#|";

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 128;
}

struct Statement {
  std::string text{};  // without strings and comments, lines in brackets joined
  size_t begin = 0;    // in the file
};

std::vector<Statement> statements(std::string_view source) {
  std::vector<Statement> found{{}};
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
      found.back().text += "''";
    } else if (c == '\\' && i + 1 < source.size() && source[i + 1] == '\n') {
      ++i;
    } else if ((c == '\n' || c == ';' || c == ':') && depth == 0) {
      found.push_back({"", i + 1});
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') depth = std::max(0, depth - 1);
      found.back().text += std::isspace(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
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

// "a.b" of "a.b.c", "" of "a".
std::string parent(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == name.npos ? "" : name.substr(0, dot);
}

bool is_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, in_name);
}

bool below(const fs::path& path, const fs::path& folder) {
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

Result<std::optional<std::string>> read_included(const std::string& path,
                                                 const std::vector<fs::path>& folders) {
  for (const auto& given : folders) {
    std::error_code failure;
    if (!fs::is_regular_file(given / path, failure)) continue;
    const auto real = fs::canonical(given / path, failure), folder = fs::canonical(given, failure);
    if (failure) return input_error("{}: {}", (given / path).string(), failure.message());
    if (!below(real, folder))
      return input_error("{}: expected a file in {}, got a link to {}", (given / path).string(),
                         given.string(), real.string());
    NEREID_TRY(std::string text, read_file(real, kMaxIncludedBytes));
    return std::optional(std::move(text));
  }
  return std::optional<std::string>();
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
  for (const Statement& statement : statements(source)) {
    const auto words = words_of(statement.text);
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

Result<std::string> with_imported_files(std::string source, const FindFile& find) {
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
    for (const bool is_package : {true, false}) {
      const std::string path = base + (is_package ? "/__init__.py" : ".py");
      if (known.find(fmt::format("{}{}\n", kBegins, path)) != known.npos) continue;
      NEREID_TRY(auto text, find(path));
      if (!text) continue;
      bytes += text->size();
      if (bytes > kMaxIncludedBytes || texts.size() == kMaxIncludedFiles)
        return input_error("{}: the task imports more than {} MiB or {} files", path, kMaxIncludedBytes >> 20,
                           kMaxIncludedFiles);
      for (auto& name : imported_names(*text, is_package ? wanted.front() : parent(wanted.front())))
        wanted.push_back(std::move(name));
      texts.emplace(path, *std::move(text));
      break;
    }
  }
  if (texts.empty()) return source;
  if (!source.empty() && source.back() != '\n') source += '\n';
  for (const auto& [path, text] : texts) source += section(path, text);
  return source;
}

Result<std::string> with_included_files(std::string source, const std::vector<fs::path>& folders) {
  return with_imported_files(std::move(source),
                             [&](const std::string& path) { return read_included(path, folders); });
}

OwnPackage package_of(const fs::path& file, const fs::path& within) {
  std::error_code failure;
  OwnPackage own;
  const fs::path most = within.empty() ? within : fs::weakly_canonical(within, failure);
  for (fs::path folder = fs::weakly_canonical(fs::absolute(file, failure).parent_path(), failure);
       fs::is_regular_file(folder / "__init__.py", failure); folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (!is_name(name) || folder == most || !may_be_included(folder).ok()) break;
    own.name = own.name.empty() ? name : name + "." + own.name;
    own.folder = folder;
  }
  return own;
}

std::string with_absolute_imports(std::string source, std::string_view package) {
  if (package.empty()) return source;
  const auto found = statements(source);
  for (auto statement = found.rbegin(); statement != found.rend(); ++statement) {
    const auto words = words_of(statement->text);
    if (words.size() < 3 || words[0] != "from" || words[2] != "import" || !words[1].starts_with('.'))
      continue;
    const auto name = absolute(words[1], package);
    const size_t at = source.find('.', source.find("from", statement->begin));
    if (name && source.compare(at, words[1].size(), words[1]) == 0)
      source.replace(at, words[1].size(), *name);
  }
  return source;
}

Result<std::string> task_with_files(std::string source, const fs::path& file,
                                    const std::vector<fs::path>& folders, const fs::path& within) {
  const OwnPackage own = package_of(file, within);
  std::vector<fs::path> all = {file.has_parent_path() ? file.parent_path() : fs::path(".")};
  all.insert(all.end(), folders.begin(), folders.end());
  const std::string of_package = own.name.substr(0, own.name.find('.')) + "/";
  return with_imported_files(with_absolute_imports(std::move(source), own.name),
                             [&](const std::string& path) -> Result<std::optional<std::string>> {
                               if (!own.name.empty() && path.starts_with(of_package)) {
                                 NEREID_TRY(auto text,
                                            read_included(path.substr(of_package.size()), {own.folder}));
                                 if (text) return text;
                               }
                               return read_included(path, all);
                             });
}

Result<std::string> text_with_files(std::string source, const std::string& name,
                                    const std::map<std::string, std::string>& files) {
  const auto module_of = [](const std::string& path) -> Result<std::string> {
    std::string dotted = path.substr(0, path.size() - std::min<size_t>(path.size(), 3));
    bool names = true;
    for (std::string_view rest = dotted; names;) {
      const size_t slash = rest.find('/');
      names = is_name(rest.substr(0, slash));
      if (slash == std::string_view::npos) break;
      rest.remove_prefix(slash + 1);
    }
    if (!names || dotted.empty() || !path.ends_with(".py") || path.size() > 1000)
      return input_error("files: expected paths such as pkg/layers.py, got '{}'", path.substr(0, 200));
    std::ranges::replace(dotted, '/', '.');
    return dotted;
  };
  for (const auto& [path, text] : files) NEREID_TRY_STATUS(module_of(path));
  std::string package;
  if (!name.empty()) {
    NEREID_TRY(const std::string module, module_of(name));
    package = parent(module);
  }
  return with_imported_files(with_absolute_imports(std::move(source), package),
                             [&](const std::string& path) -> Result<std::optional<std::string>> {
                               const auto found = files.find(path);
                               return found == files.end() ? std::nullopt : std::optional(found->second);
                             });
}

Result<std::string> with_data_file(std::string source, const fs::path& file, const std::string& name) {
  NEREID_TRY(const std::string bytes, read_file(file, kMaxIncludedBytes));
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

Status may_be_included(const fs::path& folder) {
  std::error_code failure;
  const auto real = fs::canonical(folder, failure);
  if (failure) return input_error("--include {}: {}", folder.string(), failure.message());
  if (!fs::is_directory(real, failure))
    return input_error("--include {}: expected a folder, got a file", folder.string());
  const char* home = std::getenv("HOME");
  const auto own = home == nullptr || *home == '\0' ? fs::path() : fs::weakly_canonical(home, failure);
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
