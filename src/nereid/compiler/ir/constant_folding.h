// Functions of numbers that are known while a program is compiled.
#pragma once

#include <optional>
#include <vector>

#include "nereid/compiler/ir/expr.h"

namespace nereid::compiler {

// A comparison of two numbers; nothing where one may be an integer that a double does not hold, or where `fn`
// compares nothing.
std::optional<bool> compared(Fn fn, double a, double b);

// `fn` of floating-point numbers, as many as it has arguments; of integers sums and products alone. Every
// function of one argument is known: Triton's have no use for a number that is no tensor. Nothing for
// functions that are neither arithmetic nor of one argument.
std::optional<double> folded(Fn fn, const std::vector<double>& x);

}  // namespace nereid::compiler
