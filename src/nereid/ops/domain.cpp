#include "nereid/ops/operator.h"

namespace nereid::ops {
namespace {

using D = Domain;

// One computed operand of domain `x`, in slot `slot`; the others are fresh inputs in their ranges.
bool of_one(DomainRule rule, D x, uint8_t slot, D& result) {
  const auto is = [&](D domain) {
    result = domain;
    return true;
  };
  switch (rule) {
    case DomainRule::kKeep:
      return is(x);
    case DomainRule::kBounded:
      return is(D::kUnit) && x != D::kPositive;  // it would be saturated
    case DomainRule::kSigmoid:
      return is(x == D::kUnit ? D::kPositive : D::kUnit) && x != D::kPositive;
    case DomainRule::kSoftmax:
      return is(x == D::kWide ? D::kUnit : D::kPositive);
    case DomainRule::kLogSoftmax:
      return is(x == D::kUnit ? D::kUnit : D::kWide);
    case DomainRule::kExp:
      return is(D::kPositive) && x == D::kUnit;
    case DomainRule::kLog:
      return is(D::kUnit) && x == D::kPositive;
    case DomainRule::kRoot:
      return is(D::kPositive) && x == D::kPositive;
    case DomainRule::kPower:
      return is(D::kWide) && x != D::kWide;
    case DomainRule::kSum:
      return is(x == D::kPositive ? D::kPositive : D::kWide);
    case DomainRule::kWiden:
      return is(D::kWide);
    case DomainRule::kNormalise:
      return is(D::kUnit);
    case DomainRule::kAdd:
      return is(x == D::kUnit ? D::kUnit : D::kWide);
    case DomainRule::kMultiply:
      return is(D::kWide);
    case DomainRule::kDivide:
      return is(D::kWide) && (slot == 0 || x == D::kPositive);
    case DomainRule::kExtreme:
      return is(x == D::kPositive ? D::kWide : x);
    case DomainRule::kContract:
      return is(x == D::kWide ? D::kWide : D::kUnit);
    case DomainRule::kLayer:
      return is(x == D::kWide ? D::kWide : D::kUnit);
    case DomainRule::kPeriodic:
      return is(D::kUnit) && x != D::kWide;
    case DomainRule::kSoftplus:
      return is(x == D::kWide ? D::kWide : D::kPositive);
    case DomainRule::kLogSigmoid:
      return is(x == D::kUnit ? D::kUnit : D::kWide) && x != D::kPositive;
    case DomainRule::kIndex:
      return is(D::kIndices);
  }
  return false;
}

}  // namespace

bool domain_of(DomainRule rule, const Operands& operands, Domain& result) {
  if (operands.first == D::kIndices || (operands.two && operands.second == D::kIndices)) return false;
  if (!operands.two) return of_one(rule, operands.first, operands.slot, result);
  result = D::kWide;
  const bool both_wide = operands.first == D::kWide && operands.second == D::kWide;
  switch (rule) {
    case DomainRule::kMultiply:
    case DomainRule::kContract:
      return !both_wide;
    case DomainRule::kDivide:
      return operands.second == D::kPositive;
    case DomainRule::kPower:
      return operands.first != D::kWide && operands.second != D::kWide;
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
      return D::kPositive;
    case DomainRule::kPower:
    case DomainRule::kSum:
    case DomainRule::kWiden:
    case DomainRule::kMultiply:
    case DomainRule::kDivide:
      return D::kWide;
    case DomainRule::kIndex:
      return D::kIndices;
    default:
      return D::kUnit;
  }
}

}  // namespace nereid::ops
