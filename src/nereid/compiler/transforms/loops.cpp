#include "nereid/compiler/transforms/loops.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "nereid/compiler/import/import.h"
#include "nereid/compiler/transforms/fuse.h"
#include "nereid/compiler/transforms/products/contraction_operands.h"

namespace nereid::compiler {
namespace {

constexpr size_t kMinLoop = 3;            // steps
constexpr size_t kLongestStepBody = 200;  // expressions
constexpr int kTime = 0;                  // of what is made for all steps, before the dimensions of one step

// One step: the state is cell(rest + the product of the state before).
struct LoopStep {
  Cell cell = Cell::kTanh;
  NodeId node = -1, product = -1;
  TensorId before = -1;
  ExprId weight = -1;  // a factor of the product, over its dimensions
  std::vector<ExprId> rest = {};
};

class LoopRoller {
 public:
  explicit LoopRoller(Graph& graph) : graph_(graph) {}

  // One loop after another, for nodes have other numbers then.
  void run() {
    while (roll_one()) continue;
  }

 private:
  bool roll_one() {
    steps_.clear();
    for (NodeId n = 0; n < static_cast<NodeId>(graph_.nodes.size()); ++n) match(n);
    std::set<NodeId> followed;
    for (const auto& [node, step] : steps_)
      if (const auto before = before_of(step)) followed.insert(before->node);
    for (const auto& [node, step] : steps_) {
      if (followed.contains(node)) continue;
      std::vector<LoopStep> chain{step};
      while (const auto before = before_of(chain.back())) chain.push_back(*before);
      std::ranges::reverse(chain);
      if (chain.size() >= kMinLoop && roll(chain)) return true;
    }
    return false;
  }

  Exprs& exprs() { return graph_.exprs; }
  Tensor& tensor(TensorId id) { return graph_.tensors[static_cast<size_t>(id)]; }
  Node& node(NodeId id) { return graph_.nodes[static_cast<size_t>(id)]; }

  std::optional<LoopStep> before_of(const LoopStep& step) const {
    const NodeId maker = graph_.tensors[static_cast<size_t>(step.before)].node;
    const auto found = steps_.find(maker);
    if (found == steps_.end() || found->second.cell != step.cell || found->second.weight != step.weight)
      return std::nullopt;
    return found->second;
  }

  // What maps give, written out.
  ExprId expanded(ExprId body, const Extents& extents) {
    for (bool changed = true; changed && exprs().below(body).size() < kLongestStepBody;) {
      changed = false;
      body = exprs().replace_loads(body, [&](const Expr& load) -> ExprId {
        const Expr copy = load;
        const Node* maker = graph_.maker(copy.tensor);
        const bool map = maker != nullptr && !maker->special() && maker->reduction == Reduction::kNone &&
                         maker->at.empty() && copy.args.empty() && copy.type == DType::kF32;
        if (map)
          if (const auto inlined = graph_.inlined(copy, extents)) {
            changed = true;
            return *inlined;
          }
        return exprs().load(copy.tensor, copy.at, copy.type, copy.args);
      });
    }
    return body;
  }

  void terms_of(ExprId sum, std::vector<ExprId>& terms) {
    const Expr expr = exprs()[sum];
    if (expr.kind == Expr::Kind::kApply && expr.fn == Fn::kAdd) {
      terms_of(expr.args[0], terms);
      terms_of(expr.args[1], terms);
    } else {
      terms.push_back(sum);
    }
  }

  void match(NodeId n) {
    const Node& each = node(n);
    if (each.special() || each.reduction != Reduction::kNone || each.sizes.size() != 2 || !each.at.empty() ||
        tensor(each.out).type != DType::kF32)
      return;
    const Expr body = exprs()[each.body];
    if (body.kind != Expr::Kind::kApply) return;
    LoopStep step{.node = n};
    if (body.fn == Fn::kMax) {
      const Expr& zero = exprs()[body.args[1]];
      if (zero.kind != Expr::Kind::kConstant || zero.number != 0) return;
      step.cell = Cell::kRelu;
    } else if (body.fn != Fn::kTanh) {
      return;
    }
    std::vector<ExprId> terms;
    terms_of(expanded(body.args[0], each.sizes), terms);
    for (size_t i = 0; i < terms.size(); ++i) {
      if (!is_state_product(terms[i], each.sizes, step)) continue;
      step.rest = terms;
      step.rest.erase(step.rest.begin() + static_cast<ptrdiff_t>(i));
      // A product with the state of a step that is known, rather than with an input.
      const bool known = steps_.contains(tensor(step.before).node);
      if (known || !steps_.contains(n)) steps_[n] = step;
      if (known) return;
    }
  }

