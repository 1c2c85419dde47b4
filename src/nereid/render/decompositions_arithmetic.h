// Logarithms of other bases, products with something added and distances as operators of the sampler's
// catalogue.
#pragma once

#include "nereid/trace/trace.h"

namespace nereid::render {

class Canonicalizer;

// Adds the call to `to` as its parts, where it is one of these operators and its arguments have the form that
// the parts need. False: nothing is added. The first argument is a float32 tensor of at least one dimension.
bool decompose_arithmetic(Canonicalizer& to, const trace::Call& call);

}  // namespace nereid::render
