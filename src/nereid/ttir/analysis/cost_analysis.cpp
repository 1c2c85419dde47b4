#include "nereid/ttir/analysis/cost_analysis.h"

#include <algorithm>

#include "nereid/ttir/analysis/cost.h"
#include "nereid/ttir/analysis/cost_walk.h"
#include "nereid/ttir/exec/lowering/lowering.h"

namespace nereid::ttir {
namespace cost_walk {
namespace {

constexpr int64_t kMaxSteps = 400'000;  // operations looked at, over all cuts of the grid
constexpr size_t kMaxCuts = 48;
constexpr int64_t kMaxUnrolled = 64;

}  // namespace

void Walk::run(const Function& kernel, const std::vector<BoundArgument>& arguments) {
  Scope root;
  for (int axis = 0; axis < 3; ++axis) {
    const auto [low, high] = programs_[static_cast<size_t>(axis)];
    const Expr p = atoms_.variable(AtomKind::kProgram, axis, high - low + 1);
    program_[static_cast<size_t>(axis)] = plus(p, number(low));
    for (const auto& [id, factor] : p.terms) root.variables.push_back(id);
  }
  for (size_t k = 0; k < kernel.parameters.size(); ++k) {
    env_[kernel.parameters[k]] = bound(module_.type(kernel.parameters[k]), arguments[k]);
    prologue_.insert(kernel.parameters[k]);
  }
  root_ = &root;
  blocks(kernel.body, 0, root, nullptr, 0);
  finish(root);
}

double Walk::points(const Scope& s, const std::vector<AtomId>& more, const Truth* mask) {
  std::vector<AtomId> variables = s.variables;
  variables.insert(variables.end(), more.begin(), more.end());
  const Truth where = mask == nullptr ? s.path : both(atoms_, s.path, *mask);
  if (!where.known) throw TooComplex{"a condition that is not affine"};
  double sum = 0;
  for (const Conjunction& c : where.any) sum += count_points(atoms_, variables, c);
  return sum;
}

void Walk::finish(const Scope& s) {
  if (s.flops != 0 && probing_ == 0) flops += s.flops * points(s);
}

Scope Walk::inside(const Scope& s, const Truth& condition) {
  Scope inner;
  inner.path = both(atoms_, s.path, condition);
  inner.variables = s.variables;
  return inner;
}

std::vector<AtomId> Walk::lanes_of(const std::vector<int64_t>& shape) {
  std::vector<AtomId> lanes;
  for (size_t d = 0; d < shape.size(); ++d)
    for (const auto& [id, factor] : atoms_.lane(static_cast<int>(d), shape[d]).terms) lanes.push_back(id);
  return lanes;
}

void Walk::access(const Scope& s, const AbstractValue& pointer, const Truth& mask,
                  const std::vector<int64_t>& shape, int64_t bytes, bool reads, bool writes) {
  if (probing_ != 0) return;
  const auto lanes = lanes_of(shape);
  std::vector<AtomId> variables = s.variables;
  variables.insert(variables.end(), lanes.begin(), lanes.end());
  if (pointer.kind == AbstractValue::Kind::kPointer && pointer.buffer < 0) return;
  const Truth where = both(atoms_, s.path, mask);
  if (pointer.kind == AbstractValue::Kind::kPointer && where.known) try {
      std::vector<Lattice> found;
      for (const Piece& piece : pointer.pieces)
        for (Conjunction c : where.any) {
          c.insert(c.end(), piece.when.begin(), piece.when.end());
          const Truth t = simplified(atoms_, Truth{true, false, {std::move(c)}});
          if (t.is_never()) continue;
          auto more = footprint(atoms_, variables, piece.value, bytes, t.any[0]);
          found.insert(found.end(), more.begin(), more.end());
        }
      Traffic& t = traffic[pointer.buffer];
      if (reads) t.read.insert(t.read.end(), found.begin(), found.end());
      if (writes) t.written.insert(t.written.end(), found.begin(), found.end());
      return;
    } catch (const TooComplex&) {
    }
  if (pointer.buffer < 0) throw Unknowable{"an address that may be in any buffer"};
  double all = static_cast<double>(bytes);
  try {
    all *= points(s, lanes, mask.known ? &mask : nullptr);
  } catch (const TooComplex&) {
    for (const AtomId id : variables) all *= static_cast<double>(atoms_[id].bounds.high + 1);
  }
  Traffic& t = traffic[pointer.buffer];
  if (reads) t.unknown_read += all;
  if (writes) t.unknown_written += all;
}

void Walk::descriptor_access(const Scope& s, const Op& op) {
  const AbstractValue& d = value(op.operands[0]);
  if (d.kind != AbstractValue::Kind::kDescriptor) throw Unknowable{"a descriptor that may be any"};
  if (op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter)
    throw Unknowable{"rows of a descriptor by data"};
  const Type& block = module_.type(op.operands[0]);
  const int64_t bytes = elem_bytes(block.pointee);
  Expr address = d.descriptor->base;
  Truth mask = Truth::always();
  bool exact = true, by_data = false;
  for (size_t k = 0; k < block.shape.size(); ++k) {
    const AbstractValue& at = value(op.operands[1 + k]);
    const Expr* first = at.single();
    if (first == nullptr) {
      exact = false, by_data = by_data || at.by_data;
      continue;
    }
    const Expr index = plus(*first, atoms_.lane(static_cast<int>(k), block.shape[k]));
    address = plus(address, index, d.descriptor->strides[k] * bytes);
    mask =
        both(atoms_, mask,
             simplified(atoms_,
                        {true, false, {{index, plus(plus(d.descriptor->shape[k], number(-1)), index, -1)}}}));
  }
  const bool loads = op.kind == OpKind::kDescriptorLoad, reduces = op.kind == OpKind::kDescriptorReduce;
  access(s, exact ? one_pointer(d.descriptor->buffer, address) : unknown(by_data, d.descriptor->buffer), mask,
         block.shape, bytes, loads || reduces, !loads);
}

void Walk::memory(const Scope& s, const Op& op) {
  const bool reads = op.kind != OpKind::kStore, writes = op.kind != OpKind::kLoad;
  const size_t mask_at = op.kind == OpKind::kLoad ? 1 : op.kind == OpKind::kAtomicCas ? SIZE_MAX : 2;
  const Type& type = module_.type(op.operands[0]);
  Truth mask = Truth::always();
  if (mask_at < op.operands.size()) {
    const AbstractValue& m = value(op.operands[mask_at]);
    mask = m.kind == AbstractValue::Kind::kTruth ? m.truth : Truth::unknown(m.by_data);
  }
  access(s, value(op.operands[0]), mask, type.shape, elem_bytes(type.pointee), reads, writes);
  for (const ValueId r : op.results) env_[r] = unknown(true);
}

void Walk::blocks(const Region& region, size_t at, Scope& s,
                  std::vector<std::vector<AbstractValue>>* returned, int depth) {
  if (depth > 64) throw Unknowable{"too many blocks one after the other"};
  const Block& block = region.blocks[at];
  for (const Op& op : block.ops) {
    if (op.kind == OpKind::kReturn) {
      if (returned != nullptr) returned->push_back(values(op.operands));
      return;
    }
    if (op.kind != OpKind::kBr && op.kind != OpKind::kCondBr) {
      operation(op, s);
      continue;
    }
    const auto go = [&](const Successor& to, Scope& scope) {
      const Block& next = region.blocks[static_cast<size_t>(to.block)];
      for (size_t k = 0; k < to.arguments.size(); ++k) env_[next.arguments[k]] = value(to.arguments[k]);
      blocks(region, static_cast<size_t>(to.block), scope, returned, depth + 1);
    };
    if (op.kind == OpKind::kBr) return go(op.successors[0], s);
    const Truth t = condition(op.operands[0]);
    if (t.is_always()) return go(op.successors[0], s);
    if (t.is_never()) return go(op.successors[1], s);
    for (int side = 0; side < 2; ++side) {
      Scope inner = inside(s, side == 0 ? t : negated(atoms_, t));
      go(op.successors[static_cast<size_t>(side)], inner);
      finish(inner);
    }
    return;
  }
}

Truth Walk::condition(ValueId v) {
  const AbstractValue& k = value(v);
  if (k.kind == AbstractValue::Kind::kTruth) return k.truth;
  throw Unknowable{k.by_data ? "a branch that depends on what is loaded" : "a branch that is not affine"};
}

std::vector<AbstractValue> Walk::body(const Block& block, Scope& s,
                                      const std::unordered_set<const Op*>* hoisted, Scope* outside) {
  for (const Op& op : block.ops) {
    if (op.kind == OpKind::kScfYield) return values(op.operands);
    operation(op, hoisted != nullptr && hoisted->count(&op) != 0 ? *outside : s);
  }
  return {};
}

void Walk::if_op(const Op& op, Scope& s) {
  const AbstractValue& c = value(op.operands[0]);
  Truth t;
  if (c.kind == AbstractValue::Kind::kTruth)
    t = c.truth;
  else if (probing_ == 0)
    t = condition(op.operands[0]);
  else
    t = Truth::unknown(c.by_data);
  const bool has_else = op.regions.size() > 1 && !op.regions[1].blocks.empty();
  if (t.is_always() || t.is_never()) {
    std::vector<AbstractValue> results;
    if (t.is_always())
      results = body(op.regions[0].blocks[0], s);
    else if (has_else)
      results = body(op.regions[1].blocks[0], s);
    for (size_t k = 0; k < op.results.size(); ++k)
      env_[op.results[k]] = k < results.size() ? results[k] : unknown();
    return;
  }
  std::vector<AbstractValue> sides[2];
  for (int side = 0; side < (has_else ? 2 : 1); ++side) {
    Scope inner = t.known ? inside(s, side == 0 ? t : negated(atoms_, t)) : s;
    inner.flops = 0;
    if (inner.path.is_never()) continue;
    sides[side] = body(op.regions[static_cast<size_t>(side)].blocks[0], inner);
    finish(inner);
  }
  for (size_t k = 0; k < op.results.size(); ++k) {
    const AbstractValue a = k < sides[0].size() ? sides[0][k] : unknown(),
                        b = k < sides[1].size() ? sides[1][k] : unknown();
    env_[op.results[k]] = chosen(t, a, b);
  }
}

Walk::Loop Walk::loop_of(const Op& op) {
  Loop l;
  const AbstractValue &low = value(op.operands[0]), &high = value(op.operands[1]),
                      &step = value(op.operands[2]);
  const Expr *a = low.single(), *b = high.single(), *c = step.single();
  if (a == nullptr || b == nullptr || c == nullptr)
    throw Unknowable{low.by_data || high.by_data || step.by_data ? "a loop as long as what is loaded says"
                                                                 : "a loop whose length is not affine"};
  if (!c->constant() || c->base <= 0) throw Unknowable{"a loop whose step is no number"};
  l.first = *a;
  l.step = c->base;
  const Expr span = plus(*b, *a, -1);
  const Bounds s = atoms_.bounds(span);
  if (s.high <= 0) return l.constant = true, l.trips = number(0), l;
  l.most = floor_div(s.high + l.step - 1, l.step);
  const int64_t least = std::max<int64_t>(0, floor_div(s.low + l.step - 1, l.step));
  l.constant = least == l.most;
  if (l.constant)
    l.trips = number(l.most);
  else if (s.low + l.step - 1 >= 0)
    l.trips = atoms_.quotient(plus(span, number(l.step - 1)), l.step);
  l.counter = atoms_.variable(AtomKind::kLoop, 0, l.most);
  if (!l.constant)
    l.inside = simplified(atoms_, {true, false, {{plus(plus(span, number(-1)), l.counter, -l.step)}}});
  return l;
}

void Walk::for_op(const Op& op, Scope& s) {
  const Block& block = op.regions[0].blocks[0];
  std::unordered_set<const Op*> hoisted = hoisted_from(block);
  Loop l;
  try {
    l = loop_of(op);
  } catch (const Unknowable&) {
    if (probing_ == 0) throw;
    for (const ValueId r : op.results) env_[r] = unknown();
    return;
  }
  std::vector<AbstractValue> inits = values({op.operands.begin() + 3, op.operands.end()});
  if (l.most == 0) {
    for (const Op* o : hoisted) s.flops += flops_of(module_, *o);
    for (size_t k = 0; k < op.results.size(); ++k) env_[op.results[k]] = inits[k];
    return;
  }
  std::vector<std::optional<Expr>> growth(inits.size());
  const bool affine = find_growth(op, block, l, s, inits, growth);
  if (!affine && l.constant && l.most <= kMaxUnrolled) return unroll(op, block, l, s, inits, hoisted);
  Scope inner = inside(s, l.inside);
  for (const auto& [id, factor] : l.counter.terms) inner.variables.push_back(id);
  env_[block.arguments[0]] = one_number(plus(l.first, l.counter, l.step));
  for (size_t k = 0; k < inits.size(); ++k) {
    AbstractValue v = unknown(inits[k].by_data, inits[k].buffer);
    if (growth[k]) {
      v = inits[k];
      for (Piece& p : v.pieces) p.value = plus(p.value, grown(*growth[k], l.counter));
    }
    env_[block.arguments[k + 1]] = v;
  }
  const auto yields = body(block, inner, &hoisted, &s);
  finish(inner);
  for (size_t k = 0; k < inits.size(); ++k) {
    AbstractValue v = unknown(inits[k].by_data || (k < yields.size() && yields[k].by_data), inits[k].buffer);
    if (growth[k] && (l.trips || (growth[k]->constant() && growth[k]->base == 0))) {
      v = inits[k];
      for (Piece& p : v.pieces) p.value = plus(p.value, l.trips ? grown(*growth[k], *l.trips) : number(0));
    }
    env_[op.results[k]] = v;
  }
}

bool Walk::find_growth(const Op& op, const Block& block, const Loop& l, const Scope& s,
                       const std::vector<AbstractValue>& inits, std::vector<std::optional<Expr>>& growth) {
  std::vector<std::optional<Expr>> symbols(inits.size());
  bool any = false;
  env_[block.arguments[0]] = one_number(plus(l.first, l.counter, l.step));
  for (size_t k = 0; k < inits.size(); ++k) {
    const bool number_like =
        (inits[k].kind == AbstractValue::Kind::kNumber || inits[k].kind == AbstractValue::Kind::kPointer) &&
        !is_float(module_.type(op.results[k]).elem);
    if (number_like) {
      symbols[k] = atoms_.symbol();
      AbstractValue v = inits[k];
      v.pieces = {{{}, *symbols[k]}};
      env_[block.arguments[k + 1]] = v;
      any = true;
    } else {
      env_[block.arguments[k + 1]] = unknown(inits[k].by_data, inits[k].buffer);
    }
  }
  if (!any) return true;
  ++probing_;
  Scope scratch = s;
  scratch.path = Truth::always();
  const auto yields = body(block, scratch);
  --probing_;
  bool affine = true;
  for (size_t k = 0; k < inits.size(); ++k) {
    if (!symbols[k]) continue;
    const Expr* y = k < yields.size() ? yields[k].single() : nullptr;
    if (y != nullptr && yields[k].buffer == inits[k].buffer) {
      const Expr d = plus(*y, *symbols[k], -1);
      bool fixed = true;
      atoms_.for_each_variable(d, [&](AtomId id) {
        fixed = fixed && atoms_[id].kind != AtomKind::kSymbol &&
                std::none_of(l.counter.terms.begin(), l.counter.terms.end(),
                             [&](const auto& t) { return t.first == id; });
      });
      if (fixed && (d.constant() || l.most <= 1)) {
        growth[k] = d;
        continue;
      }
    }
    affine = false;
  }
  return affine;
}

void Walk::unroll(const Op& op, const Block& block, const Loop& l, Scope& s,
                  std::vector<AbstractValue> carried, const std::unordered_set<const Op*>& hoisted) {
  Scope scratch = s;
  for (int64_t turn = 0; turn < l.most; ++turn) {
    env_[block.arguments[0]] = one_number(plus(l.first, number(turn * l.step)));
    for (size_t k = 0; k < carried.size(); ++k) env_[block.arguments[k + 1]] = carried[k];
    carried = body(block, s, turn == 0 ? nullptr : &hoisted, &scratch);
    carried.resize(op.results.size());
  }
  for (size_t k = 0; k < op.results.size(); ++k) env_[op.results[k]] = carried[k];
}

std::unordered_set<const Op*> Walk::hoisted_from(const Block& block) {
  std::unordered_set<ValueId> inside(block.arguments.begin(), block.arguments.end());
  std::unordered_set<const Op*> hoisted;
  for (const Op& op : block.ops) {
    const bool outside =
        std::none_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return inside.count(v) != 0; });
    if (hoistable(op) && outside)
      hoisted.insert(&op);
    else
      inside.insert(op.results.begin(), op.results.end());
  }
  return hoisted;
}

