// A small handmade trace that uses every part of the format (its tensors make no sense), and an independent
// check of what a decoded trace promises.
#pragma once

#include <gtest/gtest.h>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/trace/format/codec.h"

namespace nereid::trace {

inline Json sample_document() {
  const auto text = read_file(NEREID_SOURCE_DIR "/tests/golden/traces/handmade.json");
  return Json::parse(text.value());
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
