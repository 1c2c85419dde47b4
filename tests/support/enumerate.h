// Every program of a small space, from docs/synth.md alone: nothing of how the sampler counts is used here.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nereid/synth/sample/sampled_program.h"

namespace nereid::synth {

struct EnumeratedStep {
  const ops::Operator* op = nullptr;
  const ops::Form* form = nullptr;
  int a = -1, b = -1,
      tap = 0;  // slots of the current value and of the branch; steps back to the tapped value
  int depth = 0;
  std::array<int32_t, ops::kMaxInner> inner{};

  std::string wiring() const {
    const auto& forms = ops::forms(op->rule);
    std::string text = std::string(op->name) + "#";
    for (const auto number : {static_cast<int>(form - forms.data()), a, b, tap, depth})
      text += std::to_string(number) + ",";
    return text;
  }
};

struct EnumeratedProgram {
  bool two() const { return steps.back().depth > 0; }
  std::vector<EnumeratedStep> steps;
  ops::Shape result, waiting;

  std::string sequence() const {
    std::string text;
    for (const auto& step : steps) (text += step.op->name) += ";";
    return text;
  }
  std::string wiring() const {
    std::string text;
    for (const auto& step : steps) text += step.wiring();
    return text;
  }
  std::string key() const {
    std::string text = wiring() + "|";
    for (const ops::Shape& shape : {result, waiting}) {
      for (int d = 0; d < shape.rank; ++d) text += std::to_string(shape.dims[static_cast<size_t>(d)]) + ",";
      text += "|";
    }
    for (const auto& step : steps) {
      text += "|";
      for (int i = 0; i < step.form->inner; ++i)
        text += std::to_string(step.inner[static_cast<size_t>(i)]) + ",";
    }
    return text;
  }
};

inline EnumeratedProgram as_enumerated(const SampledProgram& sampled, const Space& space) {
  EnumeratedProgram program;
  program.result = sampled.result, program.waiting = sampled.waiting;
  for (const SampledStep& step : sampled.steps)
    program.steps.push_back({.op = step.op,
                             .form = &space.form(step.transition.form),
                             .a = step.transition.feed.a,
                             .b = step.transition.feed.b,
                             .tap = step.transition.tap,
                             .depth = step.depth,
                             .inner = step.inner});
  return program;
}

class Enumerator {
 public:
  Enumerator(std::vector<const ops::Operator*> operators, Bounds bounds, int length)
      : operators_(std::move(operators)), bounds_(bounds), length_(static_cast<size_t>(length)) {}

  std::vector<EnumeratedProgram> programs() {
    complete_ = [this] { sizes(); };
    extend({});
    return std::move(found_);
  }

  // The sequences that are drawn, for one result or for two: of some wiring whose branches are of one step,
  // if sizes fit each of its forms (though perhaps not all of them together).
  std::set<std::string> sequences(bool two) {
    std::set<std::string> sequences;
    longest_branch_ = 1;
    complete_ = [&] {
      if ((steps_.back().depth > 0) == two &&
          std::all_of(steps_.begin(), steps_.end(), [this](EnumeratedStep step) { return has_sizes(step); }))
        sequences.insert(EnumeratedProgram{steps_, {}, {}}.sequence());
    };
    extend({});
    return sequences;
  }

 private:
  struct Value {
    int rank = 0;
    ops::Domain domain{};
    int kept = 0;  // steps behind it, through slots 0, whose operand has its shape
  };

  bool computed(const ops::Form& form, int slot) const {
    return slot < form.slots && ((form.computed >> slot) & 1) != 0;
  }
  bool alike(const ops::Form& form) const { return form.slots >= 2 && form.slot[0] == form.slot[1]; }

  void for_each_form(const std::function<void(const ops::Operator&, const ops::Form&)>& visit) const {
    for (const ops::Operator* op : operators_)
      for (const ops::Form& form : ops::forms(op->rule)) visit(*op, form);
  }

  using Then = std::function<void(const EnumeratedStep&, const Value&)>;

  void extend(const std::optional<Value>& value) {
    if (steps_.size() == length_) return complete_();
    if (value) {
      continue_with(*value, [&](const EnumeratedStep& step, const Value& result) {
        with(step, [&] { extend(result); });
      });
    }
    for_each_form([&](const ops::Operator& op, const ops::Form& form) {
      const Value made{form.out_rank, ops::domain_of_leaves(op.domain), form.preserving ? 1 : 0};
      with({.op = &op, .form = &form, .depth = value ? 1 : 0},
           [&] { value ? extend_branch(*value, made, 1) : extend(made); });
    });
  }