void Walk::call_op(const Op& op, Scope& s) {
  const Function* callee = module_.find(op.text("callee"));
  if (callee == nullptr || callee->body.blocks.empty() || ++calls_ > 64) throw Unknowable{"a call"};
  for (size_t k = 0; k < callee->parameters.size(); ++k) env_[callee->parameters[k]] = value(op.operands[k]);
  std::vector<std::vector<AbstractValue>> returned;
  blocks(callee->body, 0, s, &returned, 0);
  --calls_;
  for (size_t k = 0; k < op.results.size(); ++k)
    env_[op.results[k]] = returned.size() == 1 && k < returned[0].size() ? returned[0][k] : unknown();
}

std::vector<AbstractValue> Walk::values(const std::vector<ValueId>& ids) {
  std::vector<AbstractValue> all;
  for (const ValueId v : ids) all.push_back(env_[v]);
  return all;
}

void Walk::operation(const Op& op, Scope& s) {
  if (++steps_ > kMaxSteps) throw Unknowable{"a kernel of too many steps"};
  bool early = hoistable(op);
  for (const ValueId v : op.operands) early = early && prologue_.count(v) != 0;
  if (early) prologue_.insert(op.results.begin(), op.results.end());
  if (probing_ == 0) (early ? *root_ : s).flops += flops_of(module_, op);
  switch (op.kind) {
    case OpKind::kScfIf:
      return if_op(op, s);
    case OpKind::kScfFor:
      return for_op(op, s);
    case OpKind::kScfWhile:
      throw Unknowable{"a loop that ends by a condition"};
    case OpKind::kCall:
      return call_op(op, s);
    case OpKind::kLoad:
    case OpKind::kStore:
    case OpKind::kAtomicRmw:
    case OpKind::kAtomicCas:
      return memory(s, op);
    case OpKind::kDescriptorLoad:
    case OpKind::kDescriptorStore:
    case OpKind::kDescriptorReduce:
    case OpKind::kDescriptorGather:
    case OpKind::kDescriptorScatter:
      if (probing_ == 0) descriptor_access(s, op);
      for (const ValueId r : op.results) env_[r] = unknown(true);
      return;
    case OpKind::kIntToPtr:
      throw Unknowable{"a pointer made from a number"};
    default:
      break;
  }
  if (op.results.empty()) return;
  try {
    env_[op.results[0]] = pure(op);
  } catch (const TooComplex&) {
    const AbstractValue& a = op.operands.empty() ? AbstractValue{} : value(op.operands[0]);
    env_[op.results[0]] = unknown(a.by_data, op.kind == OpKind::kAddptr ? a.buffer : -1);
  }
  for (size_t k = 1; k < op.results.size(); ++k) env_[op.results[k]] = unknown(value(op.operands[0]).by_data);
}

}  // namespace cost_walk

