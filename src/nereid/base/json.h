// JSON documents. Headers that only pass them on include <nlohmann/json_fwd.hpp> instead.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "nereid/base/result.h"

namespace nereid {

using Json = nlohmann::json;

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  size_t max_depth = 64;
};

// Parses hostile text: bounded in size and depth, an error (blamed on the input) instead of an exception.
// `what` names the document in the error.
Result<Json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits = {});

// The same for CBOR bytes (RFC 8949, definite and indefinite lengths, no tags).
Result<Json> parse_cbor(std::string_view bytes, std::string_view what, const JsonLimits& limits = {});
std::string to_cbor(const Json& document);

std::string base64_encode(std::string_view bytes);
Result<std::string> base64_decode(std::string_view text);

}  // namespace nereid
