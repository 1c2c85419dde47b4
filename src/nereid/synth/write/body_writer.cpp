#include "nereid/synth/write/body_writer.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {
namespace {

// Whether operators stand outside of all parentheses.
bool is_infix(std::string_view pattern) {
  int depth = 0;
  for (const char c : pattern) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && c == ' ') return true;
  }
  return false;
}

// Whether operators or methods are next to an operand.
bool binds(std::string_view pattern) {
  return std::ranges::any_of(std::array{"{x}.", "{x} ", "{x}[", "-{x}", "{y}."},
                             [&](const char* text) { return pattern.find(text) != pattern.npos; });
}

}  // namespace

Body BodyWriter::model() {
  Body model = body(true);
  model.model = true;
  arguments_of(model, 0, program_.steps.size());
  if (style_.unpacked) unpack(model);
  steps(model, 0, program_.steps.size(), true);
  finish(model, static_cast<int>(program_.steps.size()) - 1, style_.second_output);
  return model;
}

Body BodyWriter::body(bool method) const {
  Body made;
  made.steps.resize(program_.steps.size()), made.inputs.resize(program_.inputs.size());
  made.method = method;
  if (style_.sizes == SizeStyle::kGlobal)  // a variable of such a name would hide the size
    for (const std::string& size : sizes_.listed()) (void)made.names.fresh(size);
  return made;
}

void BodyWriter::in_forward(const Body& body, std::string& to, int32_t size) {
  for (const auto& [known, name] : body.unpacked)
    if (known == size) {
      to += name;
      return;
    }
  sizes_.global(to, size);
}

void BodyWriter::unpack(Body& body) {
  static constexpr std::string_view kNames[][ops::kMaxRank] = {{"b", "c", "h", "w", "d"},
                                                               {"bs", "rows", "cols", "depth", "last"}};
  for (const auto& [ref, argument] : body.arguments) {
    const ops::Shape& shape = program_.inputs[ref.index].shape;
    if (shape.rank < 2) continue;
    if (style_.inline_shapes) {
      if (style_.names == Names::kReused) return;  // it is something else soon
      for (size_t d = 0; d < shape.rank; ++d)
        if (shape.dims[d] > 1)
          body.unpacked.emplace_back(
              shape.dims[d],
              fmt::format(style_.spoken == 0 ? fmt::runtime("{}.shape[{}]") : fmt::runtime("{}.size({})"),
                          argument, d));
      return;
    }
    std::string list;
    for (size_t d = 0; d < shape.rank; ++d) {
      if (style_.one_by_one && d % 2 == style_.input_names % 2U) continue;
      const std::string name = body.names.fresh(values_.called(kNames[style_.spoken][d]));
      if (style_.one_by_one) {
        const int axis = static_cast<int>(d) - (style_.input_names == 2 ? static_cast<int>(shape.rank) : 0);
        append(body.lines,
               style_.spoken == 0 ? fmt::runtime("        {} = {}.shape[{}]\n")
                                  : fmt::runtime("        {} = {}.size({})\n"),
               name, argument, axis);
      }
      list += (d > 0 ? ", " : "") + name;
      if (shape.dims[d] > 1) body.unpacked.emplace_back(shape.dims[d], name);
    }
    if (!style_.one_by_one)
      append(body.lines, "        {} = {}.{}\n", list, argument, style_.spoken == 0 ? "shape" : "size()");
    return;
  }
}

void BodyWriter::arguments_of(Body& body, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Step& step = program_.steps[i];
    for (size_t s = 0; s < step.operands.size(); ++s) {
      const Ref ref = step.operands[s];
      WrittenValue& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
      if (!written.text.empty() || (!ref.fresh && ref.index >= first)) continue;
      if (ref.fresh && style_.parameter[ref.index]) continue;
      const std::string_view wanted =
          ref.fresh ? input_name(*step.applied.op, program_.inputs[ref.index], step.applied.out,
                                 std::min<size_t>(s, 2), style_.input_names)
                    : std::string_view("x");
      written.text = body.names.fresh(values_.called(wanted));
      body.arguments.push_back({ref, written.text});
    }
  }
}

