#include "nereid/verify/stages/refusal.h"

#include <fmt/format.h>

#include <cctype>
#include <string>
#include <variant>

namespace nereid::verify {
namespace {

bool reads_data(const tracer::Untraceable& u) {
  return u.type == "DataDependentOutputException" || u.type == "DynamicOutputShapeException" ||
         u.type == "GuardOnDataDependentSymNode" ||
         (u.type == "Untraceable" && u.message.find(" reads ") != std::string::npos);
}

std::string sentence_of(const tracer::Untraceable& u) {
  std::string message = u.message.substr(0, 600);
  for (char& c : message)
    if (c == '\n') c = ' ';
  return fmt::format("{} raised {}{}{}.", u.phase.empty() ? "The file" : u.phase, u.type,
                     message.empty() ? "" : ": ", message);
}

}  // namespace

Refusal fault(const Error& error) {
  const bool input = error.blame == Blame::kInput;
  return {VerdictKind::kError, {.rule = input ? "input" : "internal", .sentence = error.message}, input};
}

Refusal refusal(const tracer::TraceAnswer& answer) {
  if (const auto* malformed = std::get_if<tracer::Malformed>(&answer)) {
    const bool missing =
        malformed->message.starts_with("no class") || malformed->message.starts_with("no function");
    return {VerdictKind::kMalformed,
            {.rule = missing ? "no-model-class" : "syntax", .sentence = malformed->message + "."}};
  }
  if (const auto* u = std::get_if<tracer::Untraceable>(&answer))
    return {VerdictKind::kUntraceable,
            {.rule = reads_data(*u)             ? "reads-data"
                     : u->type == "Untraceable" ? "not-traceable"
                                                : "python-error",
             .sentence = sentence_of(*u),
             .file = u->file,
             .line = u->line,
             .source = u->code}};
  if (const auto* failed = std::get_if<tracer::CompileFailed>(&answer))
    return {VerdictKind::kCompileFailed,
            {.rule = "triton-front-end",
             .sentence =
                 fmt::format("Triton refuses kernel {}: {}", failed->kernel, failed->message.substr(0, 2000)),
             .kernel = failed->kernel,
             .file = failed->file,
             .line = failed->line,
             .source = failed->code}};
  if (const auto* late = std::get_if<tracer::TimedOut>(&answer))
    return {
        VerdictKind::kTimedOut,
        {.rule = "time-limit", .sentence = fmt::format("Tracing took longer than {:g} s.", late->seconds)}};
  if (const auto* forged = std::get_if<tracer::Forged>(&answer)) {
    std::string why = forged->message.substr(0, 600);
    why.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(why.front())));
    return {VerdictKind::kDisallowed, {.rule = "forged-trace", .sentence = why + "."}};
  }
  const auto& killed = std::get<tracer::Killed>(answer);
  return {VerdictKind::kUntraceable,
          {.rule = "sandbox-limit", .sentence = fmt::format("Tracing was stopped: {}.", killed.limit)}};
}

}  // namespace nereid::verify
