#include "nereid/trace/format/decode_steps.h"

#include <algorithm>
#include <limits>

#include "nereid/trace/format/decode_words.h"
#include "nereid/trace/limits.h"

namespace nereid::trace {
namespace {

constexpr int64_t kMaxGrid = std::numeric_limits<int32_t>::max();
constexpr size_t kMaxStreams = 4096;

}  // namespace

Result<ValueId> StepDecoder::value_id(const JsonField& field, int64_t lowest) const {
  NEREID_TRY(const int64_t id, field.integer(lowest, static_cast<int64_t>(trace_.values.size()) - 1));
  return static_cast<ValueId>(id);
}

Result<Arg> StepDecoder::arg_at(const JsonField& field, std::string_view key) const {
  NEREID_TRY(const auto found, field.find(key));
  return found ? arg(*found, 0) : Arg{};
}

Result<Arg> StepDecoder::arg(const JsonField& field, size_t depth) const {
  if (depth > kMaxArgDepth) return field.expected(fmt::format("at most {} levels of nesting", kMaxArgDepth));
  const Json& json = field.json();
  if (json.is_null()) return Arg{};
  if (json.is_boolean()) return Arg{json.get<bool>()};
  if (json.is_number_float()) return Arg{json.get<double>()};
  if (json.is_number()) {
    NEREID_TRY(const int64_t number, field.integer());
    return Arg{number};
  }
  if (json.is_string()) {
    NEREID_TRY(std::string text, field.text(kMaxText));
    return Arg{Text{std::move(text)}};
  }
  if (json.is_array()) return list(field, false, depth);
  if (!json.is_object() || json.size() != 1)
    return field.expected("an argument: null, a scalar, a list or one tagged object");
  const std::string key = json.begin().key();
  NEREID_TRY(const JsonField content, field.at(key));
  return tagged(key, content, depth);
}

Result<Arg> StepDecoder::list(const JsonField& field, bool tuple, size_t depth) const {
  List list{.items = {}, .tuple = tuple};
  NEREID_TRY_STATUS(field.each(kMaxItems, [&](const JsonField& item) -> Status {
    NEREID_TRY(Arg read, arg(item, depth + 1));
    list.items.push_back(std::move(read));
    return ok_status();
  }));
  return Arg{std::move(list)};
}

// [["name", ARG]...]
template <typename Item>  // a DictItem or a pair
Status StepDecoder::named_args(const JsonField& field, size_t depth, std::vector<Item>& args) const {
  return field.each(kMaxItems, [&](const JsonField& item) -> Status {
    NEREID_TRY_STATUS(pair(item, "[name, argument]"));
    NEREID_TRY(std::string name, item.item(0).text(kMaxName));
    const JsonField content = item.item(1);
    NEREID_TRY(Arg read, arg(content, depth + 1));
    args.push_back({std::move(name), std::move(read)});
    return ok_status();
  });
}

Result<Arg> StepDecoder::tagged(const std::string& key, const JsonField& field, size_t depth) const {
  if (key == "v") {
    NEREID_TRY(const ValueId id, value_id(field));
    return Arg{TensorRef{id}};
  }
  if (key == "f") {
    NEREID_TRY(const double number, float_or_name(field));
    return Arg{number};
  }
  if (key == "c") {
    NEREID_TRY_STATUS(pair(field, "[real, imaginary]"));
    NEREID_TRY(const double real, float_or_name(field.item(0)));
    NEREID_TRY(const double imaginary, float_or_name(field.item(1)));
    return Arg{std::complex<double>(real, imaginary)};
  }
  if (key == "tuple") return list(field, true, depth);
  if (key == "dict") {
    Dict dict;
    NEREID_TRY_STATUS(named_args(field, depth, dict.items));
    return Arg{std::move(dict)};
  }
  if (key == "object") return object(field, depth);
  if (key == "opaque") {
    NEREID_TRY(std::string type, field.text(kMaxName));
    return Arg{Opaque{std::move(type)}};
  }
  if (key == "dtype") {
    NEREID_TRY(const DType type, dtype(field));
    return Arg{Named{key, std::string(to_string(type))}};
  }
  if (key == "device" || key == "layout" || key == "memory_format" || key == "generator") {
    NEREID_TRY(std::string name, field.text(kMaxName));
    if (!is_word(name, "_:#")) return field.expected("a name");
    return Arg{Named{key, std::move(name)}};
  }
  if (key == "global") {
    NEREID_TRY(std::string name, field.text(kMaxName));
    if (!is_word(name, "_.:")) return field.expected("a name");
    return Arg{Named{key, std::move(name)}};
  }
  return field.expected(
      "under one of v, f, c, tuple, dict, object, dtype, device, layout, memory_format, generator, global, "
      "opaque");
}

// {"kind": "namedtuple", "type": "module:Name", "items": [["name", ARG]...], "computed": [["name", ARG]...]}
Result<Arg> StepDecoder::object(const JsonField& field, size_t depth) const {
  static const std::map<std::string, Dict::Kind> kKinds = {{"namedtuple", Dict::Kind::kNamedTuple},
                                                           {"object", Dict::Kind::kObject},
                                                           {"mapping", Dict::Kind::kMapping},
                                                           {"enum", Dict::Kind::kEnum}};
  Dict dict;
  NEREID_TRY(const std::string kind, field.text_at("kind"));
  const auto found = kKinds.find(kind);
  if (found == kKinds.end()) return field.expected("the kind namedtuple, object, mapping or enum");
  dict.kind = found->second;
  NEREID_TRY(dict.type, field.text_at("type", kMaxName));
  NEREID_TRY(const JsonField items, field.at("items"));
  NEREID_TRY_STATUS(named_args(items, depth, dict.items));
  NEREID_TRY(const auto computed, field.find("computed"));
  if (computed) NEREID_TRY_STATUS(named_args(*computed, depth, dict.computed));
  return Arg{std::move(dict)};
}

Result<Call> StepDecoder::call(const JsonField& field) const {
  Call call;
  NEREID_TRY(const JsonField op, field.at("call"));
  NEREID_TRY(call.op, operator_name(op));
  NEREID_TRY(const auto args, field.find("args"));
  if (args) {
    NEREID_TRY_STATUS(args->each(kMaxItems, [&](const JsonField& item) -> Status {
      NEREID_TRY(Arg read, arg(item, 0));
      call.args.push_back(std::move(read));
      return ok_status();
    }));
  }
  NEREID_TRY(const auto kwargs, field.find("kwargs"));
  if (kwargs) NEREID_TRY_STATUS(named_args(*kwargs, 0, call.kwargs));
  NEREID_TRY(call.result, arg_at(field, "result"));
  NEREID_TRY(const auto parts, field.find("parts"));
  if (parts) {
    NEREID_TRY_STATUS(parts->each(kMaxItems, [&](const JsonField& item) -> Status {
      NEREID_TRY(std::string name, operator_name(item));
      call.parts.push_back(std::move(name));
      return ok_status();
    }));
  }
  NEREID_TRY(call.place, place(field));
  NEREID_TRY(call.order, order(field));
  return call;
}

Result<LaunchArg> StepDecoder::launch_arg(const JsonField& field) const {
  NEREID_TRY(const auto pointer, field.find("p"));
  if (pointer) {
    PointerArg arg;
    NEREID_TRY(arg.value, value_id(*pointer, -1));
    NEREID_TRY(arg.offset, field.integer_at("o", 0, -kMaxStorageBytes, kMaxStorageBytes));
    return LaunchArg(arg);
  }
  NEREID_TRY(const auto integer, field.find("i"));
  if (integer) {
    NEREID_TRY(const int64_t number, integer->integer_or_flag());
    return LaunchArg(IntArg{number});
  }
  NEREID_TRY(const auto number, field.find("x"));
  if (number) {
    NEREID_TRY(const double read, float_or_name(*number));
    return LaunchArg(FloatArg{read});
  }
  NEREID_TRY(const auto descriptor, field.find("desc"));
  if (!descriptor) return field.expected("a launch argument with one of p, i, x, desc");
  DescriptorArg arg;
  NEREID_TRY(arg.value, value_id(*descriptor));
  NEREID_TRY(const JsonField shape, field.at("shape"));
  NEREID_TRY(arg.shape, integers(shape, 5, 0, kMaxElements));
  NEREID_TRY(const JsonField strides, field.at("strides"));
  NEREID_TRY(arg.strides, integers(strides, 5, 0, kMaxElements));
  NEREID_TRY(const JsonField block, field.at("block"));
  NEREID_TRY(arg.block, integers(block, 5, 1, kMaxElements));
  NEREID_TRY(arg.nan_padding, field.boolean_at("nan", false));
  if (arg.shape.empty() || arg.strides.size() != arg.shape.size() || arg.block.size() != arg.shape.size())
    return input_error("{}: expected 1 to 5 sizes, and as many strides and block sizes, got {}, {} and {}",
                       field.path(), arg.shape.size(), arg.strides.size(), arg.block.size());
  return LaunchArg(std::move(arg));
}

Result<Alternative> StepDecoder::alternative(const JsonField& field) const {
  Alternative alternative;
  NEREID_TRY(const JsonField kernel, field.at("kernel"));
  NEREID_TRY(const int64_t id, kernel.integer(0, static_cast<int64_t>(trace_.kernels.size()) - 1));
  alternative.kernel = static_cast<KernelId>(id);
  NEREID_TRY(const JsonField grid, field.at("grid"));
  NEREID_TRY(const auto sizes, integers(grid, 3, 0, kMaxGrid));
  if (sizes.size() != 3) return grid.expected("three integers");
  std::copy(sizes.begin(), sizes.end(), alternative.grid.begin());
  NEREID_TRY(const JsonField args, field.at("args"));
  NEREID_TRY_STATUS(args.each(4096, [&](const JsonField& item) -> Status {
    NEREID_TRY(LaunchArg arg, launch_arg(item));
    alternative.args.push_back(std::move(arg));
    return ok_status();
  }));
  NEREID_TRY(alternative.before, calls(field, "before"));
  NEREID_TRY(alternative.config, field.text_at("config", kMaxText));
  return alternative;
}

// None where the field is missing.
Result<std::vector<Call>> StepDecoder::calls(const JsonField& field, const char* name) const {
  std::vector<Call> found;
  NEREID_TRY(const auto list, field.find(name));
  if (!list) return found;
  NEREID_TRY_STATUS(list->each(4096, [&](const JsonField& item) -> Status {
    NEREID_TRY(Call read, call(item));
    found.push_back(std::move(read));
    return ok_status();
  }));
  return found;
}

Result<std::vector<std::pair<int32_t, int64_t>>> StepDecoder::clock(const std::optional<JsonField>& field) {
  std::vector<std::pair<int32_t, int64_t>> clock;
  if (!field) return clock;
  NEREID_TRY_STATUS(field->each(kMaxStreams, [&](const JsonField& item) -> Status {
    NEREID_TRY_STATUS(pair(item, "[stream, step]"));
    NEREID_TRY(const int64_t stream, item.item(0).integer(0, INT32_MAX));
    NEREID_TRY(const int64_t step, item.item(1).integer(0, INT64_MAX));
    clock.emplace_back(static_cast<int32_t>(stream), step);
    return ok_status();
  }));
  return clock;
}

// [stream, number, CLOCK]
Result<StreamOrder> StepDecoder::order(const JsonField& step) {
  StreamOrder order;
  NEREID_TRY(const auto field, step.find("stream"));
  if (!field) return order;
  if (!field->json().is_array() || field->json().size() != 3)
    return field->expected("[stream, number, [[stream, step]...]]");
  NEREID_TRY(const int64_t stream, field->item(0).integer(0, INT32_MAX));
  NEREID_TRY(order.number, field->item(1).integer(0, INT64_MAX));
  NEREID_TRY(order.after, clock(field->item(2)));
  order.stream = static_cast<int32_t>(stream);
  return order;
}

Result<Tuning> StepDecoder::tuning(const JsonField& field, size_t alternatives) const {
  Tuning tuning;
  NEREID_TRY(const JsonField runs, field.at("runs"));
  NEREID_TRY_STATUS(runs.each(kMaxAlternatives, [&](const JsonField& item) -> Status {
    auto& run = tuning.runs.emplace_back();
    NEREID_TRY(run.before, calls(item, "before"));
    NEREID_TRY(run.after, calls(item, "after"));
    return ok_status();
  }));
  if (tuning.runs.size() != alternatives) return runs.expected("one run for each alternative");
  NEREID_TRY(tuning.reset, calls(field, "reset"));
  return tuning;
}

Result<Step> StepDecoder::step(const JsonField& field) const {
  NEREID_TRY(const auto launch, field.find("launch"));
  if (!launch) {
    NEREID_TRY(Call read, call(field));
    return Step(std::move(read));
  }
  Launch read;
  NEREID_TRY_STATUS(launch->each(kMaxAlternatives, [&](const JsonField& item) -> Status {
    NEREID_TRY(Alternative one, alternative(item));
    read.alternatives.push_back(std::move(one));
    return ok_status();
  }));
  if (read.alternatives.empty()) return launch->expected("at least one alternative");
  NEREID_TRY(read.place, place(field));
  NEREID_TRY(read.order, order(field));
  NEREID_TRY(const int64_t tuner, field.integer_at("tuner", -1, -1, INT32_MAX));
  read.tuner = static_cast<int32_t>(tuner);
  NEREID_TRY(const auto tuned, field.find("tuning"));
  if (tuned) {
    NEREID_TRY(read.tuning, tuning(*tuned, read.alternatives.size()));
  }
  return Step(std::move(read));
}

}  // namespace nereid::trace
