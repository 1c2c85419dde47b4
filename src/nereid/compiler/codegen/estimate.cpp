#include "nereid/compiler/codegen/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "nereid/compiler/codegen/contraction_tile.h"

namespace nereid::compiler {
namespace {

double bytes_of(const Tensor& tensor) {
  return static_cast<double>(element_count(tensor.sizes) * trace::element_bytes(tensor.type));
}

// Elements that an expression is computed for: of the dimensions that it uses.
double times(const Graph& graph, const Extents& extents, ExprId id) {
  double count = 1;
  for (size_t d = 0; d < extents.size(); ++d)
    if (graph.exprs.uses(id, static_cast<int>(d))) count *= static_cast<double>(extents[d]);
  return count;
}

double flops_of(const Graph& graph, const TileKernel& kernel) {
  const Extents extents = kernel.extents();
  const auto all = static_cast<double>(element_count(extents));
  double flops = 0;
  std::set<ExprId> seen;
  for (const Member& member : kernel.members) {
    for (const ExprId id : graph.exprs.below(member.body)) {
      const Expr& expr = graph.exprs[id];
      if (expr.kind == Expr::Kind::kApply && trace::is_floating(expr.type) && seen.insert(id).second)
        flops += info(expr.fn).flops * times(graph, extents, id);
    }
    if (member.reduction != Reduction::kNone)
      flops += &member == &kernel.members.front() || member.twin ? all : times(graph, extents, member.body);
  }
  return flops;
}

double rate(const Target& target, const KernelText& text, DType factor) {
  if (!text.contraction) return target.fp32;
  const std::string& precision = text.choice.precision;
  if (precision == "fp16x3") return target.bf16 / 3;
  if (factor == DType::kF16 || factor == DType::kBF16) return target.bf16;
  if (precision == "tf32") return target.tf32;
  if (precision == "tf32x3") return target.tf32 / 3;
  if (precision == "bf16x3") return target.bf16 / 3;
  if (precision == "bf16x6") return target.bf16 / 6;
  return target.fp32;
}

// Bytes of both factors of a contraction that its tiles ask for: each is read for every tile of the other's
// own dimension.
double requested_bytes(const KernelText& text, double flops) {
  if (!text.contraction || text.choice.k == 0) return 0;
  const double intensity =
      2.0 / (1.0 / static_cast<double>(text.choice.m) + 1.0 / static_cast<double>(text.choice.n)) / 4;
  return flops / intensity;
}

// Bytes that a kernel asks for of tensors that it gathers from: of an embedding, those of the rows that it
// looks up.
std::map<TensorId, double> gathered_bytes(const Graph& graph, const TileKernel& kernel) {
  std::map<TensorId, double> asked;
  std::set<ExprId> seen;
  const Extents extents = kernel.extents();
  for (const Member& member : kernel.members)
    for (const ExprId id : graph.exprs.below(member.body)) {
      const Expr& load = graph.exprs[id];
      if (load.kind != Expr::Kind::kLoad || !seen.insert(id).second) continue;
      const Tensor& of = graph.tensors[static_cast<size_t>(load.tensor)];
      asked[load.tensor] +=
          load.args.empty() ? bytes_of(of) : times(graph, extents, id) * trace::element_bytes(of.type);
    }
  return asked;
}

// A product over e and one over n for every query and key; half of them where later keys are not looked at.
double flash_flops(const Node& node) {
  double f = 1;
  for (const int d : node.flash->f) f *= static_cast<double>(node.sizes[static_cast<size_t>(d)]);
  const double pairs =
      static_cast<double>(element_count(node.sizes)) / f * static_cast<double>(node.reduced[0]);
  return 2 * pairs * (static_cast<double>(node.reduced[1]) + f) * (node.flash->ahead ? 0.5 : 1);
}

}  // namespace

double seconds_of(const CostFeatures& f, const Target& target) {
  const CostConstants& c = target.cost;
  const double memory =
      (std::max(f.read, f.asked / c.cache_ratio) + f.written) / (target.bytes_per_second * c.bandwidth_share);
  const double arithmetic =
      f.products / (f.rate * c.tensor_share) + f.other_flops / (target.fp32 * c.vector_share);
  // The last wave leaves processors idle, and a few programs most of them.
  const double waves = std::ceil(f.programs / f.width);
  const double idle = waves / (f.programs / f.width);
  return f.fixed + f.launches * c.launch_seconds + std::max(memory, arithmetic) * idle +
         waves * (c.wave_seconds + f.elements * c.thread_seconds);
}

Estimate estimate(const Graph& graph, const Fused& fused, const TileKernel& kernel, const KernelText& text,
                  const Target& target) {
  Estimate made;
  std::set<TensorId> own;
  for (const Member& member : kernel.members) own.insert(graph.nodes[static_cast<size_t>(member.node)].out);
  const auto gathered = gathered_bytes(graph, kernel);
  for (const auto& pointer : text.pointers) {
    const double bytes = bytes_of(graph.tensors[static_cast<size_t>(pointer.tensor)]);
    const auto asked = gathered.find(pointer.tensor);
    if (own.contains(pointer.tensor))
      made.bytes_written += bytes;
    else
      made.bytes_read += asked == gathered.end() ? bytes : std::min(bytes, asked->second);
  }
  static_cast<void>(fused);
  made.flops = flops_of(graph, kernel);
  const DType type =
      graph.tensors[static_cast<size_t>(graph.nodes[static_cast<size_t>(kernel.members.front().node)].out)]
          .type;
  const Node& first = graph.nodes[static_cast<size_t>(kernel.members.front().node)];
  CostFeatures& features = made.features;
  features.read = made.bytes_read, features.written = made.bytes_written;
  if (first.flash) {
    made.contraction_flops = flash_flops(first);
    made.flops = made.contraction_flops + 6 * static_cast<double>(element_count(first.sizes));
  } else if (first.recurrence) {
    const Recurrence& r = *first.recurrence;
    const auto gates = static_cast<double>(graph.tensors[static_cast<size_t>(r.weight)].sizes[0]);
    const double one = 2 * gates * static_cast<double>(r.hidden * r.batch);
    made.contraction_flops = one * static_cast<double>(r.steps);
    made.flops = made.contraction_flops + 10 * static_cast<double>(element_count(first.sizes));
    features.launches = static_cast<double>(std::max<int64_t>(text.steps, 1));
    if (text.cooperative) {  // its steps take what their exchanges take
      features = {.launches = 1, .fixed = text.step_seconds * static_cast<double>(r.steps)};
      made.seconds = seconds_of(features, target);
      return made;
    }
  } else if (text.contraction) {
    const double all =
        2 * static_cast<double>(element_count(kernel.extents()) * static_cast<int64_t>(text.products));
    made.contraction_flops = all * text.taps_share;
    made.flops -= all - made.contraction_flops;
  } else {
    features.elements = static_cast<double>(element_count(kernel.extents())) /
                        static_cast<double>(std::max<int64_t>(text.programs, 1)) / (32.0 * text.num_warps);
  }
  features.asked = requested_bytes(text, made.flops);
  features.products = made.contraction_flops, features.rate = rate(target, text, type);
  features.other_flops = made.flops - made.contraction_flops;
  features.programs = static_cast<double>(text.programs);
  features.width = static_cast<double>(target.multiprocessors) * (text.contraction ? 1 : 4);
  made.seconds = seconds_of(features, target);
  return made;
}

std::vector<KernelChoice> alternatives(const TileKernel& kernel, const KernelText& text,
                                       const Target& target) {
  std::vector<KernelChoice> found;
  const auto add = [&](const KernelChoice& choice) {
    if (to_string(choice) != to_string(text.choice)) found.push_back(choice);
  };
  for (const KernelChoice& other : text.others) add(other);
  if (text.steps > 0 || text.cooperative) {
    for (const int64_t m : {16, 32, 64})
      for (const int64_t n : {16, 32, 64})
        for (const int64_t k : {32, 64, 128})
          add({.m = m, .n = n, .k = k, .warps = 4, .stages = 3, .precision = text.choice.precision});
    return found;
  }
  if (text.contraction && text.choice.k == 0) {  // attention
    for (const int64_t m : {32, 64, 128})
      for (const int64_t n : {32, 64, 128})
        for (const int stages : {2, 3, 4})
          add({.m = m,
               .n = n,
               .warps = m >= 128 ? 8 : 4,
               .stages = stages,
               .precision = text.choice.precision});
    return found;
  }
  if (text.contraction) {
    const int64_t element = text.choice.precision.empty() || text.choice.precision == "fp16x3" ? 2 : 4;
    for (const int64_t m : {32, 64, 128})
      for (const int64_t n : {32, 64, 128, 256})
        for (const int64_t k : {32, 64})
          for (const int stages : {2, 3, 4}) {
            if ((m + n * text.products) * k * element * stages > target.shared_bytes ||
                m * n * text.products > 32768)
              continue;
            if ((text.whole_m && m != text.choice.m) || (text.whole_n && n != text.choice.n)) continue;
            if ((text.whole_m || text.whole_n) && m * n > kWholeTile) continue;
            add({.m = m,
                 .n = n,
                 .k = k,
                 .warps = m * n * text.products >= 16384 ? 8 : 4,
                 .stages = stages,
                 .precision = text.choice.precision});
          }
    KernelChoice order =
        text.choice;  // the same tiles, one after the other by as many programs as processors
    order.persistent = !order.persistent;
    if (text.programs > target.multiprocessors || text.choice.persistent) add(order);
    return found;
  }
  if (kernel.columns.empty()) {
    if (kernel.row_count() == 1) return found;  // a number has no block
    for (const int64_t rows : {256, 512, 1024, 2048, 4096})
      for (const int warps : {4, 8}) add({.rows = rows, .warps = warps});
    return found;
  }
  for (const int64_t rows : {1, 2, 4, 8, 16, 32})
    for (const int64_t columns : {text.choice.columns, text.choice.columns / 2, text.choice.columns / 4})
      for (const int warps : {2, 4, 8})
        if (columns >= 16 && rows * columns <= 16384 && rows <= kernel.row_count())
          add({.rows = rows, .columns = columns, .warps = warps});
  return found;
}

}  // namespace nereid::compiler
