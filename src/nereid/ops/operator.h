// The operator catalogue: one row an operator, from which the sampler, the cost model and `nereid ops` are
// driven.
//
// A row says how an operator is written in PyTorch, which ATen operator that is, how its shapes relate (its
// rule: form.h lists every way an operator of a rule may be applied), where it is well conditioned, and what
// it costs (cost.h). tests/ops_test.py checks every row against PyTorch.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace nereid::ops {

// How the shapes of an operator's operands and result relate.
enum class Rule : uint8_t {
  kUnary,      // the result is as its operand
  kBinary,     // two operands, broadcast
  kSelect,     // where: two operands and a mask of one shape
  kMasked,     // an operand and a mask of its shape
  kReduce,     // over one axis (which may stay, one long), over two or three, or over all
  kArgReduce,  // over one axis, integers
  kAxis,       // along one axis of at least two elements, shape kept
  kTriangle,   // over the last two axes, shape kept
  kTranspose,
  kPermute,
  kMatmul,  // [m, k] [k, n], batches of them, or a batch times one matrix
  kBmm,
  kLinear,
  kConv1d,
  kConv2d,
  kConv3d,
  kConvTranspose1d,
  kConvTranspose2d,
  kConvTranspose3d,
  kPool1d,
  kPool2d,
  kPool3d,
  kGlobalPool,    // [n, c, h, w] to [n, c]
  kBatchNorm,     // over all but axis 1
  kInstanceNorm,  // over the spatial axes
  kGroupNorm,
  kRowNorm,  // over the last axis
  kCat,
  kStack,
  kView,   // one axis taken apart into two
  kSlice,  // the first half of an axis
  kPad,    // zeros after an axis
  kGather,
  kIndexSelect,
  kEmbedding,
  kAttention,
  kPairLoss,     // two operands of one shape to a scalar
  kClassLoss,    // [n, c] and n classes to a scalar
  kTripletLoss,  // three operands [n, d] to a scalar
  kSimilarity,   // two operands [n, d] to [n]
  kCell,         // [n, i] and a state [n, h] to [n, h]
  kRotary,       // an operand and two of its last two axes
  kMaskedAttention,
  kMatmulTransposed,  // by rows of both
  kFlatten,           // the last axes, or two before the last, to one
  kUnsqueeze,
  kSqueeze,
};

// Which family of kernels an operator is lowered to.
enum class Lowering : uint8_t {
  kPointwise,
  kReduction,
  kScan,
  kContraction,
  kConvolution,
  kPooling,
  kNormalisation,
  kAttention,
  kLayout,
  kGather,
  kLoss,
  kRecurrent,
};

// What an operand's values must be for the operator to be finite and well conditioned.
enum class Range : uint8_t {
  kNormal,       // about N(0, 1)
  kPositive,     // uniform in [0.5, 1.5)
  kMask,         // booleans, even odds
  kIndex,        // integers in [0, n); n is the operand's `bound`
  kSign,         // -1 or 1, as floats
  kProbability,  // rows that sum to one
  kWeight,       // N(0, 1/k), k the length that a contraction sums over
};

// What is known of the values that flow from operator to operator, and what each operator makes of it. It
// keeps a program's values finite and within the range where its operators are well conditioned.
enum class Domain : uint8_t {
  kUnit,      // of magnitude about 1
  kPositive,  // above zero
  kWide,      // any finite value
  kIndices,   // integers: results only
};
inline constexpr int kDomains = 4;
enum class DomainRule : uint8_t {
  kKeep,
  kBounded,  // into a fixed interval: tanh
  kSigmoid,  // into (0, 1)
  kSoftmax,
  kLogSoftmax,
  kExp,        // of units alone
  kLog,        // of positive values alone
  kRoot,       // likewise
  kPower,      // of all but wide values
  kSum,        // grows with the length
  kWiden,      // any to wide
  kNormalise,  // any to unit
  kAdd,
  kMultiply,  // never two wide operands
  kDivide,    // by positive values alone
  kExtreme,
  kContract,  // with weights: keeps; of two computed operands as kMultiply
  kLayer,     // a layer with its own weights
  kPeriodic,  // ill conditioned for wide values
  kSoftplus,
  kLogSigmoid,
  kIndex,
};

struct Operator {
  std::string_view name{};
  Rule rule{};
  DomainRule domain{};
  Lowering lowering{};
  std::string_view aten{};  // the schema PyTorch calls, "aten::softmax.int"
  // Spellings. {x} {y} {z} are operands, {a} {b} constants, {dim} {k} {over} attributes of a form,
  // {x.1} {o.1} sizes (spelling.h has them all); `module` is a constructor, called with the operands or as
  // `call` says. Empty where there is none.
  std::string_view functional{}, method{}, module{}, call{};
  // The functional spelling's own tensors, which are the module's parameters: "weight=randn[{o.-1}, {x.-1}]".
  std::string_view weights{};
  // "a=0.01|0.1|0.2 b=...": values that constants may take, in the order of preference.
  std::string_view constants{};
  Range ranges[3] = {Range::kNormal, Range::kNormal, Range::kNormal};  // where it is well conditioned
  bool commutes = false;  // its first two operands may be swapped
  bool indices = false;   // the result is int64; else it is of its operand's dtype
  bool drtriton = false;  // of DRTriton's operator space
};

std::span<const Operator> catalogue();
std::vector<const Operator*> every_operator();  // of the catalogue
// Null where there is no operator of that name.
const Operator* find(std::string_view name);
// The operators that produce values without operands (randn, ones, zeros): leaves, not compute operators.
std::span<const std::string_view> leaf_operators();

// The domain of a result whose first operand is of domain `x` and whose second, where it was computed and is
// no fresh input, of domain `y`; `first_computed` says which operand the single computed one is. False where
// the operator refuses them.
struct Operands {
  Domain first{};    // of the only computed operand, or of the first of two
  Domain second{};   // of the second, if `two`
  bool two = false;  // both operands were computed
  uint8_t slot = 0;  // where there is one: which
};
bool domain_of(DomainRule rule, const Operands& operands, Domain& result);
// With fresh inputs alone, which are in their ranges.
Domain domain_of_leaves(DomainRule rule);

std::string_view to_string(Rule rule);
std::string_view to_string(Lowering lowering);
std::string_view to_string(Range range);
std::string_view to_string(Domain domain);

}  // namespace nereid::ops
