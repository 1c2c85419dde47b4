#include "nereid/synth/write/class_writer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {

int lines_in(std::string_view text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

namespace {

// The body's lines come next in `text`.
void move_on(Body& body, std::string_view text) {
  const int before = lines_in(text);
  for (auto& [step, line] : body.placed) line += before;
}

}  // namespace

void ClassWriter::parameter_list(const Body& body, std::string& to) const {
  bool first = !body.method;
  if (body.method) to += "self";
  for (const auto& [ref, name] : body.arguments) {
    if (!first) to += ", ";
    first = false;
    to += name;
    if (style_.type_hints) to += ": torch.Tensor";
  }
}

void ClassWriter::write_function(Body& body, const std::string& name, std::string& to) {
  append(to, "def {}(", name);
  parameter_list(body, to);
  to += style_.type_hints ? ") -> torch.Tensor:\n" : "):\n";
  if (style_.forward_docstring) to += "    \"\"\"One part of the forward pass.\"\"\"\n";
  move_on(body, to);
  to += body.lines;
  to += "\n\n";
}

void ClassWriter::write_class(Body& body, const std::string& name, std::string& to) {
  const bool model = name == "Model";
  append(to, "class {}(nn.Module):\n", name);
  if (style_.docstring && commentary_.says(2)) {
    commentary_.docstring("    ", to);
    if (!commentary_.prose().one_in(3)) to += '\n';
  } else if (style_.docstring) {
    class_docstring(body, model, to);
  }
  const bool constructed = !body.init.empty() || (style_.docstring && model && !style_.bare);
  if (constructed) {
    to += "    def __init__(self";
    for (const int32_t size : body.sizes) {
      append(to, ", {}{}", constructor_.argument_name(size), style_.type_hints ? ": int" : "");
      if (model && style_.defaults) append(to, "{}{}", style_.type_hints ? " = " : "=", size);
    }
    for (const NumberArgument& number : body.numbers) {
      const char* type = number.value.starts_with('(')                           ? ": tuple"
                         : number.value.find_first_of(".e") == number.value.npos ? ": int"
                                                                                 : ": float";
      append(to, ", {}{}", number.argument, style_.type_hints ? type : "");
      if (style_.defaults) append(to, "{}{}", style_.type_hints ? " = " : "=", number.value);
    }
    to += "):\n";
    if (style_.long_super)
      append(to, "        super({}, self).__init__()\n", name);
    else
      to += "        super().__init__()\n";
    commentary_.comments("        ", 6, to);
    to += body.init;
    to += '\n';
  }
  to += "    def forward(";
  parameter_list(body, to);
  const bool several = model && style_.second_output >= 0;
  to += style_.type_hints && !several ? ") -> torch.Tensor:\n" : "):\n";
  if (model && style_.forward_docstring) {
    if (commentary_.says(2))
      commentary_.docstring("        ", to);
    else
      forward_docstring(body, to);
  }
  move_on(body, to);
  to += body.lines;
  to += "\n\n";
}

void ClassWriter::class_docstring(const Body& body, bool model, std::string& to) {
  static constexpr std::string_view kBefore[] = {
      "", "", "", "Simple model that performs: ", "A module for benchmarks. ", "Model: "};
  append(to, "    \"\"\"{}", model ? kBefore[style_.docstring_style] : "");
  if (model)
    describe(program_, to);
  else
    to += "A part of the model";
  to += '.';
  if (style_.docstring_style == 2 && !body.sizes.empty()) {
    to += "\n\n    Args:\n";
    for (const int32_t size : body.sizes)
      append(to, "        {} (int): {}\n", constructor_.argument_name(size),
             style_.prose == 0 ? "one of the sizes." : commentary_.prose().sentence());
    to += "    ";
  }
  to += "\"\"\"\n\n";
}

void ClassWriter::forward_docstring(const Body& body, std::string& to) const {
  const auto said = [](const ops::Shape& shape) {
    return fmt::format("({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
  };
  const std::string out = said(program_.steps.back().applied.out);
  if (style_.docstring_style < 3) {
    append(to, "        \"\"\"Returns a tensor of shape {}.\"\"\"\n", out);
    return;
  }
  to += style_.docstring_style == 3 ? "        \"\"\"\n        Forward pass.\n\n" : "        \"\"\"\n";
  to += "        Args:\n";
  for (const auto& [ref, name] : body.arguments)
    append(to, "            {}: {} of shape {}\n", name,
           style_.docstring_style == 4 ? "input tensor" : "tensor", said(program_.inputs[ref.index].shape));
  append(to, "\n        Returns:\n            {} of shape {}\n        \"\"\"\n",
         style_.docstring_style == 4 ? "torch.Tensor: Output tensor" : "tensor", out);
}

}  // namespace nereid::synth
