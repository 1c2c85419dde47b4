// Calls and values of a trace as Python.
#pragma once

#include <complex>
#include <functional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"

namespace nereid::render {

std::string dtype_text(trace::DType type);  // "torch.float32"
std::string float_text(double x);           // "2.0", "float(\"inf\")"
// A literal of it, and nothing else: what a trace says is not ours.
std::string quoted_text(const std::string& text);
std::string tuple_text(const std::vector<int64_t>& numbers);  // "(3,)"

using NameOf = std::function<Result<std::string>(trace::ValueId)>;

// What a text can name besides tensors.
enum class Names : uint8_t {
  kNone,     // objects are dictionaries
  kModules,  // classes of this file, and those of packages by __import__
  kFile,     // all classes and functions, which the file imports or defines; every device is `device`
};

// "torch.ops.aten.add.Tensor(x0, x1, alpha=1)". An error names what has no text. `device`: what stands for a
// device that is not a CPU.
Result<std::string> call_python(const trace::Call& call, const NameOf& name_of, const std::string& device,
                                Names names = Names::kNone);
// "t3 = ...", "t3, _, t4 = ..."; `wish` names a result.
std::string targets_python(const trace::Arg& result, const std::function<std::string(trace::ValueId)>& wish);
// A tree with values by name: what a forward returns.
Result<std::string> tree_python(const trace::Arg& arg, const NameOf& name_of, const std::string& device,
                                Names names = Names::kNone);
// "Out" of ":Out" and of "transformers.modeling_outputs:Out".
std::string name_of_global(const std::string& name);
std::string complex_text(std::complex<double> z);

// A candidate's file as a part of another: its imports, and the rest with every top-level name behind
// `prefix` and without get_inputs and get_init_inputs.
struct Part {
  std::vector<std::string> imports;
  std::string text;
};
Part as_part(const std::string& source, const std::string& prefix);

}  // namespace nereid::render
