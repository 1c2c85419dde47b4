#include "nereid/train/rl/rl.h"

#include <algorithm>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/train/rl/all_gather.h"
#include "nereid/train/rl/conversations.h"
#include "nereid/train/rl/objective/collapse_watch.h"
#include "nereid/train/rl/objective/rl_file.h"
#include "nereid/train/rl/policy/policy.h"
#include "nereid/train/rl/policy/recorded_answers.h"
#include "nereid/train/rl/prefetched_rollouts.h"
#include "nereid/train/rl/rank_judges.h"
#include "nereid/train/rl/scoring.h"
#include "nereid/train/rl/step_times.h"
#include "nereid/train/rl/tasks.h"
#include "nereid/train/rollout_log.h"
#include "nereid/train/sft/checkpoint.h"
#include "nereid/train/sft/run_setup.h"

namespace nereid::train {
namespace {

class RlLoop {
 public:
  RlLoop(const TrainOptions& options, RlRun run_file, Ranks& ranks, at::Device device)
      : options_(options), run_file_(std::move(run_file)), ranks_(&ranks), device_(device) {}

  Status go() {
    folder_ = options_.folder.empty() ? std::filesystem::path("training") / run().name : options_.folder;
    NEREID_TRY(tasks_, TaskSource::open(rl().tasks, static_cast<uint64_t>(run().seed)));
    NEREID_TRY(held_out_, TaskSource::open(rl().held_out, 0));
    if (!rl().recorded_answers.empty()) {
      NEREID_TRY(recorded_, RecordedAnswers::read(rl().recorded_answers));
    }
    NEREID_TRY(installation_, Installation::locate());
    if (options_.check) return open_model();
    if (leads()) {
      NEREID_TRY(folder_held_, open_run_folder(options_, folder_, "rl"));
    }
    std::vector<double> everybody = {1};
    NEREID_TRY_STATUS(ranks_->sum(everybody));  // the folder is there
    // They start first: their workers are warm when the first answers are written.
    NEREID_TRY(judges_, RankJudges::start({.options = options_,
                                           .run = run_file_,
                                           .ranks = *ranks_,
                                           .device = device_,
                                           .installation = *installation_,
                                           .folder = folder_}));
    NEREID_TRY_STATUS(open_model());
    return loop();
  }

 private:
  // A step's answers and the verdicts on them, as far as they are there.
  struct Pending {
    PrefetchedRollouts written;
    ScoringRound round;
  };

  const RunFile& run() const { return run_file_.run; }
  const RlSettings& rl() const { return run_file_.rl; }
  // Ranks stop together, between two steps.
  bool interruptible() const { return ranks_->count() == 1; }
  bool leads() const { return ranks_->rank() == 0; }
  bool mine(size_t prompt) const { return static_cast<int64_t>(prompt) % ranks_->count() == ranks_->rank(); }
  std::filesystem::path checkpoints() const { return folder_ / "checkpoints"; }

  Status open_model() {
    NEREID_TRY(policy_, open_policy({.options = &options_,
                                     .run = &run_file_,
                                     .ranks = ranks_,
                                     .device = device_,
                                     .installation = &*installation_,
                                     .folder = folder_}));
    if (rl().turns > 1) NEREID_TRY_STATUS(policy_->format().can_repair());
    NEREID_TRY(const auto latest, latest_checkpoint(checkpoints()));
    if (latest) {
      NEREID_TRY(state_, policy_->load(*latest));
      NEREID_TRY_STATUS(restore(*latest));
    }
    return policy_->begin(state_);
  }

  std::string more() {
    return Json({{"curriculum", curriculum_.state()},
                 {"drawn", tasks_->drawn()},
                 {"seconds", spent_},
                 {"ended", last_}})
        .dump();
  }

