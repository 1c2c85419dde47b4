#include "nereid/ops/recording.h"

#include <utility>

namespace nereid::ops {

Arg arg(Tensor tensor) { return {tensor}; }
Arg arg(int64_t value) { return {value}; }
Arg arg(double value) { return {value}; }
Arg arg(bool value) { return {value}; }
Arg none() { return {trace::None{}}; }
Arg integers(const Sizes& values) {
  trace::List list;
  for (const int64_t value : values) list.items.push_back(arg(value));
  return {std::move(list)};
}
Arg tensors(const std::vector<Tensor>& all, bool tuple) {
  trace::List list{.items = {}, .tuple = tuple};
  for (const Tensor tensor : all) list.items.push_back(arg(tensor));
  return {std::move(list)};
}
Arg named(std::string kind, std::string name) {
  return {trace::Named{.kind = std::move(kind), .name = std::move(name)}};
}

bool Recording::is_learned(Tensor tensor) const {
  return trace_.storages[static_cast<size_t>(value(tensor).storage)].role == trace::Role::kParameter;
}

Tensor Recording::made(Laid laid, DType type) {
  trace::Value value{.storage = static_cast<trace::StorageId>(trace_.storages.size()),
                     .dtype = type,
                     .sizes = std::move(laid.sizes),
                     .strides = std::move(laid.strides)};
  trace_.storages.emplace_back().bytes = count_of(value.sizes) * trace::element_bytes(type);
  trace_.values.push_back(std::move(value));
  const auto id = static_cast<trace::ValueId>(trace_.values.size() - 1);
  last_of_.push_back(id), before_.push_back(-1);
  return {id};
}

Tensor Recording::look(Tensor of, Laid laid, int64_t further) {
  trace::Value seen = value(of);
  seen.sizes = std::move(laid.sizes), seen.strides = std::move(laid.strides), seen.offset += further;
  auto& last = last_of_[static_cast<size_t>(seen.storage)];
  for (trace::ValueId id = last; id >= 0; id = before_[static_cast<size_t>(id)]) {
    const trace::Value& known = trace_.values[static_cast<size_t>(id)];
    if (known.dtype == seen.dtype && known.offset == seen.offset && known.sizes == seen.sizes &&
        known.strides == seen.strides)
      return {id};
  }
  trace_.values.push_back(std::move(seen));
  before_.push_back(last);
  last = static_cast<trace::ValueId>(trace_.values.size() - 1);
  return {last};
}

void Recording::call(std::string_view op, std::vector<Arg> args, Arg result, Named named) {
  trace::Call call;
  call.op = "aten::";
  call.op += op;
  call.args = std::move(args), call.kwargs = std::move(named), call.result = std::move(result);
  const int first = std::exchange(first_line_, 0);
  call.place = {.file = trace_.file, .line = first > 0 ? first : line_};
  trace_.phases.back().steps.emplace_back(std::move(call));
}

}  // namespace nereid::ops
