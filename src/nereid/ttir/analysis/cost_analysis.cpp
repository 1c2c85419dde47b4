#include "nereid/ttir/analysis/cost_analysis.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "nereid/ttir/analysis/cost.h"
#include "nereid/ttir/exec/elementwise/elementwise.h"
#include "nereid/ttir/exec/lowering/lowering.h"

namespace nereid::ttir {
namespace {

using namespace symbolic;

constexpr int64_t kMostSteps = 400'000;  // operations looked at, over all cuts of the grid
constexpr size_t kMostCuts = 48, kMostPieces = 8;
constexpr int64_t kMostUnrolled = 64;

struct Piece {
  Conjunction when;
  Expr value;
};
struct DescriptorValue;

// What is known of a value. A tile's lanes are variables by dimension.
struct Known {
  enum class Kind : uint8_t { kUnknown, kNumber, kPointer, kTruth, kDescriptor } kind = Kind::kUnknown;
  bool by_data = false;  // unknown: it depends on what is loaded
  int64_t buffer = -1;   // of a pointer, even where its offset is unknown
  std::vector<Piece>
      pieces{};  // of a number or pointer (bytes from the buffer's start), of which one applies
  Truth truth{};
  std::shared_ptr<const DescriptorValue> descriptor{};

  bool is_number() const { return kind == Kind::kNumber; }
  const Expr* single() const {
    return (kind == Kind::kNumber || kind == Kind::kPointer) && pieces.size() == 1 && pieces[0].when.empty()
               ? &pieces[0].value
               : nullptr;
  }
};
struct DescriptorValue {
  int64_t buffer = -1;
  Expr base;
  std::vector<Expr> shape;
  std::vector<int64_t> strides;
};

Known unknown(bool by_data = false, int64_t buffer = -1) {
  Known k;
  k.by_data = by_data, k.buffer = buffer;
  return k;
}
Known one_number(Expr e) {
  Known k;
  k.kind = Known::Kind::kNumber;
  k.pieces = {{{}, std::move(e)}};
  return k;
}
Known one_pointer(int64_t buffer, Expr e) {
  Known k = one_number(std::move(e));
  k.kind = Known::Kind::kPointer;
  k.buffer = buffer;
  return k;
}
Known one_truth(Truth t) {
  Known k;
  if (!t.known) return unknown(t.by_data);
  k.kind = Known::Kind::kTruth;
  k.truth = std::move(t);
  return k;
}

// The grid must be cut before this program of an axis.
struct Cut {
  int axis;
  int64_t at;
};
// Nothing can be said.
struct Unknowable {
  const char* why;
};

// Where an operation runs: the loops around it and on what conditions.
struct Scope {
  Truth path = Truth::always();
  std::vector<AtomId> variables;  // programs and loops
  double flops = 0;               // of one run
};

struct Traffic {
  std::vector<Lattice> read, written;
  double unknown_read = 0, unknown_written = 0;
};

// One box of programs.
class Walk {
 public:
  Walk(const Module& module, const Launch& launch, const std::array<Bounds, 3>& programs, int64_t& steps,
       bool may_cut)
      : module_(module), launch_(launch), programs_(programs), steps_(steps), may_cut_(may_cut) {}

