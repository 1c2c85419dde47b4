// Values of a trace as Python text, by the printers of render/python_text.h.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// The tree with its tensors as `tensor` says.
std::string arg_python(const trace::Arg& arg, const std::function<std::string(trace::ValueId)>& tensor,
                       const std::string& device);
// "from types import SimpleNamespace\n": what brings in the libraries' classes of objects in the tree.
void imports_of_types(const trace::Arg& arg, std::set<std::string>& lines);
// Classes of the traced file whose objects are in the tree: "Output".
void own_types(const trace::Arg& arg, std::set<std::string>& names);
// "self.layers[0].weight" of "layers.0.weight".
std::string attribute_text(const std::string& name);
// "torch.ops.aten.sort.default(x, -1)".
std::string call_python(const trace::Call& call, const std::function<std::string(trace::ValueId)>& tensor,
                        const std::string& device);

}  // namespace nereid::compiler
