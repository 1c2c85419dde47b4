#include "nereid/store/address.h"

#include <libpq-fe.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>

#include "nereid/base/program/home.h"

namespace nereid::store {
namespace {

namespace fs = std::filesystem;

// What the URI does not say. A server that does not answer must not hold up a verdict.
const std::map<std::string, std::string> kConnectionDefaults = {
    {"connect_timeout", "3"},      {"tcp_user_timeout", "5000"}, {"keepalives_idle", "30"},
    {"client_encoding", "UTF8"},   {"keepalives_interval", "5"}, {"keepalives_count", "3"},
    {"application_name", "nereid"}};

// libpq's text up to what it quotes, which may be a part of a password.
std::string unquoted(const char* message) {
  std::string text = message == nullptr ? "out of memory" : message;
  text.resize(std::min(text.find_first_of("\"\n"), text.size()));
  while (text.ends_with(' ') || text.ends_with(':')) text.pop_back();
  return text;
}

std::string quoted_value(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// postgresql://user@host:port/database; a folder with a socket as ?host=.
std::string shown_uri(std::map<std::string, std::string> given) {
  const auto hosts = comma_separated(given["host"].empty() ? given["hostaddr"] : given["host"]);
  const auto ports = comma_separated(given["port"]);
  std::string places, folders;
  for (size_t i = 0; i < hosts.size(); ++i) {
    const std::string port = ports[std::min(i, ports.size() - 1)];
    if (hosts[i].starts_with('/')) folders += (folders.empty() ? "?host=" : ",") + hosts[i];
    places +=
        (i > 0 ? "," : "") + (hosts[i].starts_with('/') ? "" : hosts[i]) + (port.empty() ? "" : ":") + port;
  }
  const std::string user = given["user"].empty() ? "" : given["user"] + "@";
  return "postgresql://" + user + places + "/" + given["dbname"] + folders;
}

}  // namespace

bool Address::is_postgres(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

Result<Address> Address::parse(const std::string& text) {
  Address address;
  if (!is_postgres(text)) {
    const size_t scheme = text.find("://");
    if (scheme != std::string::npos && scheme > 0 &&
        std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(scheme),
                    [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; }))
      return input_error("the store {}://...: expected a file's path or postgresql://USER@HOST/DATABASE",
                         text.substr(0, scheme));
    address.path_ = text;
    address.name_ = text;
    return address;
  }
  char* trouble = nullptr;
  const std::unique_ptr<PQconninfoOption, void (*)(PQconninfoOption*)> options(
      ::PQconninfoParse(text.c_str(), &trouble), ::PQconninfoFree);
  const std::unique_ptr<char, void (*)(void*)> message(trouble, ::PQfreemem);
  if (options == nullptr)
    return input_error(
        "the store postgresql://...: {}; expected postgresql://USER@HOST:PORT/DATABASE, with other "
        "characters than letters and digits as %XX",
        unquoted(message.get()));
  std::map<std::string, std::string> given;
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    given[option->keyword] = option->val;
    if (*option->dispchar == '*' && *option->val != 0) address.secrets_.emplace_back(option->val);
  }
  if (const char* password = std::getenv("PGPASSWORD"); password != nullptr && *password != 0)
    address.secrets_.emplace_back(password);
  address.name_ = shown_uri(given);
  given.insert(kConnectionDefaults.begin(), kConnectionDefaults.end());
  for (const auto& [keyword, value] : given) address.connection_ += keyword + "=" + quoted_value(value) + " ";
  return address;
}

std::string Address::without_secrets(std::string message) const {
  for (const std::string& secret : secrets_)
    for (size_t at = 0; (at = message.find(secret, at)) != std::string::npos; at += 3)
      message.replace(at, secret.size(), "***");
  return message;
}

fs::path data_file(const std::string& file) {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data != nullptr && fs::path(data).is_absolute()) return fs::path(data) / "nereid" / file;
  if (const auto home = home_folder(); !home.empty()) return home / ".local" / "share" / "nereid" / file;
  return fs::temp_directory_path() / ("nereid-" + file);
}

}  // namespace nereid::store
