// Functions that the compiler wrote, as a reader and a linter want them.
#pragma once

#include <string>
#include <string_view>

namespace nereid::compiler {

// A kernel, each statement on a line of its own, without assignments to names that nothing reads. What is
// unpacked and not read is "_".
std::string without_unused(std::string_view function);
// A kernel whose values on the way, which are named for an operator and read once, are written where they are
// read: gelu = linear * 0.5 * (tl.erf(linear * 0.7071067811865475) + 1.0). Lines stay short by their tokens,
// not by their letters, so that kernels which differ in names do so afterwards.
std::string with_expressions(std::string_view function);
// `without_unused` of a forward, whose calls stay even where nothing reads their results.
std::string without_unused_names(std::string_view function);

// A Triton function whose parameters without a hint are tensors: "x_ptr: tl.tensor". A kernel returns None.
std::string with_hints(std::string_view function);

}  // namespace nereid::compiler
