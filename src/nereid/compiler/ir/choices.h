// What can be decided one way or another about a kernel, as values: a search changes them and lowers again.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"

namespace nereid::compiler {

// How much of its data sheet's rates a GPU reaches, and what else the cost model's seconds are made of
// (codegen/estimate.h has the formula). The table is cost_constants.inc, which tools/fit_cost_model.py
// writes.
struct CostConstants {
  double launch_seconds = 2.5e-6;  // between kernels of a stream
  double bandwidth_share = 1;      // of bytes_per_second
  double cache_ratio = 8;          // bytes that a product's tiles ask for, to one that comes from memory
  double tensor_share = 0.7;       // of a contraction's rate
  double vector_share = 1;         // of fp32
  double wave_seconds = 0;         // of as many programs as run at a time
  double thread_seconds = 0;       // of each element of a thread, in each wave; not in products
  std::string_view date{}, source{};
};

// A GPU as the cost model sees it. Figures are the vendor's data sheets', of the variant that is named.
struct Target {
  std::string_view name;     // "sm_90"
  std::string_view example;  // "H200"
  int multiprocessors;
  int64_t shared_bytes;     // that one program may use
  double bytes_per_second;  // of device memory
  double fp32, tf32, bf16;  // FLOP/s, dense, of one contraction
  CostConstants cost{};
};
const std::vector<Target>& targets();
Result<Target> target_named(std::string_view name);
// The target of a GPU, by its driver's name for it: "sm_80" of "NVIDIA A100-SXM4-80GB"; "sm_90" if unknown.
std::string target_of_device(std::string_view device);

// How one kernel is cut. 0 (or empty): as the cost model has it.
struct KernelChoice {
  int64_t rows = 0, columns = 0;  // of a tile's block; a row of columns longer than the block is a loop
  int64_t m = 0, n = 0, k = 0;    // of a contraction's block
  int warps = 0, stages = 0;
  std::string precision = {};  // of a float32 contraction: "tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"
  // Of a contraction: one program a processor, which goes on from tile to tile. Of a recurrent layer: all
  // steps in one cooperative launch.
  bool persistent = false;
  bool masked = false;  // as Choices says it
  bool operator==(const KernelChoice&) const = default;
};
std::string to_string(const KernelChoice& choice);  // "m=64, n=128, k=32, warps=4"

// Which calls share a kernel. Where it is plain, one kernel does of two calls only what goes element by
// element: the later one reads what the earlier one made as it is in memory, without a view, a window or a
// gather between, and no factor of a product. Indexed: slices, flips, permutations, broadcasts and gathers,
// too, which say where an element is read, and what asks where it stands, as a triangle, a pad and a
// concatenation do; no windows, nothing that cuts or folds a dimension.
enum class Fusion : uint8_t { kFree, kIndexed, kPlain };

struct Choices {
  std::string target = "sm_90";
  bool tf32 = false;               // allow TF32 in float32 contractions, whatever PyTorch's flags are
  bool algebra = true;             // rewrites that change the cost (algebra.h)
  bool one_pass_attention = true;  // scores are never stored (flash.h)
  bool channels_last = true;       // convolutions in TF32 read rows of channels (channels_last.h)
  bool split_products = true;      // large float32 products on the tensor cores of float16 (split_factors.h)
  // Products of few tiles and long sums in two stages (split_sum.h), long reductions of few rows anywhere;
  // else such reductions are split between two of their dimensions, or the last one into chunks.
  bool split_sums = true;
  // Masks also where the blocks end with what there is of them (of powers of two everybody sees it): who
  // writes so need not divide.
  bool masked = false;
  Fusion fusion = Fusion::kFree;
  bool share_equal = true;  // kernels that differ in names alone are one (shared_kernels.h)
  // Steps of the traced forward: no kernel does one of them, or a later one, together with an earlier one.
  std::set<int> cuts = {};
  std::map<std::string, KernelChoice> kernels =
      {};  // by the kernel's name; those that are not here: as the model has it
  bool operator==(const Choices&) const = default;
};

}  // namespace nereid::compiler
