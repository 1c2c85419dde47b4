#include "nereid/synth/write/phrasing.h"

#include <string_view>

namespace nereid::synth {
namespace {

struct Put {
  std::string_view from, to;
};

constexpr Put kPuts[] = {
    {"torch.clamp({x}, {a}, {b})", "torch.clamp({x}, min={a}, max={b})"},
    {"{x}.clamp({a}, {b})", "{x}.clamp(min={a}, max={b})"},
    {"torch.relu(", "F.relu("},
    {"torch.sigmoid(", "F.sigmoid("},
    {"torch.tanh(", "F.tanh("},
    {"F.log_softmax(", "torch.log_softmax("},
    {").values", ")[0]"},
    {"{x} ** 2", "{x}.pow(2)"},
    {"{x} ** {a}", "{x}.pow({a})"},
    {"{x}.flip({dim})", "{x}.flip(dims=[{dim}])"},
    {"{x}.square()", "torch.square({x})"},
    {"{x}.abs()", "torch.abs({x})"},
    {"{x}.sigmoid()", "torch.sigmoid({x})"},
    {"{x}.pow(2)", "torch.pow({x}, 2)"},
};

// "softmax(x, 1)": what takes the axis behind the operand.
constexpr std::string_view kAxis = "dim={dim}";

void replace(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string phrased(std::string pattern, const ops::Applied& applied, uint32_t phrasing) {
  uint32_t bits = phrasing;
  for (const Put& transition : kPuts) {
    if (bits & 1) replace(pattern, transition.from, transition.to);
    bits >>= 1;
  }
  const std::string_view name = applied.op->name;
  if ((bits & 1) && name != "normalize") replace(pattern, kAxis, "{dim}");
  if ((bits & 4) && pattern == "{x} @ {y}") pattern = "{x}.matmul({y})";
  if ((bits & 2) && name == "matmul" && applied.operands[0].rank == 2 && applied.operands[1].rank == 2)
    replace(pattern, "torch.matmul(", "torch.mm(");
  if (applied.short_transpose && name == "transpose" && applied.operands[0].rank == 2)
    pattern = pattern.starts_with("torch.") ? "torch.t({x})" : "{x}.t()";
  return pattern;
}

}  // namespace nereid::synth
