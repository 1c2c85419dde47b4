// The trace as a document (docs/trace_format.md) and as a file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::trace {

// Hostile input: every rule of the format is checked, and an error (blamed on the input) names the field's
// path, what was expected and what came. Fields that the format does not know are passed over. A kernel's
// `hash` is computed here and never taken from the document.
Result<Trace> decode(const nlohmann::json& document);
// decode(encode(t)) is t.
nlohmann::json encode(const Trace& trace);

// A file that `save` wrote, or the document as JSON text (also inside a tracer's answer, {"trace": ...}).
// An error names the file.
Result<Trace> load(const std::filesystem::path& path);
// Bytes of such a file; `what` names them in an error.
Result<Trace> parse(std::string_view bytes, std::string_view what);
// True for bytes that begin as a saved trace or as JSON do, so that they are worth giving to `parse`.
bool looks_like_trace(std::string_view bytes);
// A line that says what the file is, then the document in CBOR. Written atomically.
Status save(const Trace& trace, const std::filesystem::path& path);
std::string serialize(const Trace& trace);

// What a kernel is cached under: SHA-256 of `ttir` and both kinds of options.
std::string kernel_hash(const Kernel& kernel);

}  // namespace nereid::trace
