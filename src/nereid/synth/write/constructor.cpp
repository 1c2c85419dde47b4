#include "nereid/synth/write/constructor.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "nereid/ops/spelling.h"
#include "nereid/synth/write/phrasing.h"

namespace nereid::synth {
namespace {

double fan_in(const ops::Applied& applied) {
  const ops::Shape& x = applied.operands[0];
  if (applied.op->lowering != ops::Lowering::kConvolution) return x.dims[x.rank - 1U];
  double fan = x.dims[1] / static_cast<double>(ops::groups_of(applied));
  for (size_t d = 0; d < static_cast<size_t>(ops::spatial_axes(applied)); ++d)
    fan *= applied.window.kernel[d];
  return fan;
}

}  // namespace

std::string Constructor::argument_name(int32_t size) {
  const std::string& global = sizes_.name(size);
  if (!style_.apart || style_.sizes != SizeStyle::kGlobal) return global;
  for (const auto& [known, name] : argument_names_)
    if (known == size) return name;
  std::string name = global;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == global || name.size() < 4) name += style_.spoken == 0 ? "_size" : "_dim";  // "is", "for"
  name = arguments_.fresh(name);
  return argument_names_.emplace_back(size, name).second;
}

void Constructor::argument(Body& body, std::string& to, int32_t size) {
  if (style_.sizes == SizeStyle::kLiteral || size < 2) return append(to, "{}", size);
  if (std::find(body.sizes.begin(), body.sizes.end(), size) == body.sizes.end()) body.sizes.push_back(size);
  to += argument_name(size);
}

void Constructor::shape(Body& body, const ops::Shape& shape) {
  if (shape.rank == 0) body.init += "()";
  for (size_t d = 0; d < shape.rank; ++d) {
    if (d > 0) body.init += ", ";
    argument(body, body.init, shape.dims[d]);
  }
}

void Constructor::own_parameter(Body& body, Ref ref, const Step& step) {
  const Input& input = program_.inputs[ref.index];
  const std::string name = body.attributes.fresh(
      values_.called(input_name(*step.applied.op, input, step.applied.out, 1, style_.input_names)));
  append(body.init, "        self.{} = nn.Parameter(torch.randn(", name);
  shape(body, input.shape);
  body.init += ')';
  if (input.range == ops::Range::kWeight)
    append(body.init, " * {:.4g}", 1 / std::sqrt(static_cast<double>(input.summed)));
  body.init += ")\n";
  layout_.parameter[ref.index] = name;
  body.parameters.push_back({.input = true, .index = ref.index});
  body.inputs[ref.index] = {"self." + name, true};
}

void Constructor::keep(Body& body, std::string& text, size_t at, std::string_view value,
                       std::string_view name) {
  if (style_.global_numbers) {
    std::string global(name);
    for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (sizes_.is_listed(global)) return;
    global = global_numbers_.fresh(global);
    globals_.emplace_back(global, value);
    text.replace(at, value.size(), global);
    return;
  }
  const std::string attribute = body.attributes.fresh(name);
  std::string passed;
  if (style_.passed_numbers && body.model) passed = passed_number(body, attribute, value);
  append(body.init, "        self.{} = {}\n", attribute, passed.empty() ? std::string(value) : passed);
  text.replace(at, value.size(), "self." + attribute);
}

std::string Constructor::passed_number(Body& body, std::string_view name, std::string_view value) {
  if (sizes_.is_listed(name)) return {};
  const std::string argument = arguments_.fresh(name);
  std::string text(value);
  if (style_.sizes == SizeStyle::kGlobal) {
    static constexpr std::string_view kUsual[] = {"kernel_size", "stride",     "padding",
                                                  "dilation",    "num_groups", "eps"};
    std::string global = argument;
    if (style_.apart || std::ranges::find(kUsual, name) == std::end(kUsual))
      for (char& c : global) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (!sizes_.is_listed(global)) {
      text = global_numbers_.fresh(global);
      globals_.emplace_back(text, value);
    }
  }
  body.numbers.push_back({argument, std::string(value), text});
  return argument;
}

void Constructor::pass_numbers(Body& body, size_t begin) {
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

void Constructor::keep_numbers(Body& body, const ops::Applied& applied, std::string_view pattern,
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

void Constructor::submodule(Body& body, size_t i, std::string prefix) {
  layout_.own[i] = std::move(prefix);
  if (!program_.steps[i].applied.op->weights.empty())
    body.submodules.push_back({.index = static_cast<uint16_t>(i)});
}

void Constructor::construct(Body& body, const ops::Applied& applied) {
  const ops::Names sizes{.operands = {},
                         .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                         .weight_prefix = {}};
  const size_t begin = body.init.size();
  ops::spell(body.init, phrased(std::string(applied.op->module), applied, style_.phrasing), applied, sizes);
  if (style_.passed_windows && body.model) pass_numbers(body, begin);
}

std::string Constructor::weights(Body& body, const ops::Applied& applied) {
  const std::string prefix = body.attributes.fresh(values_.called(layer_name(*applied.op))) + "_";
  const ops::Names sizes{.operands = {},
                         .size = [this, &body](std::string& to, int32_t size) { argument(body, to, size); },
                         .weight_prefix = {}};
  for (const ops::Weight& weight : ops::weights_of(applied)) {
    if (weight.buffer())
      append(body.init, "        self.register_buffer(\"{}{}\", torch.{}(", prefix, weight.name,
             weight.maker);
    else
      append(body.init, "        self.{}{} = nn.Parameter(torch.{}(", prefix, weight.name, weight.maker);
    ops::spell(body.init, weight.shape, applied, sizes);
    body.init += ')';
    if (weight.maker == "randn" && applied.op->rule != ops::Rule::kEmbedding)
      append(body.init, " * {:.4g}", 1 / std::sqrt(fan_in(applied)));
    body.init += ")\n";
  }
  return prefix;
}

}  // namespace nereid::synth
