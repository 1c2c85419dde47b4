#include "nereid/compiler/codegen/tiles/product_results.h"

#include <algorithm>
#include <limits>
#include <set>

#include "nereid/compiler/codegen/emit_reduction.h"
#include "nereid/compiler/codegen/tile.h"

namespace nereid::compiler {

bool batches_interleave(const Graph& graph, const TileKernel& kernel, const Contraction& of) {
  const Member& last = kernel.members.back();
  const TensorId out = graph.nodes[static_cast<size_t>(last.node)].out;
  Index address;
  for (size_t d = 0; d < last.at.size(); ++d)
    address = address + last.at[d] * graph.tensors[static_cast<size_t>(out)].strides[d];
  const auto least = [&](const std::vector<int>& dims) {
    int64_t stride = std::numeric_limits<int64_t>::max();
    for (const int d : dims)
      if (kernel.rows[static_cast<size_t>(d)] > 1)
        stride = std::min(stride, std::abs(address.stride(d).value_or(Size(stride)).value()));
    return stride;
  };
  return least(of.batch) < std::min(least(of.m), least(of.n));
}

std::string reduced_on_tile(ExprWriter& write, const Graph& graph, const Member& member, ExprId body,
                            std::string value, KernelText& out) {
  const int side = out.whole_n ? kN : kM;
  if (!graph.exprs.uses(body, kM) || !graph.exprs.uses(body, kN))
    value = fmt::format("tl.zeros([BLOCK_M, BLOCK_N], tl.float32) + {}", value);
  // What is beyond the last of them is a product of anything.
  if (const std::string within = write.mask_of({side}); !within.empty())
    value = fmt::format("tl.where({}, {}, {})", within, value, identity_text(member.reduction, DType::kF32));
  return write.let(identifier(graph.nodes[static_cast<size_t>(member.node)].name),
                   reduced_text(member.reduction, value, side == kN ? 1 : 0, out.helpers) +
                       (side == kN ? "[:, None]" : "[None, :]"));
}

bool has_long_epilogue(const Graph& graph, const TileKernel& kernel, int64_t m, int64_t n) {
  std::set<ExprId> bodies;
  for (size_t each = 1; each < kernel.members.size(); ++each) bodies.insert(kernel.members[each].body);
  return m * n >= 4096 && is_long_code(graph, bodies, static_cast<double>(m * n) / 128.0);
}

}  // namespace nereid::compiler
