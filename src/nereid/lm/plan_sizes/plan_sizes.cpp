#include "nereid/lm/plan_sizes/plan_sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "nereid/base/text.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/size_text.h"
#include "nereid/compiler/output/source_file.h"

namespace nereid::lm {
namespace {

constexpr size_t kLongestLine = 4096;
// Words of steps that are no tensors' names.
const std::set<std::string_view> kFlags = {
    "keepdim", "transposed", "is_causal", "ceil_mode", "count_include_pad=False",
    "none",    "amax",       "amin",      "sum",       "mean",
    "prod",    "floor",      "trunc",     "tanh"};

bool unknown_word(const StepArgument& argument) {
  if (argument.kind == StepArgument::Kind::kList) return std::ranges::any_of(argument.items, unknown_word);
  return argument.kind == StepArgument::Kind::kWord && !kFlags.contains(argument.word) &&
         !argument.word.starts_with("scale=");
}

// Where a view's elements are, as trace_summary's.
std::string places(const Value& value) {
  if (value.layout == value.whole || in_order(*value.layout) || !in_order(*value.whole)) return "";
  Sizes strides = value.layout->strides;
  for (size_t d = 0; d < strides.size(); ++d)
    if (value.layout->sizes[d] == 1) strides[d] = 0;
  const std::string text = " strides " + compiler::strides_text(strides, value.whole->sizes);
  return value.layout->offset == 0
             ? text
             : text + " from " + compiler::element_text(value.whole->sizes, value.layout->offset);
}

// "#12 name(...)": the number, and the rest of the line; nullopt: it is no step.
std::optional<std::pair<std::string, std::string_view>> step_of(std::string_view line) {
  if (!line.starts_with('#')) return std::nullopt;
  const size_t end = line.find_first_not_of("0123456789", 1);
  if (end == line.npos || end == 1 || line[end] != ' ') return std::nullopt;
  return std::pair(std::string(line.substr(0, end)), line.substr(end + 1));
}

// Up to the bracket that closes a call's arguments; npos: it is open.
size_t call_end(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    depth += (text[i] == '(') - (text[i] == ')');
    if (text[i] == ')' && depth == 0) return i + 1;
  }
  return text.npos;
}

}  // namespace

PlanSizes::PlanSizes(const std::string& task) : known_(compiler::numbers_in(compiler::without_prose(task))) {}

const Value* PlanSizes::find(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  return found == values_.end() ? nullptr : &found->second;
}

std::string PlanSizes::push(std::string_view piece) {
  if (at_ == At::kOver) return "";
  line_ += piece;
  for (size_t end; (end = line_.find('\n')) != line_.npos && at_ != At::kOver;) {
    read_line(std::string_view(line_).substr(0, end));
    line_.erase(0, end + 1);
  }
  if (line_.size() > kLongestLine) at_ = At::kOver;
  if (at_ == At::kOver) return "";
  const auto completed = complete(line_);
  if (!completed) return "";
  // What the model wrote after the call, if that is how it goes on.
  const size_t call = call_end(line_);
  const std::string_view begun = std::string_view(line_).substr(call);
  if (!completed->text.starts_with(begun)) return "";
  std::string rest = completed->text.substr(begun.size());
  define(completed->number, completed->results);
  line_.clear();
  at_ = At::kSteps;
  return rest;
}

void PlanSizes::read_line(std::string_view line) {
  if (at_ == At::kStart) {
    line = trimmed(line);
    if (line.starts_with("<think>")) line = trimmed(line.substr(7));
    if (line.empty()) return;
    at_ = At::kSteps;
    if (line.starts_with("given ")) return read_given(line.substr(6));
  }
  if (step_of(line)) return read_step(line);
  at_ = At::kOver;
}

// "x [2, 3], weight [4, 3]"
void PlanSizes::read_given(std::string_view line) {
  while (!line.empty()) {
    const size_t space = line.find(' ');
    if (space == line.npos) return;
    const std::string name(line.substr(0, space));
    line.remove_prefix(space + 1);
    const auto sizes = take_sizes(line);
    if (!sizes) return;
    seen_.insert(sizes->begin(), sizes->end());
    values_[name] = new_value(row_major_layout(*sizes));
    if (!line.starts_with(", ")) return;
    line.remove_prefix(2);
  }
}

// As the model wrote it, where no rule says what it makes.
void PlanSizes::read_step(std::string_view line) {
  const auto step = step_of(line);
  const size_t end = call_end(step->second);
  if (end == step->second.npos) return;
  std::vector<Value> results;
  for (std::string_view rest = step->second.substr(end); rest.starts_with(" [") || rest.starts_with(", [");) {
    rest.remove_prefix(rest.find('['));
    const auto sizes = take_sizes(rest);
    if (!sizes) break;
    results.push_back(new_value(row_major_layout(*sizes)));
    if (rest.starts_with(" strides")) break;  // a view: its elements' places are not read
  }
  if (const auto call =
          parse_step_call(step->second.substr(0, end), [&](std::string_view name) { return find(name); }))
    note_products(*call, results);
  define(step->first, std::move(results));
}

void PlanSizes::define(const std::string& number, std::vector<Value> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    seen_.insert(results[i].sizes().begin(), results[i].sizes().end());
    values_[i == 0 ? number : fmt::format("{}.{}", number, i + 1)] = std::move(results[i]);
  }
}

std::optional<PlanSizes::Completed> PlanSizes::complete(std::string_view begun) {
  if (at_ == At::kStart && begun.starts_with("<think>")) begun.remove_prefix(7);
  const auto step = step_of(begun);
  if (!step) return std::nullopt;
  const size_t end = call_end(step->second);
  if (end == step->second.npos) return std::nullopt;
  const auto call =
      parse_step_call(step->second.substr(0, end), [&](std::string_view name) { return find(name); });
  if (!call || std::ranges::any_of(call->arguments, unknown_word)) return std::nullopt;
  auto results = results_of(*call);
  if (!results) return std::nullopt;
  note_products(*call, *results);
  std::vector<std::string> made;
  for (const Value& value : *results)
    made.push_back(fmt::format("[{}]{}", fmt::join(value.sizes(), ", "), places(value)));
  return Completed{
      .number = step->first,
      .text = compiler::with_collapsed_dims(fmt::format(" {}\n", fmt::join(made, ", ")), products_),
      .results = std::move(*results)};
}

// As compiler::collapsed_dims, step by step.
void PlanSizes::note_products(const StepCall& call, const std::vector<Value>& results) {
  for (const Value& value : results)
    for (const int64_t size : value.sizes()) {
      if (seen_.contains(size) || known_.contains(std::to_string(size))) continue;
      for (const Value* from : call.tensors())
        if (std::string text = compiler::product_of_neighbours(from->sizes(), size); !text.empty())
          products_.emplace(size, std::move(text));
    }
}

}  // namespace nereid::lm
