#include "nereid/cli/traced.h"

#include <fmt/format.h>

namespace nereid::cli {
namespace {

struct Reason {
  std::string file;

  Traced operator()(trace::Trace&& trace) const { return std::move(trace); }
  Traced operator()(tracer::Untraceable&& why) const {
    std::string text = fmt::format("{}:{}: untraceable in {}: {}: {}", why.file.empty() ? file : why.file,
                                   why.line, why.phase, why.type, why.message);
    if (!why.code.empty()) text += "\n    " + why.code;
    return NoTrace{text,
                   {{"untraceable",
                     {{"phase", why.phase},
                      {"type", why.type},
                      {"message", why.message},
                      {"file", why.file},
                      {"line", why.line},
                      {"code", why.code},
                      {"traceback", why.traceback}}}}};
  }
  Traced operator()(tracer::Malformed&& why) const {
    return NoTrace{fmt::format("{}: malformed: {}", file, why.message),
                   {{"malformed", {{"message", why.message}}}}};
  }
  Traced operator()(tracer::CompileFailed&& why) const {
    std::string text = fmt::format("{}:{}: kernel {} does not compile: {}",
                                   why.file.empty() ? file : why.file, why.line, why.kernel, why.message);
    if (!why.code.empty()) text += "\n    " + why.code;
    return NoTrace{text,
                   {{"compile_failed",
                     {{"kernel", why.kernel},
                      {"message", why.message},
                      {"file", why.file},
                      {"line", why.line},
                      {"code", why.code}}}}};
  }
  Traced operator()(tracer::TimedOut&& why) const {
    return NoTrace{fmt::format("{}: not traced within {:.0f} s", file, why.seconds),
                   {{"timed_out", {{"seconds", why.seconds}}}}};
  }
  Traced operator()(tracer::Killed&& why) const {
    return NoTrace{fmt::format("{}: the traced process ended: {}", file, why.limit),
                   {{"killed", {{"limit", why.limit}}}}};
  }
  Traced operator()(tracer::Forged&& why) const {
    return NoTrace{fmt::format("{}: {}", file, why.message), {{"forged", {{"message", why.message}}}}};
  }
};

}  // namespace

Traced traced(tracer::TraceAnswer answer, const std::string& file) {
  return std::visit(Reason{file}, std::move(answer));
}

}  // namespace nereid::cli
