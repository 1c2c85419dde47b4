// Reductions and Fourier transforms taken apart: of matrices, and by products.
#pragma once

#include "nereid/render/apart/simpler_steps.h"

namespace nereid::render {

// Each adds the steps of its call and returns true, or adds none.
// A sum, a mean or an extremum over one dimension of many: over that of a matrix, or of three dimensions.
bool reduction_apart(SimplerSteps& steps);
// aten::_fft_r2c, _fft_c2c and _fft_c2r of one dimension: products with its cosines and sines.
bool fourier_apart(SimplerSteps& steps);

}  // namespace nereid::render
