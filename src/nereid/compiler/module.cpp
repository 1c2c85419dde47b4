#include "nereid/compiler/module.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "nereid/compiler/codegen/emit_expr.h"
#include "nereid/compiler/codegen/exact_divisions.h"
#include "nereid/compiler/codegen/helpers.h"
#include "nereid/compiler/import/import.h"
#include "nereid/compiler/output/class_names.h"
#include "nereid/compiler/output/collapsed_dims.h"
#include "nereid/compiler/output/forward_text.h"
#include "nereid/compiler/output/function_text.h"
#include "nereid/compiler/output/kernel_name.h"
#include "nereid/compiler/output/plan.h"
#include "nereid/compiler/output/shared_kernels.h"
#include "nereid/compiler/output/source_file.h"
#include "nereid/compiler/transforms/algebra.h"
#include "nereid/compiler/transforms/flash.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/loops.h"
#include "nereid/compiler/transforms/products/channels_last.h"
#include "nereid/compiler/transforms/products/divided_products.h"
#include "nereid/compiler/transforms/products/split_factors.h"
#include "nereid/compiler/transforms/products/thin_channels.h"
#include "nereid/compiler/transforms/products/window_factors.h"
#include "nereid/compiler/transforms/update_in_place.h"
#include "nereid/render/imports.h"
#include "nereid/render/line_breaks.h"

namespace nereid::compiler {
namespace {

constexpr size_t kCutsKept = 3;

// As forward calls them.
void name_inputs(const trace::Trace& trace, const SourceFile& file, Graph& graph) {
  const trace::Arg& inputs = trace.phases.back().inputs;
  const auto name = [&](const trace::Arg& arg, const std::string& called) {
    const auto* ref = std::get_if<trace::TensorRef>(&arg.node);
    if (ref == nullptr || called.empty() || called.ends_with(']')) return;
    for (Tensor& tensor : graph.tensors)
      if (tensor.leaf == ref->value) tensor.name = called;
  };
  if (const auto* list = std::get_if<trace::List>(&inputs.node))
    for (size_t i = 0; i < list->items.size(); ++i) name(list->items[i], argument_text(file, i));
  else if (const auto* dict = std::get_if<trace::Dict>(&inputs.node))
    for (const auto& item : dict->items) name(item.second, argument_text(file, item.first));
  else
    name(inputs, argument_text(file, 0));
}

class ModuleWriter {
 public:
  // `known`: numbers of the source.
  ModuleWriter(const trace::Trace& trace, const std::set<std::string>& known, const SourceFile& file,
               Graph graph, const Fused& fused, const Choices& choices, const Target& target)
      : trace_(trace),
        known_(known),
        file_(file),
        choices_(choices),
        target_(target),
        graph_(std::move(graph)),
        fused_(fused) {}

  Result<Module> run() {
    name_apart();
    NEREID_TRY_STATUS(write_kernels());
    if (choices_.share_equal) share();
    for (KernelText& kernel : texts_) kernel.text = filled(kernel.text);
    NEREID_TRY(ForwardText written, forward_text(trace_, graph_, fused_, texts_, file_));
    members_ = file_.members;
    if (!written.constructor.empty()) members_ = with_constructor(members_, written.constructor);
    if (members_.empty() && !written.constructor.empty())
      return input_error(
          "forward reads tensors that are attributes, and no constructor of the class runs to its end");
    const auto merged = collapsed_dims(trace_, known_);
    const std::string forward = with_collapsed_dims(written.text, merged);
    for (KernelText& kernel : texts_) kernel.text = with_collapsed_dims(kernel.text, merged);
    module_.plan = plan_text(trace_, graph_, fused_, module_, target_);
    module_.text = "\"\"\"" + module_.plan + "\"\"\"\n\n" + code(forward);
    return std::move(module_);
  }

 private:
  // What kernels make has one name in all of them and in forward: "neg", then "neg_2".
  void name_apart() {
    std::set<std::string> taken = names_of_forward(file_);
    for (const Tensor& tensor : graph_.tensors)
      if (tensor.leaf >= 0) taken.insert(identifier(tensor.name));
    const auto name = [&](TensorId id) {
      Tensor& tensor = graph_.tensors[static_cast<size_t>(id)];
      if (tensor.leaf < 0 && tensor.into < 0 && fused_.stored[static_cast<size_t>(id)])
        tensor.name = unique_name(clear_name(identifier(tensor.name)), taken);
    };
    for (const TileKernel& kernel : fused_.kernels) {
      if (kernel.kept >= 0) {
        const Node& node = graph_.nodes[static_cast<size_t>(kernel.kept)];
        std::ranges::for_each(node.outs, name);
        if (!node.parts.empty()) name(node.out);
      }
      for (const Member& member : kernel.members) name(graph_.nodes[static_cast<size_t>(member.node)].out);
    }
  }

