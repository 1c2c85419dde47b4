// Content hashes: names of kernels, cache entries and sources.
#pragma once

#include <string>
#include <string_view>

namespace nereid {

// SHA-256 in 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace nereid
