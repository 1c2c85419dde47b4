#include "nereid/compiler/transforms/slices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr size_t kMaxSlices = 64;
constexpr int kMaxFollowing = 8;  // between a kernel's first result and what it stores of it

bool is_map(const Node& node) {
  return !node.special() && node.reduction == Reduction::kNone && node.reduced.empty() && node.at.empty();
}

// The load is of every element of its tensor, each once, be it with neighbours of its dimensions as one.
bool is_permutation(const Graph& graph, const Expr& load, const Extents& sizes) {
  const Extents& of = graph.tensors[static_cast<size_t>(load.tensor)].sizes;
  if (!load.args.empty() || element_count(of) != element_count(sizes)) return false;
  std::vector<bool> seen(sizes.size(), false);
  std::vector<bool> done(load.at.size(), false);
  for (size_t own = 0; own < sizes.size(); ++own)
    for (const size_t d : flattened(load.at, of, static_cast<int>(own), sizes)) done[d] = seen[own] = true;
  for (size_t d = 0; d < load.at.size(); ++d) {
    if (done[d] || (load.at[d] == Index() && of[d] == 1)) continue;
    size_t own = 0;
    while (own < sizes.size() && !(load.at[d] == Index::dimension(static_cast<int>(own)))) ++own;
    if (own == sizes.size() || seen[own] || sizes[own] != of[d]) return false;
    seen[own] = true;
  }
  return true;
}

// A kernel makes the tensor by a product or a reduction, and what follows element by element.
bool follows_kernel(const Graph& graph, TensorId tensor, int maps = kMaxFollowing) {
  const Node* maker = graph.maker(tensor);
  if (maker == nullptr || maker->special() || maker->scan || maps == 0) return false;
  if (maker->reduction != Reduction::kNone) return !maker->window || is_contraction(graph, *maker);
  return std::ranges::any_of(graph.exprs.below(maker->body), [&](ExprId id) {
    const Expr& load = graph.exprs[id];
    return load.kind == Expr::Kind::kLoad && is_permutation(graph, load, maker->sizes) &&
           follows_kernel(graph, load.tensor, maps - 1);
  });
}

// Places along dimensions of a map before and after which its elements are different expressions.
std::map<int, std::map<int64_t, Size>> cuts_of(const Graph& graph, const Node& node) {
  std::map<int, std::map<int64_t, Size>> cuts;
  for (const ExprId id : graph.exprs.below(node.body)) {
    const Expr& choice = graph.exprs[id];
    if (choice.kind != Expr::Kind::kApply || choice.fn != Fn::kWhere) continue;
    for (const ExprId under : graph.exprs.below(choice.args[0])) {
      const Expr& within = graph.exprs[under];
      if (within.kind != Expr::Kind::kWithin || within.index.terms().size() != 1) continue;
      const auto& [atom, factor] = within.index.terms()[0];
      if (atom.kind != Atom::Kind::kDimension || factor != 1) continue;
      const Size& all = node.sizes[static_cast<size_t>(atom.dimension)];
      for (const Size& bound : {Size(within.low), Size(within.high)})
        if (const Size at = bound - within.index.constant(); at > 0 && at < all)
          cuts[atom.dimension][at.value()] = at;
    }
  }
  return cuts;
}

class Concatenations {
 public:
  Concatenations(Graph& graph, const Target& target)
      : graph_(graph), target_(target), results_(graph.results()), readers_(graph.tensors.size(), 0) {}

