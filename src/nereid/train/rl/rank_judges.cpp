#include "nereid/train/rl/rank_judges.h"

#include <algorithm>
#include <random>
#include <thread>

#include "nereid/gpu/driver.h"

namespace nereid::train {
namespace {

// Of what is timed apart: sampling's own error, at most a quarter of it, stays below the 1.4 to 2.6 % by
// which a program's times in two sessions differ (bench/results/2026-11-23.md).
constexpr double kTimingWidth = 0.04;

// Of a GPU that we see: 90 for compute capability 9.0. Where there is none the clock says so.
Result<int64_t> architecture(int gpu) {
  NEREID_TRY(const auto* driver, gpu::Driver::open());
  NEREID_TRY(const auto facts, gpu::device_facts(*driver, gpu));
  return facts.arch;
}

}  // namespace

Result<std::unique_ptr<RankJudges>> RankJudges::start(const Setup& setup) {
  const RunFile& run = setup.run.run;
  const RlSettings& rl = setup.run.rl;
  auto judges = std::make_unique<RankJudges>();
  const bool cuda = rl.judge_device == "cuda" || (rl.judge_device == "auto" && setup.device.is_cuda());
  const bool times = cuda && rl.objective.kind != ObjectiveSettings::Kind::kGrpo;
  const bool apart = times && rl.times == RlSettings::Times::kApart;
  const bool engine_on_gpu = setup.device.is_cuda() && !run.model.service;
  judges->wait_for_engine_ = times && !apart && engine_on_gpu && rl.judge_gpu < 0;
  judges->staleness_ = rl.staleness.value_or(judges->wait_for_engine_ || rl.turns > 1 ? 0 : 1);
  if (judges->wait_for_engine_ && judges->staleness_ > 0)
    return input_error(
        "{}: rl.staleness: expected 0 where the judge times answers on the engine's own GPU, got {}; "
        "rl.judge_gpu names another one, and with rl.times = \"apart\" they take turns",
        setup.options.run_file, judges->staleness_);
  // Where the judge works while the engine writes on a GPU, two cores of a rank's feed the GPU.
  const int64_t cores = std::max<int64_t>(std::thread::hardware_concurrency() / setup.ranks.count() -
                                              (engine_on_gpu && !judges->wait_for_engine_ ? 2 : 0),
                                          1);
  judges->jobs_ = rl.judge_jobs > 0 ? rl.judge_jobs : cores;
  JudgeSettings settings{.policy = rl.policy,
                         .device = apart ? "cpu" : rl.judge_device,
                         .time_limit = rl.time_limit,
                         .times = times && !apart,
                         .rule_reward = rl.rule_reward,
                         .trials = rl.trials,
                         .jobs = judges->jobs_,
                         .fast_inputs = rl.fast_inputs,
                         .timing_seconds = rl.timing_seconds};
  if (cuda && rl.judge_gpu >= 0)
    settings.gpu = rl.judge_gpu + setup.ranks.rank();
  else if (cuda && setup.device.is_cuda())
    settings.gpu = setup.device.index();
  const auto log_of = [&](const char* who) {
    return setup.folder / fmt::format("{}-{}.log", who, setup.ranks.rank());
  };
  if (apart) {
    // Both draw the same, so that what is timed can be held to what was judged.
    settings.seed = 1 + std::random_device()() % 0x7ffffffe;
    NEREID_TRY(judges->traces_, TemporaryFolder::create("nereid-traces"));
    settings.traces = judges->traces_->path();
    JudgeSettings clock = settings;
    clock.device = "cuda", clock.times = clock.time_only = true;
    clock.timing_width = kTimingWidth;
    NEREID_TRY(judges->clock_, AnswerJudge::start(setup.installation, clock, log_of("clock")));
    // Kernels are compiled as soon as they are Verified, while the clock stands.
    if (const auto arch = architecture(static_cast<int>(std::max<int64_t>(settings.gpu, 0))); arch.ok())
      settings.compile_for = *arch;
  }
  NEREID_TRY(judges->judge_, AnswerJudge::start(setup.installation, settings, log_of("judge")));
  judges->scoring_.emplace(*judges->judge_, judges->clock_.get(), rl.straggler_timeout_s);
  return judges;
}

}  // namespace nereid::train
