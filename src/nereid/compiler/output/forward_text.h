// The forward of a lowered module: allocations, launches, what PyTorch keeps, and what is returned.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/compiler/codegen/emit.h"
#include "nereid/compiler/output/source_file.h"

namespace nereid::compiler {

struct ForwardText {
  std::string text;  // indented as a member of a class
  // Statements of the constructor: tensors that are attributes become buffers, which the guard knows and
  // which move with the module.
  std::vector<std::string> constructor;
};

// `texts`: of each of the fused kernels, in their order.
Result<ForwardText> forward_text(const trace::Trace& trace, const Graph& graph, const Fused& fused,
                                 const std::vector<KernelText>& texts, const SourceFile& source);

// Names that stand for something else in a forward of ours.
std::set<std::string> names_of_forward(const SourceFile& source);
// The name that is wished, or with a number after it, "neg_2", where it is taken; it is taken then.
std::string unique_name(const std::string& wish, std::set<std::string>& taken);

// The parameters of a forward that is not in the file, by what it is called with: "self, x0, x1".
std::string signature_for(const trace::Arg& inputs);

}  // namespace nereid::compiler
