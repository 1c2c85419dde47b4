#include "nereid/verify/rules/host_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace nereid::verify {
namespace {

using Numbers = std::vector<double>;

constexpr size_t kMaxFactors = 512;  // that a relation is tried with
constexpr size_t kFewPerOutput =
    4;                        // an explanation but by copying asks for this many elements of output a number
constexpr size_t kTable = 8;  // different numbers that make a tensor a table

template <typename T>
double element(const std::string& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

// Empty where numbers of this type are not looked at.
Numbers decode(const std::string& bytes, trace::DType type) {
  using trace::DType;
  Numbers out;
  const auto fill = [&](auto read, size_t width) {
    for (size_t i = 0; i < bytes.size() / width; ++i) out.push_back(read(bytes, i));
  };
  switch (type) {
    case DType::kBool:
    case DType::kU8:
      fill(element<uint8_t>, 1);
      break;
    case DType::kI8:
      fill(element<int8_t>, 1);
      break;
    case DType::kI16:
      fill(element<int16_t>, 2);
      break;
    case DType::kI32:
      fill(element<int32_t>, 4);
      break;
    case DType::kI64:
      fill(element<int64_t>, 8);
      break;
    case DType::kF32:
      fill(element<float>, 4);
      break;
    case DType::kF64:
      fill(element<double>, 8);
      break;
    case DType::kF16:
    case DType::kBF16:  // their bits suffice to distinguish numbers
      fill(element<uint16_t>, 2);
      break;
    default:
      break;
  }
  return out;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b)); }

// `part` stands somewhere in `whole`, in this order, with no more others between than it has numbers itself:
// in a long input any few numbers stand far enough apart.
template <typename Relation>
bool follows(const Numbers& part, const Numbers& whole, Relation relation) {
  for (size_t start = 0; start < whole.size(); ++start) {
    size_t at = start, matched = 0;
    const size_t end = std::min(whole.size(), start + 2 * part.size());
    for (; at < end && matched < part.size(); ++at) {
      if (relation(part[matched], whole[at])) ++matched;
      if (matched == 0) break;
    }
    if (matched == part.size()) return true;
  }
  return part.empty();
}

// The numbers are those of `whole` or their reciprocals; with `factors`: these times a factor.
bool explained_by(const Numbers& numbers, const Numbers& whole, bool factors) {
  if (follows(numbers, whole, [](double n, double w) { return near(n, w); })) return true;
  if (follows(numbers, whole, [](double n, double w) { return near(n * w, 1); })) return true;
  if (!factors || numbers.size() < 2) return false;
  const auto first = std::ranges::find_if(numbers, [](double n) { return n != 0; });
  if (first == numbers.end()) return true;
  for (size_t i = 0; i < std::min(whole.size(), kMaxFactors); ++i) {
    if (whole[i] == 0) continue;
    const double times = *first / whole[i], over = *first * whole[i];
    if (follows(numbers, whole, [&](double n, double w) { return near(n, times * w); })) return true;
    if (follows(numbers, whole, [&](double n, double w) { return w != 0 && near(n, over / w); })) return true;
  }
  return false;
}
// The same of the numbers' squares: roots of what was read scale a sum as well.
bool roots_explained_by(Numbers numbers, const Numbers& whole, bool factors) {
  for (double& n : numbers) n *= n;
  return explained_by(numbers, whole, factors);
}

struct Call {
  const PhaseAnalysis* phase = nullptr;
  std::vector<Numbers> inputs{};   // of the pinned inputs
  std::vector<Numbers> derived{};  // their differences and running sums
};

class Finder {
 public:
  Finder(const TraceAnalysis& facts, const Dataflow& flow)
      : facts_(facts), trace_(*facts.trace), flow_(flow) {}

  std::optional<HostValue> find() {
    if (std::ranges::none_of(trace_.storages, &trace::Storage::pinned)) return std::nullopt;
    read_calls();
    for (const auto v : trace::tensors_in(trace_.phases[static_cast<size_t>(facts_.judged())].output))
      output_elements_ += static_cast<size_t>(trace::element_count(trace_.values[static_cast<size_t>(v)]));
    // All that varies, before any of it is explained: many small tensors are one large one.
    few_ = true;
    size_t varying = 0;
    for (const auto& given : constants()) varying += given.numbers.size();
    for (const auto& given : scalars()) varying += given.numbers.size();
    few_ = varying * kFewPerOutput <= output_elements_ || varying == 1;
    for (const auto& given : constants())
      if (given.opaque || !explained(given.numbers))
        return HostValue{
            given.step,
            fmt::format("A tensor of {} numbers that were worked out on the host from the values of "
                        "integer inputs is part of an output.",
                        given.numbers.size())};
    for (const auto& given : scalars())
      if (!explained(given.numbers) && !(few_ && proportional(given.numbers, given.before)))
        return HostValue{
            given.step,
            fmt::format(
                "{} number{} that the host worked out from the values of integer inputs {} part of an "
                "output, as an argument of {}.",
                given.numbers.size(), given.numbers.size() == 1 ? "" : "s",
                given.numbers.size() == 1 ? "is" : "are", given.step->name)};
    return std::nullopt;
  }