  Status restore(const std::filesystem::path& checkpoint) {
    const std::string where = (checkpoint / "state.json.more").string();
    NEREID_TRY(const Json json, parse_json(state_.more, where));
    const JsonField root(json, where);
    NEREID_TRY(const auto curriculum, root.at("curriculum"));
    NEREID_TRY_STATUS(curriculum_.restore(curriculum.json(), curriculum.path()));
    NEREID_TRY(const auto seconds, root.find("seconds"));
    if (seconds) {
      NEREID_TRY(spent_, seconds->number());
    }
    NEREID_TRY(last_, root.boolean_at("ended", false));
    NEREID_TRY(const auto drawn, root.at("drawn"));
    auto& counts = tasks_->drawn();
    NEREID_TRY(const size_t size, drawn.size(counts.size()));
    if (size != counts.size()) return drawn.expected(fmt::format("{} counts", counts.size()));
    for (size_t c = 0; c < size; ++c) {
      NEREID_TRY(const int64_t count, drawn.item(c).integer(0, INT64_MAX));
      counts[c] = static_cast<uint64_t>(count);
    }
    NEREID_TRY(const auto kept, read_kept(checkpoint));
    return kept.empty() ? ok_status() : restore_written(kept, checkpoint.string());
  }

  // What the engine had written ahead is judged again.
  Status restore_written(const std::vector<std::string>& kept, const std::string& where) {
    NEREID_TRY(auto written,
               prefetched_rollouts_of(kept, ranks_->rank(), ranks_->count(), policy_->vocab_size(), where));
    for (size_t p = 0; p < written.classes.size(); ++p)
      if (written.classes[p] >= std::ssize(rl().tasks) ||
          written.tasks[p] >= tasks_->all(written.classes[p]).size())
        return input_error("{}: there is no task {} of class {}", where, written.tasks[p],
                           written.classes[p]);
    pending_.emplace(Pending{.written = std::move(written), .round = ScoringRound(judges_->scoring())});
    auto& answers = pending_->written.answers;
    for (size_t i = 0; i < answers.size(); ++i) {
      policy_->finish(answers[i]);
      pending_->round.add(i, task_of(pending_->written, answers[i].prompt).source, answers[i].text);
    }
    written_ahead_ = true;
    return ok_status();
  }

  const Task& task_of(const PrefetchedRollouts& written, size_t prompt) const {
    return tasks_->all(written.classes[prompt])[written.tasks[prompt]];
  }

  Status loop() {
    if (leads()) {
      NEREID_TRY(log_, MetricsLog::open(folder_, state_.step));
      progress_.emplace("train " + run().name);
      if (state_.step > 0)
        progress_->note(fmt::format("{}: resumes from step {}", folder_.string(), state_.step));
      for (const KeyChange& change : folder_held_.changes)
        progress_->note(fmt::format("{}: {}", options_.run_file, to_string(change)));
    }
    NEREID_TRY(rollout_log_, RolloutLog::open(folder_, ranks_->rank(), state_.step));
    kept_step_ = state_.step;
    while (!last_ && state_.step < run().schedule.steps) {
      last_ = is_last();
      auto figures = one_step();
      if (!figures.ok()) return figures.error().blame == Blame::kInterrupted ? stop_early() : figures.error();
      if (leads()) NEREID_TRY_STATUS(report(*figures));
      if (last_ || state_.step % run().checkpoints.every_steps == 0) NEREID_TRY_STATUS(keep());
      NEREID_TRY_STATUS(policy_->look_at_checkpoint());
      NEREID_TRY(const auto stop, gather_numbers<int>(*ranks_, {interrupted() ? 1 : 0}));
      if (!last_ && std::ranges::count(stop, 1) > 0) return stop_early();
    }
    NEREID_TRY_STATUS(policy_->wait_for_checkpoint());
    NEREID_TRY(const auto latest, latest_checkpoint(checkpoints()));
    if (leads() && latest)
      progress_->note(fmt::format("{}: all {} steps are done; {}", folder_.string(), state_.step,
                                  policy_->weights_of(*latest)));
    return ok_status();
  }

  // All ranks have rank 0's seconds.
  bool is_last() const { return is_last_step(run().schedule, state_.step, spent_, latest_seconds_); }

  Status keep() {
    kept_step_ = state_.step;
    return policy_->start_checkpoint(state_, written_ahead_ ? to_cbor(pending_->written) : "");
  }

  // The state is that between two steps, wherever in a step it was.
  Status stop_early() {
    if (state_.step > kept_step_) NEREID_TRY_STATUS(keep());
    NEREID_TRY_STATUS(policy_->wait_for_checkpoint());
    return Error{fmt::format("stopped after step {}; run the same command to resume", state_.step),
                 Blame::kInterrupted};
  }

