// A small handmade trace that uses every part of the format, and an independent check of what a decoded trace
// promises.
#pragma once

#include <gtest/gtest.h>

#include "nereid/base/json.h"
#include "nereid/trace/codec.h"

namespace nereid::trace {

inline Json sample_document() {
  return Json::parse(R"({
  "nereid_trace": 1, "file": "model.py", "class": "ModelNew", "draw": 3, "seconds": 0.02,
  "storages": [
    {"bytes": 64, "role": "input", "device": "cuda", "name": "0"},
    {"bytes": 32, "role": "parameter", "name": "fc.weight"},
    {"bytes": 16, "role": "constant", "data": "AAECAwQFBgcICQoLDA0ODw=="},
    {"bytes": 64, "role": "temporary"},
    {"bytes": 16, "role": "input", "name": "1", "data": "AAECAwQFBgcICQoLDA0ODw==", "pinned": true},
    {"bytes": 0, "device": "cpu"}],
  "values": [
    {"s": 0, "t": "f32", "n": [4, 4], "d": [4, 1], "o": 0},
    {"s": 1, "t": "bf16", "n": [2, 8], "d": [1, 2]},
    {"s": 2, "t": "i64", "n": [], "d": [], "o": 1},
    {"s": 3, "t": "f32", "n": [4, 1000000], "d": [1, 0], "o": 12},
    {"s": 4, "t": "i32", "n": [4], "d": [1]},
    {"s": 5, "t": "f32", "n": [0, 5], "d": [5, 1], "o": 3},
    {"s": 3, "t": "c64", "n": [8], "d": [1], "conj": true, "neg": true}],
  "kernels": [{"name": "add_kernel", "ttir": "module {}", "hash": "", "options": {"num_warps": 4, "flag": true},
    "text_options": {"input_precision": "tf32"}, "constants": [["BLOCK", "64"]], "at": ["model.py", 5], "source": "def add_kernel(): pass"}],
  "phases": [
    {"phase": "module", "call": 0, "steps": [{"call": "nereid::constant", "args": [], "result": {"v": 2}, "at": ["model.py", 1]}], "inputs": null, "output": null},
    {"phase": "init", "steps": [{"call": "aten::uniform_", "args": [{"v": 1}, -0.5, 1e-3], "kwargs": [["generator", null]], "result": {"v": 1}}]},
    {"phase": "make_inputs", "call": 0, "steps": [], "inputs": [{"v": 0}, {"dict": [["mask", {"v": 4}]]}, {"tuple": [1, 2.5, "x", {"f": "-inf"}, {"c": [1.0, "nan"]}, true, null]}]},
    {"phase": "forward", "call": 0, "inputs": [{"v": 0}], "output": {"tuple": [{"v": 3}, {"opaque": "Cache"}]},
     "steps": [
      {"call": "aten::linear", "args": [{"v": 0}, {"v": 1}, null], "result": {"v": 3}, "parts": ["aten::t", "aten::mm"], "at": ["model.py", 12]},
      {"call": "aten::to.dtype_layout", "args": [{"v": 0}], "kwargs": [["dtype", {"dtype": "f16"}], ["device", {"device": "cuda"}],
        ["layout", {"layout": "strided"}], ["memory_format", {"memory_format": "channels_last"}], ["g", {"generator": "cuda:12"}]], "result": {"v": 5}},
      {"launch": [
        {"kernel": 0, "grid": [4, 1, 1], "args": [{"p": 0, "o": 4}, {"p": -1}, {"i": -1}, {"x": 0.5}, {"x": "inf"},
          {"desc": 0, "shape": [4, 4], "strides": [4, 1], "block": [2, 2], "nan": true}], "config": "BLOCK=64"},
        {"kernel": 0, "grid": [2, 1, 1], "args": [], "before": [{"call": "aten::zero_", "args": [{"v": 3}], "result": {"v": 3}}]}],
       "at": ["model.py", 30]}]}],
  "state": [{"name": "fc.weight", "value": 1, "parameter": true, "persistent": true}],
  "init_inputs": [4, {"tuple": []}], "flags": {"cudnn.allow_tf32": 1}, "notes": ["a stream was made"]})");
}

// Everything that trace.h says of a decoded trace, checked by other means than the decoder's.
inline void expect_sound(const Trace& trace) {
  const auto value_ok = [&](ValueId id) { return id >= 0 && static_cast<size_t>(id) < trace.values.size(); };
  for (const Value& value : trace.values) {
    ASSERT_TRUE(value.storage >= 0 && static_cast<size_t>(value.storage) < trace.storages.size());
    ASSERT_EQ(value.sizes.size(), value.strides.size());
    __int128 last = value.offset, count = 1;
    for (size_t d = 0; d < value.sizes.size(); ++d) {
      ASSERT_GE(value.sizes[d], 0);
      ASSERT_GE(value.strides[d], 0);
      last += static_cast<__int128>(value.sizes[d] - 1) * value.strides[d];
      count *= value.sizes[d];
    }
    const int64_t bytes = trace.storages[static_cast<size_t>(value.storage)].bytes;
    if (count > 0) {
      ASSERT_TRUE(value.offset >= 0 && (last + 1) * element_bytes(value.dtype) <= bytes);
    }
    ASSERT_EQ(element_count(value), static_cast<int64_t>(count));
    ASSERT_LE(byte_extent(value).second, bytes);
  }
  for (const Storage& storage : trace.storages)
    if (!storage.data.empty()) {
      ASSERT_EQ(static_cast<int64_t>(storage.data.size()), storage.bytes);
    }
  const auto arg_ok = [&](const Arg& arg) {
    for (const ValueId id : tensors_in(arg)) ASSERT_TRUE(value_ok(id));
  };
  for (const Phase& phase : trace.phases) {
    arg_ok(phase.inputs), arg_ok(phase.output);
    for (const Step& step : phase.steps) {
      if (const auto* call = std::get_if<Call>(&step)) {
        for (const Arg& arg : call->args) arg_ok(arg);
        arg_ok(call->result);
        continue;
      }
      ASSERT_FALSE(std::get<Launch>(step).alternatives.empty());
      for (const Alternative& one : std::get<Launch>(step).alternatives) {
        ASSERT_TRUE(one.kernel >= 0 && static_cast<size_t>(one.kernel) < trace.kernels.size());
        for (const LaunchArg& arg : one.args) {
          if (const auto* pointer = std::get_if<PointerArg>(&arg)) {
            ASSERT_TRUE(pointer->value == -1 || value_ok(pointer->value));
          }
          if (const auto* descriptor = std::get_if<DescriptorArg>(&arg)) {
            ASSERT_TRUE(value_ok(descriptor->value));
          }
        }
      }
    }
  }
  for (const State& state : trace.state) ASSERT_TRUE(value_ok(state.value));
}

}  // namespace nereid::trace