  void run(const Function& kernel, const std::vector<BoundArgument>& arguments) {
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

  double flops = 0;
  std::map<int64_t, Traffic> traffic;

 private:
  Known bound(const Type& type, const BoundArgument& a) {
    if (type.elem == Elem::kDescriptor) {
      if (!a.is_descriptor) return unknown();
      auto d = std::make_shared<DescriptorValue>();
      d->buffer = buffer_of(a.descriptor.base);
      d->base = number(offset_of(a.descriptor.base));
      for (int k = 0; k < a.descriptor.rank; ++k) {
        d->shape.push_back(number(a.descriptor.shape[static_cast<size_t>(k)]));
        d->strides.push_back(a.descriptor.strides[static_cast<size_t>(k)]);
      }
      Known v;
      v.kind = Known::Kind::kDescriptor;
      v.descriptor = std::move(d);
      return v;
    }
    if (type.elem == Elem::kPointer)
      return buffer_of(a.bits) < 0 ? one_pointer(-1, number(0))
                                   : one_pointer(buffer_of(a.bits), number(offset_of(a.bits)));
    if (type.elem == Elem::kI1) return one_truth(a.bits != 0 ? Truth::always() : Truth::never());
    if (is_integer(type.elem)) return one_number(number(a.bits));
    return unknown();
  }

  // ---- scopes

  double points(const Scope& s, const std::vector<AtomId>& more = {}, const Truth* mask = nullptr) {
    std::vector<AtomId> variables = s.variables;
    variables.insert(variables.end(), more.begin(), more.end());
    const Truth where = mask == nullptr ? s.path : both(atoms_, s.path, *mask);
    if (!where.known) throw TooHard{"a condition that is not affine"};
    double sum = 0;
    for (const Conjunction& c : where.any) sum += count_points(atoms_, variables, c);
    return sum;
  }
  void finish(const Scope& s) {
    if (s.flops != 0 && probing_ == 0) flops += s.flops * points(s);
  }
  Scope inside(const Scope& s, const Truth& condition) {
    Scope inner;
    inner.path = both(atoms_, s.path, condition);
    inner.variables = s.variables;
    return inner;
  }

  // ---- accesses

  std::vector<AtomId> lanes_of(const std::vector<int64_t>& shape) {
    std::vector<AtomId> lanes;
    for (size_t d = 0; d < shape.size(); ++d)
      for (const auto& [id, factor] : atoms_.lane(static_cast<int>(d), shape[d]).terms) lanes.push_back(id);
    return lanes;
  }

  void access(const Scope& s, const Known& pointer, const Truth& mask, const std::vector<int64_t>& shape,
              int64_t bytes, bool reads, bool writes) {
    if (probing_ != 0) return;
    const auto lanes = lanes_of(shape);
    std::vector<AtomId> variables = s.variables;
    variables.insert(variables.end(), lanes.begin(), lanes.end());
    if (pointer.kind == Known::Kind::kPointer && pointer.buffer < 0) return;
    const Truth where = both(atoms_, s.path, mask);
    if (pointer.kind == Known::Kind::kPointer && where.known) try {
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
      } catch (const TooHard&) {
      }
    if (pointer.buffer < 0) throw Unknowable{"an address that may be in any buffer"};
    double all = static_cast<double>(bytes);
    try {
      all *= points(s, lanes, mask.known ? &mask : nullptr);
    } catch (const TooHard&) {
      for (const AtomId id : variables) all *= static_cast<double>(atoms_[id].bounds.high + 1);
    }
    Traffic& t = traffic[pointer.buffer];
    if (reads) t.unknown_read += all;
    if (writes) t.unknown_written += all;
  }

  void descriptor_access(const Scope& s, const Op& op) {
    const Known& d = value(op.operands[0]);
    if (d.kind != Known::Kind::kDescriptor) throw Unknowable{"a descriptor that may be any"};
    if (op.kind == OpKind::kDescriptorGather || op.kind == OpKind::kDescriptorScatter)
      throw Unknowable{"rows of a descriptor by data"};
    const Type& block = module_.type(op.operands[0]);
    const int64_t bytes = elem_bytes(block.pointee);
    Expr address = d.descriptor->base;
    Truth mask = Truth::always();
    bool exact = true, by_data = false;
    for (size_t k = 0; k < block.shape.size(); ++k) {
      const Known& at = value(op.operands[1 + k]);
      const Expr* first = at.single();
      if (first == nullptr) {
        exact = false, by_data = by_data || at.by_data;
        continue;
      }
      const Expr index = plus(*first, atoms_.lane(static_cast<int>(k), block.shape[k]));
      address = plus(address, index, d.descriptor->strides[k] * bytes);
      mask = both(
          atoms_, mask,
          simplified(atoms_,
                     {true, false, {{index, plus(plus(d.descriptor->shape[k], number(-1)), index, -1)}}}));
    }
    const bool loads = op.kind == OpKind::kDescriptorLoad, reduces = op.kind == OpKind::kDescriptorReduce;
    access(s, exact ? one_pointer(d.descriptor->buffer, address) : unknown(by_data, d.descriptor->buffer),
           mask, block.shape, bytes, loads || reduces, !loads);
  }

  void memory(const Scope& s, const Op& op) {
    const bool reads = op.kind != OpKind::kStore, writes = op.kind != OpKind::kLoad;
    const size_t mask_at = op.kind == OpKind::kLoad ? 1 : op.kind == OpKind::kAtomicCas ? SIZE_MAX : 2;
    const Type& type = module_.type(op.operands[0]);
    Truth mask = Truth::always();
    if (mask_at < op.operands.size()) {
      const Known& m = value(op.operands[mask_at]);
      mask = m.kind == Known::Kind::kTruth ? m.truth : Truth::unknown(m.by_data);
    }
    access(s, value(op.operands[0]), mask, type.shape, elem_bytes(type.pointee), reads, writes);
    for (const ValueId r : op.results) env_[r] = unknown(true);
  }

  // ---- control

  // How a function or the kernel ends: null where it returns, what it returned in `returned`.
  void blocks(const Region& region, size_t at, Scope& s, std::vector<std::vector<Known>>* returned,
              int depth) {
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

  Truth condition(ValueId v) {
    const Known& k = value(v);
    if (k.kind == Known::Kind::kTruth) return k.truth;
    throw Unknowable{k.by_data ? "a branch that depends on what is loaded" : "a branch that is not affine"};
  }

  // The values that a region's block hands on; runs it.
  std::vector<Known> body(const Block& block, Scope& s,
                          const std::unordered_set<const Op*>* hoisted = nullptr, Scope* outside = nullptr) {
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::kScfYield) return values(op.operands);
      operation(op, hoisted != nullptr && hoisted->count(&op) != 0 ? *outside : s);
    }
    return {};
  }

