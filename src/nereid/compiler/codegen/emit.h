// A fused kernel as Triton text.
#pragma once

#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/compiler/ir/choices.h"
#include "nereid/compiler/transforms/fuse.h"

namespace nereid::compiler {

// What a launch passes for a parameter that is a pointer.
struct PointerParameter {
  std::string name;
  TensorId tensor = -1;
};

// What is copied before a kernel's first step: into a tensor, or into its first element. Zeros where `from`
// is none.
struct StepStart {
  TensorId into = -1, from = -1;
  bool first = false;
};

// "BLOCK_ROWS", 4.
struct BlockConstant {
  std::string name;
  int64_t value = 0;
  std::string text = {};    // the value in Python; empty: as a number
  std::string covers = {};  // the value is the least power of two that covers so many; empty: something else
};

struct KernelText {
  std::string name;
  std::string text;  // "@triton.jit" and the function
  std::vector<PointerParameter> pointers;
  std::vector<BlockConstant> constants;
  int64_t programs = 1;
  std::string grid;                       // `programs` as Python; empty: as a number
  int num_warps = 4, num_stages = 0;      // 0: Triton's own
  std::vector<std::string> helpers;       // functions that it calls, by name: see `helper_text`
  std::string comment;                    // what it computes, in words
  KernelChoice choice;                    // how it is cut
  std::vector<KernelChoice> others = {};  // ways to cut it that only its writer knows
  bool contraction = false;
  int64_t products = 1;                   // of a contraction: those of its kernel (twin_products.h)
  bool whole_m = false, whole_n = false;  // of a contraction: its tiles have all of it
  double taps_share = 1;  // of a contraction's products: those that are computed (tap_limits.h)
  int64_t steps = 0;      // launches one after the other, by a parameter `step`; 0: one, without it
  std::vector<StepStart> starts;
  // Its programs wait for each other: launch_cooperative_grid=True. Seconds of one of its steps.
  bool cooperative = false;
  int registers = 0;  // a thread may have; 0: as many as the compiler takes
  double step_seconds = 0;
  // Whether a product and a sum may be rounded as one. Not where a distance from the largest, or the mean, of
  // such values is taken: an unrounded product is beyond the largest rounded one, and the exponential of
  // that distance is infinite where the products are large.
  bool fused_multiply_add = true;
};

// `count` cut in blocks: "triton.cdiv(48, 32)"; empty where one block is all there is of it.
std::string blocks_text(const Size& count, int64_t block);
// "3 * triton.cdiv(48, 32)"; what is empty or "1" is left out, and nothing is "1".
std::string product_text(const std::vector<std::string>& factors);

struct KernelNames;

// A kernel that is a sum of products of two factors, each of which lacks dimensions that the other has, with
// what follows element by element.
struct Contraction {
  ExprId left = -1, right = -1;
  std::vector<int> batch = {}, m = {},
                   n = {};     // of the kernel's rows: in both factors, in the left, in the right
  bool right_along_n = false;  // the right factor's adjacent elements are along n (factor_block.h)
};
std::optional<Contraction> as_contraction(const Graph& graph, const TileKernel& kernel);
Result<KernelText> emit_contraction(Graph& graph, const Fused& fused, const TileKernel& kernel,
                                    const Contraction& contraction, const std::string& name,
                                    const KernelChoice& choice, const Target& target);

Result<KernelText> emit_flash(Graph& graph, const Fused& fused, const TileKernel& kernel,
                              const std::string& name, const KernelChoice& choice, const Target& target);
Result<KernelText> emit_recurrence(Graph& graph, const TileKernel& kernel, const std::string& name,
                                   const KernelChoice& choice, const Target& target);

// Sets by[d] for each of `dims`, a kernel's dimensions of `sizes`: together they are the digits of
// `dimension`.
void spread(std::vector<Index>& by, const Extents& sizes, const std::vector<int>& dims, int dimension,
            const Extents& extents);

// The function around a kernel's lines.
void close_kernel(KernelText& kernel, const Graph& graph, const KernelNames& names, const TileKernel& of,
                  const std::vector<std::string>& lines);

// An error names what the kernel family cannot do yet.
Result<KernelText> emit(Graph& graph, const Fused& fused, const TileKernel& kernel, const std::string& name,
                        const KernelChoice& choice = {}, const Target& target = targets()[1]);
// What its members compute, in their order: "linear, gelu".
std::vector<StepWord> step_words_of(const Graph& graph,
                                    const TileKernel& kernel);                    // in the order of the steps
std::vector<std::string> words_of(const Graph& graph, const TileKernel& kernel);  // of it, each once
}  // namespace nereid::compiler
