#include "nereid/compiler/output/forward_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/ir/constant_data.h"
#include "nereid/compiler/output/class_names.h"
#include "nereid/compiler/output/forward_head.h"
#include "nereid/compiler/output/function_text.h"
#include "nereid/render/number_checks.h"
#include "nereid/render/python_text.h"
#include "nereid/render/python_tokens.h"

namespace nereid::compiler {
namespace {

class ForwardWriter {
 public:
  ForwardWriter(const trace::Trace& trace, const Graph& graph, const Fused& fused,
                const std::vector<KernelText>& texts, const SourceFile& source)
      : trace_(trace), graph_(graph), fused_(fused), texts_(texts), source_(source) {
    taken_ = names_of_forward(source);
    for (const auto& text : texts) taken_.insert(text.name);
  }

  Result<ForwardText> run() {
    for (size_t k = 0; k < texts_.size(); ++k) {
      if (fused_.kernels[k].kept >= 0)
        NEREID_TRY_STATUS(keep(graph_.nodes[static_cast<size_t>(fused_.kernels[k].kept)]));
      else
        NEREID_TRY_STATUS(launch(texts_[k]));
    }
    for (const Update& update : graph_.updates) {
      if (tensor(update.from).into == update.leaf) continue;
      NEREID_TRY(const std::string leaf, name_of(update.leaf));
      NEREID_TRY(const std::string from, name_of(update.from));
      line(fmt::format("{}.copy_({})", leaf, from));
    }
    NEREID_TRY(const std::string returned, output());
    line("return " + returned);
    body_ = without_unused_names(body_);
    std::string text = "    " + forward_head(trace_, source_) + "\n";
    const auto by_place = [&](size_t place) { return argument_text(source_, place); };
    const auto by_key = [&](const std::string& key) { return argument_text(source_, key); };
    text += render::number_checks(trace_.phases.back().inputs, {by_place, by_key}, "        ");
    if (reads_device()) {
      NEREID_TRY(const std::string device, this->device());
      text += fmt::format("        device = {}\n", device);
    }
    return ForwardText{std::move(text) + body_, std::move(constructor_)};
  }

 private:
  void line(const std::string& text) { body_ += "        " + text + "\n"; }
  const Tensor& tensor(TensorId id) const { return graph_.tensors[static_cast<size_t>(id)]; }
  const trace::Value& value(trace::ValueId id) const { return trace_.values[static_cast<size_t>(id)]; }

  bool reads_device() const {
    std::string_view before;
    const auto tokens = render::tokens_of(body_);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const bool keyword = i + 1 < tokens.size() && tokens[i + 1] == "=";
      if (tokens[i] == "device" && before != "." && !keyword) return true;
      before = tokens[i];
    }
    return false;
  }

  std::string fresh(const std::string& wish) { return unique_name(clear_name(identifier(wish)), taken_); }

