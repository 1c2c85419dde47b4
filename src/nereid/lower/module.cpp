#include "nereid/lower/module.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "nereid/lower/fuse.h"
#include "nereid/lower/import.h"

namespace nereid::lower {
namespace {

std::string torch_type(DType type) {
  switch (type) {
    case DType::kBool:
      return "torch.bool";
    case DType::kU8:
      return "torch.uint8";
    case DType::kI8:
      return "torch.int8";
    case DType::kI16:
      return "torch.int16";
    case DType::kI32:
      return "torch.int32";
    case DType::kI64:
      return "torch.int64";
    case DType::kF16:
      return "torch.float16";
    case DType::kBF16:
      return "torch.bfloat16";
    case DType::kF64:
      return "torch.float64";
    default:
      return "torch.float32";
  }
}

std::string tuple(const std::vector<int64_t>& numbers) {
  return numbers.size() == 1 ? fmt::format("({},)", numbers[0])
                             : fmt::format("({})", fmt::join(numbers, ", "));
}

class ModuleWriter {
 public:
  ModuleWriter(const trace::Trace& trace, const std::string& source) : trace_(trace), source_(source) {}

  Result<Module> run() {
    NEREID_TRY(graph_, import(trace_));
    fused_ = fuse(graph_);
    NEREID_TRY_STATUS(write_kernels());
    NEREID_TRY_STATUS(read_signature());
    NEREID_TRY(const std::string forward, this->forward());
    module_.text = "import triton\nimport triton.language as tl\n";
    const bool libdevice = std::ranges::any_of(
        module_.kernels, [](const KernelText& k) { return k.text.find("libdevice.") != k.text.npos; });
    if (libdevice) module_.text += "from triton.language.extra import libdevice\n";
    module_.text += "\n" + source_ + "\n\n";
    std::set<std::string> helpers;
    for (const auto& kernel : module_.kernels) helpers.insert(kernel.helpers.begin(), kernel.helpers.end());
    for (const auto& helper : helpers) module_.text += helper_text(helper) + "\n\n";
    for (const auto& kernel : module_.kernels) module_.text += kernel.text + "\n\n";
    module_.text += "class ModelNew(" + trace_.class_name + "):\n" + forward;
    return std::move(module_);
  }

 private:
  Status write_kernels() {
    std::set<std::string> names;
    for (const auto& kernel : fused_.kernels) {
      std::set<std::string> words;
      std::string name;
      for (const Member& member : kernel.members) {
        const std::string& word = graph_.nodes[static_cast<size_t>(member.node)].name;
        if (name.size() < 40 && words.insert(word).second) name += (name.empty() ? "" : "_") + word;
      }
      name += "_kernel";
      std::string unique = name;
      for (int n = 2; !names.insert(unique).second; ++n) unique = fmt::format("{}_{}", name, n);
      NEREID_TRY(auto text, emit(graph_, fused_, kernel, unique));
      module_.kernels.push_back(std::move(text));
    }
    return ok_status();
  }

  // The parameters of forward, as the source has them.
  Status read_signature() {
    const size_t at = source_.find("class " + trace_.class_name);
    const size_t def = at == source_.npos ? at : source_.find("def forward(", at);
    if (def == source_.npos)
      return input_error("{}: class {} has no forward of its own", trace_.file, trace_.class_name);
    const size_t open = def + std::string("def forward").size(), close = source_.find("):", open);
    const size_t arrow = source_.find(") ->", open);
    const size_t end = std::min(close, arrow);
    if (end == source_.npos) return input_error("{}: the parameters of forward cannot be read", trace_.file);
    signature_ = source_.substr(open + 1, end - open - 1);
    static const std::regex kParameter(R"(^\s*\*?(\w+))");
    std::string rest = signature_;
    int depth = 0;
    std::string one;
    for (const char c : rest + ",") {
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
      if (c != ',' || depth > 0) {
        one += c;
        continue;
      }
      std::smatch match;
      if (std::regex_search(one, match, kParameter)) parameters_.push_back(match[1]);
      one.clear();
    }
    if (!parameters_.empty() && parameters_.front() == "self") parameters_.erase(parameters_.begin());
    return ok_status();
  }

