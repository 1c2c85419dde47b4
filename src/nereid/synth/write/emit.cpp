// Steps as statements and expressions of a body.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/emitter.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {

void Emitter::steps(Body& body, size_t first, size_t end, bool regions) {
  auto region = std::lower_bound(style_.regions.begin(), style_.regions.end(), first,
                                 [](const Region& r, size_t i) { return r.first < i; });
  for (size_t i = first; i < end; ++i) {
    if (regions && region != style_.regions.end() && region->first == i) {
      apart(body, *region);
      i = region->last;
      ++region;
    } else {
      one(body, i);
    }
  }
}

void Emitter::one(Body& body, size_t i) {
  Written expression = expression_of(body, i);
  body.unplaced.push_back(i);
  if (style_.inlined[i]) {
    body.steps[i] = std::move(expression);
    return;
  }
  assign(body, i, expression.text);
}

Emitter::Written Emitter::expression_of(Body& body, size_t i) {
  const Step& step = program_.steps[i];
  const ops::Operator& op = *step.applied.op;
  for (const Ref ref : step.operands)
    if (ref.fresh && style_.parameter[ref.index] && body.inputs[ref.index].text.empty())
      own_parameter(body, ref, step);
  const Spelling spelling = style_.spelling[i];
  const ops::Applied applied = styled_call(program_, style_, i);
  operands_.clear();
  std::string pattern(spelling == Spelling::kModule   ? ""
                      : spelling == Spelling::kMethod ? op.method
                                                      : op.functional);
  pattern = phrased(std::move(pattern), applied, style_.phrasing);
  const bool infix = spelling == Spelling::kMethod || (spelling == Spelling::kFunctional && binds(pattern));
  for (const Ref ref : step.operands) {
    const Written& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
    const bool wrap = infix && !written.atomic;
    operands_.push_back(wrap ? "(" + written.text + ")" : written.text);
  }
  ops::Names names{.operands = operands_,
                   .size = [this, &body](std::string& to, int32_t size) { in_forward(body, to, size); },
                   .weight_prefix = {}};
  Written made;
  if (spelling == Spelling::kModule) {
    const std::string name = body.attributes.fresh(value_called(layer_name(op))), layer = "self." + name;
    format(body.init, "        {} = ", layer);
    construct(body, applied);
    body.init += '\n';
    submodule(body, i, name + ".");
    ops::spell_call(made.text, applied, names, layer);
    return made;
  }
  std::string prefix;
  if (!op.weights.empty()) {
    layout_.own[i] = weights(body, applied);
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
    keep_numbers(body, applied, pattern, made.text);
  if (const size_t end = made.text.find('\n'); end != made.text.npos) {
    for (const size_t inlined : body.unplaced) body.placed.emplace_back(inlined, lines_in(body.lines));
    body.unplaced.clear();
    body.placed.emplace_back(layout_.lines.size() + i, lines_in(body.lines));
    format(body.lines, "{}{}\n", body.method ? "        " : "    ", made.text.substr(0, end));
    made.text.erase(0, end + 1);
  }
  return made;
}

void Emitter::assign(Body& body, size_t i, const std::string& expression) {
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
      name = body.names.fresh(value_called(i % 2 == 0 ? "out" : "h"));
    }
  } else if (style_.names == Names::kNumbered) {
    name = body.names.fresh(fmt::format("{}{}", style_.spoken == 0 ? 'h' : 't', i + 1));
  } else {
    name = body.names.fresh(value_called(value_name(*step.applied.op, style_.spoken)));
  }
  std::string& to = body.lines;
  const char* indent = body.method ? "        " : "    ";
  if (style_.said_comments && i % 3 == 0) {
    format(to, "{}# ", indent);
    for (const char c : phrase(*step.applied.op)) to += c == '_' ? ' ' : c;
    to += '\n';
  }
  comments(indent, 8, to);
  for (const size_t step : body.unplaced) body.placed.emplace_back(step, lines_in(to));
  body.unplaced.clear();
  format(to, "{}{} = {}", indent, name, expression);
  if (says(10)) {
    format(to, "  # {}", prose_.remark());
  } else if (style_.shape_comments) {
    const ops::Shape& shape = step.applied.out;
    format(to, "  # ({})", fmt::join(shape.dims.begin(), shape.dims.begin() + shape.rank, ", "));
  }
  to += '\n';
  if (style_.spaced && i % 4 == 3) to += '\n';
  body.steps[i] = {std::move(name), true};
}

bool Emitter::tapped_later(Ref input, size_t i) const {
  for (size_t j = i + 1; j < program_.steps.size(); ++j)
    if (std::find(program_.steps[j].operands.begin(), program_.steps[j].operands.end(), input) !=
        program_.steps[j].operands.end())
      return true;
  return false;
}