CostAnalysis analyze_cost(const Module& module, const Function& kernel, const Launch& launch,
                          const std::vector<BoundArgument>& arguments) {
  CostAnalysis result;
  std::array<symbolic::Bounds, 3> all;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] <= 0) return result;
    all[axis] = {0, launch.grid[axis] - 1};
  }
  std::vector<std::array<symbolic::Bounds, 3>> work{all};
  std::map<int64_t, cost_walk::Traffic> traffic;
  int64_t steps = 0;
  size_t cuts = 0;
  try {
    while (!work.empty()) {
      const auto box = work.back();
      work.pop_back();
      cost_walk::Walk walk(module, launch, box, steps, cuts < cost_walk::kMaxCuts);
      try {
        walk.run(kernel, arguments);
      } catch (const cost_walk::Cut& cut) {
        ++cuts;
        const auto axis = static_cast<size_t>(cut.axis);
        work.push_back(box), work.back()[axis].low = cut.at;
        work.push_back(box), work.back()[axis].high = cut.at - 1;
        continue;
      }
      result.flops += walk.flops;
      for (auto& [buffer, t] : walk.traffic) {
        auto& sum = traffic[buffer];
        sum.read.insert(sum.read.end(), t.read.begin(), t.read.end());
        sum.written.insert(sum.written.end(), t.written.begin(), t.written.end());
        sum.unknown_read += t.unknown_read, sum.unknown_written += t.unknown_written;
      }
    }
  } catch (const cost_walk::Unknowable& u) {
    result.unknown = u.why;
    return result;
  } catch (const symbolic::TooComplex& t) {
    result.unknown = t.why;
    return result;
  }
  for (auto& [buffer, t] : traffic)
    result.buffers[buffer] = {symbolic::distinct_bytes(std::move(t.read)),
                              symbolic::distinct_bytes(std::move(t.written)), t.unknown_read,
                              t.unknown_written};
  return result;
}

}  // namespace nereid::ttir
