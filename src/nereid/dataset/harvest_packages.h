// Names of packages and of their authors, as `nereid harvest` compares them.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace nereid::dataset {

// Lower case, without "-", "_" and ".": two spellings of one name are equal.
std::string normalized(std::string_view name);

// Whether a name is a benchmark's, under whatever spelling: such packages are never collected.
bool is_refused(std::string_view name);

// The normalized names in a comma-separated list, without mail addresses.
std::set<std::string> authors_of(const std::string& text);

}  // namespace nereid::dataset