  std::optional<HostValue> find_answers(const replay::UnmovedReport& unmoved) {
    read_calls();
    const bool same_inputs =
        std::ranges::all_of(calls_, [&](const Call& call) { return call.inputs == judged().inputs; });
    if (same_inputs || calls_.size() < 2) return std::nullopt;
    const size_t varying = numbers_that_vary();
    if (varying == 0) return std::nullopt;
    const auto outputs = trace::tensors_in(trace_.phases[static_cast<size_t>(facts_.judged())].output);
    for (size_t i = 0; i < std::min(outputs.size(), unmoved.outputs.size()); ++i) {
      const auto& output = unmoved.outputs[i];
      few_ = varying * kFewPerOutput <= static_cast<size_t>(output.unmoved) || varying == 1;
      const bool by_many = !few_ && !shapes_alone(output);
      const bool by_few = few_ && i < unmoved.from_host.size() && !shapes_alone(unmoved.from_host[i]);
      if (by_many || by_few)
        return HostValue{
            writer_of(outputs[i]),
            fmt::format(
                "{} elements of output {} depend on integer inputs alone, and {} numbers that the host "
                "worked out from these (grids, addresses, arguments) decide them.",
                output.unmoved, i, varying)};
    }
    return std::nullopt;
  }

 private:
  // Padding, flags, the inputs' own numbers, and numbers counted up: what a trace's shape may decide.
  bool shapes_alone(const replay::UnmovedOutput& output) const {
    Numbers numbers;
    for (const double n : output.numbers)
      if (numbers.empty() || !(near(numbers.back(), n) || numbers.back() == n)) numbers.push_back(n);
    const std::set<float> different(numbers.begin(), numbers.end());
    if (different.size() <= 2 && output.unmoved < output.elements) return true;
    const bool flags = std::ranges::all_of(different, [](float n) { return n == 0 || n == 1; });
    if (flags && (few_ || different.size() <= 1)) return true;
    if (copied(numbers)) return true;
    size_t steps = 0;
    for (size_t k = 1; k < numbers.size(); ++k) steps += numbers[k] == numbers[k - 1] + 1 ? 1 : 0;
    return few_ && (explained(numbers) || 4 * steps >= 3 * (numbers.size() - 1));
  }

  const StepAnalysis* writer_of(trace::ValueId value) const {
    const auto storage = trace_.values[static_cast<size_t>(value)].storage;
    const StepAnalysis* writer = nullptr;
    for (const auto& step : flow_.steps)
      if (std::ranges::find(step.facts->writes, storage) != step.facts->writes.end()) writer = step.facts;
    return writer;
  }

