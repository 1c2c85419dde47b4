// From the SSA program of a kernel to flat code over slots: calls inlined, handlers and loops picked by type,
// what every program of a launch shares moved to the prologue, what a loop does not change moved before it,
// values released after their last use.
#pragma once

#include <memory>

#include "nereid/base/result.h"
#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/ir/program.h"

namespace nereid::ttir {

// `module` has been verified. An operation for which there is no code is an error that begins "Unsupported:
// ".
Result<std::unique_ptr<Code>> lower(const Module& module, const Function& kernel);

// Whether a loop leaves an operation to what is before it, where its operands come from outside: it then runs
// once for each time that the loop is entered. Where they are the launch's, once for each program.
bool hoistable(const Op& op);

}  // namespace nereid::ttir
