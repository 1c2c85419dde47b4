// Sizes and other numbers as names or literals, and what a constructor holds.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/emitter.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {

std::string Emitter::value_called(std::string_view wanted) {
  return style_.invented_names == 0 ? std::string(wanted) : inventor_.value();
}

const std::string& Emitter::size_name(int32_t size) {
  for (const auto& [known, name] : size_names_)
    if (known == size) return name;
  const size_t place = size_names_.size();
  return size_names_
      .emplace_back(size, place < listed_sizes_.size() ? listed_sizes_[place] : fmt::format("dim{}", place))
      .second;
}

void Emitter::global(std::string& to, int32_t size) {
  if (style_.sizes != SizeStyle::kGlobal || size < 2) return number(to, size);
  to += size_name(size);
}

void Emitter::in_forward(const Body& body, std::string& to, int32_t size) {
  for (const auto& [known, name] : body.unpacked)
    if (known == size) {
      to += name;
      return;
    }
  global(to, size);
}

void Emitter::unpack(Body& body) {
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
      const std::string name = body.names.fresh(value_called(kNames[style_.spoken][d]));
      if (style_.one_by_one) {
        const int axis = static_cast<int>(d) - (style_.input_names == 2 ? static_cast<int>(shape.rank) : 0);
        format(body.lines,
               style_.spoken == 0 ? fmt::runtime("        {} = {}.shape[{}]\n")
                                  : fmt::runtime("        {} = {}.size({})\n"),
               name, argument, axis);
      }
      list += (d > 0 ? ", " : "") + name;
      if (shape.dims[d] > 1) body.unpacked.emplace_back(shape.dims[d], name);
    }
    if (!style_.one_by_one)
      format(body.lines, "        {} = {}.{}\n", list, argument, style_.spoken == 0 ? "shape" : "size()");
    return;
  }
}

std::string Emitter::argument_name(int32_t size) {
  const std::string& global = size_name(size);
  if (!style_.apart || style_.sizes != SizeStyle::kGlobal) return global;
  for (const auto& [known, name] : argument_names_)
    if (known == size) return name;
  std::string name = global;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == global || name.size() < 4) name += style_.spoken == 0 ? "_size" : "_dim";  // "is", "for"
  name = arguments_.fresh(name);
  return argument_names_.emplace_back(size, name).second;
}

void Emitter::argument(Body& body, std::string& to, int32_t size) {
  if (style_.sizes == SizeStyle::kLiteral || size < 2) return number(to, size);
  if (std::find(body.sizes.begin(), body.sizes.end(), size) == body.sizes.end()) body.sizes.push_back(size);
  to += argument_name(size);
}

void Emitter::shape(std::string& to, const ops::Shape& shape, bool in_constructor, Body* body) {
  if (shape.rank == 0) to += "()";
  for (size_t d = 0; d < shape.rank; ++d) {
    if (d > 0) to += ", ";
    in_constructor ? argument(*body, to, shape.dims[d]) : global(to, shape.dims[d]);
  }
}

void Emitter::arguments_of(Body& body, size_t first, size_t end) {
  for (size_t i = first; i < end; ++i) {
    const Step& step = program_.steps[i];
    for (size_t s = 0; s < step.operands.size(); ++s) {
      const Ref ref = step.operands[s];
      Written& written = ref.fresh ? body.inputs[ref.index] : body.steps[ref.index];
      if (!written.text.empty() || (!ref.fresh && ref.index >= first)) continue;
      if (ref.fresh && style_.parameter[ref.index]) continue;
      const std::string_view wanted =
          ref.fresh ? input_name(*step.applied.op, program_.inputs[ref.index], step.applied.out,
                                 std::min<size_t>(s, 2), style_.input_names)
                    : std::string_view("x");
      written.text = body.names.fresh(value_called(wanted));
      body.arguments.push_back({ref, written.text});
    }
  }
}

