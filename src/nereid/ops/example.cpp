#include "nereid/ops/example.h"

#include "nereid/ops/spelling.h"

namespace nereid::ops {

Applied example(const Operator& op, const Form& form, int variant) {
  static constexpr int32_t kOut[][kMaxRank] = {{4, 6, 8, 5, 7}, {2, 8, 3, 6, 4}, {6, 4, 5, 7, 8}};
  static constexpr int32_t kInner[][kMaxInner] = {{5, 9, 3, 2, 2}, {7, 4, 6, 3, 2}, {3, 5, 2, 4, 2}};
  const size_t v = static_cast<size_t>(variant) % std::size(kOut);
  Shape out;
  out.rank = form.out_rank;
  for (size_t d = 0; d < out.rank; ++d) out.dims[d] = form.high[d] == 0 ? 1 : kOut[v][d];
  std::array<int32_t, kMaxInner> inner{};
  for (size_t i = 0; i < form.inner; ++i) inner[i] = kInner[v][i];
  const Applied plain = apply(op, form, out, inner);
  const auto below = [state = static_cast<uint64_t>(variant)](uint32_t n) mutable {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    return static_cast<uint32_t>((state >> 33) % n);
  };
  const std::function<uint32_t(uint32_t)> draw = below;
  for (int tries = 0; variant >= static_cast<int>(std::size(kOut)) && tries < 20; ++tries)
    if (const Applied free = apply(op, form, out, inner, draw_layer_options(draw, plain, false));
        is_sound(free))
      return free;
  return plain;
}

Spellings spellings(const Applied& applied) {
  std::vector<std::string> operands = {"x", "y", "z"};
  if (applied.op->rule == Rule::kStack) {
    operands.resize(1);
    for (int i = 1; i < operand_count(applied); ++i) operands.push_back("y" + std::to_string(i));
  }
  const Names names{.operands = operands};
  Spellings made;
  const auto write = [&](std::string& to, std::string_view pattern) {
    if (!pattern.empty()) spell(to, pattern, applied, names);
  };
  write(made.functional, applied.op->functional);
  write(made.method, applied.op->method);
  write(made.module, applied.op->module);
  if (!made.module.empty()) spell_call(made.call, applied, names, "m");
  return made;
}

}  // namespace nereid::ops
