// An application of an operator as PyTorch source text.
// The patterns of the catalogue hold names in braces:
//   x y z       operands              a b        constants
//   x.1 o.-1    sizes of the first operand, of the result; n.0 an inner size
//   dim dim2 k over ,over over, axes    attributes ("dim=1", ", dim=1", "(0, 1)")
//   order split shape half mid index parts part before pads rest kk cin cout conv pool
//   ,bias unbiased groups bd nd
//   others      tensors of the operator's own, by the names in `weights`
// Where a pattern has two lines the first is a statement that comes before, which names what the second uses:
// "gate, value = ...".
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "nereid/ops/applied.h"

namespace nereid::ops {

// Which of an operator's patterns is written.
enum class Spelling : uint8_t { kFunctional, kMethod, kModule };

struct Names {
  std::span<const std::string> operands;  // as many as operand_count
  // How a size is written; null: as a number.
  std::function<void(std::string& to, int32_t size)> size{};
  // Put before the name of a tensor of the operator's own: "self.proj_weight" for prefix "self.proj_".
  std::string_view weight_prefix{};
};

void spell(std::string& to, std::string_view pattern, const Applied& applied, const Names& names);

// The operator's module, which `module` names, called with the operands: as `call` says, or plainly.
void spell_call(std::string& to, const Applied& applied, const Names& names, std::string_view module);

// The values that constant `which` ('a', 'b') may take: "0.01|0.1", empty where there is none.
std::string_view constant_values(const Operator& op, char which);
int constant_count(const Operator& op, char which);
// The value of constant `which` that is written: "0.1".
std::string_view constant_of(const Applied& applied, char which);

// The operator's own tensors, one by one: name, how it is made ("randn", "ones", "zeros") and its shape as a
// pattern.
struct Weight {
  std::string_view name, maker, shape;
  bool buffer() const { return name.starts_with("running_"); }
};
std::vector<Weight> weights_of(const Applied& applied);
// The sizes that a weight's shape says.
std::vector<int64_t> shape_of(const Weight& weight, const Applied& applied);

}  // namespace nereid::ops
