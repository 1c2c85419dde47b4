// A trace as a file: a line that names the format and its version, then the document in CBOR.
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::trace {
namespace {

constexpr std::string_view kMagic = "nereid trace ";  // then the version and a newline
constexpr std::string_view kVersion = "1";

bool begins_as_json(std::string_view bytes) {
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != bytes.npos && bytes[first] == '{';
}

Result<Trace> decode_named(const Json& document, std::string_view what) {
  const bool answer =
      document.is_object() && document.contains("trace") && !document.contains("nereid_trace");
  auto trace = decode(answer ? document["trace"] : document);
  if (!trace.ok()) return Error{fmt::format("{}: {}", what, trace.error().message), trace.error().blame};
  return trace;
}

}  // namespace

bool looks_like_trace(std::string_view bytes) { return bytes.starts_with(kMagic) || begins_as_json(bytes); }

Result<Trace> parse(std::string_view bytes, std::string_view what) {
  if (!bytes.starts_with(kMagic)) {
    if (!begins_as_json(bytes))
      return input_error("{}: expected a trace (a line 'nereid trace 1', or JSON)", what);
    NEREID_TRY(const Json document, parse_json(bytes, what));
    return decode_named(document, what);
  }
  bytes.remove_prefix(kMagic.size());
  const size_t line_end = bytes.substr(0, 32).find('\n');
  if (line_end == bytes.npos || bytes.substr(0, line_end) != kVersion)
    return input_error("{}: expected a trace of version {}, got version '{}'", what, kVersion,
                       bytes.substr(0, std::min<size_t>(line_end, 16)));
  NEREID_TRY(const Json document, parse_cbor(bytes.substr(line_end + 1), what));
  return decode_named(document, what);
}

Result<Trace> load(const std::filesystem::path& path) {
  NEREID_TRY(const std::string bytes, read_file(path, JsonLimits{}.max_bytes));
  return parse(bytes, path.string());
}

std::string serialize(const Trace& trace) {
  return fmt::format("{}{}\n", kMagic, kVersion) + to_cbor(encode(trace));
}

Status save(const Trace& trace, const std::filesystem::path& path) {
  return write_file_atomically(path, serialize(trace));
}

std::string kernel_hash(const Kernel& kernel) {
  std::string text = kernel.ttir;
  for (const auto& [name, value] : kernel.options) text += fmt::format("\n{}={}", name, value);
  for (const auto& [name, value] : kernel.text_options) text += fmt::format("\n{}='{}'", name, value);
  return sha256_hex(text);
}

}  // namespace nereid::trace
