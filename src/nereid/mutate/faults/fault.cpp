#include "nereid/mutate/faults/fault.h"

namespace nereid::mutate {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kOperator:
      return "operator";
    case Fault::kConstant:
      return "constant";
    case Fault::kComparison:
      return "comparison";
    case Fault::kMask:
      return "mask";
    case Fault::kClamp:
      return "clamp";
    case Fault::kTerm:
      return "term";
    case Fault::kLoopTurn:
      return "loop-turn";
    case Fault::kIndex:
      return "index";
    case Fault::kIgnoredInput:
      return "ignored-input";
    case Fault::kSpecialValues:
      return "special-values";
    case Fault::kConfiguration:
      return "configuration";
    case Fault::kNarrowed:
      return "narrowed";
    case Fault::kApproximation:
      return "approximation";
    case Fault::kInitialisation:
      return "initialisation";
    case Fault::kOrdering:
      return "ordering";
    case Fault::kPartialOutput:
      return "partial-output";
  }
  return "operator";
}

std::optional<Fault> fault_from_string(std::string_view name) {
  for (const Fault fault : kFaults)
    if (to_string(fault) == name) return fault;
  return std::nullopt;
}

}  // namespace nereid::mutate