  // sum over k of before[d0, k] * weight[d1, k]
  bool is_state_product(ExprId term, const Extents& sizes, LoopStep& step) {
    const Expr load = exprs()[term];
    if (load.kind != Expr::Kind::kLoad || load.at != dimensions(2)) return false;
    const NodeId product = tensor(load.tensor).node;
    if (product < 0) return false;
    const Node& sum = node(product);
    if (sum.special() || sum.reduction != Reduction::kSum || sum.scan || sum.reduced.size() != 1 ||
        sum.reduced[0] != sizes[1] || sum.sizes != sizes || !sum.at.empty())
      return false;
    const Expr body = exprs()[sum.body];
    if (body.kind != Expr::Kind::kApply || body.fn != Fn::kMul) return false;
    for (const size_t side : {0, 1}) {
      const Expr &state = exprs()[body.args[side]], &weight = exprs()[body.args[1 - side]];
      if (state.kind != Expr::Kind::kLoad || weight.kind != Expr::Kind::kLoad || !weight.args.empty() ||
          tensor(weight.tensor).node >= 0 || exprs().uses(body.args[1 - side], 0))
        continue;
      if (state.at != std::vector<Index>{Index::dimension(0), Index::dimension(2)} ||
          tensor(state.tensor).sizes != sizes)
        continue;
      step.product = product, step.before = state.tensor, step.weight = body.args[1 - side];
      return true;
    }
    return false;
  }

  // ---- All steps at once: an expression over the time and the dimensions of a step. ----

  // Reductions that were made for all steps.
  struct AllSteps {
    Node node;
    TensorId out = -1;
  };

  static std::vector<Index> dims_after_time(size_t count) { return dimensions(count, kTime + 1); }

  std::optional<ExprId> for_all(ExprId first, ExprId second, const Extents& of, std::vector<AllSteps>& made) {
    const Expr a = exprs()[first], b = exprs()[second];
    Extents extents = of;
    extents.insert(extents.begin(), time_);
    if (a.kind != b.kind || a.type != b.type) return std::nullopt;
    if (a.kind == Expr::Kind::kApply) {
      if (a.fn != b.fn || a.args.size() != b.args.size()) return std::nullopt;
      std::vector<ExprId> args;
      for (size_t i = 0; i < a.args.size(); ++i) {
        const auto arg = for_all(a.args[i], b.args[i], of, made);
        if (!arg) return std::nullopt;
        args.push_back(*arg);
      }
      return a.fn == Fn::kCast ? exprs().cast(args[0], a.type) : exprs().apply(a.fn, args);
    }
    if (first == second) return exprs().substitute(first, dims_after_time(of.size()), extents);
    if (a.kind != Expr::Kind::kLoad || !a.args.empty() || !b.args.empty()) return std::nullopt;
    std::vector<Index> at;
    for (size_t d = 0; d < a.at.size(); ++d) {
      const Index far = d < b.at.size() ? b.at[d] - a.at[d] : Index::dimension(0);
      if (!far.is_constant()) return std::nullopt;
      at.push_back(substitute(a.at[d], dims_after_time(of.size()), extents) +
                   Index::dimension(kTime) * far.constant());
    }
    if (a.tensor == b.tensor) return exprs().load(a.tensor, at, a.type);
    if (a.at != b.at) return std::nullopt;
    const Node *one = graph_.maker(a.tensor), *two = graph_.maker(b.tensor);
    if (one == nullptr || two == nullptr || !is_plain_sum(*one) || !is_plain_sum(*two) ||
        one->sizes != two->sizes || one->reduced != two->reduced)
      return std::nullopt;
    Node all = *one;
    const auto body = for_all(one->body, Node(*two).body, all.extents(), made);
    if (!body) return std::nullopt;
    all.body = *body;
    all.sizes.insert(all.sizes.begin(), time_);
    all.out = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back(
        {.type = a.type, .sizes = all.sizes, .strides = row_major(all.sizes), .name = tensor(a.tensor).name});
    made.push_back({all, all.out});
    at.insert(at.begin(), Index::dimension(kTime));
    return exprs().load(all.out, at, a.type);
  }

  static bool is_plain_sum(const Node& each) {
    return !each.special() && each.reduction == Reduction::kSum && !each.scan && each.at.empty();
  }

