// A trace's things in words, for pages, graphs and evidence. What the traced file named is made safe for a
// terminal.
#pragma once

#include <string>
#include <string_view>

#include "nereid/trace/trace.h"

namespace nereid::trace {

std::string_view torch_name(DType type);     // "float32", as it follows "torch."
std::string shape_text(const Value& value);  // "f32[128, 256]"
// A storage: "x0" for an input named "0", "fc.weight", "const3", "t12".
std::string storage_text(const Trace& trace, StorageId id);
// A value: its storage, the shape, and what of the storage it is where it is not the whole in order:
// "t12: f32[64, 64] strides [1, 64] +128".
std::string value_text(const Trace& trace, ValueId id);
std::string arg_text(const Trace& trace, const Arg& arg);
std::string launch_arg_text(const Trace& trace, const LaunchArg& arg);
std::string call_text(const Trace& trace,
                      const Call& call);  // "addmm(fc.bias: f32[4], ..., beta=1) -> t4: f32[2, 4]"
std::string launch_text(const Trace& trace,
                        const Launch& launch);  // "add_kernel[4, 1, 1](x0: f32[8], ..., 8)"
std::string_view phase_text(PhaseKind kind);    // "make_inputs"

// 1234567 as "1.23 M"; `unit` follows ("1.23 MFLOP").
std::string quantity_text(double amount, std::string_view unit);
// Without control characters and escape sequences: a traced file may be hostile to a terminal.
std::string safe_text(std::string_view text);

}  // namespace nereid::trace
