#include "nereid/synth/write/code_style.h"

#include <algorithm>

#include "nereid/ops/spelling.h"

namespace nereid::synth {
namespace {

class Drawer {
 public:
  Drawer(Rng& rng, const Program& program) : rng_(rng), program_(program), uses_(uses_of(program)) {}

  CodeStyle draw() {
    const size_t steps = program_.steps.size();
    made_.names = static_cast<Names>(rng_.below(3));
    made_.sizes = static_cast<SizeStyle>(rng_.below(3));
    made_.size_names = static_cast<uint8_t>(rng_.below(4));
    made_.input_names = static_cast<uint8_t>(rng_.below(3));
    made_.spoken = static_cast<uint8_t>(rng_.below(2));
    const uint32_t flags = rng_.below(1 << 10);
    made_.docstring = (flags & 3) != 0, made_.forward_docstring = (flags & 12) == 0;
    made_.type_hints = (flags & 16) != 0, made_.long_super = (flags & 96) == 0;
    made_.plain_import = (flags & 128) != 0, made_.spaced = (flags & 256) != 0,
    made_.tight = (flags & 512) != 0;
    const uint32_t comments = rng_.below(4);
    made_.shape_comments = comments == 0, made_.said_comments = comments == 1;
    if (program_.waiting >= 0)
      made_.second_output = program_.waiting;
    else if (steps > 2 && rng_.below(8) == 0)
      made_.second_output = static_cast<int>(rng_.below(static_cast<uint32_t>(steps - 1)));
    spell();
    parameters();
    regions();
    inlines();
    if (rng_.below(2) == 0) made_.invented_sizes = 1 + rng_.below(1U << 30);
    if (rng_.below(2) == 0) made_.invented_names = 1 + rng_.below(1U << 30);
    made_.docstring_style = static_cast<uint8_t>(rng_.below(6)),
    made_.made = static_cast<uint8_t>(rng_.below(8));
    made_.kept_numbers = rng_.below(4) == 0, made_.defaults = rng_.below(5) == 0,
    made_.unpacked = rng_.below(5) == 0;
    made_.axes = static_cast<ops::Applied::Axes>(rng_.below(3));
    made_.bare = rng_.below(3) == 0, made_.assigned_input = rng_.below(2) == 0,
    made_.whole_paths = rng_.below(10) == 0, made_.more_imports = rng_.below(6) == 0;
    static constexpr CodeStyle::Returned kReturned[] = {
        CodeStyle::kTuple, CodeStyle::kTuple, CodeStyle::kTuple, CodeStyle::kList, CodeStyle::kDict};
    made_.returned = kReturned[rng_.below(5)];
    if (rng_.below(5) < 3) made_.prose = 1 + rng_.below(1U << 30);
    if (rng_.below(2) == 0) made_.shuffled = 1 + rng_.below(1U << 30);
    if (rng_.below(3) == 0) made_.spare = static_cast<uint8_t>(1 + rng_.below(3));
    made_.passed_numbers = rng_.below(2) == 0, made_.global_numbers = rng_.below(8) == 0,
    made_.apart = rng_.below(2) == 0, made_.one_by_one = rng_.below(2) == 0;
    made_.passed_windows = rng_.below(3) == 0,
    made_.inferred = static_cast<ops::Applied::Inferred>(std::max(2U, rng_.below(5)) - 2);
    if (rng_.below(3) != 0) made_.phrasing = rng_.below(1U << 20);
    made_.bare_axes = rng_.below(3) == 0, made_.listed_axes = rng_.below(3) == 0,
    made_.inline_shapes = rng_.below(8) == 0, made_.loops = rng_.below(5) == 0,
    made_.short_transpose = rng_.below(2) == 0;
    const bool numbers_first = rng_.below(2) == 0;
    for (size_t i = 0; i < steps; ++i) made_.number_first.push_back(numbers_first && rng_.below(2) == 0);
    return std::move(made_);
  }

 private:
  bool spelled(size_t step, Spelling spelling) const {
    const ops::Operator& op = *program_.steps[step].applied.op;
    return spelling == Spelling::kFunctional ||
           !(spelling == Spelling::kMethod ? op.method : op.module).empty();
  }

