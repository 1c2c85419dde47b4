#include "nereid/ops/operator.h"

namespace nereid::ops {
namespace {

// One computed operand of domain `x`, in slot `slot`; the others are fresh inputs in their ranges.
bool of_one(DomainRule rule, Domain x, uint8_t slot, Domain& result) {
  const auto is = [&](Domain domain) {
    result = domain;
    return true;
  };
  switch (rule) {
    case DomainRule::kKeep:
      return is(x);
    case DomainRule::kBounded:
      return is(Domain::kUnit) && x != Domain::kPositive;  // it would be saturated
    case DomainRule::kSigmoid:
      return is(x == Domain::kUnit ? Domain::kPositive : Domain::kUnit) && x != Domain::kPositive;
    case DomainRule::kSoftmax:
      return is(x == Domain::kWide ? Domain::kUnit : Domain::kPositive);
    case DomainRule::kLogSoftmax:
      return is(x == Domain::kUnit ? Domain::kUnit : Domain::kWide);
    case DomainRule::kExp:
      return is(Domain::kPositive) && x == Domain::kUnit;
    case DomainRule::kLog:
      return is(Domain::kUnit) && x == Domain::kPositive;
    case DomainRule::kRoot:
      return is(Domain::kPositive) && x == Domain::kPositive;
    case DomainRule::kPower:
      return is(Domain::kWide) && x != Domain::kWide;
    case DomainRule::kSum:
      return is(x == Domain::kPositive ? Domain::kPositive : Domain::kWide);
    case DomainRule::kWiden:
      return is(Domain::kWide);
    case DomainRule::kNormalise:
      return is(Domain::kUnit);
    case DomainRule::kAdd:
      return is(x == Domain::kUnit ? Domain::kUnit : Domain::kWide);
    case DomainRule::kMultiply:
      return is(Domain::kWide);
    case DomainRule::kDivide:
      return is(Domain::kWide) && (slot == 0 || x == Domain::kPositive);
    case DomainRule::kExtreme:
      return is(x == Domain::kPositive ? Domain::kWide : x);
    case DomainRule::kContract:
      return is(x == Domain::kWide ? Domain::kWide : Domain::kUnit);
    case DomainRule::kLayer:
      return is(x == Domain::kWide ? Domain::kWide : Domain::kUnit);
    case DomainRule::kPeriodic:
      return is(Domain::kUnit) && x != Domain::kWide;
    case DomainRule::kSoftplus:
      return is(x == Domain::kWide ? Domain::kWide : Domain::kPositive);
    case DomainRule::kLogSigmoid:
      return is(x == Domain::kUnit ? Domain::kUnit : Domain::kWide) && x != Domain::kPositive;
    case DomainRule::kIndex:
      return is(Domain::kIndices);
  }
  return false;
}

}  // namespace

bool domain_of(DomainRule rule, const Operands& operands, Domain& result) {
  if (operands.first == Domain::kIndices || (operands.two && operands.second == Domain::kIndices))
    return false;
  if (!operands.two) return of_one(rule, operands.first, operands.slot, result);
  result = Domain::kWide;
  const bool both_wide = operands.first == Domain::kWide && operands.second == Domain::kWide;
  switch (rule) {
    case DomainRule::kMultiply:
    case DomainRule::kContract:
      return !both_wide;
    case DomainRule::kDivide:
      return operands.second == Domain::kPositive;
    case DomainRule::kPower:
      return operands.first != Domain::kWide && operands.second != Domain::kWide;
    case DomainRule::kExtreme:
      if (operands.first == operands.second) result = operands.first;
      return true;
    default:
      return true;
  }
}

Domain domain_of_leaves(DomainRule rule) {
  switch (rule) {
    case DomainRule::kSigmoid:
    case DomainRule::kSoftmax:
    case DomainRule::kExp:
    case DomainRule::kRoot:
    case DomainRule::kSoftplus:
      return Domain::kPositive;
    case DomainRule::kPower:
    case DomainRule::kSum:
    case DomainRule::kWiden:
    case DomainRule::kMultiply:
    case DomainRule::kDivide:
      return Domain::kWide;
    case DomainRule::kIndex:
      return Domain::kIndices;
    default:
      return Domain::kUnit;
  }
}

}  // namespace nereid::ops
