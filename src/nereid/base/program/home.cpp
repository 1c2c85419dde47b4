#include "nereid/base/program/home.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace nereid {

std::filesystem::path home_folder() {
  if (const char* text = std::getenv("HOME"); text != nullptr && *text != '\0') return text;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "";
}

}  // namespace nereid