  // Whether `all` at time t is `one`.
  bool is_at(ExprId all, ExprId one, int64_t t, const Extents& of, const std::vector<AllSteps>& made) {
    const Expr a = exprs()[all], b = exprs()[one];
    if (a.kind != b.kind || a.type != b.type) return false;
    std::vector<Index> by{Index(t)};
    for (const Index& index : dimensions(of.size())) by.push_back(index);
    const auto there = [&](const Index& index) { return substitute(index, by, of); };
    switch (a.kind) {
      case Expr::Kind::kApply:
        if (a.fn != b.fn || a.args.size() != b.args.size()) return false;
        for (size_t i = 0; i < a.args.size(); ++i)
          if (!is_at(a.args[i], b.args[i], t, of, made)) return false;
        return true;
      case Expr::Kind::kLoad: {
        const auto sum = std::ranges::find(made, a.tensor, &AllSteps::out);
        const size_t skip = sum == made.end() ? 0 : 1;
        if (!b.args.empty() || a.at.size() != b.at.size() + skip) return false;
        for (size_t d = skip; d < a.at.size(); ++d)
          if (!(there(a.at[d]) == b.at[d - skip])) return false;
        if (sum == made.end()) return a.tensor == b.tensor;
        const Node* maker = graph_.maker(b.tensor);
        if (maker == nullptr || !is_plain_sum(*maker)) return false;
        covered_.insert(maker->steps.begin(), maker->steps.end());
        Extents sizes = maker->sizes;
        sizes.insert(sizes.begin(), time_);
        return sizes == sum->node.sizes && maker->reduced == sum->node.reduced &&
               is_at(sum->node.body, maker->body, t, maker->extents(), made);
      }
      default:
        return exprs().substitute(all, by, of) == one;
    }
  }

  // ---- The recurrence in place of the steps. ----

  bool roll(const std::vector<LoopStep>& chain) {
    time_ = Size(static_cast<int64_t>(chain.size()));
    const LoopStep& first = chain.front();
    const Extents sizes = node(first.node).sizes;
    std::vector<AllSteps> made;
    covered_.clear();
    ExprId gates = -1;
    for (size_t i = 0; i < first.rest.size(); ++i) {
      std::optional<ExprId> term;
      if (chain[1].rest.size() == first.rest.size())
        term = for_all(first.rest[i], chain[1].rest[i], sizes, made);
      if (!term) return false;
      for (size_t t = 0; t < chain.size(); ++t)
        if (chain[t].rest.size() != first.rest.size() ||
            !is_at(*term, chain[t].rest[i], static_cast<int64_t>(t), sizes, made))
          return false;
      gates = gates < 0 ? *term : exprs().apply(Fn::kAdd, {gates, *term});
    }
    if (gates < 0 || !is_there(gates, first.node, made)) return false;
    insert(chain, gates, std::move(made));
    return true;
  }

  // All that is read is made before the first step.
  bool is_there(ExprId body, NodeId before, const std::vector<AllSteps>& made) {
    const auto reads = [&](ExprId of) {
      return std::ranges::all_of(exprs().below(of), [&](ExprId id) {
        const Expr& load = exprs()[id];
        return load.kind != Expr::Kind::kLoad || tensor(load.tensor).node < before;
      });
    };
    return reads(body) &&
           std::ranges::all_of(made, [&](const AllSteps& sum) { return reads(sum.node.body); });
  }

  void insert(const std::vector<LoopStep>& chain, ExprId gates, std::vector<AllSteps> made) {
    const Node first = node(chain.front().node), product = node(chain.front().product);
    std::vector<Node> before = std::move(graph_.nodes);
    graph_.nodes.clear();
    TensorId states = -1;
    for (NodeId n = 0; n < static_cast<NodeId>(before.size()); ++n) {
      if (n == chain.front().node) {
        std::set<int> steps;
        for (const LoopStep& step : chain)
          for (const NodeId of : {step.node, step.product})
            steps.insert(before[static_cast<size_t>(of)].steps.begin(),
                         before[static_cast<size_t>(of)].steps.end());
        for (AllSteps& sum : made) {
          sum.node.steps = covered_;
          append(graph_, std::move(sum.node));
        }
        states = add_recurrence(chain, first, product, gates, steps);
      }
      const auto step = std::ranges::find(chain, n, &LoopStep::node);
      if (step != chain.end()) {
        const Index after(step - chain.begin() + 1);
        before[static_cast<size_t>(n)].body =
            exprs().load(states, {after, Index::dimension(0), Index::dimension(1)}, DType::kF32);
      }
      append(graph_, std::move(before[static_cast<size_t>(n)]));
    }
    for (Node& each : graph_.nodes)
      if (!each.special() && each.reduction == Reduction::kNone) join_states(each, states);
  }