void Emitter::own_parameter(Body& body, Ref ref, const Step& step) {
  const Input& input = program_.inputs[ref.index];
  const std::string name = body.attributes.fresh(
      value_called(input_name(*step.applied.op, input, step.applied.out, 1, style_.input_names)));
  format(body.init, "        self.{} = nn.Parameter(torch.randn(", name);
  shape(body.init, input.shape, true, &body);
  body.init += ')';
  if (input.range == ops::Range::kWeight)
    format(body.init, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
  body.init += ")\n";
  layout_.parameter[ref.index] = name;
  body.parameters.push_back({.input = true, .index = ref.index});
  body.inputs[ref.index] = {"self." + name, true};
}

std::string Emitter::with_fresh_names(Body& body, std::string_view pattern) {
  if (pattern.find('\n') == pattern.npos) return std::string(pattern);
  std::vector<std::pair<std::string_view, std::string>> named;
  std::string_view names = pattern.substr(0, pattern.find(" = "));
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(", "));
    named.emplace_back(name, body.names.fresh(value_called(name)));
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

bool Emitter::is_infix(std::string_view pattern) {
  int depth = 0;
  for (const char c : pattern) {
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && c == ' ') return true;
  }
  return false;
}

bool Emitter::binds(std::string_view pattern) {
  return std::ranges::any_of(std::array{"{x}.", "{x} ", "{x}[", "-{x}", "{y}."},
                             [&](const char* text) { return pattern.find(text) != pattern.npos; });
}

void Emitter::keep(Body& body, std::string& text, size_t at, std::string_view value, std::string_view name) {
  if (style_.global_numbers) {
    std::string global(name);
    for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (is_size(global)) return;
    global = global_numbers_.fresh(global);
    globals_.emplace_back(global, value);
    text.replace(at, value.size(), global);
    return;
  }
  const std::string attribute = body.attributes.fresh(name);
  std::string passed;
  if (style_.passed_numbers && body.model) passed = passed_number(body, attribute, value);
  format(body.init, "        self.{} = {}\n", attribute, passed.empty() ? std::string(value) : passed);
  text.replace(at, value.size(), "self." + attribute);
}

std::string Emitter::passed_number(Body& body, std::string_view name, std::string_view value) {
  if (is_size(name)) return {};
  const std::string argument = arguments_.fresh(name);
  std::string text(value);
  if (style_.sizes == SizeStyle::kGlobal) {
    static constexpr std::string_view kUsual[] = {"kernel_size", "stride",     "padding",
                                                  "dilation",    "num_groups", "eps"};
    std::string global = argument;
    if (style_.apart || std::ranges::find(kUsual, name) == std::end(kUsual))
      for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!is_size(global)) {
      text = global_numbers_.fresh(global);
      globals_.emplace_back(text, value);
    }
  }
  body.numbers.push_back({argument, std::string(value), text});
  return argument;
}

void Emitter::pass_numbers(Body& body, size_t begin) {
  std::string& to = body.init;
  const std::string layer = to.substr(begin, to.find('(', begin) - begin);
  if (layer == "nn.Sequential" || layer.size() == to.size() - begin) return;
  const bool convolution = layer.starts_with("nn.Conv"),
             pool = layer.find("Pool") != layer.npos && !layer.starts_with("nn.Adaptive");
  std::string made = layer + '(';
  int position = 0;
  for (size_t at = begin + made.size(), end = at; at < to.size(); at = end + 1, ++position) {
    int depth = 0;
    for (end = at; end < to.size() && (depth > 0 || (to[end] != ',' && to[end] != ')')); ++end)
      depth += to[end] == '(' ? 1 : to[end] == ')' ? -1 : 0;
    std::string argument = to.substr(at, end - at);
    const size_t first = std::min(argument.find_first_not_of(' '), argument.size()),
                 equals = argument.find('=');
    const size_t from = equals == argument.npos ? first : equals + 1;
    const std::string value = argument.substr(from);
    const std::string name = equals != argument.npos        ? argument.substr(first, equals - first)
                             : convolution && position == 2 ? "kernel_size"
                             : pool && position == 0        ? "kernel_size"
                             : layer == "nn.GroupNorm" && position == 0 ? "num_groups"
                                                                        : "";
    const bool number = value.find_first_of("0123456789") != value.npos &&
                        value.find_first_not_of("0123456789.e-(), ") == value.npos;
    if (number && !name.empty())
      if (const std::string passed = passed_number(body, name, value); !passed.empty())
        argument.replace(from, value.size(), passed);
    made += argument;
    if (end < to.size()) made += to[end];
  }
  to.replace(begin, to.size() - begin, made);
}