  void if_op(const Op& op, Scope& s) {
    const Known& c = value(op.operands[0]);
    Truth t;
    if (c.kind == Known::Kind::kTruth)
      t = c.truth;
    else if (probing_ == 0)
      t = condition(op.operands[0]);
    else
      t = Truth::unknown(c.by_data);
    const bool has_else = op.regions.size() > 1 && !op.regions[1].blocks.empty();
    if (t.is_always() || t.is_never()) {
      std::vector<Known> results;
      if (t.is_always())
        results = body(op.regions[0].blocks[0], s);
      else if (has_else)
        results = body(op.regions[1].blocks[0], s);
      for (size_t k = 0; k < op.results.size(); ++k)
        env_[op.results[k]] = k < results.size() ? results[k] : unknown();
      return;
    }
    std::vector<Known> sides[2];
    for (int side = 0; side < (has_else ? 2 : 1); ++side) {
      Scope inner = t.known ? inside(s, side == 0 ? t : negated(atoms_, t)) : s;
      inner.flops = 0;
      if (inner.path.is_never()) continue;
      sides[side] = body(op.regions[static_cast<size_t>(side)].blocks[0], inner);
      finish(inner);
    }
    for (size_t k = 0; k < op.results.size(); ++k) {
      const Known a = k < sides[0].size() ? sides[0][k] : unknown(),
                  b = k < sides[1].size() ? sides[1][k] : unknown();
      env_[op.results[k]] = chosen(t, a, b);
    }
  }

  struct Loop {
    Expr first, counter;  // counter: an atom, or a number
    int64_t step = 1, most = 0;
    bool constant = false;  // as often for all
    Truth inside = Truth::always();
    std::optional<Expr> trips;
  };

