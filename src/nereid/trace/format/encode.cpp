// The writer of docs/trace_format.md; fields that have their default are left out.
#include <cmath>

#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::trace {
namespace {

Json float_json(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

Json arg_json(const Arg& arg);

Json list_json(const std::vector<Arg>& items) {
  Json list = Json::array();
  for (const Arg& item : items) list.push_back(arg_json(item));
  return list;
}

template <typename Item>  // a DictItem or a pair
Json named_json(const std::vector<Item>& items) {
  Json list = Json::array();
  for (const auto& [name, item] : items) list.push_back(Json::array({name, arg_json(item)}));
  return list;
}

struct ArgWriter {
  Json operator()(const None&) const { return nullptr; }
  Json operator()(bool flag) const { return flag; }
  Json operator()(int64_t number) const { return number; }
  Json operator()(double number) const {
    if (std::isfinite(number)) return number;
    return {{"f", float_json(number)}};
  }
  Json operator()(const std::complex<double>& number) const {
    return {{"c", Json::array({float_json(number.real()), float_json(number.imag())})}};
  }
  Json operator()(const Text& text) const { return text.text; }
  Json operator()(const TensorRef& tensor) const { return {{"v", tensor.value}}; }
  Json operator()(const Named& named) const { return {{named.kind, named.name}}; }
  Json operator()(const List& list) const {
    return list.tuple ? Json{{"tuple", list_json(list.items)}} : list_json(list.items);
  }
  Json operator()(const Dict& dict) const {
    static constexpr const char* kKinds[] = {"dict", "namedtuple", "object", "mapping", "enum"};
    if (dict.kind == Dict::Kind::kDict) return {{"dict", named_json(dict.items)}};
    Json body = {{"kind", kKinds[static_cast<size_t>(dict.kind)]},
                 {"type", dict.type},
                 {"items", named_json(dict.items)}};
    if (!dict.computed.empty()) body["computed"] = named_json(dict.computed);
    return {{"object", std::move(body)}};
  }
  Json operator()(const Opaque& opaque) const { return {{"opaque", opaque.type}}; }
};

Json arg_json(const Arg& arg) { return std::visit(ArgWriter{}, arg.node); }

Json place_json(const Place& place) { return Json::array({place.file, place.line}); }

bool known(const Place& place) { return !place.file.empty() || place.line != 0; }

Json storage_json(const Storage& storage) {
  static constexpr const char* kRoles[] = {"temporary", "input", "parameter", "buffer", "constant"};
  Json json = {{"bytes", storage.bytes},
               {"role", kRoles[static_cast<size_t>(storage.role)]},
               {"device", storage.device == Device::kCuda ? "cuda" : "cpu"}};
  if (!storage.name.empty()) json["name"] = storage.name;
  if (!storage.data.empty()) json["data"] = base64_encode(storage.data);
  if (storage.pinned) json["pinned"] = true;
  return json;
}

Json value_json(const Value& value) {
  Json json = {{"s", value.storage},
               {"t", to_string(value.dtype)},
               {"n", value.sizes},
               {"d", value.strides},
               {"o", value.offset}};
  if (value.conj) json["conj"] = true;
  if (value.neg) json["neg"] = true;
  return json;
}

Json kernel_json(const Kernel& kernel) {
  Json json = {{"name", kernel.name},
               {"ttir", kernel.ttir},
               {"hash", kernel.hash},
               {"options", kernel.options},
               {"text_options", kernel.text_options},
               {"constants", Json::array()},
               {"source", kernel.source}};
  for (const auto& [name, text] : kernel.constants) json["constants"].push_back(Json::array({name, text}));
  if (known(kernel.place)) json["at"] = place_json(kernel.place);
  return json;
}

Json clock_json(const std::vector<std::pair<int32_t, int64_t>>& clock) {
  Json json = Json::array();
  for (const auto& [stream, step] : clock) json.push_back(Json::array({stream, step}));
  return json;
}

void add_order(const StreamOrder& order, Json& step) {
  if (order.number > 0) step["stream"] = Json::array({order.stream, order.number, clock_json(order.after)});
}

Json call_json(const Call& call) {
  Json json = {{"call", call.op}, {"args", list_json(call.args)}, {"result", arg_json(call.result)}};
  if (!call.kwargs.empty()) json["kwargs"] = named_json(call.kwargs);
  if (!call.parts.empty()) json["parts"] = call.parts;
  if (known(call.place)) json["at"] = place_json(call.place);
  add_order(call.order, json);
  return json;
}

struct LaunchArgWriter {
  Json operator()(const PointerArg& arg) const { return {{"p", arg.value}, {"o", arg.offset}}; }
  Json operator()(const IntArg& arg) const { return {{"i", arg.value}}; }
  Json operator()(const FloatArg& arg) const { return {{"x", float_json(arg.value)}}; }
  Json operator()(const DescriptorArg& arg) const {
    return {{"desc", arg.value},
            {"shape", arg.shape},
            {"strides", arg.strides},
            {"block", arg.block},
            {"nan", arg.nan_padding}};
  }
};

Json alternative_json(const Alternative& alternative) {
  Json json = {{"kernel", alternative.kernel}, {"grid", alternative.grid}, {"args", Json::array()}};
  for (const LaunchArg& arg : alternative.args) json["args"].push_back(std::visit(LaunchArgWriter{}, arg));
  for (const Call& call : alternative.before) json["before"].push_back(call_json(call));
  if (!alternative.config.empty()) json["config"] = alternative.config;
  return json;
}

Json calls_json(const std::vector<Call>& calls) {
  Json json = Json::array();
  for (const Call& call : calls) json.push_back(call_json(call));
  return json;
}

Json tuning_json(const Tuning& tuning) {
  Json json = {{"runs", Json::array()}, {"reset", calls_json(tuning.reset)}};
  for (const auto& run : tuning.runs)
    json["runs"].push_back({{"before", calls_json(run.before)}, {"after", calls_json(run.after)}});
  return json;
}

Json step_json(const Step& step) {
  if (const auto* call = std::get_if<Call>(&step)) return call_json(*call);
  const auto& launch = std::get<Launch>(step);
  Json json = {{"launch", Json::array()}};
  for (const Alternative& one : launch.alternatives) json["launch"].push_back(alternative_json(one));
  if (known(launch.place)) json["at"] = place_json(launch.place);
  add_order(launch.order, json);
  if (launch.tuner >= 0) json["tuner"] = launch.tuner;
  if (launch.tuning) json["tuning"] = tuning_json(*launch.tuning);
  return json;
}

Json phase_json(const Phase& phase) {
  static constexpr const char* kKinds[] = {"module", "make_inputs", "init", "forward"};
  Json json = {{"phase", kKinds[static_cast<size_t>(phase.kind)]},
               {"call", phase.call},
               {"steps", Json::array()},
               {"inputs", arg_json(phase.inputs)},
               {"output", arg_json(phase.output)}};
  for (const Step& step : phase.steps) json["steps"].push_back(step_json(step));
  if (!phase.joined.empty()) json["joined"] = clock_json(phase.joined);
  return json;
}

template <typename T, typename F>
Json array_of(const std::vector<T>& items, F write) {
  Json array = Json::array();
  for (const T& item : items) array.push_back(write(item));
  return array;
}

}  // namespace

Json encode(const Trace& trace) {
  return {{"nereid_trace", 1},
          {"file", trace.file},
          {"class", trace.class_name},
          {"draw", trace.draw},
          {"seconds", trace.seconds},
          {"storages", array_of(trace.storages, storage_json)},
          {"values", array_of(trace.values, value_json)},
          {"kernels", array_of(trace.kernels, kernel_json)},
          {"phases", array_of(trace.phases, phase_json)},
          {"state", array_of(trace.state,
                             [](const State& state) -> Json {
                               return {{"name", state.name},
                                       {"value", state.value},
                                       {"parameter", state.parameter},
                                       {"persistent", state.persistent}};
                             })},
          {"init_inputs", arg_json(trace.init_inputs)},
          {"flags", trace.flags},
          {"notes", trace.notes}};
}

}  // namespace nereid::trace
