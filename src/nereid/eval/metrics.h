// The field's figures over a suite of tasks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace nereid::eval {

// The unbiased estimate of the probability that one of k samples is right, where c of n were:
// 1 - C(n - c, k) / C(n, k) (Chen et al., 2021, "Evaluating Large Language Models Trained on Code"). 0 <= c
// <= n, 1 <= k <= n.
double pass_at_k(int64_t n, int64_t c, int64_t k);

// Of one task. A speed-up is the reference's time over the candidate's; nullopt where nothing was verified or
// nothing was measured.
struct Score {
  int64_t samples = 0, verified = 0;                   // of the proposers' own answers
  bool solved = false;                                 // by one of them, or by what a search made of them
  std::optional<double> over_eager{}, over_compile{};  // by a clock, both sides' kernels as graphs
  std::optional<double> called_over_eager{}, called_over_compile{};            // both called from Python
  std::optional<double> called_over_eager_tf32{}, called_over_compile_tf32{};  // the same, PyTorch in TF32
  std::optional<double> modelled{};  // over eager, by the cost model
  std::optional<double> roofline{};  // the least time that the task can take, over the candidate's
  // Of the search, in seconds: until its first verified result, and until the best one.
  std::optional<double> first_seconds{}, best_seconds{};
};

inline constexpr double kFastP[] = {0.8, 1, 1.2, 2};

struct Summary {
  int64_t tasks = 0, verified = 0;
  // Of all tasks, the share that is verified and more than p times as fast (KernelBench); by "0.8", "1",
  // "1.2", "2". Empty where nothing was measured.
  std::map<std::string, double> fast_p{}, fast_p_compile{}, fast_p_called{}, fast_p_compile_called{},
      fast_p_called_tf32{}, fast_p_compile_called_tf32{}, fast_p_modelled{};
  // Over the verified tasks that were measured.
  std::optional<double> geomean{}, geomean_compile{}, geomean_called{}, geomean_compile_called{},
      geomean_called_tf32{}, geomean_compile_called_tf32{}, geomean_modelled{};
  // Of the verified tasks, by share of them: "0.1", "0.25", "0.5", "0.75", "0.9" (the nearest rank).
  std::map<std::string, double> roofline{}, first_seconds{}, best_seconds{};
  std::map<std::string, double>
      pass_at_k{};  // mean over tasks; by k: 1, 2, 4, ... as far as every task has samples
};

Summary summarize(const std::vector<Score>& scores);

}  // namespace nereid::eval