  Loop loop_of(const Op& op) {
    Loop l;
    const Known &low = value(op.operands[0]), &high = value(op.operands[1]), &step = value(op.operands[2]);
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

  void for_op(const Op& op, Scope& s) {
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
    std::vector<Known> inits = values({op.operands.begin() + 3, op.operands.end()});
    if (l.most == 0) {
      for (const Op* o : hoisted) s.flops += flops_of(module_, *o);
      for (size_t k = 0; k < op.results.size(); ++k) env_[op.results[k]] = inits[k];
      return;
    }
    std::vector<std::optional<Expr>> growth(inits.size());
    const bool affine = find_growth(op, block, l, s, inits, growth);
    if (!affine && l.constant && l.most <= kMostUnrolled) return unroll(op, block, l, s, inits, hoisted);
    Scope inner = inside(s, l.inside);
    for (const auto& [id, factor] : l.counter.terms) inner.variables.push_back(id);
    env_[block.arguments[0]] = one_number(plus(l.first, l.counter, l.step));
    for (size_t k = 0; k < inits.size(); ++k) {
      Known v = unknown(inits[k].by_data, inits[k].buffer);
      if (growth[k]) {
        v = inits[k];
        for (Piece& p : v.pieces) p.value = plus(p.value, grown(*growth[k], l.counter));
      }
      env_[block.arguments[k + 1]] = v;
    }
    const auto yields = body(block, inner, &hoisted, &s);
    finish(inner);
    for (size_t k = 0; k < inits.size(); ++k) {
      Known v = unknown(inits[k].by_data || (k < yields.size() && yields[k].by_data), inits[k].buffer);
      if (growth[k] && (l.trips || (growth[k]->constant() && growth[k]->base == 0))) {
        v = inits[k];
        for (Piece& p : v.pieces) p.value = plus(p.value, l.trips ? grown(*growth[k], *l.trips) : number(0));
      }
      env_[op.results[k]] = v;
    }
  }

  // growth * counter; one of both is a number.
  static Expr grown(const Expr& growth, const Expr& counter) {
    if (growth.constant()) return times(counter, growth.base);
    if (counter.constant()) return times(growth, counter.base);
    throw TooHard{"a product of variables"};
  }

  // By how much each carried number grows a turn; false where one of them does otherwise.
  bool find_growth(const Op& op, const Block& block, const Loop& l, const Scope& s,
                   const std::vector<Known>& inits, std::vector<std::optional<Expr>>& growth) {
    std::vector<std::optional<Expr>> symbols(inits.size());
    bool any = false;
    env_[block.arguments[0]] = one_number(plus(l.first, l.counter, l.step));
    for (size_t k = 0; k < inits.size(); ++k) {
      const bool number_like =
          (inits[k].kind == Known::Kind::kNumber || inits[k].kind == Known::Kind::kPointer) &&
          !is_float(module_.type(op.results[k]).elem);
      if (number_like) {
        symbols[k] = atoms_.symbol();
        Known v = inits[k];
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

  void unroll(const Op& op, const Block& block, const Loop& l, Scope& s, std::vector<Known> carried,
              const std::unordered_set<const Op*>& hoisted) {
    Scope scratch = s;
    for (int64_t turn = 0; turn < l.most; ++turn) {
      env_[block.arguments[0]] = one_number(plus(l.first, number(turn * l.step)));
      for (size_t k = 0; k < carried.size(); ++k) env_[block.arguments[k + 1]] = carried[k];
      carried = body(block, s, turn == 0 ? nullptr : &hoisted, &scratch);
      carried.resize(op.results.size());
    }
    for (size_t k = 0; k < op.results.size(); ++k) env_[op.results[k]] = carried[k];
  }

  std::unordered_set<const Op*> hoisted_from(const Block& block) {
    std::unordered_set<ValueId> inside(block.arguments.begin(), block.arguments.end());
    std::unordered_set<const Op*> hoisted;
    for (const Op& op : block.ops) {
      const bool outside = std::none_of(op.operands.begin(), op.operands.end(),
                                        [&](ValueId v) { return inside.count(v) != 0; });
      if (hoistable(op) && outside)
        hoisted.insert(&op);
      else
        inside.insert(op.results.begin(), op.results.end());
    }
    return hoisted;
  }

  void call_op(const Op& op, Scope& s) {
    const Function* callee = module_.find(op.text("callee"));
    if (callee == nullptr || callee->body.blocks.empty() || ++calls_ > 64) throw Unknowable{"a call"};
    for (size_t k = 0; k < callee->parameters.size(); ++k)
      env_[callee->parameters[k]] = value(op.operands[k]);
    std::vector<std::vector<Known>> returned;
    blocks(callee->body, 0, s, &returned, 0);
    --calls_;
    for (size_t k = 0; k < op.results.size(); ++k)
      env_[op.results[k]] = returned.size() == 1 && k < returned[0].size() ? returned[0][k] : unknown();
  }

  // ---- values

  const Known& value(ValueId v) { return env_[v]; }
  std::vector<Known> values(const std::vector<ValueId>& ids) {
    std::vector<Known> all;
    for (const ValueId v : ids) all.push_back(env_[v]);
    return all;
  }

  // Cuts the grid where what is at least 0 for some programs is not for others.
  void cut_by_program(const Expr& e) {
    if (!may_cut_) return;
    int axis = -1;
    bool alone = true;
    atoms_.for_each_variable(e, [&](AtomId id) {
      const Atom& a = atoms_[id];
      alone = alone && a.kind == AtomKind::kProgram && (axis < 0 || axis == a.index);
      axis = a.index;
    });
    if (!alone || axis < 0) return;
    const Bounds all = programs_[static_cast<size_t>(axis)];
    const auto holds = [&](int64_t program) {
      const Expr v = atoms_.replaced(e, [&](AtomId) { return number(program - all.low); });
      return v.base >= 0;
    };
    int64_t low = all.low, high = all.high;
    const bool first = holds(low);
    if (holds(high) == first) return;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (holds(middle) == first ? low : high) = middle;
    }
    throw Cut{axis, high};
  }

  Known chosen(const Truth& t, const Known& a, const Known& b) {
    if (t.is_always()) return a;
    if (t.is_never()) return b;
    if (a.kind == Known::Kind::kTruth && b.kind == Known::Kind::kTruth)
      return one_truth(either(atoms_, both(atoms_, t, a.truth), both(atoms_, negated(atoms_, t), b.truth)));
    const bool numbers =
        (a.is_number() && b.is_number()) ||
        (a.kind == Known::Kind::kPointer && b.kind == Known::Kind::kPointer && a.buffer == b.buffer);
    if (numbers) {
      if (a.single() != nullptr && b.single() != nullptr && *a.single() == *b.single()) return a;
      if (t.known) {
        for (const Conjunction& c : t.any)
          for (const Expr& e : c) cut_by_program(e);
        Known r = a;
        r.pieces.clear();
        const Truth otherwise = negated(atoms_, t);
        if (otherwise.known) {
          for (const auto& [side, from] : {std::pair{&t, &a}, std::pair{&otherwise, &b}})
            for (const Conjunction& c : side->any)
              for (const Piece& p : from->pieces) add_piece(r, c, p.when, p.value);
          if (!r.pieces.empty() && r.pieces.size() <= kMostPieces) return r;
        }
      }
    }
    return unknown(t.by_data || a.by_data || b.by_data, a.buffer == b.buffer ? a.buffer : -1);
  }

  void add_piece(Known& to, const Conjunction& when, const Conjunction& also, Expr value) {
    Conjunction c = when;
    c.insert(c.end(), also.begin(), also.end());
    Truth t = simplified(atoms_, {true, false, {std::move(c)}});
    if (t.is_never()) return;
    const Bounds b = atoms_.bounds(value);
    if (b.low == b.high) value = number(b.low);
    to.pieces.push_back({std::move(t.any[0]), std::move(value)});
  }

  // f(a, b) piece by piece; unknown where f has no answer or it does not fit the type.
  template <class F>
  Known combined(const Known& a, const Known& b, Elem elem, const F& f) {
    const bool by_data = a.by_data || b.by_data;
    if (!a.is_number() || !b.is_number()) return unknown(by_data);
    Known r;
    r.kind = Known::Kind::kNumber;
    for (const Piece& x : a.pieces)
      for (const Piece& y : b.pieces) {
        const std::optional<Expr> e = f(x.value, y.value);
        if (!e || !fits_type(*e, elem)) return unknown(by_data);
        add_piece(r, x.when, y.when, *e);
      }
    if (r.pieces.empty() || r.pieces.size() > kMostPieces) return unknown(by_data);
    return r;
  }
  bool fits_type(const Expr& e, Elem elem) const {
    if (probing_ != 0) return true;
    const int bits = elem_bits(elem);
    if (bits >= 64) return true;
    const Bounds b = atoms_.bounds(e);
    const int64_t limit = int64_t{1} << (bits - 1);
    return b.low >= -limit && b.high < limit;
  }
  bool never_negative(const Expr& e) const { return atoms_.bounds(e).low >= 0; }

  std::optional<Expr> divided(OpKind kind, const Expr& a, const Expr& b) {
    if (!b.constant() || b.base <= 0) return std::nullopt;
    const bool floors = kind == OpKind::kFloordivsi;
    if (!floors && !never_negative(a)) return std::nullopt;
    switch (kind) {
      case OpKind::kCeildivsi:
      case OpKind::kCeildivui:
        return atoms_.quotient(plus(a, number(b.base - 1)), b.base);
      case OpKind::kRemsi:
      case OpKind::kRemui:
        return atoms_.remainder(a, b.base);
      default:
        return atoms_.quotient(a, b.base);
    }
  }

  std::optional<Expr> binary(OpKind kind, const Expr& a, const Expr& b) {
    switch (kind) {
      case OpKind::kAddi:
        return plus(a, b);
      case OpKind::kSubi:
        return plus(a, b, -1);
      case OpKind::kMuli:
        if (b.constant()) return times(a, b.base);
        if (a.constant()) return times(b, a.base);
        return std::nullopt;
      case OpKind::kShli:
        if (b.constant() && b.base >= 0 && b.base < 62) return times(a, int64_t{1} << b.base);
        return std::nullopt;
      case OpKind::kShrui:
        if (!never_negative(a)) return std::nullopt;
        [[fallthrough]];
      case OpKind::kShrsi:
        if (b.constant() && b.base >= 0 && b.base < 62) return atoms_.quotient(a, int64_t{1} << b.base);
        return std::nullopt;
      case OpKind::kAndi: {
        const Expr &x = b.constant() ? a : b, &m = b.constant() ? b : a;
        if (a.constant() && b.constant()) return number(a.base & b.base);
        if (m.constant() && m.base > 0 && std::has_single_bit(static_cast<uint64_t>(m.base) + 1))
          return atoms_.remainder(x, m.base + 1);
        return std::nullopt;
      }
      case OpKind::kOri:
      case OpKind::kXori:
        if (a.constant() && b.constant())
          return number(kind == OpKind::kOri ? a.base | b.base : a.base ^ b.base);
        return std::nullopt;
      default:
        return divided(kind, a, b);
    }
  }

  Known integers(const Op& op) {
    const Known &a = value(op.operands[0]), &b = value(op.operands[1]);
    const Elem elem = module_.type(op.results[0]).elem;
    if (elem == Elem::kI1) {
      const auto truth = [&](const Known& k) {
        return k.kind == Known::Kind::kTruth ? k.truth : Truth::unknown(k.by_data);
      };
      const Truth x = truth(a), y = truth(b);
      if (op.kind == OpKind::kAndi || op.kind == OpKind::kMuli) return one_truth(both(atoms_, x, y));
      if (op.kind == OpKind::kOri) return one_truth(either(atoms_, x, y));
      if (op.kind == OpKind::kXori) {
        if (y.is_always()) return one_truth(negated(atoms_, x));
        if (x.is_always()) return one_truth(negated(atoms_, y));
        if (y.is_never()) return one_truth(x);
        if (x.is_never()) return one_truth(y);
      }
      return unknown(a.by_data || b.by_data);
    }
    switch (op.kind) {
      case OpKind::kMinui:
      case OpKind::kMaxui:
        if (!a.is_number() || !b.is_number()) return unknown(a.by_data || b.by_data);
        for (const Known* k : {&a, &b})
          for (const Piece& p : k->pieces)
            if (!never_negative(p.value)) return unknown();
        [[fallthrough]];
      case OpKind::kMinsi:
      case OpKind::kMaxsi: {
        const Truth less = compared(Predicate::kSle, a, b);
        const bool least = op.kind == OpKind::kMinsi || op.kind == OpKind::kMinui;
        return least ? chosen(less, a, b) : chosen(less, b, a);
      }
      default:
        return combined(a, b, elem, [&](const Expr& x, const Expr& y) { return binary(op.kind, x, y); });
    }
  }

  Truth compared(Predicate p, const Known& a, const Known& b) {
    const bool by_data = a.by_data || b.by_data;
    if (!a.is_number() || !b.is_number()) return Truth::unknown(by_data);
    Truth all;
    for (const Piece& x : a.pieces)
      for (const Piece& y : b.pieces) {
        if (p >= Predicate::kUlt && p <= Predicate::kUge &&
            (!never_negative(x.value) || !never_negative(y.value)))
          return Truth::unknown(by_data);
        const Expr d = plus(x.value, y.value, -1);
        const Expr up = d, down = times(d, -1);
        Truth t;
        switch (p) {
          case Predicate::kEq:
          case Predicate::kNe:
            t = simplified(atoms_, {true, false, {{up, down}}});
            if (p == Predicate::kNe) t = negated(atoms_, t);
            break;
          case Predicate::kSlt:
          case Predicate::kUlt:
            t = simplified(atoms_, {true, false, {{plus(down, number(-1))}}});
            break;
          case Predicate::kSle:
          case Predicate::kUle:
            t = simplified(atoms_, {true, false, {{down}}});
            break;
          case Predicate::kSgt:
          case Predicate::kUgt:
            t = simplified(atoms_, {true, false, {{plus(up, number(-1))}}});
            break;
          case Predicate::kSge:
          case Predicate::kUge:
            t = simplified(atoms_, {true, false, {{up}}});
            break;
          default:
            return Truth::unknown(by_data);
        }
        Conjunction when = x.when;
        when.insert(when.end(), y.when.begin(), y.when.end());
        if (!when.empty()) t = both(atoms_, t, simplified(atoms_, {true, false, {when}}));
        if (!t.known) return t;
        all.any.insert(all.any.end(), t.any.begin(), t.any.end());
      }
    return simplified(atoms_, std::move(all));
  }

  // f(expression) everywhere in a value.
  template <class F>
  Known mapped(Known k, const F& f) {
    for (Piece& p : k.pieces) {
      p.value = f(p.value);
      for (Expr& e : p.when) e = f(e);
    }
    if (k.kind == Known::Kind::kTruth)
      for (Conjunction& c : k.truth.any)
        for (Expr& e : c) e = f(e);
    return k;
  }
  // Each lane's variable replaced by what it is in the result's shape.
  template <class F>
  Known with_lanes(const Known& k, const F& f) {
    return mapped(k, [&](const Expr& e) {
      return atoms_.replaced(e, [&](AtomId id) {
        const Atom a = atoms_[id];
        return a.kind == AtomKind::kLane ? f(a.index, a.bounds.high + 1) : Expr{0, {{id, 1}}};
      });
    });
  }

  Known reshaped(const Known& k, const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    // Lane of dimension d: (flat / after) % size, flat in the lanes of the new shape.
    Expr flat = number(0);
    int64_t weight = 1;
    for (size_t d = to.size(); d-- > 0;) {
      flat = plus(flat, atoms_.lane(static_cast<int>(d), to[d]), weight);
      weight *= to[d];
    }
    return with_lanes(k, [&](int dim, int64_t size) {
      int64_t after = 1;
      for (size_t d = static_cast<size_t>(dim) + 1; d < from.size(); ++d) after *= from[d];
      return atoms_.remainder(atoms_.quotient(flat, after), size);
    });
  }

  Known shaped(const Op& op) {
    const Known& a = value(op.operands[0]);
    const auto &from = module_.type(op.operands[0]).shape, &to = module_.type(op.results[0]).shape;
    switch (op.kind) {
      case OpKind::kExpandDims: {
        const int axis = static_cast<int>(op.integer("axis"));
        return with_lanes(a, [&](int dim, int64_t size) { return atoms_.lane(dim + (dim >= axis), size); });
      }
      case OpKind::kTrans: {
        const auto& order = op.integers("order");
        return with_lanes(a, [&](int dim, int64_t size) {
          const auto at = std::find(order.begin(), order.end(), dim) - order.begin();
          return atoms_.lane(static_cast<int>(at), size);
        });
      }
      case OpKind::kReshape:
        return reshaped(a, from, to);
      default:  // splat, unsplat, broadcast
        return a;
    }
  }

  Known converted(const Op& op) {
    const Known& a = value(op.operands[0]);
    const Elem elem = module_.type(op.results[0]).elem;
    if (a.kind == Known::Kind::kTruth && elem != Elem::kI1) {
      if (op.kind == OpKind::kExtui || op.kind == OpKind::kIndexCastui)
        return chosen(a.truth, one_number(number(1)), one_number(number(0)));
      return unknown();
    }
    if (!a.is_number() || elem == Elem::kI1) return unknown(a.by_data);
    for (const Piece& p : a.pieces) {
      if (!fits_type(p.value, elem)) return unknown();
      if ((op.kind == OpKind::kExtui || op.kind == OpKind::kIndexCastui) && probing_ == 0 &&
          !never_negative(p.value))
        return unknown();
    }
    return a;
  }

  Known moved(const Op& op) {
    const Known &p = value(op.operands[0]), &o = value(op.operands[1]);
    if (p.kind != Known::Kind::kPointer || !o.is_number()) return unknown(p.by_data || o.by_data, p.buffer);
    const int64_t bytes = elem_bytes(module_.type(op.operands[0]).pointee);
    Known r = p;
    r.pieces.clear();
    for (const Piece& x : p.pieces)
      for (const Piece& y : o.pieces) add_piece(r, x.when, y.when, plus(x.value, y.value, bytes));
    if (r.pieces.empty() || r.pieces.size() > kMostPieces) return unknown(false, p.buffer);
    return r;
  }

  Known constant(const Op& op) {
    const Elem elem = module_.type(op.results[0]).elem;
    if (op.constant.size() != 1) return unknown();
    const int64_t bits = canonical_bits(&op.constant[0], elem);
    if (elem == Elem::kI1) return one_truth(bits != 0 ? Truth::always() : Truth::never());
    return is_integer(elem) ? one_number(number(bits)) : unknown();
  }

  Known made_descriptor(const Op& op) {
    const Known& base = value(op.operands[0]);
    const auto rank = static_cast<size_t>(op.segments[1]);
    auto d = std::make_shared<DescriptorValue>();
    if (base.single() == nullptr) return unknown(base.by_data);
    d->buffer = base.buffer, d->base = *base.single();
    for (size_t k = 0; k < rank; ++k) {
      const Expr *size = value(op.operands[1 + k]).single(),
                 *stride = value(op.operands[1 + rank + k]).single();
      if (size == nullptr || stride == nullptr || !stride->constant()) return unknown();
      d->shape.push_back(*size), d->strides.push_back(stride->base);
    }
    Known v;
    v.kind = Known::Kind::kDescriptor;
    v.descriptor = std::move(d);
    return v;
  }

  static int axis_of(const Op& op) {
    const std::string& name = op.text("axis");
    return name == "y" ? 1 : name == "z" ? 2 : 0;
  }

  // A result that only its operands decide.
  Known pure(const Op& op) {
    const auto by_data = [&] {
      return std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId v) { return value(v).by_data; });
    };
    const Type& type = module_.type(op.results[0]);
    if (is_float(type.elem)) return unknown(by_data());
    switch (op.kind) {
      case OpKind::kConstant:
        return constant(op);
      case OpKind::kGetProgramId:
        return one_number(program_[static_cast<size_t>(axis_of(op))]);
      case OpKind::kGetNumPrograms:
        return one_number(number(launch_.grid[static_cast<size_t>(axis_of(op))]));
      case OpKind::kMakeRange:
        return one_number(plus(number(op.integer("start")), atoms_.lane(0, type.shape[0])));
      case OpKind::kSplat:
      case OpKind::kUnsplat:
      case OpKind::kBroadcast:
      case OpKind::kExpandDims:
      case OpKind::kTrans:
      case OpKind::kReshape:
        return shaped(op);
      case OpKind::kAddptr:
        return moved(op);
      case OpKind::kBitcast:
      case OpKind::kArithBitcast:
        if (type.elem == module_.type(op.operands[0]).elem) return value(op.operands[0]);
        return unknown(by_data());
      case OpKind::kExtsi:
      case OpKind::kExtui:
      case OpKind::kTrunci:
      case OpKind::kIndexCast:
      case OpKind::kIndexCastui:
        return converted(op);
      case OpKind::kCmpi:
        if (module_.type(op.operands[0]).elem == Elem::kI1) return unknown(by_data());
        return one_truth(compared(predicate_named(op.text("predicate"), false), value(op.operands[0]),
                                  value(op.operands[1])));
      case OpKind::kSelect: {
        const Known& c = value(op.operands[0]);
        const Truth t = c.kind == Known::Kind::kTruth ? c.truth : Truth::unknown(c.by_data);
        return chosen(t, value(op.operands[1]), value(op.operands[2]));
      }
      case OpKind::kMakeTensorDescriptor:
        return made_descriptor(op);
      default:
        if (op.operands.size() == 2 && op.results.size() == 1 && is_integer(type.elem) &&
            op.kind >= OpKind::kAddi && op.kind <= OpKind::kMaxui)
          return integers(op);
        return unknown(by_data());
    }
  }

  void operation(const Op& op, Scope& s) {
    if (++steps_ > kMostSteps) throw Unknowable{"a kernel of too many steps"};
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
    } catch (const TooHard&) {
      const Known& a = op.operands.empty() ? Known{} : value(op.operands[0]);
      env_[op.results[0]] = unknown(a.by_data, op.kind == OpKind::kAddptr ? a.buffer : -1);
    }
    for (size_t k = 1; k < op.results.size(); ++k)
      env_[op.results[k]] = unknown(value(op.operands[0]).by_data);
  }

