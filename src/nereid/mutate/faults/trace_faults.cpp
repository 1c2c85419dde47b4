// Faults outside of the kernels' text: what launches are given, and what stands between them.
#include <algorithm>
#include <map>
#include <set>

#include "nereid/mutate/mutant.h"

namespace nereid::mutate {
namespace {

using std::string;
using trace::Alternative;
using trace::Call;
using trace::Launch;

constexpr int64_t kFewArguments = 64;

string text_of(const trace::LaunchArg& arg) {
  if (const auto* p = std::get_if<trace::PointerArg>(&arg))
    return fmt::format("value {} + {} bytes", p->value, p->offset);
  if (const auto* i = std::get_if<trace::IntArg>(&arg)) return fmt::format("{}", i->value);
  if (const auto* f = std::get_if<trace::FloatArg>(&arg)) return fmt::format("{:g}", f->value);
  const auto& d = std::get<trace::DescriptorArg>(arg);
  return fmt::format("descriptor of value {}, shape {}, strides {}", d.value, fmt::join(d.shape, "x"),
                     fmt::join(d.strides, "x"));
}

class TraceFaults {
 public:
  explicit TraceFaults(const trace::Trace& trace) : trace_(trace) {}

  std::vector<Mutant> make() {
    const auto& steps = judged_phase(trace_).steps;
    int launches = 0;
    for (const auto& step : steps) launches += std::holds_alternative<Launch>(step) ? 1 : 0;
    for (size_t s = 0; s < steps.size(); ++s) {
      step_ = static_cast<int>(s);
      if (const auto* launch = std::get_if<Launch>(&steps[s])) {
        of_launch(*launch);
        if (launches > 1) drop(Fault::kPartialOutput, "a launch left out", name_of(*launch));
      } else {
        of_call(std::get<Call>(steps[s]));
      }
    }
    earlier_inputs();
    return std::move(out_);
  }

 private:
  string name_of(const Launch& launch) const {
    return trace_.kernels[static_cast<size_t>(launch.alternatives.front().kernel)].name;
  }

  void add(Fault fault, string what, string before, string after, std::function<void(trace::Trace&)> apply) {
    const auto& step = judged_phase(trace_).steps[static_cast<size_t>(step_)];
    Mutant mutant;
    mutant.fault = fault, mutant.what = std::move(what), mutant.apply = std::move(apply);
    mutant.before = {std::move(before)}, mutant.after = {std::move(after)};
    const auto& place = std::visit([](const auto& s) -> const trace::Place& { return s.place; }, step);
    mutant.file = place.file, mutant.line = place.line;
    if (const auto* launch = std::get_if<Launch>(&step)) mutant.kernel = name_of(*launch);
    out_.push_back(std::move(mutant));
  }

  void drop(Fault fault, const string& what, const string& name) {
    add(fault, what, name, "", [step = step_](trace::Trace& trace) {
      in_every_forward(trace, step, [](trace::Phase& phase, size_t at) {
        phase.steps.erase(phase.steps.begin() + static_cast<std::ptrdiff_t>(at));
      });
    });
  }

  // In every configuration of the launch.
  void change(Fault fault, const string& what, const string& before, const string& after,
              std::function<void(Alternative&)> how) {
    add(fault, what, before, after, [step = step_, how = std::move(how)](trace::Trace& trace) {
      in_every_forward(trace, step, [&](trace::Phase& phase, size_t at) {
        if (auto* launch = std::get_if<Launch>(&phase.steps[at]))
          for (auto& alternative : launch->alternatives) how(alternative);
      });
    });
  }
  void change_argument(Fault fault, const string& what, size_t index, const trace::LaunchArg& now) {
    const auto& launch = std::get<Launch>(judged_phase(trace_).steps[static_cast<size_t>(step_)]);
    change(fault, fmt::format("argument {}: {}", index, what),
           text_of(launch.alternatives.front().args[index]), text_of(now), [index, now](Alternative& a) {
             if (index < a.args.size() && a.args[index].index() == now.index()) a.args[index] = now;
           });
  }

  void of_launch(const Launch& launch) {
    const auto& first = launch.alternatives.front();
    for (size_t axis = 0; axis < 3; ++axis)
      if (first.grid[axis] > 1)
        change(Fault::kPartialOutput, fmt::format("one program fewer along axis {}", axis),
               fmt::format("{}", fmt::join(first.grid, "x")), "", [axis](Alternative& a) {
                 if (a.grid[axis] > 1) --a.grid[axis];
               });
    if (first.args.size() > kFewArguments) return;
    for (size_t i = 0; i < first.args.size(); ++i) {
      if (const auto* number = std::get_if<trace::IntArg>(&first.args[i])) {
        change_argument(Fault::kIndex, "plus one", i, trace::IntArg{number->value + 1});
        if (number->value > 0)
          change_argument(Fault::kIndex, "minus one", i, trace::IntArg{number->value - 1});
      } else if (const auto* real = std::get_if<trace::FloatArg>(&first.args[i])) {
        change_argument(Fault::kConstant, "other by 5 %", i, trace::FloatArg{real->value * 1.05});
        change_argument(Fault::kConstant, real->value == 0 ? "1" : "0", i,
                        trace::FloatArg{real->value == 0 ? 1.0 : 0.0});
      } else if (const auto* descriptor = std::get_if<trace::DescriptorArg>(&first.args[i])) {
        for (size_t d = 0; d < descriptor->shape.size(); ++d) {
          if (descriptor->shape[d] < 2) continue;
          auto other = *descriptor;
          --other.shape[d];
          change_argument(Fault::kIndex, fmt::format("size {} of a descriptor minus one", d), i, other);
        }
      } else {
        of_pointer(first, i, std::get<trace::PointerArg>(first.args[i]));
      }
    }
  }

