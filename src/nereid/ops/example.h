// Every form of an operator at small sizes, all different where the form allows it: for documentation and
// tests.
#pragma once

#include <string>

#include "nereid/ops/applied.h"

namespace nereid::ops {

// `variant` moves the sizes, so that what holds for one by chance does not for all; from 3 on windows and
// layers are drawn.
Applied example(const Operator& op, const Form& form, int variant = 0);

// An application in each of the operator's spellings, with operands x, y and z; empty where there is none.
struct Spellings {
  std::string functional, method, module, call;  // `call` uses the module as `m`
};
Spellings spellings(const Applied& applied);

}  // namespace nereid::ops
