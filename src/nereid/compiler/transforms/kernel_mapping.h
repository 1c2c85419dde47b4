// Which of a kernel's dimensions a node's are that joins it.
#pragma once

#include <optional>
#include <vector>

#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

// Of a node's dimension: what it is among the kernel's, or of which group of so many it is one.
struct KnownDimension {
  std::optional<Index> index;
  int64_t group = 1;
};
using KnownDimensions = std::vector<KnownDimension>;

// The member that makes a tensor; null where none does.
const Member* made_by(const Graph& graph, const TileKernel& kernel, TensorId tensor);

// What of the node's dimensions, of these sizes, follows from where it reads what the kernel makes.
std::optional<KnownDimensions> known_dimensions(const Graph& graph, const TileKernel& kernel,
                                                const Node& each, const Extents& sizes, bool& follows);
// The rows of a product's kernel over which all was reduced that the node reads of the kernel.
std::vector<int> reduced_before(const Graph& graph, const TileKernel& kernel, const Node& each);
// Dimensions that do not follow from what is read are the kernel's columns, and all rows must be covered.
// The columns of a contraction are gone after its loop; over the rows `across` what it reads was reduced.
std::optional<std::vector<Index>> completed_mapping(const TileKernel& kernel, const Node& each,
                                                    const KnownDimensions& known, bool after_contraction,
                                                    const std::vector<int>& across);
// A reduction of a product's results over all of one factor's own dimensions, as a softmax over the classes
// of a linear layer, where a tile has them all and there are tiles for all processors: what the node's
// dimensions are among the kernel's.
std::optional<std::vector<Index>> in_tile(const Graph& graph, const TileKernel& kernel, const Node& each,
                                          const Target& target);

}  // namespace nereid::compiler
