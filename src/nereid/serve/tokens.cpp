#include "nereid/serve/tokens.h"

#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"

namespace nereid::serve {

Result<Tokens> Tokens::read(const std::filesystem::path& path) {
  NEREID_TRY(const std::string text, read_file(path, size_t{16} << 20));
  Tokens tokens;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string name, token, more;
    if (!(words >> name) || name.starts_with('#')) continue;
    if (!(words >> token) || words >> more)
      return input_error("{}:{}: expected NAME TOKEN", path.string(), number);
    if (token.size() < kShortest)
      return input_error("{}:{}: expected a token of at least {} characters, got {}", path.string(), number,
                         kShortest, token.size());
    if (!tokens.names_.emplace(sha256_hex(token), name).second)
      return input_error("{}:{}: this token came before", path.string(), number);
  }
  if (tokens.empty()) return input_error("{}: expected lines NAME TOKEN, got none", path.string());
  return tokens;
}

std::optional<std::string> Tokens::name(std::string_view authorization) const {
  constexpr std::string_view kBearer = "Bearer ", kBasic = "Basic ";
  std::string token;
  if (authorization.starts_with(kBearer)) {
    token = authorization.substr(kBearer.size());
  } else if (authorization.starts_with(kBasic)) {
    const auto both = base64_decode(authorization.substr(kBasic.size()));
    if (!both.ok() || both->find(':') == std::string::npos) return std::nullopt;
    token = both->substr(both->find(':') + 1);
  }
  const auto found = names_.find(sha256_hex(token));
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace nereid::serve
