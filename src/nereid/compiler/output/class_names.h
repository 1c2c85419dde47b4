// What a written file names besides tensors: classes of objects, attributes of the module.
#pragma once

#include <set>
#include <string>

#include "nereid/trace/trace.h"

namespace nereid::compiler {

// "from types import SimpleNamespace\n": what brings in the libraries' classes of objects in the tree.
void imports_of_types(const trace::Arg& arg, std::set<std::string>& lines);
// Classes of the traced file whose objects are in the tree: "Output".
void own_types(const trace::Arg& arg, std::set<std::string>& names);
// "self.layers[0].weight" of "layers.0.weight".
std::string attribute_text(const std::string& name);

}  // namespace nereid::compiler
