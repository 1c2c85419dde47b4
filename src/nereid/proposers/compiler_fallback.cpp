#include "nereid/proposers/compiler_fallback.h"

#include <algorithm>
#include <array>
#include <exception>

#include "nereid/proposers/compiler_tuner.h"

namespace nereid::proposers {
namespace {

// Float32 products, each nearer to float32 than those before, or by another way.
constexpr std::array<std::string_view, 5> kSchemes = {"tf32", "fp16x3", "bf16x6", "tf32x3", "ieee"};
constexpr int64_t kMinTile = 16, kShortTurn = 32, kMinColumns = 32;
constexpr int kFewStages = 2;

// 0 for what is none of them.
size_t place_of(std::string_view scheme) {
  const auto found = std::ranges::find(kSchemes, scheme);
  return static_cast<size_t>(found - kSchemes.begin()) % kSchemes.size();
}

}  // namespace

bool shrink(compiler::KernelChoice& choice) {
  if (choice.m == 0) {
    int64_t& most = choice.columns > kMinColumns ? choice.columns : choice.rows;
    if (most <= 1) return false;
    most /= 2;
    return true;
  }
  // Three is what Triton takes where nothing is said.
  if (choice.stages == 0 || choice.stages > kFewStages) {
    choice.stages = kFewStages;
    return true;
  }
  if (choice.k > kShortTurn) {
    choice.k /= 2;
    return true;
  }
  int64_t& most = choice.m > choice.n ? choice.m : choice.n;
  if (most > kMinTile) {
    most /= 2;
    return true;
  }
  if (choice.stages > 1) {
    choice.stages = 1;
    return true;
  }
  if (choice.k > kMinTile) {
    choice.k = kMinTile;
    return true;
  }
  return false;
}

CompilerFallback::CompilerFallback(const trace::Trace& trace, std::string source, compiler::Choices from)
    : trace_(trace), source_(std::move(source)), choices_(std::move(from)) {
  auto module = lowered(choices_);
  if (!module.ok()) return;
  seen_.insert(module->text);
  module_ = *std::move(module);
}

Result<compiler::Module> CompilerFallback::lowered(const compiler::Choices& choices) const {
  try {
    return compiler::lower_module(trace_, source_, choices);
  } catch (const std::exception& e) {
    return our_error("the compiler broke down: {}", e.what());
  }
}

std::optional<std::string> CompilerFallback::after_wrong() {
  size_t least = kSchemes.size();  // of the schemes that the module has
  for (const auto& kernel : module_.kernels)
    if (!kernel.choice.precision.empty()) least = std::min(least, place_of(kernel.choice.precision));
  if (least + 1 < kSchemes.size()) {
    // The pass that splits factors gives fp16x3, not a kernel's choice.
    const std::string scheme(kSchemes[std::max(least + 1, place_of("bf16x6"))]);
    choices_.split_products = false;
    const auto unsplit = lowered(choices_);  // its kernels may be others
    if (!unsplit.ok()) return std::nullopt;
    for (const auto& kernel : unsplit->kernels) {
      if (kernel.choice.precision.empty()) continue;
      // What does the same steps now; its name may be another.
      const auto before = std::ranges::find_if(module_.kernels, [&](const compiler::LoweredKernel& now) {
        return !now.choice.precision.empty() &&
               std::ranges::any_of(now.covers, [&](int step) { return kernel.covers.contains(step); });
      });
      const std::string& own =
          before != module_.kernels.end() ? before->choice.precision : kernel.choice.precision;
      if (place_of(own) < place_of(scheme)) choices_.kernels[kernel.name].precision = scheme;
    }
    return "float32 products in " + scheme;
  }
  if (choices_.algebra) {
    choices_.algebra = false;
    return "sums and products as they are written";
  }
  if (choices_.one_pass_attention) {
    choices_.one_pass_attention = false;
    return "attention as products";
  }
  return std::nullopt;
}

std::optional<std::string> CompilerFallback::after_too_large(const std::string& function) {
  bool any = false;
  std::string text;
  for (const auto& kernel : module_.kernels) {
    if (!function.empty() && kernel.function != function) continue;
    compiler::KernelChoice choice = kernel.choice;
    if (!shrink(choice)) continue;
    choices_.kernels[kernel.name] = choice;
    any = true, text = fmt::format("{}: {}", kernel.function, to_string(choice));
  }
  return any ? std::optional(text) : std::nullopt;
}

std::optional<Proposal> CompilerFallback::next(const Failure& failure) {
  while (!module_.text.empty()) {
    const auto changed =
        failure.kind == Failure::Kind::kWrong ? after_wrong() : after_too_large(failure.kernel);
    if (!changed) return std::nullopt;
    auto module = lowered(choices_);
    if (!module.ok()) return std::nullopt;
    module_ = *std::move(module);
    if (!seen_.insert(module_.text).second) continue;
    Proposal proposal = compiler_proposal(module_);
    proposal.variant = *changed;
    return proposal;
  }
  return std::nullopt;
}

std::unique_ptr<Tuner> CompilerFallback::tuner(double ms) {
  return std::make_unique<CompilerTuner>(trace_, source_, ms, choices_);
}

}  // namespace nereid::proposers
