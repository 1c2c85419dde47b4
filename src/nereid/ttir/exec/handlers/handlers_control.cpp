#include <fmt/format.h>

#include <algorithm>

#include "nereid/ttir/exec/access.h"
#include "nereid/ttir/exec/handlers/handlers.h"
#include "nereid/ttir/exec/sanitizer.h"

namespace nereid::ttir::handlers {
namespace {

// At every backward jump: the deadline, and whether the program only waits.
void back_edge(Machine& m) {
  if (--m.back_edges <= 0) {
    m.back_edges = 64;
    if (m.context().deadline.passed()) {
      m.timed_out = true;
      m.running = false;
    }
  }
  if (!m.context().code->synchronizes) return;
  constexpr int64_t kLongLoop = 4096;  // who polls with plain loads gets on, too
  if (!m.polled && ++m.spins < kLongLoop) return;
  m.waits = m.polled;
  m.polled = false;
  m.spins = 0;
  m.wants_yield = true;
  m.running = false;
}

}  // namespace

void program_id(Machine& m, const Instruction& i) {
  m.set_uniform(i.out, m.program[static_cast<size_t>(i.axis)]);
}
void num_programs(Machine& m, const Instruction& i) {
  m.set_uniform(i.out, m.context().launch->grid[static_cast<size_t>(i.axis)]);
}

void jump(Machine& m, const Instruction& i) {
  const bool backward = i.target < m.pc;
  m.pc = i.target;
  if (backward) back_edge(m);
}

void branch_unless(Machine& m, const Instruction& i) {
  if (m.slot(i.in[0]).base == 0) m.pc = i.target;
}

void moves(Machine& m, const Instruction& i) {
  const auto& from = i.extra->inputs;
  const auto& to = i.extra->outputs;
  const auto& kills = i.extra->kills;
  if (from.size() == 1) return m.move(to[0], from[0], kills[0]);
  // Through scratch, as a target may be another's source.
  auto& scratch = m.moving;
  scratch.resize(std::max(scratch.size(), from.size()));
  for (size_t k = 0; k < from.size(); ++k) {
    const Value& source = m.slot(from[k]);
    scratch[k] = source;
    scratch[k].tile = source.form == Form::kDense ? source.tile : nullptr;
    if (scratch[k].tile != nullptr) ++scratch[k].tile->references;
  }
  for (size_t k = 0; k < from.size(); ++k)
    if (kills[k]) m.clear(m.slot(from[k]));
  for (size_t k = 0; k < from.size(); ++k) {
    Value& target = m.slot(to[k]);
    if (target.tile != nullptr) m.pool().release(target.tile);
    target = scratch[k];
    scratch[k].tile = nullptr;
  }
}

// out: the induction variable; in: lower, upper, step.
void for_enter(Machine& m, const Instruction& i) { m.set_uniform(i.out, m.slot(i.in[0]).base); }

void for_test(Machine& m, const Instruction& i) {
  const int64_t at = m.slot(i.in[0]).base, upper = m.slot(i.in[1]).base;
  const bool inside =
      i.flags & kUnsigned ? static_cast<uint64_t>(at) < static_cast<uint64_t>(upper) : at < upper;
  if (!inside) {
    m.pc = i.target;
  } else if (m.slot(i.in[2]).base <= 0) {  // it would never end; going down is the front end's to turn around
    report(m, FindingKind::kAssertion, i.location, -1, 0,
           fmt::format("expected the step of a loop to be positive, got {}", m.slot(i.in[2]).base));
    m.pc = i.target;
  }
}

void for_next(Machine& m, const Instruction& i) {
  Value& at = m.slot(i.in[0]);
  int64_t next;
  if (__builtin_add_overflow(at.base, m.slot(i.in[2]).base, &next)) {
    ++m.pc;  // past the last index there is: the loop's end follows
    return;
  }
  m.set_uniform(i.in[0], next);
  m.pc = i.target;
  back_edge(m);
}

void finish(Machine& m, const Instruction&) { m.running = false; }

void assertion(Machine& m, const Instruction& i) {
  Value& v = m.slot(i.in[0]);
  if (v.form == Form::kUniform) {
    if (v.base == 0) report(m, FindingKind::kAssertion, i.location, -1, 0, i.extra->text);
    return;
  }
  const auto* lanes = reinterpret_cast<const uint8_t*>(m.dense(v, Elem::kI1, i, i.lanes));
  for (int64_t k = 0; k < i.lanes; ++k)
    if (lanes[k] == 0) return report(m, FindingKind::kAssertion, i.location, -1, 0, i.extra->text);
}

void nothing(Machine&, const Instruction&) {}

void barrier(Machine& m, const Instruction&) {
  note_barrier(m);
  m.arrive();
}

}  // namespace nereid::ttir::handlers
