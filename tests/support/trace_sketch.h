// Small traces for tests, in few words.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::trace {

struct Sketch {
  Trace trace;

  // A tensor in a storage of its own, contiguous.
  ValueId tensor(std::vector<int64_t> sizes, DType dtype = DType::kF32, Role role = Role::kTemporary) {
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    trace.storages.push_back({.bytes = count * element_bytes(dtype), .role = role, .name = {}, .data = {}});
    const auto storage = static_cast<StorageId>(trace.storages.size() - 1);
    std::vector<int64_t> strides(sizes.size());
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
    trace.values.push_back(
        {.storage = storage, .dtype = dtype, .sizes = std::move(sizes), .strides = strides});
    return static_cast<ValueId>(trace.values.size() - 1);
  }
  ValueId view(ValueId of, std::vector<int64_t> sizes, std::vector<int64_t> strides, int64_t offset = 0) {
    Value value = trace.values[static_cast<size_t>(of)];
    value.sizes = std::move(sizes), value.strides = std::move(strides), value.offset = offset;
    trace.values.push_back(value);
    return static_cast<ValueId>(trace.values.size() - 1);
  }
  ValueId reinterpret(ValueId of, DType dtype) {  // an element type of the same width
    Value value = trace.values[static_cast<size_t>(of)];
    value.dtype = dtype;
    trace.values.push_back(value);
    return static_cast<ValueId>(trace.values.size() - 1);
  }
  StorageId storage_of(ValueId id) const { return trace.values[static_cast<size_t>(id)].storage; }

  Phase& phase(PhaseKind kind, int call = 0) {
    trace.phases.push_back({.kind = kind, .call = call, .steps = {}, .inputs = {}, .output = {}});
    return trace.phases.back();
  }
  void step(Step step) { trace.phases.back().steps.push_back(std::move(step)); }

  KernelId kernel(std::string name = "kernel") {
    trace.kernels.push_back({.name = std::move(name),
                             .ttir = "module {}",
                             .hash = "",
                             .options = {},
                             .text_options = {},
                             .constants = {},
                             .place = {},
                             .source = ""});
    return static_cast<KernelId>(trace.kernels.size() - 1);
  }
};

inline Arg tensor_arg(ValueId id) { return Arg{TensorRef{id}}; }
inline Arg tuple_of(const std::vector<ValueId>& ids) {
  List list{.items = {}, .tuple = true};
  for (const ValueId id : ids) list.items.push_back(tensor_arg(id));
  return Arg{std::move(list)};
}
inline Call make_call(std::string op, std::vector<Arg> args, Arg result) {
  Call call;
  call.op = std::move(op), call.args = std::move(args), call.result = std::move(result);
  return call;
}
inline Launch make_launch(KernelId kernel, const std::vector<ValueId>& pointers) {
  Launch launch;
  launch.alternatives.emplace_back();
  launch.alternatives[0].kernel = kernel;
  for (const ValueId id : pointers)
    launch.alternatives[0].args.push_back(PointerArg{.value = id, .offset = 0});
  return launch;
}

}  // namespace nereid::trace
