#include "nereid/verify/rules/left_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

namespace nereid::verify {
namespace {

constexpr std::string_view kStart = "forward leaves ";
constexpr std::array<std::string_view, 3> kEnds = {" without the tensor that it had", " to another tensor",
                                                   " as another view"};

enum class Left { kWithout, kToAnother, kAsAnotherView };

// The name of the state, or "input PATH"; none where the note says something else.
std::optional<std::string> left(std::string_view note, Left what) {
  const auto end = kEnds.at(static_cast<size_t>(what));
  if (!note.starts_with(kStart) || !note.ends_with(end) || note.size() < kStart.size() + end.size())
    return std::nullopt;
  return std::string(note.substr(kStart.size(), note.size() - kStart.size() - end.size()));
}

// Names of the state that have another tensor, or none.
std::set<std::string> rebound_names(const trace::Trace& trace) {
  std::set<std::string> names;
  for (const auto& note : trace.notes)
    for (const auto what : {Left::kWithout, Left::kToAnother})
      if (auto name = left(note, what)) names.insert(std::move(*name));
  return names;
}

const trace::Phase* judged(const trace::Trace& trace) {
  const trace::Phase* last = nullptr;
  for (const auto& phase : trace.phases)
    if (phase.kind == trace::PhaseKind::kForward) last = &phase;
  return last;
}

// Of each output: negated or conjugated by whatever reads it.
std::vector<bool> open_signs(const trace::Trace& trace) {
  std::vector<bool> open;
  if (const auto* forward = judged(trace))
    for (const auto id : trace::tensors_in(forward->output)) {
      const auto& value = trace.values[static_cast<size_t>(id)];
      open.push_back(value.neg || value.conj);
    }
  return open;
}

}  // namespace

std::vector<Evidence> left_to_the_caller(const trace::Trace& reference, const trace::Trace& candidate) {
  std::vector<Evidence> found;
  const auto theirs = rebound_names(reference);
  for (const auto& note : candidate.notes) {
    const auto name = left(note, Left::kWithout);
    if (name && !theirs.contains(*name)) found.push_back({.rule = "state-written", .sentence = note + "."});
    if (left(note, Left::kAsAnotherView) && std::ranges::find(reference.notes, note) == reference.notes.end())
      found.push_back({.rule = "input-written", .sentence = note + ", which the reference leaves as it is."});
  }
  const auto outputs = open_signs(candidate), wanted = open_signs(reference);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] && !(i < wanted.size() && wanted[i]))
      found.push_back({.rule = "aten-compute",
                       .sentence = fmt::format(
                           "Output {} is a view that PyTorch negates or conjugates where it is read.", i)});
  return found;
}

bool says_what_is_left(std::string_view note) { return note.starts_with(kStart); }

void forgive_rebound(replay::TrialReport& report, const trace::Trace& reference) {
  if (report.state_written.empty()) return;
  const auto rebound = rebound_names(reference);
  std::erase_if(report.state_written, [&](const std::string& name) { return rebound.contains(name); });
}

}  // namespace nereid::verify
