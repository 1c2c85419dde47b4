#include "nereid/synth/write/emit.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/synth/write/body_writer.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {
namespace {

void normal(std::string& to, const ops::Shape& size, const CodeStyle& style, SizeNames& sizes) {
  const bool listed = style.made == 1 && size.rank > 0, once_more = style.made == 2 && size.rank > 1,
             between = style.made == 3;
  to += between ? "2 * torch.rand(" : "torch.randn(";
  if (listed || once_more) to += listed ? '[' : '(';
  sizes.shape(to, size);
  if (listed || once_more) to += listed ? ']' : ')';
  if (style.made == 4) to += ", dtype=torch.float32";
  to += between ? ") - 1" : ")";
}

void write_input(std::string& to, const Input& input, const CodeStyle& style, SizeNames& sizes) {
  using ops::Range;
  const auto drawn = [&](std::string_view maker) {
    to += maker;
    to += '(';
    sizes.shape(to, input.shape);
    to += ')';
  };
  const auto integers = [&](int64_t below) {
    append(to, "torch.randint(0, {}, (", below);
    if (input.shape.rank > 0) sizes.shape(to, input.shape);
    to += input.shape.rank == 1 ? ",))" : "))";
  };
  switch (input.range) {
    case Range::kNormal:
      return normal(to, input.shape, style, sizes);
    case Range::kPositive:
      drawn("torch.rand"), to += " + 0.5";
      return;
    case Range::kMask:
      drawn("torch.rand"), to += " < 0.5";
      return;
    case Range::kIndex:
      return integers(input.bound);
    case Range::kSign:
      integers(2), to += " * 2.0 - 1.0";
      return;
    case Range::kProbability:
      to += "torch.softmax(", drawn("torch.randn"), to += ", dim=-1)";
      return;
    case Range::kWeight:
      drawn("torch.randn");
      append(to, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
      return;
  }
}

// One empty line where there were two.
void tighten(std::string& to, Layout& layout) {
  std::string text;
  std::vector<int> kept = {0};  // of each line and those before it: how many stay
  for (size_t begin = 0; begin < to.size();) {
    const size_t end = to.find('\n', begin) + 1;
    const bool dropped = end == begin + 1 && begin >= 2 && to[begin - 2] == '\n';
    if (!dropped) text.append(to, begin, end - begin);
    kept.push_back(kept.back() + (dropped ? 0 : 1));
    begin = end;
  }
  for (auto* lines : {&layout.lines, &layout.before})
    for (int& line : *lines) line = kept[static_cast<size_t>(line)];
  to = std::move(text);
}

// `torch.nn.` for `nn.`, in every line.
void spell_out(std::string& to) {
  for (const auto& [prefix, whole] : {std::pair{"nn.", "torch.nn."}, std::pair{"F.", "torch.nn.functional."}})
    for (size_t at = 0; (at = to.find(prefix, at)) != std::string::npos; at += std::strlen(whole)) {
      const char before = at == 0 ? '\n' : to[at - 1];
      if (before != '.' && before != '_' && std::isalnum(static_cast<unsigned char>(before)) == 0)
        to.replace(at, std::strlen(prefix), whole);
    }
}

// The file around the bodies: imports, globals, inputs.
class FileWriter {
 public:
  FileWriter(const Program& program, const CodeStyle& style, std::string& to)
      : program_(program),
        style_(style),
        to_(to),
        sizes_(style),
        values_(style),
        commentary_(style),
        constructor_(program, style, sizes_, values_, layout_),
        bodies_(program, style, sizes_, values_, commentary_, constructor_, layout_) {
    layout_.lines.resize(program.steps.size()), layout_.before.resize(program.steps.size()),
        layout_.own.resize(program.steps.size());
    layout_.parameter.resize(program.inputs.size());
  }
  Layout write();

 private:
  // What is placed in a text that comes next.
  void place(const std::vector<std::pair<size_t, int>>& placed);
  void imports();
  void globals();
  std::string inputs_function(const Body& model);
  std::string init_function(const Body& model);

  const Program& program_;
  const CodeStyle& style_;
  std::string& to_;
  Layout layout_;
  SizeNames sizes_;
  ValueNames values_;
  Commentary commentary_;
  Constructor constructor_;
  BodyWriter bodies_;
  std::string model_mentions_;
};

Layout FileWriter::write() {
  Body model = bodies_.model();
  if (style_.shuffled != 0) {
    Rng rng(style_.shuffled, 1);
    shuffle(rng, model.sizes);
  }
  // Inputs first: they name the sizes that are globals.
  const std::string inputs = inputs_function(model);
  const std::string init = init_function(model);
  commentary_.file_prose(to_);
  imports();
  std::string model_class;
  bodies_.write_class(model, "Model", model_class);
  const bool globals_first = style_.size_names % 2 == 1;
  if (globals_first) globals();
  place(bodies_.placed_apart());
  to_ += bodies_.apart();
  place(model.placed);
  to_ += model_class;
  if (!globals_first) globals();
  to_ += inputs;
  to_ += init;
  for (const auto& [ref, name] : model.arguments) layout_.arguments.push_back(ref.index);
  layout_.state = std::move(model.parameters);
  layout_.state.insert(layout_.state.end(), model.submodules.begin(), model.submodules.end());
  if (style_.tight) tighten(to_, layout_);
  if (style_.whole_paths) spell_out(to_);
  return std::move(layout_);
}

void FileWriter::place(const std::vector<std::pair<size_t, int>>& placed) {
  const int before = lines_in(to_) + 1;
  const size_t steps = layout_.lines.size();
  for (const auto& [step, line] : placed)
    (step < steps ? layout_.lines[step] : layout_.before[step - steps]) = before + line;
}

void FileWriter::imports() {
  // Which modules the text names is known once it is written.
  const auto mentions = [&](std::string_view word) {
    return bodies_.apart().find(word) != std::string::npos || model_mentions_.find(word) != std::string::npos;
  };
  if (style_.more_imports) to_ += style_.spoken == 0 ? "import math\n\n" : "from typing import Optional\n\n";
  if (style_.whole_paths) {
    to_ += style_.plain_import ? "import torch\nimport torch.nn\n" : "import torch\n";
  } else {
    to_ += style_.plain_import ? "import torch\nimport torch.nn as nn\n"
                               : "import torch\nfrom torch import nn\n";
    if (mentions("F.") || style_.more_imports)
      to_ += style_.plain_import ? "import torch.nn.functional as F\n"
                                 : "from torch.nn import functional as F\n";
  }
  to_ += "\n\n";
}

void FileWriter::globals() {
  auto globals = constructor_.take_globals();
  if (style_.sizes == SizeStyle::kGlobal) {
    for (const auto& [size, name] : sizes_.used()) globals.emplace_back(name, std::to_string(size));
    Rng rng(style_.shuffled, 2);
    for (size_t i = 0; i < style_.spare && sizes_.used().size() + i < sizes_.listed().size(); ++i)
      globals.emplace_back(sizes_.listed()[sizes_.used().size() + i],
                           std::to_string(1 + rng.below(1U << (1 + rng.below(10)))));
  }
  if (globals.empty()) return;
  if (style_.shuffled != 0) {
    Rng rng(style_.shuffled, 3);
    shuffle(rng, globals);
  }
  commentary_.comments("", 5, to_);
  for (const auto& [name, value] : globals) {
    append(to_, "{} = {}", name, value);
    commentary_.remark(6, to_);
    to_ += '\n';
  }
  to_ += "\n\n";
}

std::string FileWriter::inputs_function(const Body& model) {
  model_mentions_ = model.lines;
  std::string to = "def get_inputs():\n";
  commentary_.comments("    ", 8, to);
  const bool inline_list =
      model.arguments.size() == 1 ? !style_.assigned_input : style_.names == Names::kNumbered;
  std::string list;
  for (const auto& [ref, name] : model.arguments) {
    if (!list.empty()) list += ", ";
    if (inline_list) {
      write_input(list, program_.inputs[ref.index], style_, sizes_);
      continue;
    }
    append(to, "    {} = ", name);
    write_input(to, program_.inputs[ref.index], style_, sizes_);
    to += '\n';
    list += name;
  }
  append(to, "    return [{}]\n\n\n", list);
  return to;
}

std::string FileWriter::init_function(const Body& model) {
  std::string list;
  if (style_.defaults) return "def get_init_inputs():\n    return []\n";
  for (const int32_t size : model.sizes) {
    if (!list.empty()) list += ", ";
    sizes_.global(list, size);
  }
  for (const NumberArgument& number : model.numbers) list += (list.empty() ? "" : ", ") + number.text;
  return fmt::format("def get_init_inputs():\n    return [{}]\n", list);
}

}  // namespace

Layout emit(const Program& program, const CodeStyle& style, std::string& to) {
  return FileWriter(program, style, to).write();
}

}  // namespace nereid::synth