bool Emitter::is_size(std::string_view name) const {
  return std::ranges::find(listed_sizes_, name) != listed_sizes_.end();
}

void Emitter::keep_numbers(Body& body, const ops::Applied& applied, std::string_view pattern,
                           std::string& text) {
  // From the end, where no operand's own numbers are; what is before the operand is at the beginning.
  for (const char which : {'b', 'a'}) {
    const size_t place = pattern.find(which == 'a' ? "{a}" : "{b}");
    if (place == pattern.npos || pattern.find("{z}", place) != pattern.npos) continue;
    const std::string value(ops::constant_of(applied, which));
    const size_t at = pattern.starts_with("{a}") ? 0 : text.rfind(value);
    keep(body, text, at, value, constant_name(*applied.op, which));
  }
  if (pattern.find("dim={dim}") == pattern.npos) return;
  const size_t at = text.rfind("dim=") + 4;
  const size_t end = text.find_first_not_of("-0123456789", at);
  keep(body, text, at, text.substr(at, end - at), "dim");
}

void Emitter::submodule(Body& body, size_t i, std::string prefix) {
  layout_.own[i] = std::move(prefix);
  if (!program_.steps[i].applied.op->weights.empty())
    body.submodules.push_back({.index = static_cast<uint16_t>(i)});
}

void Emitter::construct(Body& body, const ops::Applied& applied) {
  const ops::Names sizes{.operands = {},
                         .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                         .weight_prefix = {}};
  const size_t begin = body.init.size();
  ops::spell(body.init, phrased(std::string(applied.op->module), applied, style_.phrasing), applied, sizes);
  if (style_.passed_windows && body.model) pass_numbers(body, begin);
}

std::string Emitter::weights(Body& body, const ops::Applied& applied) {
  const std::string prefix = body.attributes.fresh(value_called(layer_name(*applied.op))) + "_";
  const ops::Names sizes{.operands = {},
                         .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                         .weight_prefix = {}};
  for (const ops::Weight& weight : ops::weights_of(applied)) {
    if (weight.buffer())
      format(body.init, "        self.register_buffer(\"{}{}\", torch.{}(", prefix, weight.name,
             weight.maker);
    else
      format(body.init, "        self.{}{} = nn.Parameter(torch.{}(", prefix, weight.name, weight.maker);
    ops::spell(body.init, weight.shape, applied, sizes);
    body.init += ')';
    if (weight.maker == "randn" && applied.op->rule != ops::Rule::kEmbedding)
      format(body.init, " * {:.4g}", 1 / std::sqrt(fan_in(applied)));
    body.init += ")\n";
  }
  return prefix;
}

double Emitter::fan_in(const ops::Applied& applied) {
  const ops::Shape& x = applied.operands[0];
  if (applied.op->lowering != ops::Lowering::kConvolution) return x.dims[x.rank - 1U];
  double fan = x.dims[1] / static_cast<double>(ops::groups_of(applied));
  for (size_t d = 0; d < static_cast<size_t>(ops::spatial_axes(applied)); ++d)
    fan *= applied.window.kernel[d];
  return fan;
}

}  // namespace nereid::synth
