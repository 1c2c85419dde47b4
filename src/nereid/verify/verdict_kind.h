// The kinds of verdict, in the pipeline's order: the first that applies is given.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace nereid::verify {

// kError is no verdict: an internal fault, or one of the reference or the options (Verdict::input_to_blame).
enum class VerdictKind {
  kMalformed,
  kUntraceable,
  kCompileFailed,
  kDisallowed,
  kUnsafe,
  kMismatch,
  kTimedOut,
  kVerified,
  kError,
};

inline constexpr std::array<std::string_view, 9> kVerdictKindNames = {
    "Malformed", "Untraceable", "CompileFailed", "Disallowed", "Unsafe",
    "Mismatch",  "TimedOut",    "Verified",      "Error"};

constexpr std::string_view to_string(VerdictKind kind) {
  return kVerdictKindNames[static_cast<size_t>(kind)];
}

constexpr std::optional<VerdictKind> verdict_kind_from_string(std::string_view name) {
  for (size_t i = 0; i < kVerdictKindNames.size(); ++i)
    if (kVerdictKindNames[i] == name) return static_cast<VerdictKind>(i);
  return std::nullopt;
}

}  // namespace nereid::verify