  // `waiting` is joined with the branch, or the branch goes on, or has a branch of its own, or both are
  // results.
  void extend_branch(const Value& waiting, const Value& branch, int length) {
    if (steps_.size() == length_) return complete_();
    join(waiting, branch,
         [&](const EnumeratedStep& step, const Value& result) { with(step, [&] { extend(result); }); });
    if (length == longest_branch_) return;
    continue_with(branch, [&](EnumeratedStep step, const Value& result) {
      step.depth = 1;
      with(step, [&] { extend_branch(waiting, result, length + 1); });
    });
    if (length + 2 > longest_branch_) return;
    for_each_form([&](const ops::Operator& op, const ops::Form& form) {
      const Value made{form.out_rank, ops::domain_of_leaves(op.domain), form.preserving ? 1 : 0};
      with({.op = &op, .form = &form, .depth = 2},
           [&] { extend_branch_of_branch(waiting, branch, made, length + 1); });
    });
  }
  // `length`: of the branch, with the steps of its own branch.
  void extend_branch_of_branch(const Value& waiting, const Value& branch, const Value& inner, int length) {
    if (steps_.size() == length_) return;
    join(branch, inner, [&](EnumeratedStep step, const Value& result) {
      step.depth = 1;
      with(step, [&] { extend_branch(waiting, result, length + 1); });
    });
    if (length + 2 > longest_branch_) return;
    continue_with(inner, [&](EnumeratedStep step, const Value& result) {
      step.depth = 2;
      with(step, [&] { extend_branch_of_branch(waiting, branch, result, length + 1); });
    });
  }

  void continue_with(const Value& value, const Then& then) const {
    for_each_form([&](const ops::Operator& op, const ops::Form& form) {
      for (int a = 0; a < form.slots; ++a) {
        if (!computed(form, a) || form.slot[a].rank != value.rank) continue;
        if (a == 1 && op.commutes && alike(form)) continue;
        const int kept = !form.preserving ? 0 : a == 0 ? value.kept + 1 : 1;
        ops::Domain result{};
        if (ops::domain_of(op.domain, {.first = value.domain, .slot = static_cast<uint8_t>(a)}, result))
          then({.op = &op, .form = &form, .a = a}, {form.out_rank, result, kept});
        if (a != 0 || !form.preserving || !alike(form) || !computed(form, 1)) continue;
        if (!ops::domain_of(op.domain, {.first = value.domain, .second = ops::Domain::kWide, .two = true},
                            result))
          continue;
        for (int tap = 1; tap <= std::min(value.kept, 2); ++tap)
          then({.op = &op, .form = &form, .a = 0, .tap = tap}, {form.out_rank, result, kept});
      }
    });
  }

  void join(const Value& value, const Value& branch, const Then& then) const {
    for_each_form([&](const ops::Operator& op, const ops::Form& form) {
      for (int a = 0; a < form.slots; ++a)
        for (int b = 0; b < form.slots; ++b) {
          if (a == b || !computed(form, a) || !computed(form, b)) continue;
          if (form.slot[a].rank != value.rank || form.slot[b].rank != branch.rank) continue;
          if (a > b && op.commutes && alike(form)) continue;
          const ops::Operands operands{.first = a < b ? value.domain : branch.domain,
                                       .second = a < b ? branch.domain : value.domain,
                                       .two = true};
          ops::Domain result{};
          if (!ops::domain_of(op.domain, operands, result)) continue;
          const int kept = !form.preserving ? 0 : a == 0 ? value.kept + 1 : 1;
          then({.op = &op, .form = &form, .a = a, .b = b}, {form.out_rank, result, kept});
        }
    });
  }

  void with(const EnumeratedStep& step, const std::function<void()>& visit) {
    steps_.push_back(step);
    visit();
    steps_.pop_back();
  }

  // Sizes and their classes, of one shape.
  struct Sized {
    static constexpr size_t kMost = std::max(ops::kMaxRank, ops::kMaxInner);
    void push(int32_t size, int size_class) {
      dims[rank] = size, classes[rank] = size_class;
      ++rank;
    }
    void pop() { --rank; }
    int sum() const { return std::accumulate(classes.begin(), classes.begin() + rank, 0); }

    uint8_t rank = 0;
    std::array<int32_t, kMost> dims;
    std::array<int, kMost> classes;
  };
  using Operands = std::array<Sized, ops::kMaxSlots>;

