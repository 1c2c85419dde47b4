#include "nereid/compiler/codegen/exact_divisions.h"

#include <functional>
#include <map>
#include <set>

namespace nereid::compiler {
namespace {

// Whether its result jumps where an argument moves by one unit in the last place.
bool decides(const Exprs& exprs, const Expr& expr) {
  const bool of_floats = !expr.args.empty() && trace::is_floating(exprs[expr.args[0]].type);
  switch (expr.fn) {
    case Fn::kFloor:
    case Fn::kCeil:
    case Fn::kTrunc:
    case Fn::kRound:
    case Fn::kFmod:
    case Fn::kLogb:
      return true;
    case Fn::kLess:
    case Fn::kLessEqual:
    case Fn::kEqual:
    case Fn::kNotEqual:
      return of_floats;
    case Fn::kCast:
      return of_floats && !trace::is_floating(expr.type);
    default:
      return false;
  }
}

class Marker {
 public:
  Marker(Graph& graph, Fused& fused) : graph_(graph), fused_(fused) {}

  void run() {
    for (const TileKernel& kernel : fused_.kernels) {
      for (const Member& member : kernel.members) {
        bodies_[node_of(member).out] = &member;
        look(member.body);
        if (member.reduction == Reduction::kArgMax || member.reduction == Reduction::kArgMin)
          decided(member.body);
      }
    }
    for (const TileKernel& kernel : fused_.kernels)
      for (const Member& member : kernel.members)
        if (const auto& flash = node_of(member).flash)
          for (const ExprId id : {flash->query, flash->key, flash->value, flash->score}) look(id);
    while (!to_do_.empty()) {
      const ExprId id = to_do_.back();
      to_do_.pop_back();
      spread(id);
    }
    if (divisions_.empty()) return;
    for (TileKernel& kernel : fused_.kernels)
      for (Member& member : kernel.members) {
        member.body = exact(member.body);
        Node& node = graph_.nodes[static_cast<size_t>(member.node)];
        if (!node.special() && node.body >= 0) node.body = exact(node.body);
        if (!node.flash) continue;
        for (ExprId* id : {&node.flash->query, &node.flash->key, &node.flash->value, &node.flash->score})
          *id = exact(*id);
      }
  }

 private:
  const Node& node_of(const Member& member) const { return graph_.nodes[static_cast<size_t>(member.node)]; }

  // Everything below a value that decides.
  void look(ExprId body) {
    if (body < 0) return;
    for (const ExprId id : graph_.exprs.below(body)) {
      const Expr& expr = graph_.exprs[id];
      if (expr.kind == Expr::Kind::kApply && decides(graph_.exprs, expr))
        for (const ExprId arg : expr.args) decided(arg);
    }
  }

  void decided(ExprId id) {
    if (id >= 0 && seen_.insert(id).second) to_do_.push_back(id);
  }

  void spread(ExprId id) {
    const Expr& expr = graph_.exprs[id];
    if (expr.kind == Expr::Kind::kApply && expr.fn == Fn::kDiv && expr.type == DType::kF32)
      divisions_.insert(id);
    for (const ExprId arg : expr.args) decided(arg);
    if (expr.kind != Expr::Kind::kLoad) return;
    const auto made = bodies_.find(expr.tensor);
    if (made == bodies_.end()) return;
    const Reduction reduction = made->second->reduction;
    if (reduction == Reduction::kNone || reduction == Reduction::kMax || reduction == Reduction::kMin)
      decided(made->second->body);
  }

  ExprId exact(ExprId of) {
    if (of < 0) return of;
    return graph_.exprs.replace_functions(
        of, [this](ExprId id, Fn fn) { return divisions_.contains(id) ? Fn::kDivExact : fn; }, replaced_);
  }

  Graph& graph_;
  Fused& fused_;
  std::map<TensorId, const Member*> bodies_;  // that make a tensor
  std::set<ExprId> seen_, divisions_;
  std::vector<ExprId> to_do_;
  std::map<ExprId, ExprId> replaced_;
};

}  // namespace

void exact_divisions(Graph& graph, Fused& fused) { Marker(graph, fused).run(); }

}  // namespace nereid::compiler