  Status report(const Figures& figures) {
    const int64_t step = state_.step - 1;
    NEREID_TRY_STATUS(log_->add(step, figures));
    if (options_.report) NEREID_TRY_STATUS(options_.report(step, figures));
    for (const auto& alarm : alarms_) progress_->note(fmt::format("step {}: {}", step, alarm));
    const std::map<std::string, double> named(figures.begin(), figures.end());
    const auto& schedule = run().schedule;
    const std::string of = schedule.seconds > 0
                               ? fmt::format(", {:.0f} of {:.0f} s", spent_, schedule.seconds)
                               : fmt::format("/{}", schedule.steps);
    const std::string supervised =
        named.contains("sft_mix_loss") ? fmt::format("sft_mix loss {:.4f}, ", named.at("sft_mix_loss")) : "";
    progress_->say(
        fmt::format("step {}{}, reward {:.3f}, {}{:.0f} tokens, {:.1f} s writing, {:.1f} s for the judge, "
                    "{:.1f} s for the clock, {:.1f} s learning",
                    state_.step, of, named.at("reward"), supervised, named.at("length"), named.at("write_s"),
                    named.at("judge_s"), named.at("time_s"), named.at("learn_s")));
    return ok_status();
  }

  // Draws the step's tasks and has the engine answer this rank's; the judge gets each answer as it is whole.
  Result<Pending> write(int64_t step) {
    Pending found{.written = {.step = step, .classes = {}, .tasks = {}, .answers = {}},
                  .round = ScoringRound(judges_->scoring())};
    PrefetchedRollouts& written = found.written;
    std::vector<Prompt> prompts;
    for (size_t p = 0; p < static_cast<size_t>(rl().prompts_per_step); ++p) {
      written.classes.push_back(curriculum_.draw());
      written.tasks.push_back(tasks_->next(written.classes.back()));
      if (!mine(p)) continue;
      prompts.push_back({.number = p, .task = task_of(written, p)});
      if (recorded_) {
        NEREID_TRY(prompts.back().given, recorded_->of(written.classes.back(), written.tasks.back()));
      }
    }
    const Sampling sampling{
        .samples = rl().samples,
        .branches = rl().branches,
        .temperature = rl().temperature,
        .code_temperature = rl().code_temperature,
        .min_p = rl().min_p,
        .seed = static_cast<uint64_t>(run().seed) * 1'000'000'007 + static_cast<uint64_t>(step),
        .interruptible = interruptible()};
    NEREID_TRY(
        written.answers,
        converse(*policy_, prompts,
                 {.turns = rl().turns, .sampling = sampling, .judge_waits = judges_->wait_for_engine()},
                 found.round));
    return found;
  }

  Result<Figures> one_step() {
    const Stopwatch whole;
    times_.begin();
    times_.enter(StepPart::kEngine);
    if (!pending_) {
      NEREID_TRY(pending_, write(state_.step));
    }
    std::optional<Pending> next;
    if (judges_->staleness() > 0 && !last_) {
      NEREID_TRY(next, write(state_.step + 1));
    }
    times_.enter(StepPart::kJudge);
    NEREID_TRY(const auto verdicts,
               pending_->round.verdicts(interruptible(), [this] { times_.enter(StepPart::kClock); }));
    times_.enter(StepPart::kOther);
    const Stopwatch other;
    NEREID_TRY(StepRollouts step,
               all_gather_rollouts(*ranks_, pending_->written, verdicts, rl().objective, rl().turn_discount));
    const double ranks_s = other.seconds();
    times_.enter(StepPart::kTrainer);
    const double share = learning_rate_share(run().schedule, state_.step, spent_);
    NEREID_TRY(auto learnt, policy_->learn(pending_->written, step, share, state_));
    if (learnt.no_number) return no_number_error(learnt);
    times_.enter(StepPart::kOther);
    NEREID_TRY_STATUS(rollout_log_->add(records_of(pending_->written, verdicts, step, rl().objective)));
    for (const auto& rollout : step.rollouts)
      if (rollout.turn == 0)
        curriculum_.rewarded(pending_->written.classes[rollout.prompt], binary_reward(rollout.judged));
    const auto& round = pending_->round;
    const double slowest_s = round.slowest_seconds();
    std::vector<double> counts;
    for (const size_t count :
         {pending_->written.answers.size(), round.different(), round.judged(), round.timed()})
      counts.push_back(static_cast<double>(count));
    counts.insert(counts.end(), {round.judged_seconds(), round.compiled_ahead_seconds()});
    counts.insert(counts.end(), round.clock_seconds().begin(), round.clock_seconds().end());
    NEREID_TRY_STATUS(ranks_->sum(counts));
    pending_ = std::move(next);
    written_ahead_ = pending_.has_value();
    ++state_.step;
    state_.tokens += static_cast<int64_t>(step.tokens);
    alarms_ = watch_.look(step.figures);
    Figures figures = std::move(learnt.figures);
    for (const auto& figure : CollapseWatch::metrics(step.figures)) figures.push_back(figure);
    if (rl().turns > 1) add_turns(step, figures);
    const auto shares = curriculum_.shares();
    for (size_t c = 0; c < shares.size(); ++c) figures.emplace_back(fmt::format("share/{}", c), shares[c]);
    const double held_out_s = -whole.seconds();
    if (!rl().held_out.empty() && (last_ || state_.step % run().held_out_every == 0))
      NEREID_TRY_STATUS(evaluate_held_out(figures));
    NEREID_TRY(const auto seconds, gather_numbers<double>(*ranks_, {whole.seconds()}));
    latest_seconds_ = seconds.front();
    spent_ += latest_seconds_;
    if (run().schedule.seconds > 0 && spent_ >= run().schedule.seconds)
      last_ = true;  // it took longer than was thought
    state_.more = more();
    figures.insert(figures.end(), {{"slowest_s", slowest_s},
                                   {"ranks_s", ranks_s},
                                   {"held_out_s", held_out_s + whole.seconds()},
                                   {"step_s", latest_seconds_},
                                   {"memory_gb", peak_gigabytes(device_)}});
    add_work(step, counts, figures);
    return figures;
  }

