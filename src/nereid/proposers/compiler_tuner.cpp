#include "nereid/proposers/compiler_tuner.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <tuple>

namespace nereid::proposers {
namespace {

constexpr double kFaster = 0.99;  // of the best: what is nearer is noise
constexpr size_t kMaxCuts = 6;    // of one kernel
constexpr size_t kMaxKernels = 8;

double distance(const compiler::KernelChoice& a, const compiler::KernelChoice& b) {
  const auto steps = [](int64_t x, int64_t y) {
    return std::abs(std::log2(static_cast<double>(x + 1) / static_cast<double>(y + 1)));
  };
  return steps(a.rows, b.rows) + steps(a.columns, b.columns) + steps(a.m, b.m) + steps(a.n, b.n) +
         steps(a.k, b.k) + steps(a.warps, b.warps) + steps(a.stages, b.stages);
}

}  // namespace

Proposal compiler_proposal(const compiler::Module& module) {
  std::string plan = module.plan;
  for (const auto& kept : module.kept) plan += "PyTorch's: " + kept + "\n";
  std::vector<Region> regions;
  for (const auto& kernel : module.kernels)
    regions.push_back({kernel.name, {kernel.covers.begin(), kernel.covers.end()}});
  return {.text = module.text, .plan = std::move(plan), .regions = std::move(regions)};
}

CompilerTuner::CompilerTuner(const trace::Trace& trace, std::string source, double ms, compiler::Choices from)
    : trace_(trace), source_(std::move(source)), best_ms_(ms), best_(std::move(from)) {
  const auto module = lowered(best_);
  if (!module.ok()) return;
  seen_.insert(module->text);
  const auto way = [this](const char* name, bool compiler::Choices::* flag) {
    ways_.push_back({name, [flag](compiler::Choices& c) { c.*flag = !(c.*flag); }, true});
  };
  way("attention as products", &compiler::Choices::one_pass_attention);
  way("convolutions as they lie", &compiler::Choices::channels_last);
  way("products of float32 as a whole", &compiler::Choices::split_products);
  way("sums and products as they are written", &compiler::Choices::algebra);
  way("sums in one stage", &compiler::Choices::split_sums);
  plan_cuts(*module);
}

Result<compiler::Module> CompilerTuner::lowered(const compiler::Choices& choices) const {
  try {
    return compiler::lower_module(trace_, source_, choices);
  } catch (const std::exception& e) {
    return our_error("the compiler broke down: {}", e.what());
  }
}

void CompilerTuner::plan_cuts(const compiler::Module& module) {
  cuts_.clear();
  // Kernels that share a function at one size are cut alike; at another size another cut may be the best.
  const auto work_of = [](const compiler::LoweredKernel& kernel) {
    return std::tuple(kernel.function, kernel.rows, kernel.columns);
  };
  using Work = std::tuple<std::string, std::vector<int64_t>, std::vector<int64_t>>;
  std::map<Work, std::vector<std::string>> sharing;
  std::map<Work, double> seconds;
  for (const auto& kernel : module.kernels) {
    sharing[work_of(kernel)].push_back(kernel.name);
    seconds[work_of(kernel)] += kernel.estimate.seconds;
  }
  std::vector<compiler::LoweredKernel> kernels;  // the first of each, with the seconds of all
  for (const auto& kernel : module.kernels) {
    if (sharing[work_of(kernel)].front() != kernel.name) continue;
    kernels.push_back(kernel);
    kernels.back().estimate.seconds = seconds[work_of(kernel)];
  }
  std::stable_sort(kernels.begin(), kernels.end(),
                   [](const auto& a, const auto& b) { return a.estimate.seconds > b.estimate.seconds; });
  if (kernels.size() > kMaxKernels) kernels.resize(kMaxKernels);
  for (auto& kernel : kernels) {
    std::stable_sort(kernel.others.begin(), kernel.others.end(), [&](const auto& a, const auto& b) {
      return distance(a, kernel.choice) < distance(b, kernel.choice);
    });
    if (kernel.others.size() > kMaxCuts) kernel.others.resize(kMaxCuts);
    for (const auto& other : kernel.others)
      cuts_.push_back({fmt::format("{}: {}", kernel.function, to_string(other)),
                       [names = sharing[work_of(kernel)], other](compiler::Choices& c) {
                         for (const auto& name : names) c.kernels[name] = other;
                       }});
  }
}

std::optional<Proposal> CompilerTuner::next() {
  while (!ways_.empty() || !cuts_.empty()) {
    auto& moves = ways_.empty() ? cuts_ : ways_;
    move_ = std::move(moves.front());
    moves.pop_front();
    last_ = best_;
    move_.apply(last_);
    auto module = lowered(last_);
    if (!module.ok() || !seen_.insert(module->text).second) continue;
    module_ = *std::move(module);
    Proposal proposal = compiler_proposal(module_);
    proposal.variant = move_.name;
    return proposal;
  }
  return std::nullopt;
}

void CompilerTuner::observe(std::optional<double> ms) {
  if (!ms || *ms >= best_ms_ * kFaster) return;
  best_ms_ = *ms, best_ = last_;
  if (move_.whole) plan_cuts(module_);
}

}  // namespace nereid::proposers
