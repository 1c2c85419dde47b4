#include "nereid/dataset/harvest_packages.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/dataset/harvest.h"

namespace nereid::dataset {
namespace {

// Suites that this program is measured on or must not know.
constexpr std::string_view kRefused[] = {"kernelbench", "pygpubench",          "solexecbench", "robustkbench",
                                         "tritonbench", "tritonbencht",        "flaggems",     "fla",
                                         "flacore",     "flashlinearattention"};

bool is_name(std::string_view text) {
  return !text.empty() && std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(text, [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

std::string normalized(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_' && c != '.')
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_refused(std::string_view name) {
  return std::ranges::find(kRefused, normalized(name)) != std::end(kRefused);
}

std::set<std::string> authors_of(const std::string& text) {
  std::set<std::string> authors;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    part = normalized(part.substr(0, part.find('<')));
    std::erase(part, ' ');
    if (!part.empty() && part != "unknown") authors.insert(part);
  }
  return authors;
}

Result<HarvestPackage> package_named(const std::string& text) {
  HarvestPackage package;
  const size_t pin = text.find("==");
  package.name = text.substr(0, pin);
  if (pin != text.npos) package.version = text.substr(pin + 2);
  if (!is_name(package.name) || (pin != text.npos && package.version.empty()))
    return input_error("'{}': expected the name of a package on PyPI, or NAME==VERSION", text);
  if (is_refused(package.name)) return input_error("{} is a benchmark: it is never collected", package.name);
  return package;
}

Result<std::vector<HarvestPackage>> read_package_list(const std::filesystem::path& path) {
  NEREID_TRY(const std::string text, read_file(path, size_t{1} << 20));
  std::vector<HarvestPackage> packages;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const size_t comment = line.find('#');
    std::string name = line.substr(0, comment);
    std::erase_if(name, [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; });
    if (name.empty() || name.starts_with("-")) continue;
    auto package = package_named(name);
    if (!package.ok()) return input_error("{}:{}: {}", path.string(), number, package.error().message);
    package->held_out = comment != line.npos && line.find("held out", comment) != line.npos;
    packages.push_back(*std::move(package));
  }
  if (packages.empty()) return input_error("{}: no package in it", path.string());
  return packages;
}

}  // namespace nereid::dataset