void BodyWriter::steps(Body& body, size_t first, size_t end, bool regions) {
  auto region = std::lower_bound(style_.regions.begin(), style_.regions.end(), first,
                                 [](const Region& r, size_t i) { return r.first < i; });
  for (size_t i = first; i < end; ++i) {
    if (regions && region != style_.regions.end() && region->first == i) {
      write_region(body, *region);
      i = region->last;
      ++region;
    } else {
      one(body, i);
    }
  }
}

void BodyWriter::one(Body& body, size_t i) {
  WrittenValue expression = expression_of(body, i);
  body.unplaced.push_back(i);
  if (style_.inlined[i]) {
    body.steps[i] = std::move(expression);
    return;
  }
  assign(body, i, expression.text);
}

WrittenValue BodyWriter::expression_of(Body& body, size_t i) {
  const Step& step = program_.steps[i];
  const ops::Operator& op = *step.applied.op;
  for (const Ref ref : step.operands)
    if (ref.fresh && style_.parameter[ref.index] && body.inputs[ref.index].text.empty())
      constructor_.own_parameter(body, ref, step);
  const Spelling spelling = style_.spelling[i];
  const ops::Applied applied = styled_call(program_, style_, i);
  operands_.clear();
  std::string pattern(spelling == Spelling::kModule   ? ""
                      : spelling == Spelling::kMethod ? op.method
                                                      : op.functional);
  pattern = phrased(std::move(pattern), applied, style_.phrasing);
  const bool infix = spelling == Spelling::kMethod || (spelling == Spelling::kFunctional && binds(pattern));
  for (const Ref ref : step.operands) {
    const WrittenValue& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
    const bool wrap = infix && !written.atomic;
    operands_.push_back(wrap ? "(" + written.text + ")" : written.text);
  }
  ops::Names names{.operands = operands_,
                   .size = [this, &body](std::string& to, int32_t size) { in_forward(body, to, size); },
                   .weight_prefix = {}};
  WrittenValue made;
  if (spelling == Spelling::kModule) {
    const std::string name = body.attributes.fresh(values_.called(layer_name(op))), layer = "self." + name;
    append(body.init, "        {} = ", layer);
    constructor_.construct(body, applied);
    body.init += '\n';
    constructor_.submodule(body, i, name + ".");
    ops::spell_call(made.text, applied, names, layer);
    return made;
  }
  std::string prefix;
  if (!op.weights.empty()) {
    layout_.own[i] = constructor_.weights(body, applied);
    body.parameters.push_back({.index = static_cast<uint16_t>(i)});
    prefix = "self." + layout_.own[i];
    names.weight_prefix = prefix;
  }
  pattern = with_fresh_names(body, pattern);
  if (style_.number_first[i] && (pattern == "{x} * {a}" || pattern == "{x} + {a}"))
    std::swap(pattern[1], pattern[pattern.size() - 2]);
  made.atomic = !pattern.starts_with("-{x}") && !is_infix(pattern);
  ops::spell(made.text, pattern, applied, names);
  if ((style_.kept_numbers || style_.global_numbers) && body.method)
    constructor_.keep_numbers(body, applied, pattern, made.text);
  if (const size_t end = made.text.find('\n'); end != made.text.npos) {
    for (const size_t inlined : body.unplaced) body.placed.emplace_back(inlined, lines_in(body.lines));
    body.unplaced.clear();
    body.placed.emplace_back(layout_.lines.size() + i, lines_in(body.lines));
    append(body.lines, "{}{}\n", body.method ? "        " : "    ", made.text.substr(0, end));
    made.text.erase(0, end + 1);
  }
  return made;
}