void Emitter::apart(Body& body, const Region& region) {
  if (region.kind == Region::kSequential) return sequential(body, region);
  Body part = body_of(region);
  std::string arguments;
  for (const auto& [ref, name] : part.arguments) {
    const Written& here = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
    arguments += (arguments.empty() ? "" : ", ") + here.text;
  }
  steps(part, region.first, region.last + 1U, false);
  finish(part, region.last, -1);
  std::string callee;
  if (region.kind == Region::kFunction) {
    callee = functions_.fresh(style_.invented_names != 0 ? inventor_.function()
                              : style_.spoken == 0       ? "_apply"
                                                         : "combine");
    write_function(part, callee);
  } else {
    const std::string name = functions_.fresh(style_.invented_names != 0 ? inventor_.class_name()
                                              : style_.spoken == 0       ? "Block"
                                                                         : "Stage");
    write_class(part, name, apart_);
    const std::string attribute = body.attributes.fresh(value_called(style_.spoken == 0 ? "block" : "stage"));
    adopt(body, part, attribute + ".");
    callee = "self." + attribute;
    format(body.init, "        {} = {}(", callee, name);
    for (size_t k = 0; k < part.sizes.size(); ++k) {
      if (k > 0) body.init += ", ";
      argument(body, body.init, part.sizes[k]);
    }
    body.init += ")\n";
  }
  placed_apart_.insert(placed_apart_.end(), part.placed.begin(), part.placed.end());
  assign(body, region.last, fmt::format("{}({})", callee, arguments));
}

void Emitter::adopt(Body& body, const Body& part, const std::string& prefix) {
  for (const auto* owners : {&part.parameters, &part.submodules})
    for (const Layout::Owner& owner : *owners) {
      body.submodules.push_back(owner);
      (owner.input ? layout_.parameter : layout_.own)[owner.index].insert(0, prefix);
    }
}

Emitter::Body Emitter::body_of(const Region& region) {
  Body part = body(region.kind == Region::kModule);
  arguments_of(part, region.first, region.last + 1U);
  return part;
}

void Emitter::sequential(Body& body, const Region& region) {
  const std::string attribute = body.attributes.fresh(value_called(style_.spoken == 0 ? "net" : "layers"));
  const std::string name = "self." + attribute;
  const bool loop = style_.loops && body.method;
  format(
      body.init,
      loop ? fmt::runtime("        {} = nn.ModuleList([\n") : fmt::runtime("        {} = nn.Sequential(\n"),
      name);
  for (size_t i = region.first; i <= region.last; ++i) {
    if (!loop) body.unplaced.push_back(i);
    submodule(body, i, fmt::format("{}.{}.", attribute, i - region.first));
    body.init += "            ";
    construct(body, styled_call(program_, style_, i));
    body.init += ",\n";
  }
  body.init += loop ? "        ])\n" : "        )\n";
  const Ref input = program_.steps[region.first].operands[0];
  const Written& here = input.fresh ? body.inputs[input.index] : body.steps[input.index];
  if (!loop) return assign(body, region.last, fmt::format("{}({})", name, here.text));
  assign(body, region.last, here.text);
  const std::string indent = body.method ? "        " : "    ",
                    layer = body.names.fresh(value_called("layer"));
  const std::string& result = body.steps[region.last].text;
  for (size_t i = region.first; i <= region.last; ++i) body.placed.emplace_back(i, lines_in(body.lines) + 1);
  format(body.lines, "{0}for {1} in {2}:\n{0}    {3} = {1}({3})\n", indent, layer, name, result);
}

void Emitter::finish(Body& body, int last, int second_output) {
  const char* indent = body.method ? "        " : "    ";
  std::string& to = body.lines;
  const std::string& name = body.steps[static_cast<size_t>(last)].text;
  if (second_output >= 0) {
    const std::string& other = body.steps[static_cast<size_t>(second_output)].text;
    const auto keys = result_keys(style_);
    if (style_.returned == CodeStyle::kDict)
      format(to, "{}return {{\"{}\": {}, \"{}\": {}}}\n", indent, keys[0], name, keys[1], other);
    else if (style_.returned == CodeStyle::kList)
      format(to, "{}return [{}, {}]\n", indent, name, other);
    else
      format(to, "{}return {}, {}\n", indent, name, other);
    return;
  }
  // `y = f(x)` and `return y` as `return f(x)`, as the author likes it
  const size_t line = to.rfind('\n', to.size() - 2);
  const size_t start = line == std::string::npos ? 0 : line + 1;
  const std::string head = fmt::format("{}{} = ", indent, name);
  if (style_.input_names != 1 && to.compare(start, head.size(), head) == 0 && to.back() == '\n')
    to.replace(start, head.size(), fmt::format("{}return ", indent));
  else
    format(to, "{}return {}\n", indent, name);
}

}  // namespace nereid::synth
