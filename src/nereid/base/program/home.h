// Whose files of ours lie where.
#pragma once

#include <filesystem>

namespace nereid {

// $HOME; where it is unset, what the user database says. Empty where neither knows.
std::filesystem::path home_folder();

}  // namespace nereid