std::string BodyWriter::with_fresh_names(Body& body, std::string_view pattern) {
  if (pattern.find('\n') == pattern.npos) return std::string(pattern);
  std::vector<std::pair<std::string_view, std::string>> named;
  std::string_view names = pattern.substr(0, pattern.find(" = "));
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(", "));
    named.emplace_back(name, body.names.fresh(values_.called(name)));
    names.remove_prefix(std::min(name.size() + 2, names.size()));
  }
  std::string made;
  while (!pattern.empty()) {
    const auto found =
        std::ranges::find_if(named, [&](const auto& each) { return pattern.starts_with(each.first); });
    made += found == named.end() ? pattern.substr(0, 1) : std::string_view(found->second);
    pattern.remove_prefix(found == named.end() ? 1 : found->first.size());
  }
  return made;
}

void BodyWriter::assign(Body& body, size_t i, const std::string& expression) {
  const Step& step = program_.steps[i];
  std::string name;
  const auto dead = [&](Ref ref) {  // after this step, in this body
    return !ref.fresh && uses_.last[ref.index] <= i && style_.second_output != ref.index &&
           !body.steps[ref.index].text.empty() && body.names.taken(body.steps[ref.index].text);
  };
  if (style_.names == Names::kReused) {
    const Ref first = step.operands[0];
    if (dead(first)) {
      name = body.steps[first.index].text;
    } else if (first.fresh && !style_.parameter[first.index] && !tapped_later(first, i) &&
               body.names.taken(body.inputs[first.index].text)) {
      name = body.inputs[first.index].text;
    } else {
      name = body.names.fresh(values_.called(i % 2 == 0 ? "out" : "h"));
    }
  } else if (style_.names == Names::kNumbered) {
    name = body.names.fresh(fmt::format("{}{}", style_.spoken == 0 ? 'h' : 't', i + 1));
  } else {
    name = body.names.fresh(values_.called(value_name(*step.applied.op, style_.spoken)));
  }
  std::string& to = body.lines;
  const char* indent = body.method ? "        " : "    ";
  if (style_.said_comments && i % 3 == 0) {
    append(to, "{}# ", indent);
    for (const char c : phrase(*step.applied.op)) to += c == '_' ? ' ' : c;
    to += '\n';
  }
  commentary_.comments(indent, 8, to);
  for (const size_t step : body.unplaced) body.placed.emplace_back(step, lines_in(to));
  body.unplaced.clear();
  append(to, "{}{} = {}", indent, name, expression);
  if (commentary_.says(10)) {
    append(to, "  # {}", commentary_.prose().remark());
  } else if (style_.shape_comments) {
    const ops::Shape& shape = step.applied.out;
    append(to, "  # ({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
  }
  to += '\n';
  if (style_.spaced && i % 4 == 3) to += '\n';
  body.steps[i] = {std::move(name), true};
}

bool BodyWriter::tapped_later(Ref input, size_t i) const {
  for (size_t j = i + 1; j < program_.steps.size(); ++j)
    if (std::find(program_.steps[j].operands.begin(), program_.steps[j].operands.end(), input) !=
        program_.steps[j].operands.end())
      return true;
  return false;
}

void BodyWriter::write_region(Body& body, const Region& region) {
  if (region.kind == Region::kSequential) return sequential(body, region);
  Body part = body_of(region);
  std::string arguments;
  for (const auto& [ref, name] : part.arguments) {
    const WrittenValue& here = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
    arguments += (arguments.empty() ? "" : ", ") + here.text;
  }
  steps(part, region.first, region.last + 1U, false);
  finish(part, region.last, -1);
  std::string callee;
  if (region.kind == Region::kFunction) {
    callee = functions_.fresh(style_.invented_names != 0 ? values_.inventor.function()
                              : style_.spoken == 0       ? "_apply"
                                                         : "combine");
    classes_.write_function(part, callee, apart_);
  } else {
    const std::string name = functions_.fresh(style_.invented_names != 0 ? values_.inventor.class_name()
                                              : style_.spoken == 0       ? "Block"
                                                                         : "Stage");
    classes_.write_class(part, name, apart_);
    const std::string attribute =
        body.attributes.fresh(values_.called(style_.spoken == 0 ? "block" : "stage"));
    adopt(body, part, attribute + ".");
    callee = "self." + attribute;
    append(body.init, "        {} = {}(", callee, name);
    for (size_t k = 0; k < part.sizes.size(); ++k) {
      if (k > 0) body.init += ", ";
      constructor_.argument(body, body.init, part.sizes[k]);
    }
    body.init += ")\n";
  }
  placed_apart_.insert(placed_apart_.end(), part.placed.begin(), part.placed.end());
  assign(body, region.last, fmt::format("{}({})", callee, arguments));
}

void BodyWriter::adopt(Body& body, const Body& part, const std::string& prefix) {
  for (const auto* owners : {&part.parameters, &part.submodules})
    for (const Layout::Owner& owner : *owners) {
      body.submodules.push_back(owner);
      (owner.input ? layout_.parameter : layout_.own)[owner.index].insert(0, prefix);
    }
}

Body BodyWriter::body_of(const Region& region) {
  Body part = body(region.kind == Region::kModule);
  arguments_of(part, region.first, region.last + 1U);
  return part;
}

void BodyWriter::sequential(Body& body, const Region& region) {
  const std::string attribute = body.attributes.fresh(values_.called(style_.spoken == 0 ? "net" : "layers"));
  const std::string name = "self." + attribute;
  const bool loop = style_.loops && body.method;
  append(
      body.init,
      loop ? fmt::runtime("        {} = nn.ModuleList([\n") : fmt::runtime("        {} = nn.Sequential(\n"),
      name);
  for (size_t i = region.first; i <= region.last; ++i) {
    if (!loop) body.unplaced.push_back(i);
    constructor_.submodule(body, i, fmt::format("{}.{}.", attribute, i - region.first));
    body.init += "            ";
    constructor_.construct(body, styled_call(program_, style_, i));
    body.init += ",\n";
  }
  body.init += loop ? "        ])\n" : "        )\n";
  const Ref input = program_.steps[region.first].operands[0];
  const WrittenValue& here = input.fresh ? body.inputs[input.index] : body.steps[input.index];
  if (!loop) return assign(body, region.last, fmt::format("{}({})", name, here.text));
  assign(body, region.last, here.text);
  const std::string indent = body.method ? "        " : "    ",
                    layer = body.names.fresh(values_.called("layer"));
  const std::string& result = body.steps[region.last].text;
  for (size_t i = region.first; i <= region.last; ++i) body.placed.emplace_back(i, lines_in(body.lines) + 1);
  append(body.lines, "{0}for {1} in {2}:\n{0}    {3} = {1}({3})\n", indent, layer, name, result);
}

void BodyWriter::finish(Body& body, int last, int second_output) {
  const char* indent = body.method ? "        " : "    ";
  std::string& to = body.lines;
  const std::string& name = body.steps[static_cast<size_t>(last)].text;
  if (second_output >= 0) {
    const std::string& other = body.steps[static_cast<size_t>(second_output)].text;
    const auto keys = result_keys(style_);
    if (style_.returned == CodeStyle::kDict)
      append(to, "{}return {{\"{}\": {}, \"{}\": {}}}\n", indent, keys[0], name, keys[1], other);
    else if (style_.returned == CodeStyle::kList)
      append(to, "{}return [{}, {}]\n", indent, name, other);
    else
      append(to, "{}return {}, {}\n", indent, name, other);
    return;
  }
  // `y = f(x)` and `return y` as `return f(x)`, as the author likes it
  const size_t line = to.rfind('\n', to.size() - 2);
  const size_t start = line == std::string::npos ? 0 : line + 1;
  const std::string head = fmt::format("{}{} = ", indent, name);
  if (style_.input_names != 1 && to.compare(start, head.size(), head) == 0 && to.back() == '\n')
    to.replace(start, head.size(), fmt::format("{}return ", indent));
  else
    append(to, "{}return {}\n", indent, name);
}

}  // namespace nereid::synth
