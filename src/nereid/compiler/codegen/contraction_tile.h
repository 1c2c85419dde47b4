// The blocks of a product's tiles.
#pragma once

#include "nereid/compiler/ir/choices.h"

namespace nereid::compiler {

inline constexpr int64_t kWarpGroupTile = 64;  // rows of the left factor that a warp group multiplies at once
inline constexpr int64_t kWholeTile = 16384;   // results of a tile that has all of m or n

// Whether a warp has the operands of its products in registers, next to their sums.
inline bool has_operands_in_registers(const Target& target) { return target.name == "sm_80"; }

struct ContractionShape {
  int64_t m = 1, n = 1, batch = 1, k = 1;  // elements; k: of one tap, where there are taps
  int64_t terms = 1;                       // of all taps
  int64_t products = 1;                    // that share the left factor (twin_products.h)
  bool narrow = false;                     // factors of 16 bits
  bool split = false;                      // split_factors.h
  bool taps = false;                       // channels_last.h, thin_channels.h
  bool direct = false;                     // the right factor is rounded where it is read (channels_last.h)
  bool gathered = false;                   // a sum over several dimensions
  bool few_rows = false;                   // few_rows.h
  bool whole_m = false, whole_n = false;   // a tile has all of it
  enum class Window : uint8_t { kNone, kLeft, kRight };
  Window window = Window::kNone;  // the factor that is computed (window_factors.h)
};

// `choice` with m, n and k, which are powers of two and at least 16 (of few rows, less), and stages (0:
// Triton's default).
KernelChoice contraction_tile(const ContractionShape& shape, const KernelChoice& choice,
                              const Target& target);

}  // namespace nereid::compiler
