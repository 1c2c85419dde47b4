#include "nereid/compiler/transforms/products/one_copy.h"

#include <algorithm>
#include <map>
#include <optional>

#include "nereid/compiler/transforms/fusion_preparation.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

class CopyReaders {
 public:
  explicit CopyReaders(Graph& graph)
      : graph_(graph),
        results_(graph.results()),
        live_(live_nodes(graph)),
        readers_(graph.tensors.size()),
        moved_behind_(graph.nodes.size(), -1) {
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (live_[n])
        for (const TensorId read : graph.reads(graph.nodes[n]))
          readers_[static_cast<size_t>(read)].push_back(static_cast<NodeId>(n));
  }

  void run() {
    std::map<TensorId, Copy> copies;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (live_[n])
        if (const auto copy = copy_of(static_cast<NodeId>(n))) copies.emplace(copy->of, *copy);
    bool moves = false;
    for (const auto& [tensor, copy] : copies) moves = read_by_all(copy) || moves;
    if (moves) reorder();
  }

 private:
  // Its dimension d is digit[d] of the tensor's dimensions: of which, how many elements apart, and how many.
  struct Digit {
    size_t dimension = 0;
    Size stride = 1, extent = 1;
    bool top = true, alone = true;
  };
  struct Copy {
    NodeId node = -1;
    TensorId of = -1;
    std::vector<Digit> digits = {};
  };

  const Node& node(NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }
  const Tensor& tensor(TensorId id) const { return graph_.tensors[static_cast<size_t>(id)]; }
  static bool is_half(DType type) { return type == DType::kF16 || type == DType::kBF16; }
  static bool is_map(const Node& each) {
    return !each.special() && each.reduction == Reduction::kNone && each.reduced.empty() && each.at.empty();
  }

  // A map of all elements of a tensor that a kernel makes, each once, rounded to TF32 or as a half.
  std::optional<Copy> copy_of(NodeId id) const {
    const Node& each = node(id);
    const Expr& rounding = graph_.exprs[each.body];
    if (!is_map(each) || rounding.kind != Expr::Kind::kApply ||
        (rounding.fn != Fn::kTf32 && rounding.fn != Fn::kCast))
      return std::nullopt;
    const Expr& load = graph_.exprs[rounding.args[0]];
    if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return std::nullopt;
    const Tensor& of = tensor(load.tensor);
    const Node* maker = graph_.maker(load.tensor);
    const bool same = rounding.fn == Fn::kTf32 ? of.type == DType::kF32 : is_half(of.type);
    if (!same || tensor(each.out).type != of.type || maker == nullptr || maker->special() ||
        std::ranges::find(results_, load.tensor) != results_.end() ||
        element_count(of.sizes) != element_count(each.sizes))
      return std::nullopt;
    Copy copy{id, load.tensor, std::vector<Digit>(each.sizes.size())};
    std::vector<bool> seen(each.sizes.size(), false);
    for (size_t d = 0; d < load.at.size(); ++d) {
      if (of.sizes[d] == 1 && load.at[d] == Index()) continue;
      const auto digits = digits_of(load.at[d], each.sizes, of.sizes[d]);
      if (digits.empty()) return std::nullopt;
      Size stride = 1;
      for (const auto& [dimension, step] : digits) {
        const auto own = static_cast<size_t>(dimension);
        if (seen[own]) return std::nullopt;
        seen[own] = true;
        copy.digits[own] = {d, stride, each.sizes[own], &step == &digits.back().second, digits.size() == 1};
        stride = stride * each.sizes[own];
      }
    }
    for (size_t d = 0; d < seen.size(); ++d)
      if (!seen[d] && each.sizes[d] != 1) return std::nullopt;
    for (size_t d = 0; d < seen.size(); ++d)
      if (!seen[d]) copy.digits[d].extent = 0;  // always at the first
    return copy;
  }

  std::vector<const Expr*> loads_of(const Node& reader, TensorId id) const {
    std::vector<const Expr*> loads;
    for (const ExprId under : graph_.exprs.below(reader.body)) {
      const Expr& load = graph_.exprs[under];
      if (load.kind == Expr::Kind::kLoad && load.tensor == id) loads.push_back(&load);
    }
    return loads;
  }

  bool reads(ExprId of, TensorId id) const {
    return std::ranges::any_of(graph_.exprs.below(of), [&](ExprId under) {
      return graph_.exprs[under].kind == Expr::Kind::kLoad && graph_.exprs[under].tensor == id;
    });
  }

  // Each value that the expression can have is one that it loads of the tensor, of either sign, or not of it.
  bool selects(ExprId of, TensorId id) const {
    const Expr& expr = graph_.exprs[of];
    if (expr.kind == Expr::Kind::kLoad) return expr.args.empty() || expr.tensor != id;
    if (!reads(of, id)) return true;
    const bool symmetric = expr.fn == Fn::kNeg || expr.fn == Fn::kAbs;  // as rounding is
    if (expr.fn != Fn::kMax && expr.fn != Fn::kMin && expr.fn != Fn::kWhere && expr.fn != Fn::kTf32 &&
        !symmetric)
      return false;
    if (expr.fn == Fn::kWhere && reads(expr.args[0], id)) return false;
    return std::ranges::all_of(expr.args, [&](ExprId arg) { return selects(arg, id); });
  }

