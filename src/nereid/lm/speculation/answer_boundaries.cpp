#include "nereid/lm/speculation/answer_boundaries.h"

#include <utility>

#include "nereid/base/text.h"

namespace nereid::lm {
namespace {

constexpr std::string_view kThink = "<think>", kThought = "</think>";

bool names(std::string_view line, std::string_view keyword, std::string_view name) {
  if (!line.starts_with(keyword)) return false;
  line = trimmed(line.substr(keyword.size()));
  return line.starts_with(name) && (line.size() == name.size() || line[name.size()] == '(' ||
                                    line[name.size()] == ':' || line[name.size()] == ' ');
}

}  // namespace

std::string_view to_string(Boundary::Kind kind) {
  switch (kind) {
    case Boundary::Kind::kPlan:
      return "plan";
    case Boundary::Kind::kKernel:
      return "kernel";
    case Boundary::Kind::kProgram:
      return "program";
  }
  return "?";
}

std::vector<Boundary> AnswerBoundaries::push(std::string_view piece) {
  std::vector<Boundary> found;
  text_ += piece;
  if (!thought_ && !finished_) read_thoughts(found);
  if (thinking_) return found;
  for (size_t end; !finished_ && (end = text_.find('\n', line_)) != text_.npos; line_ = end + 1) {
    std::string_view line = std::string_view(text_).substr(line_, end - line_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    read_line(line, end + 1, found);
  }
  return found;
}

// What is thought is no code: lines are read from its end on.
void AnswerBoundaries::read_thoughts(std::vector<Boundary>& found) {
  const size_t close = text_.find(kThought);
  thinking_ = close == text_.npos && text_.find(kThink) != text_.npos;
  if (close == text_.npos) return;
  thought_ = true, inside_ = false;  // what was read as code where a template had opened <think> was none
  line_ = std::max(line_, close + kThought.size());
  if (!std::exchange(planned_, true)) found.push_back({Boundary::Kind::kPlan, close + kThought.size()});
}

void AnswerBoundaries::read_line(std::string_view line, size_t end, std::vector<Boundary>& found) {
  const auto fence = fence_at(line);
  if (!inside_) {
    if (!fence) return;
    inside_ = true, fence_ = *fence, python_ = language_of(fence->info) != Language::kOther;
    in_model_ = program_ = false, quotes_ = {}, part_ = Part::kOther;
    if (python_ && !planned_) {
      planned_ = true;
      found.push_back({Boundary::Kind::kPlan, end});
    }
    return;
  }
  const bool closes = fence && fence->info.empty() && fence->mark == fence_.mark &&
                      fence->length >= fence_.length && !(python_ && quotes_.open());
  if (!closes) {
    if (python_) read_code(line, end, found);
    return;
  }
  if (part_ == Part::kKernel) close_kernel(found);
  inside_ = false;
  if (!program_) return;
  finished_ = true;
  found.push_back({Boundary::Kind::kProgram, end});
}

void AnswerBoundaries::read_code(std::string_view line, size_t end, std::vector<Boundary>& found) {
  const bool quoted = quotes_.open();
  quotes_.read(line);
  const std::string_view words = trimmed(line);
  if (words.empty()) return;
  // Inside a text, or the end of a list of arguments: no statement begins here.
  const bool begins = !quoted && line.front() != ' ' && line.front() != '\t' && line.front() != ')' &&
                      line.front() != ']' && line.front() != '}';
  if (!begins) {
    if (part_ == Part::kKernel) kernel_end_ = end;
    program_ |= in_model_ && !quoted && names(words, "def ", "forward");
    return;
  }
  if (words.starts_with('#')) return;
  if (part_ == Part::kKernel) close_kernel(found);
  if (words.starts_with('@')) {
    part_ = part_ == Part::kDecorated || words.find("jit") != words.npos ? Part::kDecorated : Part::kOther;
    return;
  }
  const bool kernel = part_ == Part::kDecorated && words.starts_with("def ");
  part_ = kernel ? Part::kKernel : Part::kOther;
  if (kernel) kernel_end_ = end;
  in_model_ = names(words, "class ", "ModelNew");
}

void AnswerBoundaries::close_kernel(std::vector<Boundary>& found) {
  found.push_back({Boundary::Kind::kKernel, kernel_end_});
  part_ = Part::kOther;
}

}  // namespace nereid::lm
