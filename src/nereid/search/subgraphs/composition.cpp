// A program put together again from its pieces: Partitioner::compose.
#include <fmt/ranges.h>

#include <functional>
#include <set>

#include "nereid/render/imports.h"
#include "nereid/render/line_breaks.h"
#include "nereid/render/number_checks.h"
#include "nereid/render/python_text.h"
#include "nereid/render/subgraph_source.h"
#include "nereid/search/subgraphs/partitioner.h"
#include "nereid/trace/access.h"

namespace nereid::search {
namespace {

using trace::ValueId;
using Leaves = std::map<trace::StorageId, std::pair<std::string, ValueId>>;

// How Python reaches what is there before forward: arguments and state.
Leaves leaves_of(const trace::Trace& trace, const trace::Phase& forward) {
  Leaves leaves;
  const auto storage = [&](ValueId id) { return trace.values[static_cast<size_t>(id)].storage; };
  const std::function<void(const trace::Arg&, const std::string&)> walk = [&](const trace::Arg& arg,
                                                                              const std::string& text) {
    if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node))
      leaves.emplace(storage(ref->value), std::pair{text, ref->value});
    if (const auto* list = std::get_if<trace::List>(&arg.node))
      for (size_t i = 0; i < list->items.size(); ++i) walk(list->items[i], fmt::format("{}[{}]", text, i));
    if (const auto* dict = std::get_if<trace::Dict>(&arg.node))
      for (const auto& item : dict->items)
        walk(item.second, dict->kind == trace::Dict::Kind::kDict ? fmt::format("{}[\"{}\"]", text, item.first)
                                                                 : fmt::format("{}.{}", text, item.first));
  };
  const auto* named = std::get_if<trace::Dict>(&forward.inputs.node);
  const bool several = std::holds_alternative<trace::List>(forward.inputs.node) ||
                       (named != nullptr && named->kind == trace::Dict::Kind::kDict);
  walk(forward.inputs, several ? "inputs" : "inputs[0]");
  for (const auto& state : trace.state) {
    std::string text = "self", part;
    for (const char c : state.name + ".") {
      if (c != '.') {
        part += c;
        continue;
      }
      const bool number = std::all_of(part.begin(), part.end(), [](char d) { return d >= '0' && d <= '9'; });
      text += number ? "[" + part + "]" : "." + part;
      part.clear();
    }
    leaves.emplace(storage(state.value), std::pair{text, state.value});
  }
  return leaves;
}

}  // namespace

// The text of a file with ModelNew, piece by piece.
class Partitioner::Composition {
 public:
  explicit Composition(const Partitioner& of) : of_(of), leaves_(leaves_of(of.task_->trace, *of.forward_)) {
    for (const char* own : {"import torch", "import triton", "import triton.language as tl"})
      imports_.add(own);
    for (const auto& [storage, leaf] : leaves_)
      if (leaf.first.starts_with("inputs") || device_.empty()) device_ = leaf.first + ".device";
  }

  Status add(const Piece& piece) {
    if (!piece.candidate.empty()) return add_candidate(piece);
    for (const size_t step : of_.steps_of(piece.subgraph->nodes)) NEREID_TRY_STATUS(add_step(step));
    return ok_status();
  }

  Result<std::string> text() {
    NEREID_TRY(const std::string output,
               render::tree_python(of_.forward_->output, names(), device_, render::Names::kModules));
    const auto* named = std::get_if<trace::Dict>(&of_.forward_->inputs.node);
    const bool keyed = named != nullptr && named->kind == trace::Dict::Kind::kDict;
    const auto checks = render::number_checks(
        of_.forward_->inputs,
        {[](size_t place) { return fmt::format("inputs[{}]", place); },
         [](const std::string& key) { return fmt::format("inputs[{}]", render::quoted_text(key)); }},
        "        ");
    std::string text = of_.task_->source + classes_;
    text += render::with_line_breaks(fmt::format(
        "\n\nclass ModelNew({}):\n    def __init__(self, *args, **kwargs):\n        super().__init__(*args, "
        "**kwargs)\n{}\n"
        "    def forward(self, {}inputs):\n{}{}        return {}\n",
        of_.task_->trace.class_name, init_, keyed ? "**" : "*", checks, body_, output));
    return imports_.text(text) + "\n" + text;
  }