  static bool small(const Sized& shape, int budget) {
    return std::all_of(shape.classes.begin(), shape.classes.begin() + shape.rank,
                       [](int c) { return c < kClasses; }) &&
           shape.sum() <= budget;
  }
  // What a form does away with is in one tensor, whatever the form: so many sizes need not be tried.
  void for_each_inner(size_t count, int lowest, Sized& made, const std::function<void()>& visit) const {
    if (!small(made, bounds_.elements)) return;
    if (made.rank == count) return visit();
    for (int c = lowest; c < kClasses; ++c)
      for (const int32_t size : grid(c)) {
        made.push(size, c);
        for_each_inner(count, lowest, made, visit);
        made.pop();
      }
  }
  static Sized operand(const ops::Slot& slot, const Sized& out, const Sized& inner) {
    Sized made;
    for (size_t d = 0; d < slot.rank; ++d) {
      const ops::Term term = slot.dims[d];
      const size_t i = term.index;
      using T = ops::Term;
      switch (term.kind) {
        case T::kOut:
          made.push(out.dims[i], out.classes[i]);
          break;
        case T::kInner:
          made.push(inner.dims[i], inner.classes[i]);
          break;
        case T::kOne:
          made.push(1, 0);
          break;
        case T::kTwice:
          made.push(2 * out.dims[i], out.classes[i] + 1);
          break;
        case T::kHalfUp:
          made.push((out.dims[i] + 1) / 2, out.classes[i]);
          break;
        case T::kHalfDown:
          made.push(out.dims[i] / 2, out.classes[i]);
          break;
        case T::kProduct:
          made.push(out.dims[i] * out.dims[i + 1], out.classes[i] + out.classes[i + 1]);
          break;
      }
    }
    return made;
  }

  void sizes() {
    size_t waits = length_;  // steps of the value that waits, where a branch is open at the end
    while (steps_[waits - 1].depth > 0) --waits;
    Sized result, waiting;
    for_each_bounded(steps_.back().form->out_rank, result, [&] {
      backwards(length_, result, [&] {
        if (waits == length_) return keep(result, waiting);
        for_each_bounded(steps_[waits - 1].form->out_rank, waiting,
                         [&] { backwards(waits, waiting, [&] { keep(result, waiting); }); });
      });
    });
  }
  // Shapes within the bound, without walking all that are not.
  void for_each_bounded(size_t rank, Sized& made, const std::function<void()>& visit) const {
    if (!small(made, bounds_.elements)) return;
    if (made.rank == rank) return visit();
    for (int c = 0; c < kClasses; ++c)
      for (const int32_t size : grid(c)) {
        made.push(size, c);
        for_each_bounded(rank, made, visit);
        made.pop();
      }
  }

  // The sizes of the steps that the value of the first `count` steps takes, which is of the shape `out`.
  void backwards(size_t count, const Sized& out, const std::function<void()>& then) {
    EnumeratedStep& step = steps_[count - 1];
    for_each_operands(step, out, [&](const Operands& operands) {
      if (step.a < 0) return then();
      const Sized& current = operands[static_cast<size_t>(step.a)];
      if (step.b < 0) return backwards(count - 1, current, then);
      size_t before = count - 1;
      while (steps_[before - 1].depth > step.depth) --before;
      backwards(count - 1, operands[static_cast<size_t>(step.b)], [&] { backwards(before, current, then); });
    });
  }

  bool has_sizes(EnumeratedStep step) {
    if (const auto known = has_sizes_.find(step.form); known != has_sizes_.end()) return known->second;
    bool any = false;
    Sized result;
    for_each_bounded(step.form->out_rank, result, [&] {
      if (!any) for_each_operands(step, result, [&](const Operands&) { any = true; });
    });
    return has_sizes_[step.form] = any;
  }

  void for_each_operands(EnumeratedStep& step, const Sized& out,
                         const std::function<void(const Operands&)>& visit) {
    const ops::Form& form = *step.form;
    for (size_t d = 0; d < form.out_rank; ++d)
      if (out.classes[d] < form.low[d] || out.classes[d] > form.high[d]) return;
    Sized inner;
    for_each_inner(form.inner, form.inner_low, inner, [&] {
      const int work = form.window_classes + out.sum() + inner.sum();
      if (form.work_is_product && work > bounds_.work) return;
      const int parameter = form.window_classes + operand(form.parameter, out, inner).sum();
      if (form.parameter.rank > 0 && parameter > bounds_.elements) return;
      Operands operands;
      for (size_t s = 0; s < form.slots; ++s) {
        operands[s] = operand(form.slot[s], out, inner);
        if (!small(operands[s], bounds_.elements)) return;
      }
      step.inner = {};
      std::copy_n(inner.dims.begin(), inner.rank, step.inner.begin());
      visit(operands);
    });
  }

  static ops::Shape shape_of(const Sized& sized) {
    ops::Shape shape;
    shape.rank = sized.rank;
    std::copy_n(sized.dims.begin(), sized.rank, shape.dims.begin());
    return shape;
  }
  void keep(const Sized& result, const Sized& waiting) {
    EnumeratedProgram program{.steps = steps_, .result = shape_of(result), .waiting = shape_of(waiting)};
    found_.push_back(std::move(program));
  }

  std::vector<const ops::Operator*> operators_;
  Bounds bounds_;
  size_t length_;
  int longest_branch_ = 4;
  std::function<void()> complete_;  // for every wiring
  std::map<const ops::Form*, bool> has_sizes_;
  std::vector<EnumeratedStep> steps_;
  std::vector<EnumeratedProgram> found_;
};

}  // namespace nereid::synth
