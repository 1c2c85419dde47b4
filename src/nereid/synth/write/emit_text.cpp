// The file around the bodies: classes, functions, docstrings, imports, inputs.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/emitter.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {

Emitter::Emitter(const Program& program, const CodeStyle& style, std::string& to)
    : program_(program),
      style_(style),
      uses_(uses_of(program)),
      to_(to),
      inventor_(style.invented_names),
      prose_(style.prose) {
  const auto list = size_names(style.size_names);
  listed_sizes_.assign(list.begin(), list.end());
  if (style.invented_sizes != 0) {
    NameInventor inventor(style.invented_sizes);
    NameTable once;
    for (std::string& name : listed_sizes_) name = once.fresh(inventor.size());
  }
  if (style.shuffled != 0) {
    Rng rng(style.shuffled, 0);
    shuffle(rng, listed_sizes_);
  }
  layout_.lines.resize(program.steps.size()), layout_.before.resize(program.steps.size()),
      layout_.own.resize(program.steps.size());
  layout_.parameter.resize(program.inputs.size());
}

Layout Emitter::write() {
  Body model = body(true);
  model.model = true;
  arguments_of(model, 0, program_.steps.size());
  if (style_.unpacked) unpack(model);
  steps(model, 0, program_.steps.size(), true);
  finish(model, static_cast<int>(program_.steps.size()) - 1, style_.second_output);
  if (style_.shuffled != 0) {
    Rng rng(style_.shuffled, 1);
    shuffle(rng, model.sizes);
  }
  // Inputs first: they name the sizes that are globals.
  const std::string inputs = inputs_function(model);
  const std::string init = init_function(model);
  file_prose();
  imports();
  std::string model_class;
  write_class(model, "Model", model_class);
  const bool globals_first = style_.size_names % 2 == 1;
  if (globals_first) globals();
  place(placed_apart_);
  to_ += apart_;
  place(model.placed);
  to_ += model_class;
  if (!globals_first) globals();
  to_ += inputs;
  to_ += init;
  for (const auto& [ref, name] : model.arguments) layout_.arguments.push_back(ref.index);
  layout_.state = std::move(model.parameters);
  layout_.state.insert(layout_.state.end(), model.submodules.begin(), model.submodules.end());
  if (style_.tight) tighten();
  if (style_.whole_paths) spell_out();
  return std::move(layout_);
}

void Emitter::comments(const char* indent, uint32_t one_in, std::string& to) {
  if (!says(one_in)) return;
  for (uint32_t lines = 1 + prose_.below(2); lines > 0; --lines)
    format(to, "{}# {}\n", indent, prose_.sentence());
}

void Emitter::remark(uint32_t one_in, std::string& to) {
  if (says(one_in)) format(to, "  # {}", prose_.remark());
}

void Emitter::docstring(const char* indent, std::string& to) {
  const uint32_t sentences = prose_.below(3);
  if (sentences == 0) {
    format(to, "{}\"\"\"{}\"\"\"\n", indent, prose_.sentence());
    return;
  }
  const bool begins = prose_.one_in(2);  // in a line of its own
  format(to, "{}\"\"\"{}", indent, begins ? fmt::format("\n{}", indent) : "");
  to += prose_.sentence();
  for (uint32_t i = 0; i < sentences; ++i)
    format(to, "\n{}{}{}", prose_.one_in(2) ? "\n" : "", indent, prose_.sentence());
  format(to, "\n{}\"\"\"\n", indent);
}

void Emitter::file_prose() {
  comments("", 8, to_);
  if (says(5)) {
    docstring("", to_);
    if (prose_.one_in(2)) to_ += '\n';
  }
}

void Emitter::tighten() {
  std::string text;
  std::vector<int> kept = {0};  // of each line and those before it: how many stay
  for (size_t begin = 0; begin < to_.size();) {
    const size_t end = to_.find('\n', begin) + 1;
    const bool dropped = end == begin + 1 && begin >= 2 && to_[begin - 2] == '\n';
    if (!dropped) text.append(to_, begin, end - begin);
    kept.push_back(kept.back() + (dropped ? 0 : 1));
    begin = end;
  }
  for (auto* lines : {&layout_.lines, &layout_.before})
    for (int& line : *lines) line = kept[static_cast<size_t>(line)];
  to_ = std::move(text);
}

