#include "nereid/verify/feedback.h"

#include <fmt/format.h>

#include <algorithm>

#include "nereid/base/printable.h"

namespace nereid::verify {
namespace {

constexpr size_t kMaxSentence = 210, kMaxSource = 80, kMaxName = 50;
static_assert(sizeof("CompileFailed: \n, line 2147483647, kernel : ") + kMaxSentence + kMaxSource +
                  2 * kMaxName <=
              kMaxFeedback);

// In one line, cut after `most` bytes between two characters.
std::string shortened(const std::string& text, size_t most) {
  std::string line = printable(text);
  std::ranges::replace(line, '\t', ' ');
  line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
  if (line.size() <= most) return line;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0U) == 0x80U) --end;
  return line.substr(0, end) + "...";
}

std::string line_of(std::string_view text, int number) {
  for (; number > 1 && !text.empty(); --number)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return std::string(text.substr(0, text.find_first_of("\r\n")));
}

}  // namespace

void add_source_lines(Verdict& verdict, std::string_view source) {
  for (Evidence& evidence : verdict.evidence)
    if (evidence.source.empty() && evidence.line > 0 && evidence.file == verdict.candidate)
      evidence.source = line_of(source, evidence.line);
}

std::string feedback(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kVerified || verdict.kind == VerdictKind::kError) return "";
  std::string text(to_string(verdict.kind));
  if (verdict.evidence.empty()) return text + ".";
  const Evidence& first = verdict.evidence.front();
  text += ": " + shortened(first.sentence, kMaxSentence);
  if (first.line <= 0) return text;
  const bool own = first.file == verdict.candidate;
  text += fmt::format("\n{}ine {}", own ? "L" : shortened(first.file, kMaxName) + ", l", first.line);
  if (!first.kernel.empty() && first.sentence.find(first.kernel) == std::string::npos)
    text += ", kernel " + shortened(first.kernel, kMaxName);
  if (!first.source.empty()) text += ": " + shortened(first.source, kMaxSource);
  return text;
}

}  // namespace nereid::verify