  void spell() {
    const uint32_t style = rng_.below(4);   // modules, functions, methods, a mixture
    const bool owned = rng_.below(3) == 0;  // layers as functions of the module's own parameters
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const ops::Operator& op = *program_.steps[i].applied.op;
      constexpr Spelling kWanted[][3] = {
          {Spelling::kModule, Spelling::kMethod, Spelling::kFunctional},
          {Spelling::kFunctional, Spelling::kFunctional, Spelling::kFunctional},
          {Spelling::kMethod, Spelling::kFunctional, Spelling::kFunctional}};
      const uint32_t of_step = style < 3 ? style : rng_.below(3);
      Spelling chosen = Spelling::kFunctional;
      for (const Spelling wanted : kWanted[of_step])
        if (spelled(i, wanted)) {
          chosen = wanted;
          break;
        }
      if (!op.weights.empty() && !owned && !op.module.empty()) chosen = Spelling::kModule;
      made_.spelling.push_back(chosen);
      std::array<uint8_t, 2> constants{};
      for (const char which : {'a', 'b'})
        if (const int count = ops::constant_count(op, which); count > 1)
          constants[which == 'a' ? 0 : 1] = static_cast<uint8_t>(rng_.below(static_cast<uint32_t>(count)));
      made_.constants.push_back(constants);
    }
  }

  // Small operands that a layer would own: the second of a product, a row that is added or multiplied by.
  void parameters() {
    made_.parameter.assign(program_.inputs.size(), false);
    if (rng_.below(2) == 0) return;
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      if (step.operands.size() != 2 || !step.operands[1].fresh) continue;
      const Input& input = program_.inputs[step.operands[1].index];
      const bool owned = input.range == ops::Range::kWeight ||
                         (input.range == ops::Range::kNormal && step.applied.op->rule == ops::Rule::kBinary &&
                          input.shape.rank < step.applied.out.rank);
      made_.parameter[step.operands[1].index] = owned && input.shape.rank <= 3 && rng_.below(2) == 0;
    }
  }

  // Whether nothing of the steps is used outside but the last one's result.
  bool closed(size_t first, size_t last) const {
    for (size_t i = first; i < last; ++i)
      if (uses_.last[i] > last || made_.second_output == static_cast<int>(i)) return false;
    return true;
  }
  bool sequential(size_t i) const {
    const Step& step = program_.steps[i];
    return made_.spelling[i] == Spelling::kModule && step.operands.size() == 1 &&
           step.applied.op->call.empty();
  }
  bool owns_nothing(size_t i) const {
    if (made_.spelling[i] == Spelling::kModule || !program_.steps[i].applied.op->weights.empty())
      return false;
    return std::none_of(program_.steps[i].operands.begin(), program_.steps[i].operands.end(),
                        [&](Ref ref) { return ref.fresh && made_.parameter[ref.index]; });
  }

  void regions() {
    const size_t count = program_.steps.size();
    const uint32_t apart = rng_.below(4);  // none, functions, modules, all kinds
    if (count < 2 || apart == 0) return sequences(0, count);
    size_t free = 0;  // steps before it are taken
    for (size_t tries = 1 + rng_.below(static_cast<uint32_t>(1 + count / 6)); tries > 0 && free + 1 < count;
         --tries) {
      const size_t first = free + rng_.below(static_cast<uint32_t>(count - free));
      const size_t longest = std::min<size_t>(5, count - first);
      size_t last = first + rng_.below(static_cast<uint32_t>(longest));
      if (!closed(first, last) || last - first + 1 == count) continue;
      bool plain = true;
      for (size_t i = first; i <= last; ++i) plain &= owns_nothing(i);
      const bool function = plain && (apart == 1 || (apart == 3 && rng_.below(2) == 0));
      if (!function && (apart == 1 || last == first)) continue;
      sequences(free, first);
      made_.regions.push_back({function ? Region::kFunction : Region::kModule, static_cast<uint16_t>(first),
                               static_cast<uint16_t>(last)});
      free = last + 1;
    }
    sequences(free, count);
  }

