#include "nereid/synth/program.h"

#include <algorithm>
#include <unordered_map>

#include "nereid/ops/cost.h"

namespace nereid::synth {
namespace {

// Stafford's mix of 64 bits (his variant 13).
uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Hasher {
 public:
  explicit Hasher(uint64_t seed) : state_(mixed(seed + 0x9e3779b97f4a7c15)) {}
  void add(uint64_t value) { state_ = mixed(state_ * 3 + value + 0x9e3779b97f4a7c15); }
  void add(const ops::Shape& shape) {
    add(shape.rank);
    for (size_t d = 0; d < shape.rank; ++d) add(static_cast<uint64_t>(shape.dims[d]));
  }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_;
};

uint64_t hash_of_name(std::string_view name) {  // FNV-1a: the same on every machine
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

// What distinguishes forms that do different things: not their place in a table, which may change.
uint64_t hash_of_form(const ops::Form& form) {
  Hasher hasher(0);
  const bool whole = form.all && form.slot[0].rank > 1;  // over the only axis is over all
  for (const int attribute : {whole ? -1 : std::max<int>(form.dim, form.all ? 0 : -1), int{form.dim2},
                              int{form.kernel}, int{form.stride}, int{form.padding}, form.depthwise ? 1 : 0})
    hasher.add(static_cast<uint64_t>(attribute + 2));
  if (form.keep) hasher.add(7);
  if (form.dim3 >= 0) hasher.add(static_cast<uint64_t>(form.dim3 + 20));
  for (const int8_t axis : form.order) hasher.add(static_cast<uint64_t>(axis + 1));
  for (size_t s = 0; s < form.slots; ++s) {
    hasher.add(form.slot[s].rank);
    for (size_t d = 0; d < form.slot[s].rank; ++d)
      hasher.add(static_cast<uint64_t>(form.slot[s].dims[d].kind == ops::Term::kOne ? 1 : 0));
  }
  return hasher.value();
}

// Of what was drawn apart, where anything was: others' hashes are as without.
void add_details(const ops::Applied& applied, bool sizes, Hasher& hasher) {
  if (!applied.bias) hasher.add(11);
  if (sizes && applied.groups != 0) hasher.add(static_cast<uint64_t>(applied.groups));
  if (const ops::Cut& cut = applied.cut; cut.given)
    for (const int32_t value : {cut.parts, cut.part, cut.before, cut.behind})
      hasher.add(static_cast<uint64_t>(sizes ? value : std::min(value, 1)));
  if (!ops::has_window(*applied.op)) return;
  const ops::Window &window = applied.window, plain = ops::window_of(*applied.form, *applied.op);
  const bool same = window.kernel == plain.kernel && window.stride == plain.stride &&
                    window.padding == plain.padding && window.dilation == plain.dilation &&
                    window.groups == plain.groups && window.ceil == plain.ceil &&
                    window.counts_padding == plain.counts_padding;
  if (same) return;
  for (const auto* list : {&window.kernel, &window.stride, &window.padding, &window.dilation})
    for (const uint8_t value : *list) hasher.add(value);
  hasher.add(static_cast<uint64_t>(window.groups) * 4 + (window.ceil ? 2 : 0) +
             (window.counts_padding ? 1 : 0));
}

uint64_t known_hash_of(const ops::Form& form) {
  static const auto* all = [] {
    auto* made = new std::unordered_map<const ops::Form*, uint64_t>;
    for (const ops::Operator& op : ops::catalogue())
      for (const ops::Form& one : ops::forms(op.rule)) made->emplace(&one, hash_of_form(one));
    return made;
  }();
  return all->at(&form);
}

// Walking backwards from step `last`, whose result has that shape, to where its value began.
void resolve_steps(const SampledProgram& sampled, const Space& space, size_t last, ops::Shape shape,
                   Program& program) {
  for (size_t i = last;; i = step_before(sampled.steps, i)) {
    const SampledStep& step = sampled.steps[i];
    program.steps[i].applied =
        ops::apply(*step.op, space.form(step.transition.form), shape, step.inner, step.details);
    const Feed feed = step.transition.feed;
    if (feed.a < 0) return;
    const auto& operands = program.steps[i].applied.operands;
    if (feed.b >= 0) resolve_steps(sampled, space, i - 1, operands[static_cast<size_t>(feed.b)], program);
    shape = operands[static_cast<size_t>(feed.a)];
  }
}

}  // namespace

void resolve(const SampledProgram& sampled, const Space& space, Program& program) {
  const size_t count = sampled.steps.size();
  program.inputs.clear();
  program.steps.resize(count);
  resolve_steps(sampled, space, count - 1, sampled.result, program);
  const size_t open = open_end(sampled.steps);
  program.waiting = open == 0 ? -1 : static_cast<int>(count - 1 - open);
  if (open > 0) resolve_steps(sampled, space, count - 1 - open, sampled.waiting, program);
  for (size_t i = 0; i < count; ++i) {
    Step& step = program.steps[i];
    const Transition& transition = sampled.steps[i].transition;
    const auto current = static_cast<uint16_t>(transition.feed.a >= 0 ? step_before(sampled.steps, i) : 0);
    step.tap = transition.tap;
    const int operands = ops::operand_count(step.applied);
    step.operands.clear();
    for (int s = 0; s < operands; ++s) {
      const auto slot = static_cast<size_t>(std::min<int>(s, step.applied.form->slots - 1));
      if (s == transition.feed.a) {
        step.operands.push_back({.fresh = false, .index = current});
      } else if (s == transition.feed.b) {
        step.operands.push_back({.fresh = false, .index = static_cast<uint16_t>(i - 1)});
      } else if (s == 1 && transition.tap > 0) {
        Ref behind = step.operands[0];
        for (int steps = transition.tap; steps > 0; --steps) behind = program.steps[behind.index].operands[0];
        step.operands.push_back(behind);
      } else {
        step.operands.push_back({.fresh = true, .index = static_cast<uint16_t>(program.inputs.size())});
        program.inputs.push_back({.shape = step.applied.operands[slot],
                                  .range = step.applied.op->ranges[slot],
                                  .bound = ops::index_bound(step.applied),
                                  .summed = ops::contracted_length(step.applied)});
      }
    }
  }
}

// A step's hash is made of its operands' hashes. What is shared (a tap) is said by how far behind operand 0
// it lies, so equal hashes mean equal graphs, not only equal trees.
Hashes hashes_of(const Program& program) {
  std::vector<Hashes> known(program.steps.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const uint64_t name = hash_of_name(step.applied.op->name);
    Hasher whole(name), structure(name);
    const uint64_t form = known_hash_of(*step.applied.form);
    whole.add(form), structure.add(form);
    add_details(step.applied, true, whole), add_details(step.applied, false, structure);
    whole.add(step.applied.out);
    std::array<Hashes, ops::kMaxSlots> operands;
    size_t count = 0;
    for (size_t s = 0; s < step.operands.size(); ++s) {
      const Ref ref = step.operands[s];
      if (s == 1 && step.tap > 0) {
        operands[count++] = {static_cast<uint64_t>(step.tap), static_cast<uint64_t>(step.tap)};
      } else if (!ref.fresh) {
        operands[count++] = known[ref.index];
      } else if (s < step.applied.form->slots) {  // more of a stack are like the last
        const Input& input = program.inputs[ref.index];
        Hasher fresh(100 + static_cast<uint64_t>(input.range)),
            kind(100 + static_cast<uint64_t>(input.range));
        fresh.add(input.shape), fresh.add(static_cast<uint64_t>(input.bound));
        kind.add(input.shape.rank);
        operands[count++] = {fresh.value(), kind.value()};
      }
    }
    if (step.applied.op->commutes && step.tap == 0 && count == 2 &&
        (operands[1].structure < operands[0].structure ||
         (operands[1].structure == operands[0].structure && operands[1].program < operands[0].program)))
      std::swap(operands[0], operands[1]);
    for (size_t s = 0; s < count; ++s) whole.add(operands[s].program), structure.add(operands[s].structure);
    known[i] = {whole.value(), structure.value()};
  }
  if (program.waiting < 0) return known.back();
  // Of two results, which share no step, neither is the first.
  const Hashes other = known[static_cast<size_t>(program.waiting)];
  const auto both = [](uint64_t a, uint64_t b) {
    Hasher hasher(2);
    hasher.add(std::min(a, b)), hasher.add(std::max(a, b));
    return hasher.value();
  };
  return {both(known.back().program, other.program), both(known.back().structure, other.structure)};
}

ProgramCost cost_of(const Program& program) {
  ProgramCost total;
  for (const Step& step : program.steps) {
    const ops::Cost cost = ops::cost_of(step.applied);
    total.flops += cost.flops, total.bytes += cost.bytes;
  }
  return total;
}

}  // namespace nereid::synth