  // Numbers of the judged call that the other calls do not have in their place: of tensors made on the host,
  // of launches' grids, arguments and offsets, and of operands' offsets.
  size_t numbers_that_vary() {
    size_t count = 0;
    for (const auto& given : constants(false)) count += std::max<size_t>(given.numbers.size(), 1);
    const auto now = numbers_of_steps(facts_.judged());
    std::vector<std::map<std::string, Numbers>> others;
    for (size_t p = 0; p < facts_.phases.size(); ++p)
      if (facts_.phases[p].kind == trace::PhaseKind::kForward && static_cast<int>(p) != facts_.judged())
        others.push_back(numbers_of_steps(static_cast<int>(p)));
    for (const auto& [slot, numbers] : now) {
      const auto as_before = [&](const auto& other) {
        const auto at = other.find(slot);
        return at != other.end() && at->second == numbers;
      };
      if (!std::ranges::any_of(others, as_before)) count += numbers.size();
    }
    return count;
  }
  // Where the operands of an operator begin.
  void add_places(const trace::Call& call, std::map<std::string, Numbers>& slots) const {
    for (size_t a = 0; a < call.args.size(); ++a)
      for (const auto v : trace::tensors_in(call.args[a]))
        slots[fmt::format("{}:{}", call.op, a)].push_back(
            static_cast<double>(trace_.values[static_cast<size_t>(v)].offset));
  }
  std::map<std::string, Numbers> numbers_of_steps(int phase) const {
    std::map<std::string, Numbers> slots;
    const auto& steps = trace_.phases[static_cast<size_t>(phase)].steps;
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto* launch = std::get_if<trace::Launch>(&steps[i]);
      if (launch == nullptr) {
        const auto& facts = facts_.phases[static_cast<size_t>(phase)].steps[i];
        if (!facts.reads.empty() || !facts.writes.empty()) add_places(std::get<trace::Call>(steps[i]), slots);
        continue;
      }
      const auto& one = launch->alternatives.front();
      const auto& kernel = trace_.kernels[static_cast<size_t>(one.kernel)];
      const auto add = [&](const std::string& slot, double number) {
        slots[kernel.name + ":" + slot].push_back(number);
      };
      for (size_t d = 0; d < one.grid.size(); ++d)
        add(fmt::format("grid {}", d), static_cast<double>(one.grid[d]));
      for (size_t a = 0; a < one.args.size(); ++a) {
        if (const auto* whole = std::get_if<trace::IntArg>(&one.args[a]))
          add(fmt::format("{}", a), static_cast<double>(whole->value));
        if (const auto* real = std::get_if<trace::FloatArg>(&one.args[a]))
          add(fmt::format("{}", a), real->value);
        if (const auto* pointer = std::get_if<trace::PointerArg>(&one.args[a]);
            pointer != nullptr && pointer->value >= 0)
          add(fmt::format("{}", a),
              static_cast<double>(pointer->offset) +
                  static_cast<double>(trace_.values[static_cast<size_t>(pointer->value)].offset));
      }
      for (const auto& [name, text] : kernel.constants)
        add(name, static_cast<double>(std::hash<std::string>{}(text)));
    }
    return slots;
  }

  Call call_of(size_t phase) const {
    Call call{.phase = &facts_.phases[phase]};
    call.inputs = pinned_inputs(trace_, phase);
    for (const auto& numbers : call.inputs) {
      Numbers differences, sums = {0};
      for (size_t i = 1; i < numbers.size(); ++i) differences.push_back(numbers[i] - numbers[i - 1]);
      for (const double n : numbers) sums.push_back(sums.back() + n);
      call.derived.push_back(std::move(differences));
      call.derived.push_back(std::move(sums));
    }
    return call;
  }
  const Call& judged() const { return calls_.back(); }
  void read_calls() {
    for (size_t p = 0; p < facts_.phases.size(); ++p)
      if (facts_.phases[p].kind == trace::PhaseKind::kForward) calls_.push_back(call_of(p));
  }

  bool copied(const Numbers& numbers) const {
    return std::ranges::any_of(judged().inputs, [&](const Numbers& input) {
      return follows(numbers, input, [](double n, double w) { return n == w; });
    });
  }
  bool explained(const Numbers& numbers) const {
    if (numbers.empty() || (numbers.size() > 1 && copied(numbers))) return true;
    if (!few_) return false;
    const bool flags = std::ranges::all_of(numbers, [](double n) { return n == 0 || n == 1; });
    const bool one = std::ranges::all_of(numbers, [&](double n) { return n == numbers[0]; });
    if (one && numbers.size() > 1) return explained({numbers[0]});
    const auto by = [&](const std::vector<Numbers>& many, bool factors) {
      return std::ranges::any_of(many, [&](const Numbers& w) {
        return explained_by(numbers, w, factors) || roots_explained_by(numbers, w, factors);
      });
    };
    return flags || by(judged().inputs, true) || by(judged().derived, true);
  }

  // Numbers that follow from the inputs.
  struct Given {
    const StepAnalysis* step = nullptr;
    Numbers numbers{};
    std::vector<const Numbers*> before{};  // of scalars: what the other calls gave in their place
    bool opaque = false;                   // numbers of a type that is not decoded: nothing explains them
  };

  // Tensors made of the host's data.
  std::vector<Given> constants(bool as_data = true) const {
    std::set<std::string> others;
    for (const auto& phase : facts_.phases) {
      if (&phase == judged().phase) continue;
      for (const auto& step : in_order(phase))
        if (step.facts->constant >= 0)
          others.insert(trace_.storages[static_cast<size_t>(step.facts->constant)].data);
    }
    const bool same_inputs =
        std::ranges::all_of(calls_, [&](const Call& call) { return call.inputs == judged().inputs; });
    std::vector<Given> found;
    for (const auto& step : flow_.steps) {
      const auto id = step.facts->constant;
      if (id < 0 || !step.live || (as_data && !step.as_data)) continue;
      const auto& data = trace_.storages[static_cast<size_t>(id)].data;
      const auto type = type_of(id);
      Numbers numbers = decode(data, type);
      // Where the inputs never change, nothing shows what follows from them: a table then counts.
      if (same_inputs ? !is_table(numbers) : others.contains(data)) continue;
      const bool opaque = type == trace::DType::kF16 || type == trace::DType::kBF16 || numbers.empty();
      found.push_back({.step = step.facts, .numbers = std::move(numbers), .opaque = opaque && !data.empty()});
    }
    return found;
  }

  static bool is_table(const Numbers& numbers) {
    return std::set<double>(numbers.begin(), numbers.end()).size() >= kTable;
  }
  trace::DType type_of(trace::StorageId id) const {
    for (const auto& value : trace_.values)
      if (value.storage == id) return value.dtype;
    return trace::DType::kU8;
  }

  using Slots = std::map<std::string, std::pair<Numbers, const StepAnalysis*>>;
  static void collect(const StepAnalysis& step, Slots& slots) {
    for (const auto& number : step.numbers) {
      auto& [numbers, at] = slots[number.slot];
      numbers.push_back(number.value), at = &step;
    }
  }

  // Launches' arguments, kernels' constants, fills.
  std::vector<Given> scalars() {
    std::vector<Given> found;
    if (calls_.size() < 2) return found;
    Slots now;
    for (const auto& step : flow_.steps)
      if (step.live && step.as_data && (step.facts->over_integers != Work::kHeavy || step.origins == 0))
        collect(*step.facts, now);
    if (others_.empty())
      for (size_t c = 0; c + 1 < calls_.size(); ++c) {
        others_.emplace_back();
        for (const auto& step : in_order(*calls_[c].phase)) collect(*step.facts, others_.back());
      }
    for (const auto& [slot, given] : now) {
      const auto& numbers = given.first;
      std::vector<const Numbers*> before;
      for (const auto& other : others_)
        if (const auto at = other.find(slot); at != other.end()) before.push_back(&at->second.first);
      // The same numbers, or where there is another number of launches, none that are new.
      const auto as_before = [&](const Numbers* other) {
        const auto known = [&](double n) { return std::ranges::find(*other, n) != other->end(); };
        return *other == numbers || (other->size() != numbers.size() && std::ranges::all_of(numbers, known));
      };
      if (std::ranges::any_of(before, as_before)) continue;
      found.push_back({.step = given.second, .numbers = numbers, .before = std::move(before)});
    }
    return found;
  }

  // One number a call that is in all calls the same multiple of one of the input's numbers, or of its
  // reciprocal.
  bool proportional(const Numbers& numbers, const std::vector<const Numbers*>& before) const {
    if (numbers.size() != 1 || before.size() + 1 != calls_.size()) return false;
    const auto value = [&](size_t call) {
      return call + 1 == calls_.size() ? numbers[0] : before[call]->front();
    };
    if (std::ranges::any_of(before, [](const Numbers* other) { return other->size() != 1; })) return false;
    for (const bool derived : {false, true}) {
      const auto of = [&](const Call& call) -> const std::vector<Numbers>& {
        return derived ? call.derived : call.inputs;
      };
      for (size_t k = 0; k < of(judged()).size(); ++k)
        for (size_t j = 0; j < of(judged())[k].size(); ++j) {
          bool same_times = true, same_over = true;
          for (size_t c = 0; c < calls_.size(); ++c) {
            if (k >= of(calls_[c]).size() || j >= of(calls_[c])[k].size()) return false;
            const double input = of(calls_[c])[k][j], given = value(c);
            same_times &= near(given * of(judged())[k][j], value(calls_.size() - 1) * input);
            same_over &= near(given * input, value(calls_.size() - 1) * of(judged())[k][j]);
          }
          if (same_times || same_over) return true;
        }
    }
    return false;
  }

  const TraceAnalysis& facts_;
  const trace::Trace& trace_;
  const Dataflow& flow_;
  std::vector<Call> calls_;
  std::vector<Slots> others_;  // of the calls before the judged one
  size_t output_elements_ = 0;
  bool few_ = true;  // the numbers that vary are few against the outputs' elements
};

}  // namespace

std::optional<HostValue> answered_by_host(const TraceAnalysis& facts, const replay::UnmovedReport& unmoved) {
  if (facts.judged() < 0 || std::ranges::none_of(facts.trace->storages, &trace::Storage::pinned))
    return std::nullopt;
  const auto flow = trace_dataflow(facts);
  return Finder(facts, flow).find_answers(unmoved);
}

std::optional<HostValue> computed_on_host(const TraceAnalysis& facts, const Dataflow& flow) {
  return facts.judged() < 0 ? std::nullopt : Finder(facts, flow).find();
}

std::vector<std::vector<double>> pinned_inputs(const trace::Trace& trace, size_t phase) {
  std::vector<std::vector<double>> inputs;
  for (const auto v : trace::tensors_in(trace.phases[phase].inputs)) {
    const auto& value = trace.values[static_cast<size_t>(v)];
    const auto& storage = trace.storages[static_cast<size_t>(value.storage)];
    if (storage.pinned && trace::is_integral(value.dtype))
      inputs.push_back(decode(storage.data, value.dtype));
  }
  return inputs;
}

}  // namespace nereid::verify
