// Bearer tokens: who may ask, under which name.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

namespace nereid::serve {

class Tokens {
 public:
  static constexpr size_t kShortest = 16;  // characters

  // A file with a line `NAME TOKEN` for each; empty lines and those that begin with # do not count. An error
  // names the line.
  static Result<Tokens> read(const std::filesystem::path& path);

  bool empty() const { return names_.empty(); }
  // The name that the header `Authorization` proves: `Bearer TOKEN`, or `Basic` with the token as the
  // password, which is what clients send that take `http://name:token@host`.
  std::optional<std::string> name(std::string_view authorization) const;

 private:
  std::map<std::string, std::string>
      names_;  // by the token's SHA-256: how long a look-up takes says nothing of a token
};

}  // namespace nereid::serve