  const Module& module_;
  const Launch& launch_;
  const std::array<Bounds, 3> programs_;
  int64_t& steps_;
  const bool may_cut_;
  Atoms atoms_;
  std::array<Expr, 3> program_;
  std::unordered_map<ValueId, Known> env_;
  std::unordered_set<ValueId> prologue_;
  Scope* root_ = nullptr;
  int probing_ = 0, calls_ = 0;
};

}  // namespace

CostAnalysis analyze_cost(const Module& module, const Function& kernel, const Launch& launch,
                          const std::vector<BoundArgument>& arguments) {
  CostAnalysis result;
  std::array<Bounds, 3> all;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (launch.grid[axis] <= 0) return result;
    all[axis] = {0, launch.grid[axis] - 1};
  }
  std::vector<std::array<Bounds, 3>> work{all};
  std::map<int64_t, Traffic> traffic;
  int64_t steps = 0;
  size_t cuts = 0;
  try {
    while (!work.empty()) {
      const auto box = work.back();
      work.pop_back();
      Walk walk(module, launch, box, steps, cuts < kMostCuts);
      try {
        walk.run(kernel, arguments);
      } catch (const Cut& cut) {
        ++cuts;
        const auto axis = static_cast<size_t>(cut.axis);
        work.push_back(box), work.back()[axis].low = cut.at;
        work.push_back(box), work.back()[axis].high = cut.at - 1;
        continue;
      }
      result.flops += walk.flops;
      for (auto& [buffer, t] : walk.traffic) {
        Traffic& sum = traffic[buffer];
        sum.read.insert(sum.read.end(), t.read.begin(), t.read.end());
        sum.written.insert(sum.written.end(), t.written.begin(), t.written.end());
        sum.unknown_read += t.unknown_read, sum.unknown_written += t.unknown_written;
      }
    }
  } catch (const Unknowable& u) {
    result.unknown = u.why;
    return result;
  } catch (const TooHard& t) {
    result.unknown = t.why;
    return result;
  }
  for (auto& [buffer, t] : traffic)
    result.buffers[buffer] = {distinct_bytes(std::move(t.read)), distinct_bytes(std::move(t.written)),
                              t.unknown_read, t.unknown_written};
  return result;
}

}  // namespace nereid::ttir