  // What the reader makes is the same of rounded elements.
  bool rounds(const Node& reader, TensorId id) const {
    if (!is_map(reader) && reader.reduction != Reduction::kMax && reader.reduction != Reduction::kMin)
      return false;
    if (!selects(reader.body, id)) return false;
    const Expr& body = graph_.exprs[reader.body];
    if (is_map(reader) && body.kind == Expr::Kind::kApply && body.fn == Fn::kTf32) return true;
    return std::ranges::find(results_, reader.out) == results_.end() &&
           std::ranges::all_of(readers_[static_cast<size_t>(reader.out)], [&](NodeId next) {
             return !node(next).special() && rounds(node(next), reader.out);
           });
  }

  // Goes over the tensor element by element, and reads nothing that is made after the copy could be.
  bool joins(const Node& reader, const Copy& copy) const {
    const auto loads = loads_of(reader, copy.of);
    const bool each =
        is_map(reader) && element_count(reader.sizes) == element_count(tensor(copy.of).sizes) &&
        std::ranges::all_of(loads, [&](const Expr* load) { return is_permutation(*load, reader); });
    const NodeId made = tensor(copy.of).node;
    return each && std::ranges::none_of(graph_.reads(reader),
                                        [&](TensorId read) { return tensor(read).node > made; });
  }

  bool is_permutation(const Expr& load, const Node& reader) const {
    std::vector<bool> seen(reader.sizes.size(), false);
    const Extents& sizes = tensor(load.tensor).sizes;
    for (size_t d = 0; d < load.at.size(); ++d) {
      if (sizes[d] == 1) continue;
      const auto digits = digits_of(load.at[d], reader.sizes, sizes[d]);
      if (digits.empty()) return false;
      for (const auto& [dimension, stride] : digits) {
        if (seen[static_cast<size_t>(dimension)]) return false;
        seen[static_cast<size_t>(dimension)] = true;
      }
    }
    return load.args.empty();
  }

  bool can_read(const Node& reader, const Copy& copy) const {
    if (reader.special() || !reader.low.empty()) return false;
    const bool whole_dimensions =
        std::ranges::all_of(copy.digits, [](const Digit& digit) { return digit.alone; });
    for (const Expr* load : loads_of(reader, copy.of))
      if (!load->args.empty() && !whole_dimensions) return false;
    return is_half(tensor(copy.of).type) || rounds(reader, copy.of);
  }

  // Whether any reader reads the copy now.
  bool read_by_all(const Copy& copy) {
    std::vector<NodeId> change;
    for (const NodeId id : readers_[static_cast<size_t>(copy.of)]) {
      if (id == copy.node || joins(node(id), copy)) continue;
      if (!can_read(node(id), copy)) return false;
      change.push_back(id);
    }
    for (const NodeId id : change) read_copy(graph_.nodes[static_cast<size_t>(id)], copy);
    if (!change.empty()) moved_behind_[static_cast<size_t>(copy.node)] = tensor(copy.of).node;
    return !change.empty();
  }

  void read_copy(Node& reader, const Copy& copy) {
    const Extents extents = reader.extents();
    const TensorId out = node(copy.node).out;
    reader.body = graph_.exprs.replace_loads(reader.body, [&](const Expr& load) -> ExprId {
      const Expr old = load;
      if (old.tensor != copy.of) return graph_.exprs.load(old.tensor, old.at, old.type, old.args);
      std::vector<Index> at;
      std::vector<ExprId> args;
      for (const Digit& digit : copy.digits) {
        if (digit.extent == 0) {
          at.emplace_back();
          if (!old.args.empty()) args.push_back(graph_.exprs.integer(0));
          continue;
        }
        Index index = old.at[digit.dimension];
        if (!digit.alone) index = quotient(index, digit.stride, extents);
        if (!digit.top) index = remainder(index, digit.extent, extents);
        at.push_back(index);
        if (!old.args.empty()) args.push_back(old.args[digit.dimension]);
      }
      return graph_.exprs.load(out, at, old.type, args);
    });
  }

  // Copies that others read come right behind what they are copies of.
  void reorder() {
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    const auto add = [&](size_t n) { append(graph_, std::move(before[n])); };
    for (size_t n = 0; n < before.size(); ++n) {
      if (moved_behind_[n] < 0) add(n);
      for (size_t copy = n + 1; copy < before.size(); ++copy)
        if (moved_behind_[copy] == static_cast<NodeId>(n)) add(copy);
    }
  }

  Graph& graph_;
  const std::vector<TensorId> results_;
  const std::vector<bool> live_;
  std::vector<std::vector<NodeId>> readers_;  // of each tensor
  std::vector<NodeId> moved_behind_;          // of each node; -1: it stays where it is
};

}  // namespace

void read_copies_in_rows(Graph& graph) { CopyReaders(graph).run(); }

}  // namespace nereid::compiler