  TensorId add_recurrence(const std::vector<LoopStep>& chain, const Node& first, const Node& product,
                          ExprId gates, const std::set<int>& steps) {
    const Size batch = first.sizes[0], hidden = first.sizes[1];
    const auto map = [&](const Extents& sizes, ExprId body, const char* name) {
      Node made{.sizes = sizes, .body = body, .name = name, .place = first.place, .steps = steps};
      return append(graph_, std::move(made), DType::kF32);
    };
    Recurrence of{.cell = chain.front().cell, .steps = time_, .batch = batch, .hidden = hidden};
    of.gates = map({time_, batch, hidden}, gates, "rnn_input_gates");
    const Expr weight = exprs()[chain.front().weight];
    const Tensor& u = tensor(weight.tensor);
    if (weight.at == std::vector<Index>{Index::dimension(1), Index::dimension(2)} && u.shift == 0 &&
        u.sizes == Extents{hidden, hidden} && u.strides == row_major(u.sizes))
      of.weight = weight.tensor;
    else
      of.weight =
          map({hidden, hidden},
              exprs().substitute(chain.front().weight, {Index(), Index::dimension(0), Index::dimension(1)},
                                 {hidden, hidden}),
              "hidden_weight");
    of.start =
        map({batch, hidden}, exprs().load(chain.front().before, dimensions(2), DType::kF32), "first_hidden");
    ExprId reads = exprs().constant(0);  // the body names what is read
    for (const TensorId id : {of.gates, of.weight, of.start})
      reads = exprs().apply(
          Fn::kAdd, {reads, exprs().load(id, std::vector<Index>(tensor(id).sizes.size()), DType::kF32)});
    Node all{.sizes = {time_ + 1, batch, hidden}, .body = reads, .name = "rnn", .place = first.place};
    all.steps = steps;
    all.tf32 = product.tf32, all.under_flag = product.under_flag;
    all.whole = true;
    of.arrived = static_cast<TensorId>(graph_.tensors.size());
    graph_.tensors.push_back({.type = DType::kI32, .sizes = {batch}, .strides = {1}, .name = "rnn_arrived"});
    all.outs = {of.arrived};
    all.recurrence = of;
    return append(graph_, std::move(all), DType::kF32);
  }

  // where(d < 1, states[1], where(d < 2, states[2], ...)) is states[d + 1].
  void join_states(Node& each, TensorId states) {
    ExprId left = each.body;
    std::optional<int> axis;
    std::vector<Index> at, step;
    for (int64_t t = 0;; ++t) {
      const Expr choice = exprs()[left];
      const bool last = choice.kind == Expr::Kind::kLoad;
      if (!last) {
        if (choice.kind != Expr::Kind::kApply || choice.fn != Fn::kWhere) return;
        const Expr& within = exprs()[choice.args[0]];
        if (within.kind != Expr::Kind::kWithin || within.low != 0 || within.high != t + 1 ||
            within.index.terms().size() != 1 || within.index.constant() != 0 ||
            within.index.terms()[0].first.kind != Atom::Kind::kDimension)
          return;
        const int own = within.index.terms()[0].first.dimension;
        if (axis.value_or(own) != own) return;
        axis = own;
      }
      Expr load = exprs()[last ? left : choice.args[1]];
      if (load.kind != Expr::Kind::kLoad || !load.args.empty()) return;
      if (const Node* maker = graph_.maker(load.tensor);
          maker != nullptr && !maker->special() && exprs()[maker->body].kind == Expr::Kind::kLoad)
        if (const auto copied = graph_.inlined(load, each.sizes)) load = exprs()[*copied];
      if (load.tensor != states) return;
      for (size_t d = 0; d < load.at.size(); ++d) {
        if (t == 0) at.push_back(load.at[d]);
        const Index far = load.at[d] - at[d];
        if (t == 1) step.push_back(far);
        if (!far.is_constant() || (t > 0 && !(far == step[d] * t))) return;
      }
      if (!last) {
        left = choice.args[2];
        continue;
      }
      if (t == 0 || !axis || each.sizes[static_cast<size_t>(*axis)] != t + 1) return;
      for (size_t d = 0; d < at.size(); ++d) at[d] = at[d] + Index::dimension(*axis) * step[d].constant();
      each.body = exprs().load(states, at, load.type);
      return;
    }
  }

  Graph& graph_;
  std::map<NodeId, LoopStep> steps_ = {};
  Size time_ = 1;
  std::set<int> covered_ = {};  // steps of the forward whose sums are made for all steps of the loop
};

}  // namespace

void roll_loops(Graph& graph) { LoopRoller(graph).run(); }

}  // namespace nereid::compiler
