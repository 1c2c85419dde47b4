// A traced file, or why there is no trace of it: the same words for every command that traces.
#pragma once

#include <string>
#include <variant>

#include "nereid/base/json.h"
#include "nereid/tracer/tracer.h"

namespace nereid::cli {

// Why there is no trace, for a person and for a program.
struct NoTrace {
  std::string text;
  Json json;
};
using Traced = std::variant<trace::Trace, NoTrace>;

// `file`: as the user named it.
Traced traced(tracer::TraceAnswer answer, const std::string& file);

}  // namespace nereid::cli