 private:
  // The name of a value in forward; the step of a view is written where its name is first asked for.
  Result<std::string> name_of(ValueId id) {
    if (const auto known = names_.find(id); known != names_.end()) return known->second;
    if (const auto view = of_.view_.find(id);
        view != of_.view_.end() && written_.insert(view->second).second) {
      NEREID_TRY_STATUS(add_step(view->second));
      return names_.at(id);
    }
    const auto leaf = leaves_.find(of_.value(id).storage);
    if (leaf == leaves_.end())
      return input_error("a tensor is neither an argument of forward, nor state, nor made in it");
    const auto& whole = of_.value(leaf->second.second);
    const auto& v = of_.value(id);
    if (whole.sizes == v.sizes && whole.strides == v.strides && whole.offset == v.offset &&
        whole.dtype == v.dtype)
      return leaf->second.first;
    return input_error("a view of {} was made before forward", leaf->second.first);
  }
  std::function<Result<std::string>(ValueId)> names() {
    return [this](ValueId id) { return name_of(id); };
  }
  std::string new_name(ValueId id) { return names_[id] = fmt::format("t{}", count_++); }

  Status add_step(size_t step) {
    NEREID_TRY(const std::string text, render::call_python(of_.call(step), names(), device_));
    const std::string targets =
        render::targets_python(of_.call(step).result, [this](ValueId v) { return new_name(v); });
    body_ += "        " + targets + " = " + text + "\n";
    return ok_status();
  }

  // The prefix of the class that holds the piece's candidate; equal candidates share one.
  std::string class_of(const Piece& piece) {
    auto& prefix = class_of_[piece.candidate];
    if (!prefix.empty()) return prefix;
    const size_t number = class_of_.size();
    prefix = fmt::format("subgraph_{}_", number);
    const render::Part part = render::as_part(piece.candidate, prefix);
    for (const std::string& statement : part.imports) imports_.add(statement);
    std::vector<std::string> ops;
    each_node(piece.subgraph->nodes, [&](size_t n) {
      for (const size_t step : of_.nodes_[n]) ops.push_back(of_.call(step).op.substr(6));
    });
    classes_ += render::with_line_breaks(
        fmt::format("\n\n# Fragment {}, by {}: {}.\n", number, piece.proposer, fmt::join(ops, ", ")));
    classes_ += part.text;
    init_ += fmt::format("        self.{}run = {}ModelNew()\n", prefix, prefix);
    return prefix;
  }

  Status add_candidate(const Piece& piece) {
    const Subgraph& subgraph = *piece.subgraph;
    const std::string prefix = class_of(piece);
    std::vector<std::string> args, results;
    bool other_sizes = false;
    for (size_t i = 0; i < subgraph.inputs.size(); ++i) {
      const ValueId id = subgraph.inputs[i];
      NEREID_TRY(auto name, name_of(id));
      // With the declared strides; what another candidate returned may have others than in the trace.
      if (!render::is_contiguous(of_.value(id)) || !leaves_.contains(of_.value(id).storage))
        name += ".contiguous()";
      if (i < subgraph.sizes.size() && subgraph.sizes[i] != of_.value(id).sizes) {
        other_sizes = true;
        name += fmt::format(".reshape({})", fmt::join(subgraph.sizes[i], ", "));
      }
      args.push_back(std::move(name));
    }
    for (const auto& [sizes, number] : subgraph.numbers)
      args.push_back(fmt::format("torch.full([{}], {}, device={})", fmt::join(sizes, ", "),
                                 render::float_text(number), device_));
    for (const ValueId id : subgraph.outputs) results.push_back(new_name(id));
    // What was written in place has several values in a trace.
    each_node(subgraph.nodes, [&](size_t n) {
      for (const size_t step : of_.nodes_[n])
        for (const ValueId id : trace::tensors_in(of_.call(step).result))
          if (const auto same = of_.same_place(subgraph.outputs, id)) names_[id] = names_.at(*same);
    });
    body_ +=
        fmt::format("        {} = self.{}run({})\n", fmt::join(results, ", "), prefix, fmt::join(args, ", "));
    if (!other_sizes) return ok_status();
    for (const ValueId id : subgraph.outputs)
      body_ +=
          fmt::format("        {0} = {0}.reshape([{1}])\n", names_[id], fmt::join(of_.value(id).sizes, ", "));
    return ok_status();
  }

  const Partitioner& of_;
  const Leaves leaves_;
  std::string device_, body_, classes_, init_;
  std::map<ValueId, std::string> names_;
  std::set<size_t> written_;  // view steps
  render::Imports imports_;
  std::map<std::string, std::string> class_of_;  // prefixes, by candidate
  size_t count_ = 0;
};

Result<std::string> Partitioner::compose(const std::vector<Piece>& pieces) const {
  Composition composition(*this);
  for (const auto& piece : pieces) NEREID_TRY_STATUS(composition.add(piece));
  return composition.text();
}

}  // namespace nereid::search