  // Of the first tensor that is given or kept.
  Result<std::string> device() {
    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors.size()); ++id)
      if (tensor(id).leaf >= 0 && trace_.storages[static_cast<size_t>(value(tensor(id).leaf).storage)].role !=
                                      trace::Role::kConstant) {
        NEREID_TRY(const std::string name, name_of(id));
        return name + ".device";
      }
    return std::string("torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")");
  }

  Result<std::string> name_of(TensorId id) {
    if (const auto found = names_.find(id); found != names_.end()) return found->second;
    const Tensor& of = tensor(id);
    if (of.leaf < 0) return our_error("{} is used before it is made", of.name);
    NEREID_TRY(names_[id], leaf(of));
    return names_[id];
  }

  // How Python reaches what forward is given, or the module keeps.
  Result<std::string> leaf(const Tensor& of) {
    const trace::Value& view = value(of.leaf);
    const trace::Storage& storage = trace_.storages[static_cast<size_t>(view.storage)];
    // Several may share a storage: the one that is meant, else whichever has it.
    for (const auto& state : trace_.state)
      if (state.value == of.leaf) return attribute_text(state.name);
    for (const auto& state : trace_.state)
      if (value(state.value).storage == view.storage) return attribute_text(state.name);
    // Before constants: an argument whose numbers the task writes out may hold others at the next call.
    for (const bool exact : {true, false}) {
      const auto meant = [&](trace::ValueId id) {
        return exact ? id == of.leaf : value(id).storage == view.storage;
      };
      if (auto path = path_to_input(trace_.phases.back().inputs, meant); !path.empty()) return path;
    }
    if (storage.role == trace::Role::kConstant) return constant(of, storage);
    if (!storage.name.empty()) return attribute(of, storage.name);
    return input_error("{}: {} is neither an argument of forward nor state", trace_.file, of.name);
  }

  using Meant = std::function<bool(trace::ValueId)>;
  std::string path_to(const trace::Arg& arg, const std::string& path, const Meant& meant) const {
    if (const auto* ref = std::get_if<trace::TensorRef>(&arg.node)) return meant(ref->value) ? path : "";
    if (const auto* list = std::get_if<trace::List>(&arg.node)) {
      for (size_t i = 0; i < list->items.size(); ++i)
        if (auto found = path_to(list->items[i], fmt::format("{}[{}]", path, i), meant); !found.empty())
          return found;
    }
    if (const auto* dict = std::get_if<trace::Dict>(&arg.node)) {
      for (const auto& item : dict->items)
        if (auto found =
                path_to(item.second,
                        dict->kind == trace::Dict::Kind::kDict ? fmt::format("{}[\"{}\"]", path, item.first)
                                                               : fmt::format("{}.{}", path, item.first),
                        meant);
            !found.empty())
          return found;
    }
    return "";
  }

  // A dictionary goes by keyword; what is neither a list nor a dictionary is the only argument.
  std::string path_to_input(const trace::Arg& inputs, const Meant& meant) const {
    std::string path;
    if (const auto* list = std::get_if<trace::List>(&inputs.node)) {
      for (size_t i = 0; path.empty() && i < list->items.size(); ++i)
        if (const std::string name = argument_text(source_, i); !name.empty())
          path = path_to(list->items[i], name, meant);
      return path;
    }
    const auto* dict = std::get_if<trace::Dict>(&inputs.node);
    if (dict == nullptr || dict->kind != trace::Dict::Kind::kDict)
      return path_to(inputs, argument_text(source_, 0), meant);
    for (size_t i = 0; path.empty() && i < dict->items.size(); ++i)
      if (const std::string name = argument_text(source_, dict->items[i].first); !name.empty())
        path = path_to(dict->items[i].second, name, meant);
    return path;
  }

  std::string attribute(const Tensor& of, const std::string& name) {
    const std::string tensor = fmt::format("{}.reshape({})", attribute_text(name), sizes_text(of.sizes));
    std::string& buffer = buffers_[tensor];
    if (buffer.empty()) {
      buffer = unique_name("held_" + identifier(name), taken_);
      constructor_.push_back(
          fmt::format("self.register_buffer(\"{}\", {}, persistent=False)", buffer, tensor));
    }
    return "self." + buffer;
  }

  Result<std::string> constant(const Tensor& of, const trace::Storage& storage) {
    const auto numbers = constant_numbers(storage, of.type);
    if (numbers.empty())
      return input_error("{}: a constant of a type that cannot be written out", trace_.file);
    std::vector<std::string> items;
    for (const double number : numbers)
      items.push_back(of.type == DType::kBool ? (number != 0 ? "True" : "False")
                                              : constant_text(number, of.type));
    const std::string name = fresh("constant");
    line(fmt::format("{} = torch.tensor([{}], device=device, dtype={}).reshape({})", name,
                     fmt::join(items, ", "), render::dtype_text(of.type), sizes_text(of.sizes)));
    return name;
  }

  std::string allocation(const Tensor& of) {
    const bool dense = of.strides == row_major(of.sizes);
    return dense ? fmt::format("torch.empty({}, device=device, dtype={})", sizes_text(of.sizes),
                               render::dtype_text(of.type))
                 : fmt::format("torch.empty_strided({}, {}, device=device, dtype={})", sizes_text(of.sizes),
                               sizes_text(of.strides), render::dtype_text(of.type));
  }

  // Memory for what a kernel makes, unless there is some. A slice is a view of the tensor that it is part of.
  void allocate(TensorId id) {
    if (names_.contains(id)) return;
    const Tensor& of = tensor(id);
    if (of.slice_of < 0) {
      names_[id] = fresh(of.name);
      line(fmt::format("{} = {}", names_[id], allocation(of)));
      return;
    }
    allocate(of.slice_of);
    const Size end = of.slice_begin + of.sizes[of.slice_axis];
    const bool last = end == tensor(of.slice_of).sizes[of.slice_axis];
    std::string at;
    for (size_t d = 0; d < of.slice_axis; ++d) at += ":, ";
    at += fmt::format("{}:{}", of.slice_begin == 0 ? "" : of.slice_begin.text(), last ? "" : end.text());
    names_[id] = fresh(of.name);
    line(fmt::format("{} = {}[{}]", names_[id], names_.at(of.slice_of), at));
  }

  Status launch(const KernelText& kernel) {
    std::vector<std::string> args;
    for (const auto& pointer : kernel.pointers) {
      const Tensor& of = tensor(pointer.tensor);
      if (of.node >= 0) allocate(pointer.tensor);
      NEREID_TRY(auto name, name_of(pointer.tensor));
      args.push_back(std::move(name));
    }
    if (kernel.steps > 0) args.emplace_back("step");
    for (const auto& each : kernel.constants) {
      const bool product = each.covers.find('*') != each.covers.npos;  // else one sees the next power
      args.push_back(product ? fmt::format("{}=triton.next_power_of_2({})", each.name, each.covers)
                     : each.text.empty() ? fmt::format("{}={}", each.name, each.value)
                                         : fmt::format("{}={}", each.name, each.text));
    }
    args.push_back(fmt::format("num_warps={}", kernel.num_warps));
    if (kernel.num_stages > 0) args.push_back(fmt::format("num_stages={}", kernel.num_stages));
    if (kernel.registers > 0) args.push_back(fmt::format("maxnreg={}", kernel.registers));
    if (kernel.cooperative) args.emplace_back("launch_cooperative_grid=True");
    if (!kernel.fused_multiply_add) args.emplace_back("enable_fp_fusion=False");
    const std::string grid = kernel.grid.empty() ? std::to_string(kernel.programs) : kernel.grid;
    const std::string head = fmt::format("{}[({},)]", kernel.name, grid);
    for (const StepStart& start : kernel.starts) {
      NEREID_TRY(const std::string into, name_of(start.into));
      if (start.from < 0) {
        line(fmt::format("{}.zero_()", into));
        continue;
      }
      NEREID_TRY(const std::string from, name_of(start.from));
      line(fmt::format("{}{}.copy_({})", into, start.first ? "[0]" : "", from));
    }
    if (kernel.steps > 0) line(fmt::format("for step in range({}):", kernel.steps));
    line(fmt::format("{}{}({})", kernel.steps > 0 ? "    " : "", head, fmt::join(args, ", ")));
    return ok_status();
  }

  // The first of the rows of `of` that a view of these sizes and strides is the rest of.
  static std::optional<Size> last_rows(Extents sizes, const Extents& strides, const Size& distance,
                                       const Tensor& of) {
    if (strides != of.strides || sizes.empty() || of.sizes[0] <= sizes[0]) return std::nullopt;
    const Size first = of.sizes[0] - sizes[0];
    sizes[0] = of.sizes[0];
    return sizes == of.sizes && distance == first * of.strides[0] ? std::optional(first) : std::nullopt;
  }

  // A value as a look at the tensor that holds it.
  Result<std::string> look(trace::ValueId id, TensorId holder) {
    NEREID_TRY(std::string name, name_of(holder));
    const TracedTensor& view = graph_.values->at(static_cast<size_t>(id));
    const Tensor& of = tensor(holder);
    if (of.sizes == view.sizes && of.strides == view.strides && of.offset == view.offset) return name;
    const Size further = along_strides(view.offset - of.offset, of.strides);
    Extents sizes = view.sizes, strides = view.strides;
    for (const char* turned : {"", ".transpose(0, 1)"}) {
      if (const auto rows = last_rows(sizes, strides, view.offset - of.offset, of))
        return fmt::format("{}[{}:]{}", name, rows->text(), turned);
      if (sizes.size() < 2) break;
      std::swap(sizes[0], sizes[1]), std::swap(strides[0], strides[1]);
    }
    return fmt::format(
        "{}.as_strided({}, {}{})", name, sizes_text(view.sizes), sizes_text(view.strides),
        further == 0 ? ""
                     : fmt::format(", {}.storage_offset() + {}", name, further.text(Size::Place::kTerm)));
  }

  Status keep(const Node& node) {
    if (!node.parts.empty()) return ok_status();  // the kernels of its parts have made it
    std::map<trace::ValueId, std::string> given;
    for (const auto& [id, holder] : node.inputs) {
      NEREID_TRY(given[id], look(id, holder));
    }
    std::vector<std::string> made;
    for (const TensorId out : node.outs) made.push_back(names_[out] = fresh(tensor(out).name));
    if (!node.draw.empty()) {
      line(fmt::format("{} = {}", made.front(), node.draw));
      return ok_status();
    }
    line("# PyTorch's own: there is no kernel for it here.");
    NEREID_TRY(const std::string call,
               render::call_python(
                   *node.call, [&](trace::ValueId id) -> Result<std::string> { return given[id]; }, "device",
                   render::Names::kFile));
    line(fmt::format("{} = {}", fmt::join(made, ", "), call));
    return ok_status();
  }

  // The tree that forward returned, its tensors by name.
  Result<std::string> output() {
    std::vector<std::string> results;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const trace::ValueId as = i < graph_.looks.size() ? graph_.looks[i] : -1;
      NEREID_TRY(auto name, as < 0 ? name_of(graph_.outputs[i]) : look(as, graph_.outputs[i]));
      results.push_back(std::move(name));
    }
    size_t next = 0;
    return render::tree_python(
        trace_.phases.back().output,
        [&](trace::ValueId) -> Result<std::string> { return results.at(next++); }, "device",
        render::Names::kFile);
  }

  const trace::Trace& trace_;
  const Graph& graph_;
  const Fused& fused_;
  const std::vector<KernelText>& texts_;
  const SourceFile& source_;
  std::string body_;
  std::vector<std::string> constructor_;
  std::map<std::string, std::string> buffers_;  // of attributes
  std::map<TensorId, std::string> names_;
  std::set<std::string> taken_;
};

}  // namespace

