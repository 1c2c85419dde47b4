#include "nereid/dataset/harvest_labels.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "nereid/base/hash.h"
#include "nereid/render/canonicalize.h"
#include "nereid/render/python_text.h"
#include "nereid/trace/access.h"
#include "nereid/trace/cost.h"
#include "nereid/trace/op_class.h"

namespace nereid::dataset {
namespace {

using trace::OpClass;
using trace::ValueId;

constexpr size_t kFewOperators = 4, kManyOperators = 6, kHeavyOperators = 2;

// "aten::add_.Tensor" is "add".
std::string operator_name(const std::string& op) {
  const size_t colon = op.find("::");
  std::string name = colon == op.npos ? op : op.substr(colon + 2);
  name = name.substr(0, name.find('.'));
  if (name.size() > 1 && name.back() == '_' && name[name.size() - 2] != '_') name.pop_back();
  return name;
}

bool is_heavy(OpClass c) {
  return c == OpClass::kContraction || c == OpClass::kConvolution || c == OpClass::kAttention ||
         c == OpClass::kRecurrent || c == OpClass::kSort || c == OpClass::kScan || c == OpClass::kOther;
}
bool is_light(OpClass c) {
  return c == OpClass::kPointwise || c == OpClass::kReduction || c == OpClass::kNormalisation;
}

std::string difficulty_of(const std::vector<OpClass>& classes) {
  const auto heavy = static_cast<size_t>(std::ranges::count_if(classes, is_heavy));
  if (classes.size() > kManyOperators || heavy >= kHeavyOperators) return "hard";
  if (classes.size() == 1 || (classes.size() <= kFewOperators && std::ranges::all_of(classes, is_light)))
    return "easy";
  return "medium";
}

// A number in letters, so that removing digits leaves names apart.
std::string letters(size_t number) {
  std::string text = "v";
  do text += static_cast<char>('a' + number % 26);
  while ((number /= 26) > 0);
  return text;
}

// Each run of digits and points as one '#'.
std::string without_numbers(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool number = std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (!number)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

struct CanonicalText {
  std::string with_sizes{}, structure{};
};

// The steps as calls of values that are numbered in the order in which they appear, whatever they are called.
CanonicalText text_of(const trace::Trace& trace, const trace::Phase& forward,
                      const std::vector<size_t>& steps, const std::vector<ValueId>& outputs) {
  CanonicalText text;
  std::map<ValueId, std::string> names;
  const auto value = [&](ValueId id) -> const trace::Value& { return trace.values[static_cast<size_t>(id)]; };
  std::string shapes;
  const auto name_of = [&](ValueId id) {
    const auto [found, is_new] = names.emplace(id, "");
    if (is_new) {
      found->second = letters(names.size() - 1);
      shapes += fmt::format(" {}:{}[{}]", found->second, trace::to_string(value(id).dtype),
                            fmt::join(value(id).sizes, ","));
    }
    return found->second;
  };
  for (const size_t step : steps) {
    const auto& call = std::get<trace::Call>(forward.steps[step]);
    shapes.clear();
    auto written =
        render::call_python(call, [&](ValueId id) -> Result<std::string> { return name_of(id); }, "device");
    std::string line = written.ok() ? *written : call.op;
    line += " ->";
    for (const ValueId id : trace::tensors_in(call.result)) line += " " + name_of(id);
    text.with_sizes += line + shapes + "\n";
    text.structure += call.op + " " + without_numbers(line + shapes) + "\n";
  }
  for (const ValueId id : outputs) {
    const auto found = names.find(id);
    const std::string name = found == names.end() ? "input" : found->second;
    text.with_sizes += "return " + name + "\n", text.structure += "return " + name + "\n";
  }
  return text;
}

}  // namespace

Result<HarvestLabels> harvest_labels(const trace::Trace& trace) {
  const trace::Phase& forward = trace.phases.back();
  const trace::OpFacts facts(trace);
  HarvestLabels labels;
  std::vector<OpClass> classes;
  std::vector<size_t> steps;
  bool in_place = false;
  for (size_t i = 0; i < forward.steps.size(); ++i) {
    const auto* call = std::get_if<trace::Call>(&forward.steps[i]);
    if (call == nullptr) return input_error("launches kernels of its own");
    const auto access = trace::access_of(trace, *call);
    if (access.random || access.seeds) return input_error("draws random numbers");
    in_place = in_place || !trace::written_arguments(*call).empty();
    steps.push_back(i);
    const trace::Cost cost = trace::cost_of(trace, *call);
    labels.flops += cost.flops, labels.bytes += cost.bytes();
    const OpClass op_class = facts.classify(*call);
    if (trace::is_free(op_class)) continue;
    classes.push_back(op_class);
    labels.operators.push_back(operator_name(call->op));
    labels.classes.emplace_back(trace::to_string(op_class));
  }
  if (classes.empty()) return input_error("computes nothing");
  const auto outputs = trace::tensors_in(forward.output);
  if (outputs.empty()) return input_error("returns no tensor");
  for (const ValueId id : trace::tensors_in(forward.inputs))
    labels.inputs.push_back(trace.values[static_cast<size_t>(id)].sizes);
  labels.difficulty = difficulty_of(classes);
  CanonicalText text;
  if (in_place) {
    text = text_of(trace, forward, steps, outputs);
  } else {
    const auto canonical = render::canonical_steps(trace, forward, steps);
    text = text_of(canonical.trace, canonical.forward, canonical.steps, outputs);
  }
  labels.digest = sha256_hex(text.with_sizes);
  labels.structure = sha256_hex(text.structure);
  return labels;
}

}  // namespace nereid::dataset
