#include "nereid/base/json.h"

#include <openssl/evp.h>

#include <vector>

namespace nereid {
namespace {

// Walks CBOR item headers with a stack of its own, so that deep nesting cannot exhaust ours in the recursive
// parser.
Status check_cbor_shape(std::string_view bytes, std::string_view what, const JsonLimits& limits) {
  constexpr uint64_t kIndefinite = ~uint64_t{0};
  std::vector<uint64_t> open;  // items still missing in each open container
  size_t at = 0;
  bool done = false;
  while (!done) {
    if (at >= bytes.size()) return input_error("{}: CBOR ends at byte {} inside an item", what, at);
    const auto head = static_cast<unsigned char>(bytes[at++]);
    const int major = head >> 5, low = head & 31;
    uint64_t argument = static_cast<uint64_t>(low);
    if (low >= 24 && low <= 27) {
      const size_t width = size_t{1} << (low - 24);
      if (bytes.size() - at < width) return input_error("{}: CBOR ends at byte {} inside an item", what, at);
      argument = 0;
      for (size_t i = 0; i < width; ++i) argument = argument << 8 | static_cast<unsigned char>(bytes[at++]);
    } else if (low >= 28 && low <= 30) {
      return input_error("{}: reserved CBOR length {} at byte {}", what, low, at - 1);
    }
    const bool is_break = head == 0xff, indefinite = low == 31 && !is_break;
    if (indefinite && (major < 2 || major > 5))
      return input_error("{}: bad CBOR item at byte {}", what, at - 1);
    if (major == 6) return input_error("{}: CBOR tag at byte {}, expected none", what, at - 1);

    bool opened = false;
    if (is_break) {
      if (open.empty() || open.back() != kIndefinite)
        return input_error("{}: stray CBOR break at byte {}", what, at - 1);
      open.pop_back();
    } else if (major == 2 || major == 3) {
      if (indefinite) {
        open.push_back(kIndefinite), opened = true;
      } else {
        if (bytes.size() - at < argument)
          return input_error("{}: CBOR string at byte {} runs past the end", what, at);
        at += argument;
      }
    } else if (major == 4 || major == 5) {
      const uint64_t per_item = major == 5 ? 2 : 1;
      if (!indefinite && argument > (bytes.size() - at) / per_item)
        return input_error("{}: CBOR container at byte {} claims {} items, more than the bytes left", what,
                           at, argument);
      if (indefinite || argument > 0)
        open.push_back(indefinite ? kIndefinite : argument * per_item), opened = true;
    }
    if (open.size() > limits.max_depth)
      return input_error("{}: nested deeper than {} levels", what, limits.max_depth);
    if (opened) continue;
    while (!open.empty() && open.back() != kIndefinite && --open.back() == 0) open.pop_back();
    done = open.empty();
  }
  if (at != bytes.size())
    return input_error("{}: {} bytes follow the CBOR document", what, bytes.size() - at);
  return ok_status();
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes)
    return input_error("{}: {} bytes of JSON, expected at most {}", what, text.size(), limits.max_bytes);
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  if (deepest > limits.max_depth)
    return input_error("{}: nested deeper than {} levels", what, limits.max_depth);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception& e) {
    return input_error("{}: {}", what, e.what());
  }
}

Result<Json> parse_cbor(std::string_view bytes, std::string_view what, const JsonLimits& limits) {
  if (bytes.size() > limits.max_bytes)
    return input_error("{}: {} bytes of CBOR, expected at most {}", what, bytes.size(), limits.max_bytes);
  NEREID_TRY_STATUS(check_cbor_shape(bytes, what, limits));
  try {
    return Json::from_cbor(bytes.begin(), bytes.end());
  } catch (const nlohmann::json::exception& e) {
    return input_error("{}: {}", what, e.what());
  }
}

std::string to_cbor(const Json& document) {
  std::string bytes;
  Json::to_cbor(document, bytes);
  return bytes;
}

std::string base64_encode(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3), '\0');
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return text;
}

Result<std::string> base64_decode(std::string_view text) {
  if (text.size() % 4 != 0)
    return input_error("base64 of {} characters, expected a multiple of 4", text.size());
  std::string bytes(text.size() / 4 * 3, '\0');
  const int written =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (written < 0) return input_error("base64 with characters outside its alphabet");
  const size_t padding = text.size() - text.find_last_not_of('=') - 1;
  if (!text.empty() && padding > 2) return input_error("base64 with {} padding characters", padding);
  bytes.resize(static_cast<size_t>(written) - (text.empty() ? 0 : padding));
  return bytes;
}

}  // namespace nereid
