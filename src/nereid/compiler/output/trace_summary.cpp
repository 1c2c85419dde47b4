#include "nereid/compiler/output/trace_summary.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/size_text.h"
#include "nereid/compiler/output/source_file.h"

namespace nereid::compiler {
namespace {

using trace::ValueId;

// Operators whose results have as many axes as their one operand where they keep what they reduce.
const std::set<std::string, std::less<>> kReductions = {
    "all",       "amax",      "amin",          "aminmax",  "any",
    "argmax",    "argmin",    "count_nonzero", "kthvalue", "linalg_vector_norm",
    "logsumexp", "max",       "mean",          "median",   "min",
    "mode",      "nanmedian", "nansum",        "norm",     "prod",
    "std",       "std_mean",  "sum",           "var",      "var_mean"};

class SummaryWriter {
 public:
  SummaryWriter(const trace::Trace& trace, const std::string& source)
      : trace_(trace), forward_(trace.phases.back()) {
    for (const auto& state : trace.state) {
      std::string name = state.name;
      std::ranges::replace(name, '.', '_');
      by_storage_.emplace(value(state.value).storage, std::move(name));
    }
    const auto file = read_source(trace.file, source, trace.class_name, "ModelNew");
    const auto inputs = trace::tensors_in(forward_.inputs);
    for (size_t i = 0; file.ok() && i < inputs.size() && i < file->parameters.size(); ++i)
      names_.emplace(inputs[i], file->parameters[i].name);
  }

  std::string text() {
    for (const ValueId id : trace::tensors_in(forward_.inputs)) whole_.emplace(value(id).storage, id);
    for (const auto& state : trace_.state) whole_.emplace(value(state.value).storage, state.value);
    std::string text;
    int number = 0;
    for (const auto& step : forward_.steps) {
      ++number;
      const auto* call = std::get_if<trace::Call>(&step);
      if (call == nullptr) continue;
      std::vector<std::string> given, made;
      for (size_t a = 0; a < call->args.size(); ++a) {
        if (const auto flag = flag_name(call->op, a, call->args[a]); !flag.empty()) given.push_back(flag);
        append(call->args[a], given);
      }
      for (const auto& [name, arg] : call->kwargs) {
        const size_t before = given.size();
        append(arg, given);
        if (name == "scale" && given.size() > before) given.back() = "scale=" + given.back();
      }
      const auto results = trace::tensors_in(call->result);
      if (const auto word = size_flag(*call, results); !word.empty()) given.push_back(word);
      for (size_t r = 0; r < results.size(); ++r) {
        names_[results[r]] = r == 0 ? fmt::format("#{}", number) : fmt::format("#{}.{}", number, r + 1);
        made.push_back(fmt::format("[{}]{}", fmt::join(value(results[r]).sizes, ", "), places(results[r])));
      }
      text += fmt::format("#{} {}({}) {}\n", number, short_name(call->op), fmt::join(given, ", "),
                          fmt::join(made, ", "));
    }
    std::vector<std::string> returned;
    for (const ValueId id : trace::tensors_in(forward_.output)) returned.push_back(name_of(id));
    return given_line() + text + fmt::format("returns {}\n", fmt::join(returned, ", "));
  }

 private:
  const trace::Value& value(ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }

  static std::string short_name(const std::string& op) {
    const size_t colons = op.rfind(':');
    const size_t begin = colons == op.npos ? 0 : colons + 1;
    return op.substr(begin, op.find('.', begin) - begin);
  }

  std::string name_of(ValueId id) const {
    if (const auto found = names_.find(id); found != names_.end()) return found->second;
    const auto state = by_storage_.find(value(id).storage);
    return state == by_storage_.end() ? kUnnamed : state->second;
  }

  struct Given {
    std::string name;  // before a step that writes to it makes it its result
    ValueId id;
  };

  // "given x [2, 3], weight [4, 3]": what the steps are given, in the order of its use. A tensor that is not
  // in order is left out, and so is a name that two tensors have: nothing follows from their sizes alone.
  std::string given_line() const {
    std::vector<std::string> all;
    for (const auto& [name, id] : given_)
      if (in_order(value(id)) && std::ranges::count(given_, name, &Given::name) == 1)
        all.push_back(fmt::format("{} [{}]", name, fmt::join(value(id).sizes, ", ")));
    return all.empty() ? "" : fmt::format("given {}\n", fmt::join(all, ", "));
  }