void Emitter::spell_out() {
  for (const auto& [prefix, whole] : {std::pair{"nn.", "torch.nn."}, std::pair{"F.", "torch.nn.functional."}})
    for (size_t at = 0; (at = to_.find(prefix, at)) != std::string::npos; at += std::strlen(whole)) {
      const char before = at == 0 ? '\n' : to_[at - 1];
      if (before != '.' && before != '_' && std::isalnum(static_cast<unsigned char>(before)) == 0)
        to_.replace(at, std::strlen(prefix), whole);
    }
}

int Emitter::lines_in(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

void Emitter::place(const std::vector<std::pair<size_t, int>>& placed) {
  const int before = lines_in(to_) + 1;
  const size_t steps = layout_.lines.size();
  for (const auto& [step, line] : placed)
    (step < steps ? layout_.lines[step] : layout_.before[step - steps]) = before + line;
}

void Emitter::move_on(Body& body, std::string_view text) {
  const int before = lines_in(text);
  for (auto& [step, line] : body.placed) line += before;
}

Emitter::Body Emitter::body(bool method) const {
  Body made;
  made.steps.resize(program_.steps.size()), made.inputs.resize(program_.inputs.size());
  made.method = method;
  if (style_.sizes == SizeStyle::kGlobal)  // a variable of such a name would hide the size
    for (const std::string& size : listed_sizes_) (void)made.names.fresh(size);
  return made;
}

void Emitter::parameter_list(const Body& body, std::string& to) const {
  bool first = !body.method;
  if (body.method) to += "self";
  for (const auto& [ref, name] : body.arguments) {
    if (!first) to += ", ";
    first = false;
    to += name;
    if (style_.type_hints) to += ": torch.Tensor";
  }
}

void Emitter::write_function(Body& body, const std::string& name) {
  format(apart_, "def {}(", name);
  parameter_list(body, apart_);
  apart_ += style_.type_hints ? ") -> torch.Tensor:\n" : "):\n";
  if (style_.forward_docstring) apart_ += "    \"\"\"One part of the forward pass.\"\"\"\n";
  move_on(body, apart_);
  apart_ += body.lines;
  apart_ += "\n\n";
}

void Emitter::write_class(Body& body, const std::string& name, std::string& to) {
  const bool model = name == "Model";
  format(to, "class {}(nn.Module):\n", name);
  if (style_.docstring && says(2)) {
    docstring("    ", to);
    if (!prose_.one_in(3)) to += '\n';
  } else if (style_.docstring) {
    class_docstring(body, model, to);
  }
  const bool constructed = !body.init.empty() || (style_.docstring && model && !style_.bare);
  if (constructed) {
    to += "    def __init__(self";
    for (const int32_t size : body.sizes) {
      format(to, ", {}{}", argument_name(size), style_.type_hints ? ": int" : "");
      if (model && style_.defaults) format(to, "{}{}", style_.type_hints ? " = " : "=", size);
    }
    for (const Number& number : body.numbers) {
      const char* type = number.value.starts_with('(')                           ? ": tuple"
                         : number.value.find_first_of(".e") == number.value.npos ? ": int"
                                                                                 : ": float";
      format(to, ", {}{}", number.argument, style_.type_hints ? type : "");
      if (style_.defaults) format(to, "{}{}", style_.type_hints ? " = " : "=", number.value);
    }
    to += "):\n";
    if (style_.long_super)
      format(to, "        super({}, self).__init__()\n", name);
    else
      to += "        super().__init__()\n";
    comments("        ", 6, to);
    to += body.init;
    to += '\n';
  }
  to += "    def forward(";
  parameter_list(body, to);
  const bool several = model && style_.second_output >= 0;
  to += style_.type_hints && !several ? ") -> torch.Tensor:\n" : "):\n";
  if (model && style_.forward_docstring) {
    if (says(2))
      docstring("        ", to);
    else
      forward_docstring(body, to);
  }
  move_on(body, to);
  to += body.lines;
  to += "\n\n";
}

void Emitter::class_docstring(const Body& body, bool model, std::string& to) {
  static constexpr std::string_view kBefore[] = {
      "", "", "", "Simple model that performs: ", "A module for benchmarks. ", "Model: "};
  format(to, "    \"\"\"{}", model ? kBefore[style_.docstring_style] : "");
  if (model)
    describe(program_, to);
  else
    to += "A part of the model";
  to += '.';
  if (style_.docstring_style == 2 && !body.sizes.empty()) {
    to += "\n\n    Args:\n";
    for (const int32_t size : body.sizes)
      format(to, "        {} (int): {}\n", argument_name(size),
             style_.prose == 0 ? "one of the sizes." : prose_.sentence());
    to += "    ";
  }
  to += "\"\"\"\n\n";
}

void Emitter::forward_docstring(const Body& body, std::string& to) const {
  const auto said = [](const ops::Shape& shape) {
    return fmt::format("({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
  };
  const std::string out = said(program_.steps.back().applied.out);
  if (style_.docstring_style < 3) {
    format(to, "        \"\"\"Returns a tensor of shape {}.\"\"\"\n", out);
    return;
  }
  to += style_.docstring_style == 3 ? "        \"\"\"\n        Forward pass.\n\n" : "        \"\"\"\n";
  to += "        Args:\n";
  for (const auto& [ref, name] : body.arguments)
    format(to, "            {}: {} of shape {}\n", name,
           style_.docstring_style == 4 ? "input tensor" : "tensor", said(program_.inputs[ref.index].shape));
  format(to, "\n        Returns:\n            {} of shape {}\n        \"\"\"\n",
         style_.docstring_style == 4 ? "torch.Tensor: Output tensor" : "tensor", out);
}

void Emitter::imports() {
  // Which modules the text names is known once it is written.
  const auto mentions = [&](std::string_view word) {
    return apart_.find(word) != std::string::npos || model_mentions_.find(word) != std::string::npos;
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

void Emitter::globals() {
  if (style_.sizes == SizeStyle::kGlobal) {
    for (const auto& [size, name] : size_names_) globals_.emplace_back(name, std::to_string(size));
    Rng rng(style_.shuffled, 2);
    for (size_t i = 0; i < style_.spare && size_names_.size() + i < listed_sizes_.size(); ++i)
      globals_.emplace_back(listed_sizes_[size_names_.size() + i],
                            std::to_string(1 + rng.below(1U << (1 + rng.below(10)))));
  }
  if (globals_.empty()) return;
  if (style_.shuffled != 0) {
    Rng rng(style_.shuffled, 3);
    shuffle(rng, globals_);
  }
  comments("", 5, to_);
  for (const auto& [name, value] : globals_) {
    format(to_, "{} = {}", name, value);
    remark(6, to_);
    to_ += '\n';
  }
  to_ += "\n\n";
}

std::string Emitter::inputs_function(const Body& model) {
  model_mentions_ = model.lines;
  std::string to = "def get_inputs():\n";
  comments("    ", 8, to);
  const bool inline_list =
      model.arguments.size() == 1 ? !style_.assigned_input : style_.names == Names::kNumbered;
  std::string list;
  for (const auto& [ref, name] : model.arguments) {
    if (!list.empty()) list += ", ";
    if (inline_list) {
      value(list, program_.inputs[ref.index]);
      continue;
    }
    format(to, "    {} = ", name);
    value(to, program_.inputs[ref.index]);
    to += '\n';
    list += name;
  }
  format(to, "    return [{}]\n\n\n", list);
  return to;
}

void Emitter::value(std::string& to, const Input& input) {
  using ops::Range;
  const auto drawn = [&](std::string_view maker) {
    to += maker;
    to += '(';
    shape(to, input.shape, false, nullptr);
    to += ')';
  };
  const auto integers = [&](int64_t below) {
    format(to, "torch.randint(0, {}, (", below);
    if (input.shape.rank > 0) shape(to, input.shape, false, nullptr);
    to += input.shape.rank == 1 ? ",))" : "))";
  };
  switch (input.range) {
    case Range::kNormal:
      return normal(to, input.shape);
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
      format(to, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
      return;
  }
}

void Emitter::normal(std::string& to, const ops::Shape& size) {
  const bool listed = style_.made == 1 && size.rank > 0, once_more = style_.made == 2 && size.rank > 1,
             between = style_.made == 3;
  to += between ? "2 * torch.rand(" : "torch.randn(";
  if (listed || once_more) to += listed ? '[' : '(';
  shape(to, size, false, nullptr);
  if (listed || once_more) to += listed ? ']' : ')';
  if (style_.made == 4) to += ", dtype=torch.float32";
  to += between ? ") - 1" : ")";
}

std::string Emitter::init_function(const Body& model) {
  std::string list;
  if (style_.defaults) return "def get_init_inputs():\n    return []\n";
  for (const int32_t size : model.sizes) {
    if (!list.empty()) list += ", ";
    global(list, size);
  }
  for (const Number& number : model.numbers) list += (list.empty() ? "" : ", ") + number.text;
  return fmt::format("def get_init_inputs():\n    return [{}]\n", list);
}

Layout emit(const Program& program, const CodeStyle& style, std::string& to) {
  return Emitter(program, style, to).write();
}

}  // namespace nereid::synth