Result<ForwardText> forward_text(const trace::Trace& trace, const Graph& graph, const Fused& fused,
                                 const std::vector<KernelText>& texts, const SourceFile& source) {
  return ForwardWriter(trace, graph, fused, texts, source).run();
}

std::set<std::string> names_of_forward(const SourceFile& source) {
  std::set<std::string> names = {"self",   "device", "step",      "torch",
                                 "triton", "tl",     "libdevice", std::string(kBatchName)};
  for (const auto& parameter : source.parameters) names.insert(parameter.name);
  if (!source.keywords.empty()) names.insert(source.keywords);
  return names;
}

std::string unique_name(const std::string& wish, std::set<std::string>& taken) {
  std::string name = wish;
  for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
  return name;
}

std::string signature_for(const trace::Arg& inputs) {
  std::vector<std::string> names = {"self"};
  if (const auto* list = std::get_if<trace::List>(&inputs.node)) {
    for (size_t i = 0; i < list->items.size(); ++i) names.push_back(fmt::format("x{}", i));
  } else if (const auto* dict = std::get_if<trace::Dict>(&inputs.node);
             dict != nullptr && dict->kind == trace::Dict::Kind::kDict) {
    for (const auto& item : dict->items) {
      if (item.first != identifier(item.first)) return "self, **named";
      names.push_back(item.first);
    }
  } else {
    names.emplace_back("x");
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace nereid::compiler