  void note_given(ValueId id) {
    const std::string name = name_of(id);
    if (name.starts_with('#') || name == kUnnamed) return;
    const trace::Value& own = value(id);
    const auto equal = [&](const Given& other) {
      const trace::Value& its = value(other.id);
      return other.name == name && its.sizes == own.sizes && its.strides == own.strides &&
             its.offset == own.offset;
    };
    if (std::ranges::none_of(given_, equal)) given_.push_back({name, id});
  }

  // An option that decides sizes and that arguments do not show.
  std::string size_flag(const trace::Call& call, const std::vector<ValueId>& results) const {
    const std::string name = short_name(call.op);
    constexpr size_t kTransposed = 6;  // its place among aten::convolution's arguments
    if (name == "convolution" && call.args.size() > kTransposed) {
      const auto* flag = std::get_if<bool>(&call.args[kTransposed].node);
      return flag != nullptr && *flag ? "transposed" : "";
    }
    if (!kReductions.contains(name) || results.empty()) return "";
    std::vector<ValueId> operands;
    for (const auto& arg : call.args) std::ranges::copy(trace::tensors_in(arg), std::back_inserter(operands));
    if (operands.size() != 1) return "";
    const size_t rank = value(operands[0]).sizes.size();
    return rank > 0 && value(results[0]).sizes.size() == rank ? "keepdim" : "";
  }

  // Of a view, where its elements are in what it is a view of; nothing where they are one after the other
  // from the first, and where the whole's own do not: kernels lay out otherwise what they make.
  std::string places(ValueId id) {
    const trace::Value& view = value(id);
    const auto [whole, made] = whole_.emplace(view.storage, id);
    const trace::Value& of = value(whole->second);
    if (made || in_order(view) || !in_order(of)) return "";
    std::vector<int64_t> strides = view.strides;
    for (size_t d = 0; d < strides.size(); ++d)
      if (view.sizes[d] == 1) strides[d] = 0;  // any would do
    const std::string text = " strides " + strides_text(strides, of.sizes);
    return view.offset == 0 ? text : text + " from " + element_text(of.sizes, view.offset);
  }

  static bool in_order(const trace::Value& value) {
    int64_t stride = 1;
    for (size_t d = value.sizes.size(); d-- > 0; stride *= value.sizes[d])
      if (value.sizes[d] != 1 && value.strides[d] != stride) return false;
    return value.offset == 0;
  }

  // Flags without which a kernel would be another one, though sizes are the same.
  static std::string flag_name(const std::string& op, size_t place, const trace::Arg& arg) {
    const auto is = [&](const char* part) { return op.find(part) != op.npos; };
    const auto* flag = std::get_if<bool>(&arg.node);
    const bool on = flag != nullptr && *flag;
    if (is("clamp") && place == 1 && std::holds_alternative<trace::None>(arg.node)) return "none";
    if (is("scaled_dot_product_attention") && on) return "is_causal";
    if (!is("_pool") || flag == nullptr) return {};
    if (is("avg_pool") && place == 5) return on ? "" : "count_include_pad=False";
    return on ? "ceil_mode" : "";
  }

  // Other flags, types and what is not given say little.
  void append(const trace::Arg& arg, std::vector<std::string>& given) {
    if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node)) {
      note_given(ref->value);
      given.push_back(name_of(ref->value));
    }
    if (const auto* whole = std::get_if<int64_t>(&arg.node)) given.push_back(std::to_string(*whole));
    if (const auto* real = std::get_if<double>(&arg.node)) given.push_back(fmt::format("{}", *real));
    if (const auto* text = std::get_if<trace::Text>(&arg.node)) given.push_back(text->text);
    const auto* list = std::get_if<trace::List>(&arg.node);
    if (list == nullptr) return;
    std::vector<std::string> items;
    for (const auto& item : list->items) append(item, items);
    given.push_back(fmt::format("[{}]", fmt::join(items, ", ")));
  }

  static constexpr const char* kUnnamed = "constant";
  const trace::Trace& trace_;
  const trace::Phase& forward_;
  std::map<ValueId, std::string> names_;
  std::map<trace::StorageId, std::string> by_storage_;
  std::map<trace::StorageId, ValueId> whole_;  // the first value in each storage
  std::vector<Given> given_;                   // that steps read and do not make, each layout of a name once
};

}  // namespace

std::string trace_summary(const trace::Trace& trace, const std::string& source) {
  return SummaryWriter(trace, source).text();
}

std::string prefill_summary(const trace::Trace& trace, const std::string& source) {
  return with_collapsed_dims(trace_summary(trace, source),
                             collapsed_dims(trace, numbers_in(without_prose(source))));
}

}  // namespace nereid::compiler
