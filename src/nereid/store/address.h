// Where a store is: a file (SQLite), or a PostgreSQL database by its URI.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::store {

class Address {
 public:
  // A path, or postgresql://... or postgres://... (libpq's form: user, password, hosts, database,
  // parameters). An error (blamed on the input) for a URI of another kind or one that cannot be read; it
  // quotes nothing of the URI.
  static Result<Address> parse(const std::string& text);
  // Whether `text` is the URI of a PostgreSQL database.
  static bool is_postgres(std::string_view text);

  bool is_file() const { return connection_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  // For libpq: its own key = 'value' form, with the time limits of this program where the URI has none. Holds
  // the password.
  const std::string& connection() const { return connection_; }
  // For people: the path, or the URI with user, hosts and database alone.
  const std::string& name() const { return name_; }
  // `message` without any password of the URI or of $PGPASSWORD.
  std::string without_secrets(std::string message) const;

 private:
  std::filesystem::path path_;
  std::string connection_, name_;
  std::vector<std::string> secrets_;
};

// FILE in $XDG_DATA_HOME/nereid or ~/.local/share/nereid, else a file in the folder for
// temporary ones.
std::filesystem::path data_file(const std::string& file);

}  // namespace nereid::store