  // What the step had to do, and where its time went; `counts` as one_step() sums them over ranks.
  void add_work(const StepRollouts& step, const std::vector<double>& counts, Figures& figures) {
    const double places = static_cast<double>(judges_->jobs() * ranks_->count());
    figures.insert(figures.end(), {{"unjudged", static_cast<double>(step.unjudged)},
                                   {"programs", counts[1]},
                                   {"judged", counts[2]},
                                   {"timed", counts[3]},
                                   {"saved", 1 - counts[2] / std::max(counts[0], 1.0)},
                                   {"judge_restarts", static_cast<double>(judges_->restarts())},
                                   {"write_s", times_.seconds(StepPart::kEngine)},
                                   {"judge_s", times_.seconds(StepPart::kJudge)},
                                   {"judged_s", counts[4]},
                                   {"time_s", times_.seconds(StepPart::kClock)},
                                   {"learn_s", times_.seconds(StepPart::kTrainer)},
                                   {"rollouts_per_h", 3600 * counts[0] / latest_seconds_},
                                   {"tokens_per_s", step.tokens / latest_seconds_},
                                   {"busy/judge", counts[4] / (places * latest_seconds_)}});
    for (const auto& figure : times_.figures()) figures.push_back(figure);
    if (!judges_->have_clock()) return;
    figures.emplace_back("compiled_ahead_s", counts[5]);
    for (size_t i = 0; i < kClockParts.size(); ++i)
      figures.emplace_back(fmt::format("clock/{}_s", kClockParts[i]), counts[6 + i]);
  }

  static void add_turns(const StepRollouts& step, Figures& figures) {
    double solved = 0;
    for (size_t t = 0; t < step.turns.size(); ++t) {
      const TurnFigures& turn = step.turns[t];
      figures.emplace_back(fmt::format("turn/{}/answers", t + 1), turn.answers);
      figures.emplace_back(fmt::format("turn/{}/Verified", t + 1),
                           turn.verified / std::max(turn.answers, 1.0));
      solved += turn.verified;
    }
    if (!step.turns.empty())
      figures.emplace_back("solved", solved / std::max(step.turns.front().answers, 1.0));
  }

  Error no_number_error(const Learnt& learnt) {
    if (auto kept = keep(); !kept.ok()) return kept.error();
    if (auto kept = policy_->wait_for_checkpoint(); !kept.ok()) return kept.error();
    return our_error(
        "step {}: expected finite numbers, got a loss of {} and a gradient of norm {}; the state before it "
        "is in {}",
        state_.step, learnt.loss, learnt.gradient_norm, checkpoints().string());
  }

