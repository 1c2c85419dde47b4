#include "nereid/base/home.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

namespace nereid {

std::filesystem::path home_folder() {
  if (const char* told = std::getenv("HOME"); told != nullptr && *told != '\0') return told;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "";
}

}  // namespace nereid