  Status write_kernels() {
    std::set<std::string> names;
    for (const auto& kernel : fused_.kernels) {
      texts_.emplace_back();
      if (kernel.kept >= 0) {
        const Node& node = graph_.nodes[static_cast<size_t>(kernel.kept)];
        if (!node.parts.empty()) continue;
        if (!node.draw.empty()) {
          module_.draws.push_back(fmt::format("{} (line {})", node.call->op, node.place.line));
          continue;
        }
        module_.kept.push_back(fmt::format("{} ({}:{}{}{})", node.call->op, node.place.file, node.place.line,
                                           node.kept_for.empty() ? "" : "; ", node.kept_for));
        continue;
      }
      const std::string name = unique_name(name_of_work(words_of(graph_, kernel)) + "_kernel", names);
      const auto chosen = choices_.kernels.find(name);
      KernelChoice choice = chosen == choices_.kernels.end() ? KernelChoice{} : chosen->second;
      choice.masked = choices_.masked;
      NEREID_TRY(texts_.back(), emit(graph_, fused_, kernel, name, choice, target_));
      texts_.back().text = with_expressions(without_unused(texts_.back().text));
      const KernelText& text = texts_.back();
      const Estimate cost = estimate(graph_, fused_, kernel, text, target_);
      module_.seconds += cost.seconds;
      module_.kernels.push_back({name,
                                 text.comment,
                                 name,
                                 text.choice,
                                 alternatives(kernel, text, target_),
                                 cost,
                                 text.programs,
                                 text.steps,
                                 {}});
      module_.kernels.back().rows = kernel.rows, module_.kernels.back().columns = kernel.columns;
      module_.kernels.back().work = step_words_of(graph_, kernel);
      module_.kernels.back().reduces = std::ranges::any_of(
          kernel.members, [](const Member& m) { return m.reduction != Reduction::kNone; });
      for (const auto& pointer : text.pointers)
        module_.kernels.back().arguments.push_back(argument(kernel, pointer));
      for (const Member& member : kernel.members) {
        const auto& steps = graph_.nodes[static_cast<size_t>(member.node)].steps;
        module_.kernels.back().covers.insert(steps.begin(), steps.end());
      }
    }
    return ok_status();
  }

  void share() {
    share_equal_kernels(texts_);
    auto kernel = module_.kernels.begin();
    for (size_t k = 0; k < texts_.size(); ++k)
      if (fused_.kernels[k].kept < 0) (kernel++)->function = texts_[k].name;
  }

  KernelArgument argument(const TileKernel& kernel, const PointerParameter& pointer) const {
    const Tensor& tensor = graph_.tensors[static_cast<size_t>(pointer.tensor)];
    std::string name = pointer.name;
    if (const size_t at = name.rfind("_ptr"); at != name.npos) name.erase(at, 4);
    const bool written = std::ranges::any_of(kernel.members, [&](const Member& member) {
      return graph_.nodes[static_cast<size_t>(member.node)].out == pointer.tensor;
    });
    return {std::move(name), tensor.sizes, tensor.strides, written};
  }

  // What follows the plan: imports, what the class needs, helpers, kernels, the class. Blank lines are those
  // that PEP 8 wants; lines of the task's own stay as they are.
  std::string code(const std::string& forward) const {
    std::vector<std::string> parts;
    if (!file_.needed.empty()) parts.push_back(file_.needed);
    std::set<std::string> helpers;
    for (const auto& kernel : texts_) helpers.insert(kernel.helpers.begin(), kernel.helpers.end());
    for (const auto& helper : with_callees(std::move(helpers))) parts.push_back(helper_text(helper));
    for (const auto& kernel : texts_)
      if (!kernel.text.empty()) parts.push_back(render::with_line_breaks(with_hints(kernel.text)));
    parts.push_back(
        fmt::format("class ModelNew({}):\n{}{}", file_.bases, members_, members_.empty() ? "" : "\n") +
        render::with_line_breaks(forward));
    std::string body;
    for (const auto& part : parts) body += (body.empty() ? "" : "\n\n") + part;
    const bool apart = body.starts_with("class ") || body.starts_with("def ") || body.starts_with("@");
    return imports(body) + (apart ? "\n\n" : "\n") + body;
  }