  // pass@1, greedily, of the classes that are trained on. The step is done, but for this: nothing breaks it
  // off.
  Status evaluate_held_out(Figures& figures) {
    const auto shares = curriculum_.shares();
    std::vector<Prompt> asked;
    std::vector<size_t> classes;  // by the prompts' numbers
    for (size_t c = 0; c < shares.size(); ++c) {
      if (shares[c] <= 0) continue;
      const auto& all = held_out_->all(static_cast<int64_t>(c));
      for (size_t t = 0; t < all.size() && std::cmp_less(t, rl().held_out_tasks); ++t) {
        if (mine(t)) asked.push_back({.number = classes.size(), .task = all[t]});
        classes.push_back(c);
      }
    }
    ScoringRound round(judges_->scoring(), ScoringRound::Clock::kNone);
    NEREID_TRY(const auto answers,
               converse(*policy_, asked,
                        {.turns = rl().turns,
                         .sampling = {.samples = 1, .temperature = 0, .seed = 0, .interruptible = false},
                         .judge_waits = judges_->wait_for_engine()},
                        round));
    NEREID_TRY(const auto verdicts, round.verdicts(/*interruptible=*/false));
    std::vector<double> verified(shares.size()), repaired(shares.size()), judged(shares.size());
    for (size_t i = 0; i < verdicts.size(); ++i) {
      const size_t c = classes[answers[i].prompt];
      const bool first = answers[i].turn == 0;
      (first ? verified : repaired)[c] += verdicts[i].kind == verify::VerdictKind::kVerified;
      judged[c] += first && verdicts[i].kind != verify::VerdictKind::kError;
    }
    NEREID_TRY_STATUS(ranks_->sum(verified));
    NEREID_TRY_STATUS(ranks_->sum(repaired));
    NEREID_TRY_STATUS(ranks_->sum(judged));
    for (size_t c = 0; c < shares.size(); ++c) {
      if (shares[c] <= 0) continue;
      const double rate = judged[c] > 0 ? verified[c] / judged[c] : 0;
      figures.emplace_back(fmt::format("pass_at_1/{}", c), rate);
      if (rl().turns > 1 && judged[c] > 0)
        figures.emplace_back(fmt::format("pass_after_turns/{}", c), (verified[c] + repaired[c]) / judged[c]);
      if (leads())
        progress_->note(fmt::format("step {}: pass@1 of class {}: {:.3f}", state_.step - 1, c, rate));
      if (curriculum_.looked(static_cast<int64_t>(c), rate) && leads())
        progress_->note(fmt::format("step {}: pass@1 is {:.2f}: class {} now", state_.step - 1, rate, c + 1));
    }
    return ok_status();
  }

  TrainOptions options_;
  RlRun run_file_;
  Ranks* ranks_;
  at::Device device_;
  std::filesystem::path folder_;
  OpenRun folder_held_;
  std::optional<Installation> installation_;
  std::optional<TaskSource> tasks_, held_out_;
  std::optional<RecordedAnswers> recorded_;
  StepTimes times_{StepTimes::utilization_of(device_.is_cuda() ? device_.index() : -1)};
  std::unique_ptr<RankJudges> judges_;
  std::unique_ptr<Policy> policy_;
  Curriculum curriculum_{run_file_.curriculum, static_cast<uint64_t>(run_file_.run.seed)};
  CollapseWatch watch_;
  std::vector<std::string> alarms_;
  RunState state_;
  std::optional<Pending> pending_;
  bool written_ahead_ = false;             // pending_ was there when the step began: a checkpoint keeps it
  int64_t kept_step_ = 0;                  // of the latest checkpoint
  double spent_ = 0, latest_seconds_ = 0;  // rank 0's, of all steps and of the latest
  bool last_ = false;                      // no step comes behind this one
  std::optional<MetricsLog> log_;
  std::optional<RolloutLog> rollout_log_;
  std::optional<Progress> progress_;
};

}  // namespace

Status run_rl(const TrainOptions& options) {
  NEREID_TRY(const std::string text, read_file(options.run_file, 1 << 20));
  NEREID_TRY(RlRun run_file, parse_rl_file(text, options.run_file));
  return on_ranks(options.ranks, options.device, run_file.run.machine, [&](Ranks& ranks, at::Device device) {
    return RlLoop(options, run_file, ranks, device).go();
  });
}

}  // namespace nereid::train
