// The classes of faults that mutants hold (docs/mutation.md says what belongs to each).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nereid::mutate {

enum class Fault : uint8_t {
  kOperator,       // another operator: + for -, exp2 for exp, or for and
  kConstant,       // another number: a literal or a scalar argument
  kComparison,     // < for <=, the other way round
  kMask,           // a mask of a load or a store, or one of its conditions, dropped
  kClamp,          // a maximum, a minimum or a clamp dropped
  kTerm,           // an operand of a sum or a product, or a function's application, dropped
  kLoopTurn,       // the first or the last turn of a loop dropped
  kIndex,          // a stride, a size or an index off by one, an axis exchanged
  kIgnoredInput,   // an input, parameter or buffer replaced by a default, by another, or by an earlier call's
  kSpecialValues,  // one side of a selection or of a branch always taken
  kConfiguration,  // one of several configurations of a launch broken
  kNarrowed,       // an accumulator or an intermediate result rounded to fewer bits
  kApproximation,  // a function replaced by an approximation
  kInitialisation,  // what is written before it is added to, or read where a mask is false, is another number
  kOrdering,        // a barrier removed, an atomic update made in three steps
  kPartialOutput,   // some or all elements of an output not written, fewer programs, a launch left out
};
inline constexpr std::array kFaults = {
    Fault::kOperator,      Fault::kConstant,       Fault::kComparison,    Fault::kMask,
    Fault::kClamp,         Fault::kTerm,           Fault::kLoopTurn,      Fault::kIndex,
    Fault::kIgnoredInput,  Fault::kSpecialValues,  Fault::kConfiguration, Fault::kNarrowed,
    Fault::kApproximation, Fault::kInitialisation, Fault::kOrdering,      Fault::kPartialOutput};

std::string_view to_string(Fault fault);  // "operator", "loop-turn", ...
std::optional<Fault> fault_from_string(std::string_view name);

}  // namespace nereid::mutate