  std::string imports(const std::string& body) const {
    render::Imports all;
    for (const auto& statement : file_.imports) all.add(statement);
    all.add("import torch");
    all.add("import triton");
    all.add("import triton.language as tl");
    all.add("from triton.language.extra import libdevice");
    return all.text(body);
  }

  const trace::Trace& trace_;
  const std::set<std::string>& known_;
  const SourceFile& file_;
  const Choices& choices_;
  const Target& target_;
  Graph graph_;
  const Fused& fused_;
  std::string members_;            // of the class but forward
  std::vector<KernelText> texts_;  // of each kernel; empty for an operator that stays PyTorch's
  Module module_;
};

}  // namespace

// What follows from the task alone.
struct Lowering::Read {
  SourceFile file;
  std::set<std::string> numbers;  // that stand in the source
  Graph graph;
};

// What follows from all choices but those of single kernels.
struct Lowering::Cut {
  Choices choices;  // without those of single kernels
  Target target;
  Graph graph;
  Fused fused;
};

Lowering::Lowering(const trace::Trace& trace, const std::string& source, bool prose, const OtherBatch& other)
    : trace_(trace), source_(source), prose_(prose), other_(other) {}
Lowering::~Lowering() = default;

Result<const Lowering::Cut*> Lowering::cut(const Choices& choices) {
  Choices shared = choices;
  shared.kernels.clear();
  for (const Cut& known : cuts_)
    if (known.choices == shared) return &known;
  if (read_ == nullptr)
    read_ = std::make_unique<Result<Read>>([&]() -> Result<Read> {
      const std::string code = prose_ ? source_ : without_prose(source_);
      std::set<std::string> types, imports;  // of what goes in and what forward hands out
      for (const trace::Arg* arg :
           {&trace_.init_inputs, &trace_.phases.back().inputs, &trace_.phases.back().output})
        own_types(*arg, types);
      imports_of_types(trace_.phases.back().output, imports);
      NEREID_TRY(SourceFile file, read_source(trace_.file, code, trace_.class_name, "ModelNew", types,
                                              signature_for(trace_.phases.back().inputs)));
      for (const std::string& line : imports)
        if (std::ranges::find(file.imports, line) == file.imports.end()) file.imports.push_back(line);
      NEREID_TRY(Graph graph, import(trace_, source_, other_));
      name_inputs(trace_, file, graph);
      return Read{std::move(file), numbers_in(code), std::move(graph)};
    }());
  if (!read_->ok()) return read_->error();
  NEREID_TRY(const Target target, target_named(choices.target));
  Graph graph = (*read_)->graph;
  if (choices.tf32)
    for (Node& node : graph.nodes) node.tf32 = node.tf32 || node.under_flag;
  if (choices.fusion == Fusion::kFree && choices.cuts.empty()) roll_loops(graph);
  if (choices.algebra) rewrite_algebra(graph, target);
  if (choices.fusion == Fusion::kFree && choices.cuts.empty()) divide_products(graph);
  if (choices.one_pass_attention) one_pass_attention(graph, target);
  if (choices.fusion == Fusion::kFree) window_factors(graph);
  split_factors(graph, choices, target);
  if (choices.channels_last) {
    thin_channels(graph);
    channels_last(graph, target);
  }
  Fused fused = fuse(graph, target, choices.split_sums, choices.cuts, choices.fusion);
  update_in_place(graph, fused);
  exact_divisions(graph, fused);
  if (cuts_.size() == kCutsKept) cuts_.pop_back();
  cuts_.push_front({std::move(shared), target, std::move(graph), std::move(fused)});
  return &cuts_.front();
}

Result<Module> Lowering::module(const Choices& choices) {
  NEREID_TRY(const Cut* cut, this->cut(choices));
  const Read& read = **read_;
  return ModuleWriter(trace_, read.numbers, read.file, cut->graph, cut->fused, choices, cut->target).run();
}

Result<Module> lower_module(const trace::Trace& trace, const std::string& source, const Choices& choices,
                            const OtherBatch& other) {
  return Lowering(trace, source, true, other).module(choices);
}

}  // namespace nereid::compiler