  // How Python reaches a leaf.
  Result<std::string> leaf_text(const Tensor& leaf) {
    const auto& value = trace_.values[static_cast<size_t>(leaf.leaf)];
    for (const auto& state : trace_.state)
      if (trace_.values[static_cast<size_t>(state.value)].storage == value.storage)
        return attribute(state.name);
    const auto& inputs = trace_.phases.back().inputs;
    const auto* list = std::get_if<trace::List>(&inputs.node);
    for (size_t i = 0; list != nullptr && i < list->items.size() && i < parameters_.size(); ++i) {
      const auto tensors = trace::tensors_in(list->items[i]);
      if (tensors.size() == 1 && trace_.values[static_cast<size_t>(tensors[0])].storage == value.storage &&
          std::holds_alternative<trace::TensorRef>(list->items[i].node))
        return parameters_[i];
    }
    return input_error("{}: {} is neither an argument of forward nor state", trace_.file, leaf.name);
  }
  static std::string attribute(const std::string& name) {
    std::string text = "self";
    std::string part;
    for (const char c : name + ".") {
      if (c != '.') {
        part += c;
        continue;
      }
      const bool number = std::ranges::all_of(part, [](char d) { return d >= '0' && d <= '9'; });
      text += number ? "[" + part + "]" : "." + part;
      part.clear();
    }
    return text;
  }

  Result<std::string> forward() {
    std::string text = fmt::format("    def forward({}):\n", signature_);
    std::string device;
    for (const auto& leaf : graph_.tensors)
      if (leaf.leaf >= 0 && device.empty()) {
        NEREID_TRY(const auto name, leaf_text(leaf));
        device = name + ".device";
      }
    std::map<TensorId, std::string> names;
    std::set<std::string> taken(parameters_.begin(), parameters_.end());
    for (size_t k = 0; k < module_.kernels.size(); ++k) {
      const KernelText& kernel = module_.kernels[k];
      std::vector<std::string> args;
      for (const auto& pointer : kernel.pointers) {
        const Tensor& tensor = graph_.tensors[static_cast<size_t>(pointer.tensor)];
        if (tensor.node < 0) {
          NEREID_TRY(auto leaf, leaf_text(tensor));
          args.push_back(leaf);
          continue;
        }
        if (!names.contains(pointer.tensor)) {
          std::string wish;
          for (const char c : tensor.name) wish += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
          std::string name = wish;
          for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
          names[pointer.tensor] = name;
          const bool dense = tensor.strides == row_major(tensor.sizes);
          text += dense ? fmt::format("        {} = torch.empty({}, device={}, dtype={})\n", name,
                                      tuple(tensor.sizes), device, torch_type(tensor.type))
                        : fmt::format("        {} = torch.empty_strided({}, {}, device={}, dtype={})\n", name,
                                      tuple(tensor.sizes), tuple(tensor.strides), device,
                                      torch_type(tensor.type));
        }
        args.push_back(names[pointer.tensor]);
      }
      for (const auto& [name, value] : kernel.constants) args.push_back(fmt::format("{}={}", name, value));
      text += fmt::format("        {}[({},)]({}, num_warps={})\n", kernel.name, kernel.programs,
                          fmt::join(args, ", "), kernel.num_warps);
    }
    std::vector<std::string> results;
    for (const TensorId id : graph_.outputs) results.push_back(names.at(id));
    text += fmt::format("        return {}\n", output_text(trace_.phases.back().output, results));
    return text;
  }

  // The tree that forward returned, its tensors by name.
  static std::string output_text(const trace::Arg& output, std::vector<std::string>& results) {
    if (std::holds_alternative<trace::TensorRef>(output.node)) {
      std::string first = results.front();
      results.erase(results.begin());
      return first;
    }
    if (const auto* list = std::get_if<trace::List>(&output.node)) {
      std::vector<std::string> items;
      for (const auto& item : list->items) items.push_back(output_text(item, results));
      if (!list->tuple) return fmt::format("[{}]", fmt::join(items, ", "));
      return items.size() == 1 ? fmt::format("({},)", items[0]) : fmt::format("({})", fmt::join(items, ", "));
    }
    if (const auto* dict = std::get_if<trace::Dict>(&output.node)) {
      std::vector<std::string> items;
      for (const auto& item : dict->items)
        items.push_back(fmt::format("\"{}\": {}", item.first, output_text(item.second, results)));
      return fmt::format("{{{}}}", fmt::join(items, ", "));
    }
    if (const auto* whole = std::get_if<int64_t>(&output.node)) return std::to_string(*whole);
    if (const auto* real = std::get_if<double>(&output.node)) return fmt::format("{}", *real);
    if (const auto* flag = std::get_if<bool>(&output.node)) return *flag ? "True" : "False";
    return "None";
  }

  const trace::Trace& trace_;
  const std::string& source_;
  Graph graph_;
  Fused fused_;
  Module module_;
  std::string signature_;
  std::vector<std::string> parameters_;
};

}  // namespace

Result<Module> lower_module(const trace::Trace& trace, const std::string& source) {
  return ModuleWriter(trace, source).run();
}

}  // namespace nereid::lower
