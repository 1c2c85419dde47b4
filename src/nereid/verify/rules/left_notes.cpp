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

std::vector<const trace::Value*> outputs_of(const trace::Trace& trace) {
  std::vector<const trace::Value*> outputs;
  if (const auto* forward = judged(trace))
    for (const auto id : trace::tensors_in(forward->output))
      outputs.push_back(&trace.values[static_cast<size_t>(id)]);
  return outputs;
}

bool is_repeated(const trace::Value& value) {
  for (size_t d = 0; d < value.sizes.size(); ++d)
    if (value.sizes[d] > 1 && value.strides[d] == 0) return trace::element_count(value) > 0;
  return false;
}

// Surely: views that begin at one element, or two of which neither leaves out any.
bool share_memory(const trace::Value& a, const trace::Value& b) {
  if (a.storage != b.storage || trace::element_count(a) == 0 || trace::element_count(b) == 0) return false;
  const auto [a_first, a_last] = trace::byte_extent(a);
  const auto [b_first, b_last] = trace::byte_extent(b);
  if (a_first >= b_last || b_first >= a_last) return false;
  const auto is_dense = [](const trace::Value& value, int64_t bytes) {
    return trace::element_count(value) * trace::element_bytes(value.dtype) == bytes;
  };
  return a_first == b_first || (is_dense(a, a_last - a_first) && is_dense(b, b_last - b_first));
}

// Outputs that are one memory, where the reference's are not: who changes one of them changes the other.
void find_shared_outputs(const trace::Trace& reference, const trace::Trace& candidate,
                         std::vector<Evidence>& found) {
  const auto outputs = outputs_of(candidate), wanted = outputs_of(reference);
  if (outputs.size() != wanted.size()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (is_repeated(*outputs[i]) && !is_repeated(*wanted[i]))
      found.push_back(
          {.rule = "shared-output",
           .sentence = fmt::format("Output {} is expanded: it holds one element at several places.", i)});
    for (size_t j = i + 1; j < outputs.size(); ++j)
      if (share_memory(*outputs[i], *outputs[j]) && wanted[i]->storage != wanted[j]->storage)
        found.push_back({.rule = "shared-output",
                         .sentence = fmt::format("Outputs {} and {} are in the same memory.", i, j)});
  }
}

bool is_input(const trace::Trace& trace, trace::StorageId id) {
  return std::ranges::any_of(trace::tensors_in(judged(trace)->inputs), [&](trace::ValueId value) {
    return trace.values[static_cast<size_t>(value)].storage == id;
  });
}

bool is_state(const trace::Trace& trace, trace::StorageId id) {
  const auto role = trace.storages[static_cast<size_t>(id)].role;
  return role == trace::Role::kParameter || role == trace::Role::kBuffer;
}

// Outputs that are memory of the caller's, where the reference's are not. What the call writes there other
// rules judge.
void find_given_outputs(const TraceAnalysis& reference, const TraceAnalysis& candidate,
                        std::vector<Evidence>& found) {
  const auto &theirs = *reference.trace, &ours = *candidate.trace;
  const auto outputs = outputs_of(ours), wanted = outputs_of(theirs);
  if (outputs.size() != wanted.size()) return;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto id = outputs[i]->storage;
    const bool input = is_input(ours, id);
    if (!input && !is_state(ours, id)) continue;
    if (is_input(theirs, wanted[i]->storage) || is_state(theirs, wanted[i]->storage)) continue;
    const auto& steps = candidate.phases.at(static_cast<size_t>(candidate.judged())).steps;
    if (std::ranges::any_of(steps, [&](const StepAnalysis& step) {
          return std::ranges::find(step.writes, id) != step.writes.end() &&
                 std::ranges::find(step.perhaps_writes, id) == step.perhaps_writes.end();
        }))
      continue;
    found.push_back(
        {.rule = "shared-output",
         .sentence = fmt::format("Output {} is in the memory of {} {}.", i, input ? "input" : "state",
                                 ours.storages[static_cast<size_t>(id)].name)});
  }
}

}  // namespace

std::vector<Evidence> left_to_the_caller(const TraceAnalysis& of_reference,
                                         const TraceAnalysis& of_candidate) {
  const auto &reference = *of_reference.trace, &candidate = *of_candidate.trace;
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
  find_shared_outputs(reference, candidate, found);
  find_given_outputs(of_reference, of_candidate, found);
  return found;
}

bool is_left_note(std::string_view note) { return note.starts_with(kStart); }

void allow_rebound_state(replay::TrialReport& report, const trace::Trace& reference) {
  if (report.state_written.empty()) return;
  const auto rebound = rebound_names(reference);
  std::erase_if(report.state_written, [&](const std::string& name) { return rebound.contains(name); });
}

}  // namespace nereid::verify
