#include "nereid/replay/host/session.h"

#include <sys/wait.h>

#include <algorithm>

#include "nereid/replay/host/timed_session.h"
#include "nereid/replay/host/worker_session.h"

namespace nereid::replay {
namespace {

// A candidate's worker keeps its own limit on each of at most three phases; one that does not is ended so
// many seconds later.
constexpr double kGrace = 5;

std::string limit_description(LimitOwner owner) {
  return owner == LimitOwner::kCaller ? "the caller's budget" : "the time that we wait for it";
}

}  // namespace

Result<TrialReport> WorkerSession::trial(const Trial& trial, const Tolerance& tolerance, Deadline deadline) {
  bool ran = false;
  NEREID_TRY(TrialReport report, replay(trial, ran, deadline));
  if (ran) NEREID_TRY_STATUS(judge(report, tolerance, deadline));
  return report;
}

Result<MutationReport> WorkerSession::leave_out(const std::vector<int>& launches, Deadline deadline) {
  const auto gpu = share_gpu();
  MutationReport report;
  NEREID_TRY_STATUS(park_reference(deadline));
  NEREID_TRY(auto answer, request_candidate(
                              {{"do", "leave_out"}, {"steps", launches}, {"seconds", options_.phase_seconds}},
                              {}, deadline));
  if (!answer) {
    report.failed = candidate_failure_;
    report.changed = candidate_failure_.has_value();
    if (alive_) candidate_failure_.reset();
    return report;
  }
  try {
    report.outputs_changed = answer->document.at("changed").get<std::vector<bool>>();
    report.seconds = answer->document.value("seconds", 0.0);
  } catch (const nlohmann::json::exception& garbled) {
    report.failed = Failure{Failure::Kind::kCrashed, {}, std::string("a garbled answer: ") + garbled.what()};
    report.changed = true;
    return report;
  }
  for (const bool changed : report.outputs_changed) report.changed |= changed;
  return report;
}

Result<TrialReport> WorkerSession::try_alternatives(const ConfiguredRun& run, const Tolerance& tolerance,
                                                    Deadline deadline) {
  Json alternatives = Json::array();
  for (const auto& [step, index] : run.choices) alternatives.push_back(Json::array({step, index}));
  return again(alternatives, tolerance, deadline, run);
}

Result<UnmovedReport> WorkerSession::unmoved(Deadline deadline) {
  UnmovedReport found;
  if (!tracks_unmoved() || options_.device != Device::kCpu || facts_.frugal || !last_ || !alive_)
    return found;
  const auto read = [](const Json& document) {
    std::vector<UnmovedOutput> outputs;
    for (const auto& output : document.at("outputs"))
      outputs.push_back({output.at("elements").get<int64_t>(), output.at("unmoved").get<int64_t>(),
                         output.at("numbers").get<std::vector<double>>()});
    return outputs;
  };
  NEREID_TRY(const auto all, request_reference({{"do", "unmoved"}, {"again", false}}, {}, deadline));
  if (!all) return found;
  found.outputs = read(all->document);
  if (std::ranges::none_of(found.outputs, [](const UnmovedOutput& o) { return o.unmoved > 0; })) return found;
  NEREID_TRY(const auto ran, request_candidate({{"do", "run"},
                                                {"seed", last_->trial.seed},
                                                {"sanitize", false},
                                                {"seconds", options_.phase_seconds},
                                                {"alternatives", default_alternatives()},
                                                {"other_pinned", true}},
                                               {}, deadline));
  if (!ran) return found;
  NEREID_TRY(const auto still, request_reference({{"do", "unmoved"}, {"again", true}}, {}, deadline));
  if (still) found.from_host = read(still->document);
  return found;
}

Result<TimeReport> WorkerSession::time(const TimeRequest& request, const Tolerance& tolerance,
                                       Deadline deadline) {
  if (options_.device != Device::kCuda) return our_error("only CUDA is timed");
  const auto ask = [](Result<std::optional<Message>> reply) -> Result<std::optional<Json>> {
    if (!reply.ok()) return reply.error();
    if (!*reply) return std::optional<Json>();
    return std::optional<Json>(std::move((*reply)->document));
  };
  TimedSides sides;
  const auto tolerated = [&](InputDistribution kind) {
    Tolerance wider = tolerance;
    if (kind != InputDistribution::kOwn) wider.slack *= request.slack;
    return wider;
  };
  sides.trial = [&](const Trial& trial) {
    return this->trial(trial, tolerated(trial.distribution), deadline);
  };
  sides.replay = [&](const Trial& trial) {
    bool ran = false;
    return replay(trial, ran, deadline);
  };
  sides.again = [&](const Json& alternatives) {
    return again(alternatives, tolerated(last_->trial.distribution), deadline);
  };
  sides.alternatives = default_alternatives();
  for (const auto& id : facts_.launches)
    sides.must_choose |=
        std::get<trace::Launch>(judged_forward(candidate_)->steps[static_cast<size_t>(id.step)])
            .alternatives.size() > 1;
  sides.request_reference = [&](const Json& what) { return ask(request_reference(what, {}, deadline)); };
  sides.request_candidate = [&](const Json& what) { return ask(request_candidate(what, {}, deadline)); };
  sides.judge = [&]() -> Result<TrialReport> {
    TrialReport report = *last_;
    NEREID_TRY_STATUS(judge(report, tolerated(report.trial.distribution), deadline));
    return report;
  };
  sides.failed = [&] {
    TrialReport report = *last_;
    report.failed = candidate_failure_;
    return report;
  };
  sides.device = gpu_;
  sides.gate = &gpu_gate();
  sides.use = &facts_.gpu;
  return time_sides(sides, request, deadline);
}

GpuGate::Pass WorkerSession::share_gpu() {
  return options_.device == Device::kCuda ? gpu_gate().share(&facts_.gpu) : GpuGate::Pass();
}

bool WorkerSession::tracks_unmoved() const {
  return std::ranges::any_of(candidate_.storages, &trace::Storage::pinned) && pairing_.difference.empty();
}

Result<TrialReport> WorkerSession::replay(const Trial& trial, bool& ran, Deadline deadline) {
  TrialReport report;
  report.trial = trial;
  report.perturbed = trial.perturb;
  NEREID_TRY(const bool ready, prepare(report, deadline));
  if (!ready) return report;
  last_ = report;
  NEREID_TRY(ran, run(report, default_alternatives(), deadline));
  return report;
}

Result<TrialReport> WorkerSession::again(const Json& alternatives, const Tolerance& tolerance,
                                         Deadline deadline, const ConfiguredRun& how) {
  if (!last_) return our_error("an alternative is tried after a trial, not before");
  TrialReport report = *last_;
  Json all = default_alternatives();
  for (const Json& chosen : alternatives) all.push_back(chosen);  // a later choice counts
  NEREID_TRY(const bool ran, run(report, all, deadline, how));
  if (!ran) return report;
  NEREID_TRY_STATUS(judge(report, tolerance, deadline, true));
  return report;
}

std::vector<int> WorkerSession::runnable(int step, std::vector<int> alternatives) const {
  if (options_.device != Device::kCuda) return alternatives;
  const auto& launch =
      std::get<trace::Launch>(judged_forward(candidate_)->steps.at(static_cast<size_t>(step)));
  std::erase_if(alternatives, [&](int index) {
    const auto& alternative = launch.alternatives.at(static_cast<size_t>(index));
    return !options_.kernels.contains(candidate_.kernels[static_cast<size_t>(alternative.kernel)].hash);
  });
  return alternatives;
}

Json WorkerSession::default_alternatives() const {
  Json chosen = Json::array();
  if (options_.device != Device::kCuda) return chosen;
  const auto& steps = judged_forward(candidate_)->steps;
  for (const auto& id : facts_.launches) {
    const auto& launch = std::get<trace::Launch>(steps[static_cast<size_t>(id.step)]);
    const auto runs = [&](const trace::Alternative& alternative) {
      return options_.kernels.contains(candidate_.kernels[static_cast<size_t>(alternative.kernel)].hash);
    };
    const auto first = std::find_if(launch.alternatives.begin(), launch.alternatives.end(), runs);
    if (first != launch.alternatives.begin() && first != launch.alternatives.end())
      chosen.push_back({id.step, first - launch.alternatives.begin()});
  }
  return chosen;
}

Result<std::optional<Message>> WorkerSession::request_reference(const Json& request,
                                                                const std::vector<int>& fds,
                                                                Deadline deadline) {
  if (reference_failure_) return std::optional<Message>();
  auto reply = r_->ask(request, fds, deadline);
  if (reply.interrupted) return Error{"interrupted", Blame::kInterrupted};
  if (!reply.answer && reply.late)
    return our_error("the reference's replay did not end within {} ({})", limit_description(*reply.late),
                     describe(r_->position().where(reference_)));
  if (!reply.answer)
    return our_error("the reference's worker is lost: {} in {}", describe_end(reply.status),
                     describe(r_->position().where(reference_)));
  const auto& document = reply.answer->document;
  if (document.contains("error")) return our_error("the reference's worker: {}", document["error"].dump());
  if (document.contains("failure")) {
    reference_failure_ = failure_from_json(document["failure"]);
    return std::optional<Message>();
  }
  return std::optional<Message>(std::move(*reply.answer));
}

Result<std::optional<Message>> WorkerSession::request_candidate(const Json& request,
                                                                const std::vector<int>& fds,
                                                                Deadline deadline) {
  if (!alive_) return std::optional<Message>();
  auto reply = c_->ask(request, fds, deadline, 3 * options_.phase_seconds + kGrace);
  const auto fail = [&](Failure::Kind kind, const std::string& message) {
    alive_ = false;
    candidate_failure_ = Failure{kind, c_->position().where(candidate_), message};
    return std::optional<Message>();
  };
  if (reply.interrupted || (!reply.answer && reply.late && *reply.late != LimitOwner::kCandidate)) {
    alive_ = false;
    if (reply.interrupted) return Error{"interrupted", Blame::kInterrupted};
    return our_error("the candidate's replay did not end within {} ({})", limit_description(*reply.late),
                     describe(c_->position().where(candidate_)));
  }
  if (!reply.answer && reply.late) return fail(Failure::Kind::kTimedOut, "the time limit passed");
  if (!reply.answer && WIFEXITED(reply.status) && WEXITSTATUS(reply.status) == kNoJail)
    return our_error("a worker could not enter its jail");
  // Nothing that a worker runs sends that signal, nor does it end of itself: the signal came from outside
  // (from the kernel, short of memory, for instance).
  const bool killed = WIFSIGNALED(reply.status) && WTERMSIG(reply.status) == SIGKILL;
  if (!reply.answer && (killed || reply.status == 0)) {
    alive_ = false;
    return our_error("the candidate's worker was killed in {}", describe(c_->position().where(candidate_)));
  }
  if (!reply.answer) return fail(Failure::Kind::kCrashed, describe_end(reply.status));
  const auto& document = reply.answer->document;
  try {
    if (document.contains("failure")) {
      candidate_failure_ = failure_from_json(document["failure"]);
      return std::optional<Message>();
    }
    if (document.contains("error"))
      return our_error("the candidate's worker: {}", document["error"].get<std::string>());
  } catch (const nlohmann::json::exception& garbled) {
    return fail(Failure::Kind::kCrashed, std::string("a garbled answer: ") + garbled.what());
  }
  return std::optional<Message>(std::move(*reply.answer));
}

Status WorkerSession::park_candidate(Deadline deadline) {
  if (!facts_.frugal || !alive_ || load_failure_) return ok_status();
  const auto failure = candidate_failure_;
  NEREID_TRY(const auto rested, request_candidate({{"do", "rest"}}, {}, deadline));
  if (rested) candidate_failure_ = failure;  // else it is lost, which the next run reports
  return ok_status();
}

Status WorkerSession::park_reference(Deadline deadline) {
  if (!facts_.frugal) return ok_status();
  NEREID_TRY(const auto rested, request_reference({{"do", "rest"}}, {}, deadline));
  (void)rested;
  return ok_status();
}

Result<bool> WorkerSession::prepare(TrialReport& report, Deadline deadline) {
  auto trial = report.trial;
  trial.perturb = report.perturbed;
  const auto gpu = share_gpu();
  NEREID_TRY_STATUS(park_candidate(deadline));
  NEREID_TRY(auto answer, request_reference({{"do", "prepare"}, {"trial", to_json(trial)}}, {}, deadline));
  if (!answer) {
    report.reference_failed = reference_failure_;
    if (!reference_unloadable_) reference_failure_.reset();
    return false;
  }
  if (answer->document.contains("seconds"))
    report.seconds_reference = answer->document["seconds"].get<double>();
  report.applicable = answer->document.at("applicable").get<bool>();
  return report.applicable;
}

Result<bool> WorkerSession::run(TrialReport& report, const Json& alternatives, Deadline deadline,
                                const ConfiguredRun& how) {
  if (alive_ && !load_failure_) candidate_failure_.reset();  // an earlier trial's
  if (candidate_failure_) {
    report.failed = candidate_failure_;
    return false;
  }
  Json tuned = Json::array();
  for (const auto& [step, indices] : how.tuned) tuned.push_back(Json::array({step, runnable(step, indices)}));
  const auto gpu = share_gpu();
  NEREID_TRY_STATUS(park_reference(deadline));
  NEREID_TRY(auto answer, request_candidate({{"do", "run"},
                                             {"seed", report.trial.seed},
                                             {"sanitize", report.trial.sanitize},
                                             {"seconds", options_.phase_seconds},
                                             {"alternatives", alternatives},
                                             {"tuned", std::move(tuned)},
                                             {"digests", how.digests}},
                                            {}, deadline));
  if (!answer) {
    report.failed = candidate_failure_;
    return false;
  }
  try {
    const Json& document = answer->document;
    for (const auto& finding : document.at("findings")) report.findings.push_back(finding_from_json(finding));
    document.at("finding_count").get_to(report.finding_count);
    document.at("seconds").get_to(report.seconds_candidate);
    for (const auto& work : document.at("work"))
      report.work.push_back({work.at(0).get<int>(), work.at(1).get<double>(), work.at(2).get<double>()});
    for (const auto& left : document.at("left"))
      report.left[left.at(0).get<int>()] = left.at(1).get<uint64_t>();
    document.at("changing_casts").get_to(report.changing_casts);
    for (const auto& index : document.at("inputs_written")) {
      const auto i = index.get<size_t>();
      if (std::find(inputs_mutated_.begin(), inputs_mutated_.end(), i) == inputs_mutated_.end())
        report.inputs_written.push_back(fmt::format("input {}", i));
    }
    report.not_as_found = document.at("not_as_found").get<std::vector<trace::StorageId>>();
    report.state_written = written_before_;
    for (const auto& index : document.at("kept_written"))
      report.state_written.push_back(kept_names_.at(index.get<size_t>()));
  } catch (const std::exception& garbled) {
    report.failed = Failure{Failure::Kind::kCrashed, {}, std::string("a garbled answer: ") + garbled.what()};
    return false;
  }
  return report.findings.empty();
}

Status WorkerSession::judge(TrialReport& report, const Tolerance& tolerance, Deadline deadline, bool again) {
  if (!pairing_.difference.empty()) {
    report.comparison = Comparison{};
    report.comparison->agrees = false;
    report.comparison->structure = pairing_.difference;
    return ok_status();
  }
  const auto gpu = share_gpu();
  NEREID_TRY_STATUS(park_candidate(deadline));
  NEREID_TRY(auto answer, request_reference({{"do", "judge"},
                                             {"trial", to_json(report.trial)},
                                             {"tolerance", to_json(tolerance)},
                                             {"paths", paths_},
                                             {"again", again}},
                                            {}, deadline));
  if (!answer) {
    report.reference_failed = reference_failure_;
    reference_failure_.reset();
    return ok_status();
  }
  report.comparison = comparison_from_json(answer->document.at("comparison"));
  report.seconds_reference += answer->document.at("seconds").get<double>();
  report.seconds_oracle = answer->document.at("oracle_seconds").get<double>();
  return ok_status();
}

Result<std::unique_ptr<Session>> open_session(const trace::Trace& reference, const trace::Trace& candidate,
                                              const SessionOptions& options, const WorkerMaker& make,
                                              MemoryAdmission& memory, Deadline deadline) {
  if (!judged_forward(reference) || !judged_forward(candidate))
    return input_error("a trace has no forward phase");
  auto session = std::make_unique<WorkerSession>(reference, candidate, options);
  NEREID_TRY_STATUS(session->open(make, memory, deadline));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace nereid::replay
