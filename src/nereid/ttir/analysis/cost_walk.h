// A walk over a kernel's operations for all programs of a box of the grid at once: values as affine
// expressions of programs, loops and lanes, from which its work and the bytes of its accesses are counted.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nereid/ttir/analysis/cost_analysis.h"

namespace nereid::ttir::cost_walk {

using namespace symbolic;

constexpr size_t kMaxPieces = 8;

struct Piece {
  Conjunction when;
  Expr value;
};
struct DescriptorValue;

// What is known of a value. A tile's lanes are variables by dimension.
struct AbstractValue {
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

inline AbstractValue unknown(bool by_data = false, int64_t buffer = -1) {
  AbstractValue k;
  k.by_data = by_data, k.buffer = buffer;
  return k;
}
inline AbstractValue one_number(Expr e) {
  AbstractValue k;
  k.kind = AbstractValue::Kind::kNumber;
  k.pieces = {{{}, std::move(e)}};
  return k;
}
inline AbstractValue one_pointer(int64_t buffer, Expr e) {
  AbstractValue k = one_number(std::move(e));
  k.kind = AbstractValue::Kind::kPointer;
  k.buffer = buffer;
  return k;
}
inline AbstractValue one_truth(Truth t) {
  AbstractValue k;
  if (!t.known) return unknown(t.by_data);
  k.kind = AbstractValue::Kind::kTruth;
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
  void run(const Function& kernel, const std::vector<BoundArgument>& arguments);
  double flops = 0;
  std::map<int64_t, Traffic> traffic;

 private:
  AbstractValue bound(const Type& type, const BoundArgument& a);

  // ---- scopes

  double points(const Scope& s, const std::vector<AtomId>& more = {}, const Truth* mask = nullptr);
  void finish(const Scope& s);
  Scope inside(const Scope& s, const Truth& condition);

  // ---- accesses

  std::vector<AtomId> lanes_of(const std::vector<int64_t>& shape);
  void access(const Scope& s, const AbstractValue& pointer, const Truth& mask,
              const std::vector<int64_t>& shape, int64_t bytes, bool reads, bool writes);
  void descriptor_access(const Scope& s, const Op& op);
  void memory(const Scope& s, const Op& op);

  // ---- control

  // How a function or the kernel ends: null where it returns, what it returned in `returned`.
  void blocks(const Region& region, size_t at, Scope& s, std::vector<std::vector<AbstractValue>>* returned,
              int depth);
  Truth condition(ValueId v);
  // The values that a region's block hands on; runs it.
  std::vector<AbstractValue> body(const Block& block, Scope& s,
                                  const std::unordered_set<const Op*>* hoisted = nullptr,
                                  Scope* outside = nullptr);
  void if_op(const Op& op, Scope& s);
  struct Loop {
    Expr first, counter;  // counter: an atom, or a number
    int64_t step = 1, most = 0;
    bool constant = false;  // as often for all
    Truth inside = Truth::always();
    std::optional<Expr> trips;
  };
  Loop loop_of(const Op& op);
  void for_op(const Op& op, Scope& s);
  // growth * counter; one of both is a number.
  static Expr grown(const Expr& growth, const Expr& counter);
  // By how much each carried number grows a turn; false where one of them does otherwise.
  bool find_growth(const Op& op, const Block& block, const Loop& l, const Scope& s,
                   const std::vector<AbstractValue>& inits, std::vector<std::optional<Expr>>& growth);
  void unroll(const Op& op, const Block& block, const Loop& l, Scope& s, std::vector<AbstractValue> carried,
              const std::unordered_set<const Op*>& hoisted);
  std::unordered_set<const Op*> hoisted_from(const Block& block);
  void call_op(const Op& op, Scope& s);

  // ---- values

  const AbstractValue& value(ValueId v) { return env_[v]; }
  std::vector<AbstractValue> values(const std::vector<ValueId>& ids);
  // Cuts the grid where what is at least 0 for some programs is not for others.
  void split_by_program(const Expr& e);
  AbstractValue chosen(const Truth& t, const AbstractValue& a, const AbstractValue& b);
  void add_piece(AbstractValue& to, const Conjunction& when, const Conjunction& also, Expr value);
  // f(a, b) piece by piece; unknown where f has no answer or it does not fit the type.
  template <class F>
  AbstractValue combined(const AbstractValue& a, const AbstractValue& b, Elem elem, const F& f) {
    const bool by_data = a.by_data || b.by_data;
    if (!a.is_number() || !b.is_number()) return unknown(by_data);
    AbstractValue r;
    r.kind = AbstractValue::Kind::kNumber;
    for (const Piece& x : a.pieces)
      for (const Piece& y : b.pieces) {
        const std::optional<Expr> e = f(x.value, y.value);
        if (!e || !fits_type(*e, elem)) return unknown(by_data);
        add_piece(r, x.when, y.when, *e);
      }
    if (r.pieces.empty() || r.pieces.size() > kMaxPieces) return unknown(by_data);
    return r;
  }
  bool fits_type(const Expr& e, Elem elem) const;
  bool never_negative(const Expr& e) const { return atoms_.bounds(e).low >= 0; }
  std::optional<Expr> divided(OpKind kind, const Expr& a, const Expr& b);
  std::optional<Expr> binary(OpKind kind, const Expr& a, const Expr& b);
  AbstractValue integers(const Op& op);
  Truth compared(Predicate p, const AbstractValue& a, const AbstractValue& b);
  // f(expression) everywhere in a value.
  template <class F>
  AbstractValue mapped(AbstractValue k, const F& f) {
    for (Piece& p : k.pieces) {
      p.value = f(p.value);
      for (Expr& e : p.when) e = f(e);
    }
    if (k.kind == AbstractValue::Kind::kTruth)
      for (Conjunction& c : k.truth.any)
        for (Expr& e : c) e = f(e);
    return k;
  }
  // Each lane's variable replaced by what it is in the result's shape.
  template <class F>
  AbstractValue with_lanes(const AbstractValue& k, const F& f) {
    return mapped(k, [&](const Expr& e) {
      return atoms_.replaced(e, [&](AtomId id) {
        const Atom a = atoms_[id];
        return a.kind == AtomKind::kLane ? f(a.index, a.bounds.high + 1) : Expr{0, {{id, 1}}};
      });
    });
  }
  AbstractValue reshaped(const AbstractValue& k, const std::vector<int64_t>& from,
                         const std::vector<int64_t>& to);
  AbstractValue shaped(const Op& op);
  AbstractValue converted(const Op& op);
  AbstractValue moved(const Op& op);
  AbstractValue constant(const Op& op);
  AbstractValue made_descriptor(const Op& op);
  static int axis_of(const Op& op) {
    const std::string& name = op.text("axis");
    return name == "y" ? 1 : name == "z" ? 2 : 0;
  }
  // A result that only its operands decide.
  AbstractValue pure(const Op& op);
  void operation(const Op& op, Scope& s);

  const Module& module_;
  const Launch& launch_;
  const std::array<Bounds, 3> programs_;
  int64_t& steps_;
  const bool may_cut_;
  Atoms atoms_;
  std::array<Expr, 3> program_;
  std::unordered_map<ValueId, AbstractValue> env_;
  std::unordered_set<ValueId> prologue_;
  Scope* root_ = nullptr;
  int probing_ = 0, calls_ = 0;
};

}  // namespace nereid::ttir::cost_walk