  // Runs of layers, of which each takes what the one before it gives, as one nn.Sequential.
  void sequences(size_t first, size_t end) {
    for (size_t i = first; i < end;) {
      size_t last = i;
      if (sequential(i))
        while (last + 1 < end && sequential(last + 1) && !program_.steps[last + 1].operands[0].fresh &&
               program_.steps[last + 1].operands[0].index == last && uses_.count[last] == 1 &&
               made_.second_output != static_cast<int>(last))
          ++last;
      if (last > i && rng_.below(3) != 0)
        made_.regions.push_back({Region::kSequential, static_cast<uint16_t>(i), static_cast<uint16_t>(last)});
      i = last + 1;
    }
  }

  void inlines() {
    const size_t count = program_.steps.size();
    made_.inlined.assign(count, false);
    const uint32_t often = rng_.below(4);  // out of 4
    std::vector<int> region(count, -1);
    for (size_t r = 0; r < made_.regions.size(); ++r)
      for (size_t i = made_.regions[r].first; i <= made_.regions[r].last; ++i)
        region[i] = static_cast<int>(r);
    int depth = 0;
    for (size_t i = 0; i + 1 < count; ++i) {
      const bool whole =
          region[i] == region[i + 1] &&
          (region[i] < 0 || made_.regions[static_cast<size_t>(region[i])].kind != Region::kSequential);
      const bool wanted = uses_.count[i] == 1 && uses_.last[i] == i + 1 && whole && depth < 3 &&
                          made_.second_output != static_cast<int>(i) && mentioned_once(i + 1) &&
                          pattern_of(i).find('\n') == std::string_view::npos;
      made_.inlined[i] = wanted && rng_.below(4) < often;
      depth = made_.inlined[i] ? depth + 1 : 0;
    }
  }
  // Empty of modules.
  std::string_view pattern_of(size_t i) const {
    const ops::Operator& op = *program_.steps[i].applied.op;
    return made_.spelling[i] == Spelling::kMethod       ? op.method
           : made_.spelling[i] == Spelling::kFunctional ? op.functional
                                                        : std::string_view();
  }
  // Whether an expression may stand where the step's spelling has an operand: once, and before all calls.
  bool mentioned_once(size_t i) const {
    const std::string_view pattern = pattern_of(i);
    if (pattern.empty()) return true;
    if (pattern.find("{x}", pattern.find("{x}") + 1) != pattern.npos) return false;
    // What stands behind a comparison or a call of the pattern's would be computed after it.
    if (pattern.find(" > 0") < pattern.find("{x}")) return false;
    const auto& operands = program_.steps[i].operands;
    for (size_t s = 1; s < operands.size() && s < 3; ++s) {
      const char name[] = {'{', static_cast<char>('x' + s), '}', '\0'};
      if (!operands[s].fresh && operands[s].index + 1U == i && pattern.find(')') < pattern.find(name))
        return false;
    }
    return true;
  }

  Rng& rng_;
  const Program& program_;
  const Uses uses_;
  CodeStyle made_;
};

}  // namespace

Uses uses_of(const Program& program) {
  Uses uses;
  uses.count.assign(program.steps.size(), 0), uses.last.assign(program.steps.size(), 0);
  for (size_t i = 0; i < program.steps.size(); ++i)
    for (const Ref ref : program.steps[i].operands)
      if (!ref.fresh) ++uses.count[ref.index], uses.last[ref.index] = static_cast<uint16_t>(i);
  return uses;
}

ops::Applied styled_call(const Program& program, const CodeStyle& style, size_t step) {
  ops::Applied applied = program.steps[step].applied;
  applied.constants = style.constants[step], applied.axes = style.axes, applied.inferred = style.inferred;
  applied.bare_axes = style.bare_axes, applied.listed_axes = style.listed_axes,
  applied.short_transpose = style.short_transpose;
  return applied;
}

std::array<std::string_view, 2> result_keys(const CodeStyle& style) {
  static constexpr std::array<std::string_view, 2> kKeys[] = {
      {"out", "aux"}, {"y", "z"}, {"result", "hidden"}, {"output", "state"}};
  return kKeys[(style.spoken + 2U * style.input_names) % std::size(kKeys)];
}

CodeStyle draw_code_style(Rng& rng, const Program& program) { return Drawer(rng, program).draw(); }

}  // namespace nereid::synth