  void of_pointer(const Alternative& alternative, size_t index, const trace::PointerArg& pointer) {
    if (pointer.value < 0) return;
    const auto& value = trace_.values[static_cast<size_t>(pointer.value)];
    auto further = pointer;
    further.offset += trace::element_bytes(value.dtype);
    change_argument(Fault::kIndex, "a pointer one element further", index, further);
    std::set<trace::ValueId> others;
    for (const auto& arg : alternative.args)
      if (const auto* other = std::get_if<trace::PointerArg>(&arg))
        if (other->value >= 0 && other->value != pointer.value &&
            trace_.values[static_cast<size_t>(other->value)].dtype == value.dtype &&
            trace::element_count(trace_.values[static_cast<size_t>(other->value)]) >=
                trace::element_count(value))
          others.insert(other->value);
    for (const auto other : others)
      // Values differ from call to call: what is exchanged is the place among the arguments.
      for (size_t j = 0; j < alternative.args.size(); ++j)
        if (const auto* p = std::get_if<trace::PointerArg>(&alternative.args[j]);
            p != nullptr && p->value == other) {
          change(Fault::kIgnoredInput, fmt::format("argument {} in place of argument {}", j, index),
                 text_of(pointer), text_of(alternative.args[j]), [index, j](Alternative& a) {
                   if (index < a.args.size() && j < a.args.size()) a.args[index] = a.args[j];
                 });
          break;
        }
  }

  void of_call(const Call& call) {
    static const std::map<string, string> not_zero = {{"aten::zeros", "aten::empty.memory_format"},
                                                      {"aten::zeros_like", "aten::empty_like"},
                                                      {"aten::new_zeros", "aten::new_empty"}};
    static const std::map<string, string> other = {{"aten::add.Tensor", "aten::sub.Tensor"},
                                                   {"aten::sub.Tensor", "aten::add.Tensor"},
                                                   {"aten::mul.Tensor", "aten::div.Tensor"},
                                                   {"aten::div.Tensor", "aten::mul.Tensor"},
                                                   {"aten::sum", "aten::mean"},
                                                   {"aten::mean", "aten::sum"},
                                                   {"aten::exp", "aten::exp2"},
                                                   {"aten::relu", "aten::abs"}};
    if (const auto found = not_zero.find(call.op); found != not_zero.end())
      rename(Fault::kInitialisation, "zeros are not written", call, found->second);
    if (const auto found = other.find(call.op); found != other.end())
      rename(Fault::kOperator, "another operator", call, found->second);
    if (call.op == "aten::zero_" || call.op == "aten::fill_.Scalar" || call.op == "aten::fill_.Tensor")
      drop(Fault::kInitialisation, "a fill left out", call.op);
    for (size_t i = 1; i < call.args.size(); ++i)
      if (const auto* real = std::get_if<double>(&call.args[i].node))
        add(Fault::kConstant, fmt::format("argument {} of {}: other by 5 %", i, call.op),
            fmt::format("{:g}", *real), fmt::format("{:g}", *real * 1.05),
            [step = step_, i, now = *real * 1.05](trace::Trace& trace) {
              in_every_forward(trace, step, [&](trace::Phase& phase, size_t at) {
                auto* c = std::get_if<Call>(&phase.steps[at]);
                if (c != nullptr && i < c->args.size()) c->args[i].node = now;
              });
            });
  }

  void rename(Fault fault, const string& what, const Call& call, const string& to) {
    add(fault, what, call.op, to, [step = step_, from = call.op, to](trace::Trace& trace) {
      in_every_forward(trace, step, [&](trace::Phase& phase, size_t at) {
        auto* c = std::get_if<Call>(&phase.steps[at]);
        if (c != nullptr && c->op == from) c->op = to;
      });
    });
  }

  // The judged call reads an input of the call before.
  void earlier_inputs() {
    const trace::Phase *last = nullptr, *before = nullptr;
    for (const auto& phase : trace_.phases)
      if (phase.kind == trace::PhaseKind::kForward) before = last, last = &phase;
    if (before == nullptr) return;
    const auto now = trace::tensors_in(last->inputs), earlier = trace::tensors_in(before->inputs);
    for (size_t i = 0; i < now.size() && now.size() == earlier.size(); ++i) {
      if (now[i] == earlier[i]) continue;
      const auto& steps = last->steps;
      for (size_t s = 0; s < steps.size(); ++s) {
        const auto* launch = std::get_if<Launch>(&steps[s]);
        if (launch == nullptr || !reads(*launch, now[i])) continue;
        step_ = static_cast<int>(s);
        add(Fault::kIgnoredInput, "the input of the call before", fmt::format("value {}", now[i]),
            fmt::format("value {}", earlier[i]), [s, from = now[i], to = earlier[i]](trace::Trace& trace) {
              for (auto& a : std::get<Launch>(trace.phases.back().steps[s]).alternatives)
                for (auto& arg : a.args)
                  if (auto* p = std::get_if<trace::PointerArg>(&arg); p != nullptr && p->value == from)
                    p->value = to;
            });
      }
    }
  }
  static bool reads(const Launch& launch, trace::ValueId value) {
    return std::ranges::any_of(launch.alternatives.front().args, [&](const trace::LaunchArg& arg) {
      const auto* p = std::get_if<trace::PointerArg>(&arg);
      return p != nullptr && p->value == value;
    });
  }

  const trace::Trace& trace_;
  int step_ = 0;
  std::vector<Mutant> out_;
};

}  // namespace

std::vector<Mutant> trace_faults(const trace::Trace& trace) { return TraceFaults(trace).make(); }

}  // namespace nereid::mutate