  void run() {
    const std::vector<bool> live = live_nodes(graph_);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (live[n])
        for (const TensorId read : graph_.reads(graph_.nodes[n])) ++readers_[static_cast<size_t>(read)];
    for (const TensorId result : results_) ++readers_[static_cast<size_t>(result)];
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < before.size(); ++n) {
      if (live[n] && is_map(before[n]) && !is_update(before[n].out)) slice(before[n]);
      append(graph_, std::move(before[n]));
    }
    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors.size()); ++id)
      tensor(id).strides = strides(id);
  }

 private:
  struct Part {
    Size begin, end;
    ExprId body = -1;
    bool follows = false;  // a kernel's result
  };

  Tensor& tensor(TensorId id) { return graph_.tensors[static_cast<size_t>(id)]; }
  bool is_update(TensorId id) const {
    return std::ranges::any_of(graph_.updates, [&](const Update& update) { return update.from == id; });
  }

  Extents strides(TensorId id) {
    return tensor(id).slice_of < 0 ? tensor(id).strides : strides(tensor(id).slice_of);
  }

  static Extents part_sizes(const Node& node, size_t axis, const Part& part) {
    Extents sizes = node.sizes;
    sizes[axis] = part.end - part.begin;
    return sizes;
  }

  ExprId body_of(const Node& node, size_t axis, const Part& part) {
    std::vector<Index> by = dimensions(node.sizes.size());
    by[axis] = by[axis] + Index(part.begin);
    return graph_.exprs.substitute(node.body, by, part_sizes(node, axis, part));
  }

  // The result of a kernel that a part follows.
  std::optional<TensorId> followed(const Node& node, size_t axis, const Part& part) {
    const Extents sizes = part_sizes(node, axis, part);
    for (const ExprId id : graph_.exprs.below(part.body)) {
      const Expr& load = graph_.exprs[id];
      if (load.kind == Expr::Kind::kLoad && is_permutation(graph_, load, sizes) &&
          (follows_kernel(graph_, load.tensor) || is_sliced(load.tensor)))
        return load.tensor;
    }
    return std::nullopt;
  }
  bool is_sliced(TensorId id) const {
    const Node* maker = graph_.maker(id);
    return maker != nullptr && !maker->parts.empty();
  }

  // A part that is a tensor as it is, which may become a slice.
  std::optional<TensorId> as_it_is(const Node& node, size_t axis, const Part& part) {
    const DType type = tensor(node.out).type;
    ExprId body = part.body;
    if (const Expr& cast = graph_.exprs[body]; cast.kind == Expr::Kind::kApply && cast.fn == Fn::kCast)
      body = cast.args[0];
    const Expr& load = graph_.exprs[body];
    const Extents sizes = part_sizes(node, axis, part);
    if (load.kind != Expr::Kind::kLoad || !is_permutation(graph_, load, sizes)) return std::nullopt;
    for (size_t d = 0; d < load.at.size(); ++d)
      if (sizes[d] > 1 && !(load.at[d] == Index::dimension(static_cast<int>(d)))) return std::nullopt;
    const Tensor& of = tensor(load.tensor);
    if (of.sizes != sizes || of.type != type || of.slice_of >= 0 ||
        std::ranges::find(results_, load.tensor) != results_.end())
      return std::nullopt;
    return is_sliced(load.tensor) || follows_kernel(graph_, load.tensor) ? std::optional(load.tensor)
                                                                         : std::nullopt;
  }

  std::vector<Part> parts_along(const Node& node, size_t axis, const std::map<int64_t, Size>& cuts) {
    std::vector<Part> parts;
    Size begin = 0;
    for (auto cut = cuts.begin(); begin < node.sizes[axis];) {
      Part part{.begin = begin, .end = cut == cuts.end() ? node.sizes[axis] : (cut++)->second};
      begin = part.end;
      part.body = body_of(node, axis, part);
      part.follows = followed(node, axis, part).has_value();
      if (!parts.empty() && !parts.back().follows && !part.follows) {
        parts.back().end = part.end;
        parts.back().body = body_of(node, axis, parts.back());
        continue;
      }
      parts.push_back(part);
    }
    return parts;
  }

  // A part that follows a kernel is not read again, and what nothing else reads is not stored twice.
  bool worth(const Node& node, size_t axis, const std::vector<Part>& parts) {
    int64_t launches = -1, bytes = 0;
    for (const Part& part : parts) {
      if (!part.follows) {
        ++launches;
        continue;
      }
      const TensorId of = *followed(node, axis, part);
      const bool once = readers_[static_cast<size_t>(of)] == 1 || as_it_is(node, axis, part);
      bytes += element_count(tensor(of).sizes) * trace::element_bytes(tensor(of).type) * (once ? 2 : 1);
    }
    return bytes > 0 && static_cast<double>(bytes) / target_.bytes_per_second >
                            static_cast<double>(launches) * target_.cost.launch_seconds;
  }

  void slice(Node& node) {
    for (const auto& [axis, cuts] : cuts_of(graph_, node)) {
      if (cuts.size() >= kMaxSlices) continue;
      const auto along = static_cast<size_t>(axis);
      const std::vector<Part> parts = parts_along(node, along, cuts);
      if (parts.size() < 2 || !worth(node, along, parts)) continue;
      for (const Part& part : parts) node.parts.push_back(made(node, along, part));
      node.body = graph_.exprs.integer(0);
      graph_.rewrites.push_back(
          fmt::format("{}{}: its parts are written where they are in it, without a copy", node.name,
                      node.place.file.empty() ? "" : fmt::format(" (line {})", node.place.line)));
      return;
    }
  }

  TensorId made(const Node& node, size_t axis, const Part& part) {
    TensorId id = as_it_is(node, axis, part).value_or(-1);
    if (id < 0) {
      Node map{.sizes = part_sizes(node, axis, part),
               .body = part.body,
               .name = node.name,
               .before = node.before,
               .place = node.place,
               .steps = node.steps};
      id = append(graph_, std::move(map), tensor(node.out).type);
      tensor(id).name = tensor(node.out).name + "_part";
    }
    tensor(id).slice_of = node.out;
    tensor(id).slice_axis = axis;
    tensor(id).slice_begin = part.begin;
    return id;
  }

  Graph& graph_;
  const Target& target_;
  const std::vector<TensorId> results_;
  std::vector<int> readers_;  // of each tensor
};

}  // namespace

void keep_concatenations(Graph& graph) {
  const std::vector<bool> live = live_nodes(graph);
  // Read by a product; by a direct one, or by maps that it takes in.
  std::vector<bool> in_product(graph.tensors.size(), false), in_direct = in_product;
  for (size_t n = graph.nodes.size(); n-- > 0;) {
    const Node& node = graph.nodes[n];
    if (!live[n] || node.special()) continue;
    const bool product = is_contraction(graph, node);
    const bool taken_in = is_map(node) && !node.whole && in_direct[static_cast<size_t>(node.out)];
    for (const TensorId read : graph.reads(node)) {
      if (product) in_product[static_cast<size_t>(read)] = true;
      if (node.direct || taken_in) in_direct[static_cast<size_t>(read)] = true;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    const auto out = static_cast<size_t>(node.out);
    if (!live[n] || !is_map(node) || !(in_product[out] || in_direct[out])) continue;
    const Expr& choice = graph.exprs[node.body];
    if (choice.kind != Expr::Kind::kApply || choice.fn != Fn::kWhere ||
        graph.exprs[choice.args[0]].kind != Expr::Kind::kWithin || cuts_of(graph, node).size() != 1)
      continue;
    const auto reads = graph.reads(node);
    node.whole = std::ranges::any_of(reads, [&](TensorId read) {
      const Node* maker = graph.maker(read);
      return follows_kernel(graph, read) || (maker != nullptr && maker->whole && is_map(*maker));
    });
  }
}

void slice_concatenations(Graph& graph, const Target& target) { Concatenations(graph, target).run(); }

}  // namespace nereid::compiler
