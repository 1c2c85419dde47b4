#include "nereid/replay/host/session.h"

#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "nereid/replay/host/timed_session.h"
#include "nereid/replay/memory_plan.h"
#include "nereid/replay/message.h"
#include "nereid/replay/state_pairing.h"
#include "nereid/replay/structure.h"
#include "nereid/trace/format/codec.h"

namespace nereid::replay {
namespace {

// A candidate's worker keeps its own limit on each of at most three phases; one that does not is ended so
// many seconds later.
constexpr double kGrace = 5;

int64_t memory_available() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t kilobytes = 0, available = 0;
  while (file >> key >> kilobytes >> unit)
    if (key == "MemAvailable:") available = kilobytes * 1024;
  const auto read_number = [](const char* path) {
    int64_t value = -1;
    std::ifstream(path) >> value;
    return value;
  };
  const auto most = read_number("/sys/fs/cgroup/memory.max"),
             used = read_number("/sys/fs/cgroup/memory.current");
  if (most > 0 && used >= 0) available = available > 0 ? std::min(available, most - used) : most - used;
  return available;
}

std::string whose_time(LimitOwner owner) {
  return owner == LimitOwner::kCaller ? "the caller's budget" : "the time that we wait for it";
}

std::string gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

class WorkerSession : public Session {
 public:
  WorkerSession(const trace::Trace& reference, const trace::Trace& candidate, const SessionOptions& options)
      : reference_(pinned_as(reference, candidate)),
        candidate_(ordered_as(reference, candidate)),
        options_(options) {}

  Status open(const WorkerMaker& make, MemoryAdmission& memory, Deadline deadline) {
    const Stopwatch waiting;
    plan();
    const int threads = options_.threads > 0 ? options_.threads : is_small() ? 1 : cores();
    NEREID_TRY(r_, make("reference", threads));
    NEREID_TRY(c_, make("candidate", threads));
    NEREID_TRY_STATUS(send_kernels(reference_, *r_, deadline));
    NEREID_TRY_STATUS(send_kernels(candidate_, *c_, deadline));
    facts_.seconds_waited = waiting.seconds();  // for processes to be warm
    NEREID_TRY(const Fd reference_file, sealed_file(trace::serialize(reference_)));
    NEREID_TRY(const Fd candidate_file, sealed_file(trace::serialize(candidate_)));
    NEREID_TRY(auto loaded,
               ask_reference({{"do", "load"}, {"threads", threads}, {"unmoved", tracks_unmoved()}},
                             {reference_file.get(), r_->position().fd()}, deadline));
    if (!loaded) {  // the reference failed: trials say so
      reference_unloadable_ = true;
      return ok_status();
    }
    const Json& r = loaded->document;
    NEREID_TRY(auto candidate, ask_candidate({{"do", "load"},
                                              {"threads", threads},
                                              {"may_keep_inputs", r.at("keeps_inputs")},
                                              {"states", states_of(false)},
                                              {"watched", watched(r)},
                                              {"kept", kept(r)},
                                              {"compared", pairing_.difference.empty()},
                                              {"inputs_written", r.at("inputs_written")}},
                                             {candidate_file.get(), c_->position().fd()}, deadline));
    if (!candidate) {
      load_failure_ = true;
      return ok_status();
    }
    const Json& c = candidate->document;
    gpu_ = r.value("gpu", "");
    for (const auto index : c.at("written_before").get<std::vector<size_t>>())
      written_before_.push_back(kept_names_.at(index));
    std::set<int> calls;
    for (const auto* side : {&r, &c})
      for (const auto& call : side->at("calls_used")) calls.insert(call.get<int>());
    NEREID_TRY(const auto most, plan_memory_of(c, calls, deadline));
    NEREID_TRY_STATUS(take_memory(most, memory, deadline));
    const auto gpu = share_gpu();  // all before this is work of the processors
    facts_.seconds_waited += facts_.gpu.waited;
    return connect(r, c, calls, deadline);
  }

  const SessionFacts& facts() const override { return facts_; }

  Result<TrialReport> trial(const Trial& trial, const Tolerance& tolerance, Deadline deadline) override {
    bool ran = false;
    NEREID_TRY(TrialReport report, replay(trial, ran, deadline));
    if (ran) NEREID_TRY_STATUS(judge(report, tolerance, deadline));
    return report;
  }

  Result<MutationReport> leave_out(const std::vector<int>& launches, Deadline deadline) override {
    const auto gpu = share_gpu();
    MutationReport report;
    NEREID_TRY_STATUS(rest_reference(deadline));
    NEREID_TRY(auto answer,
               ask_candidate({{"do", "leave_out"}, {"steps", launches}, {"seconds", options_.phase_seconds}},
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
      report.failed =
          Failure{Failure::Kind::kCrashed, {}, std::string("a garbled answer: ") + garbled.what()};
      report.changed = true;
      return report;
    }
    for (const bool changed : report.outputs_changed) report.changed |= changed;
    return report;
  }

  Result<TrialReport> try_alternatives(const Choices& choices, bool digests, const Tolerance& tolerance,
                                       Deadline deadline) override {
    Json alternatives = Json::array();
    for (const auto& [step, index] : choices) alternatives.push_back(Json::array({step, index}));
    return again(alternatives, tolerance, deadline, digests);
  }

  Result<UnmovedReport> unmoved(Deadline deadline) override {
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
    NEREID_TRY(const auto all, ask_reference({{"do", "unmoved"}, {"again", false}}, {}, deadline));
    if (!all) return found;
    found.outputs = read(all->document);
    if (std::ranges::none_of(found.outputs, [](const UnmovedOutput& o) { return o.unmoved > 0; }))
      return found;
    NEREID_TRY(const auto ran, ask_candidate({{"do", "run"},
                                              {"seed", last_->trial.seed},
                                              {"sanitize", false},
                                              {"seconds", options_.phase_seconds},
                                              {"alternatives", default_alternatives()},
                                              {"other_pinned", true}},
                                             {}, deadline));
    if (!ran) return found;
    NEREID_TRY(const auto still, ask_reference({{"do", "unmoved"}, {"again", true}}, {}, deadline));
    if (still) found.from_host = read(still->document);
    return found;
  }

  Result<TimeReport> time(const TimeRequest& request, const Tolerance& tolerance,
                          Deadline deadline) override {
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
    sides.ask_reference = [&](const Json& what) { return ask(ask_reference(what, {}, deadline)); };
    sides.ask_candidate = [&](const Json& what) { return ask(ask_candidate(what, {}, deadline)); };
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

 private:
  // Held for one step at a time, so that who wants to time does not wait long.
  GpuGate::Pass share_gpu() {
    return options_.device == Device::kCuda ? gpu_gate().share(&facts_.gpu) : GpuGate::Pass();
  }

  // Answers of the host's are looked for where host code reads integers.
  bool tracks_unmoved() const {
    return std::ranges::any_of(candidate_.storages, &trace::Storage::pinned) && pairing_.difference.empty();
  }

  // A trial as far as the candidate's outputs; `ran`: they can be compared.
  Result<TrialReport> replay(const Trial& trial, bool& ran, Deadline deadline) {
    TrialReport report;
    report.trial = trial;
    report.perturbed = trial.perturb;
    NEREID_TRY(const bool ready, prepare(report, deadline));
    if (!ready) return report;
    last_ = report;
    NEREID_TRY(ran, run(report, default_alternatives(), deadline));
    return report;
  }

  Result<TrialReport> again(const Json& alternatives, const Tolerance& tolerance, Deadline deadline,
                            bool digests = false) {
    if (!last_) return our_error("an alternative is tried after a trial, not before");
    TrialReport report = *last_;
    Json all = default_alternatives();
    for (const Json& chosen : alternatives) all.push_back(chosen);  // a later choice counts
    NEREID_TRY(const bool ran, run(report, all, deadline, digests));
    if (!ran) return report;
    NEREID_TRY_STATUS(judge(report, tolerance, deadline, true));
    return report;
  }

  // CUDA: of each launch the first alternative that the GPU can run, where that is not the first of all.
  Json default_alternatives() const {
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

  Status send_kernels(const trace::Trace& trace, Worker& worker, Deadline deadline) const {
    if (options_.device == Device::kCuda && !worker.ask({{"do", "forget"}}, {}, deadline).answer)
      return our_error("a worker was lost before it began");
    for (const auto& kernel : trace.kernels) {
      const auto found = options_.kernels.find(kernel.hash);
      if (found == options_.kernels.end()) continue;
      NEREID_TRY(const Fd file, sealed_file(found->second));
      const auto reply = worker.ask({{"do", "kernel"}, {"hash", kernel.hash}}, {file.get()}, deadline);
      if (!reply.answer) return our_error("a worker is lost: {}", describe_end(reply.status));
      if (!reply.answer->document.contains("ok"))
        return our_error("a worker does not take kernel {}: {}", kernel.name, reply.answer->document.dump());
    }
    return ok_status();
  }

  static int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

  // What takes less than about a millisecond a step gains nothing from threads, and other verdicts want the
  // cores.
  bool is_small() const {
    int64_t bytes = 0;
    for (const auto* t : {&reference_, &candidate_})
      for (const auto& storage : t->storages) bytes += storage.bytes;
    return bytes < (int64_t{64} << 20);
  }

  void plan() {
    pairing_ = pair_outputs(reference_, candidate_);
    states_ = pair_state(reference_, candidate_);
    facts_.unpaired = states_.unpaired;
    for (const auto id : trace::tensors_in(judged_forward(reference_)->inputs)) {
      const auto& value = reference_.values[static_cast<size_t>(id)];
      facts_.integer_inputs |=
          trace::is_integral(value.dtype) && !reference_.storages[static_cast<size_t>(value.storage)].pinned;
    }
    for (const auto& state : reference_.state) {
      const auto& value = reference_.values[static_cast<size_t>(state.value)];
      facts_.state |= (state.parameter || state.persistent) && trace::is_floating(value.dtype);
      facts_.integer_inputs |=
          state.persistent && trace::is_integral(value.dtype) && trace::element_count(value) > 1;
    }
    const auto& steps = judged_forward(candidate_)->steps;
    for (size_t i = 0; i < steps.size(); ++i)
      if (std::holds_alternative<trace::Launch>(steps[i])) facts_.launches.push_back({static_cast<int>(i)});
    for (const auto& pair : pairing_.pairs) paths_.push_back(pair.path);
  }

  Json states_of(bool reference) const {
    Json out = Json::array();
    for (const auto& [theirs, ours] : states_.values) out.push_back(reference ? theirs : ours);
    return out;
  }

  // The moment at which most is held; of no bytes where the reference fails.
  Result<Moment> plan_memory_of(const Json& c, const std::set<int>& calls, Deadline deadline) {
    NEREID_TRY(const auto planned,
               ask_reference({{"do", "plan"}, {"states", states_of(true)}, {"calls", calls}}, {}, deadline));
    if (!planned) return Moment{"", 0};
    const Json& r = planned->document;
    TaskFootprint task;
    task.device = options_.device;
    c.at("footprint").get_to(task.candidate);
    task.reference.own = r.at("own").get<Footprint>();
    if (!r.at("upcast").is_null()) task.reference.upcast = r.at("upcast").get<Footprint>();
    r.at("outputs").get_to(task.reference.outputs);
    r.at("upcast_outputs").get_to(task.reference.upcast_outputs);
    r.at("moved").get_to(task.reference.moved);
    r.at("inputs_block").get_to(task.inputs_block);
    c.at("outputs_block").get_to(task.outputs_block);
    facts_.frugal = largest(plan_memory(task, false)).bytes > options_.frugal_above;
    const auto most = largest(plan_memory(task, facts_.frugal));
    facts_.peak_bytes = most.bytes;
    return most;
  }

  Status take_memory(const Moment& most, MemoryAdmission& memory, Deadline deadline) {
    const bool cuda = options_.device == Device::kCuda;
    const auto measure = [&]() -> Result<int64_t> {
      if (options_.memory_limit > 0) return options_.memory_limit;
      if (!cuda) return memory_available();
      NEREID_TRY(const auto answer, ask_reference({{"do", "memory"}}, {}, deadline));
      if (!answer) return our_error("a worker does not say what memory its GPU has");
      return answer->document.at("free").get<int64_t>();
    };
    const Stopwatch waiting;
    NEREID_TRY(auto turn, memory.take(most.bytes, measure, deadline, options_.whole_memory));
    facts_.seconds_waited += waiting.seconds();
    if (!turn.held)
      return input_error("the task needs {} to be replayed on the {}, {}; {} are free", gibibytes(most.bytes),
                         cuda ? "GPU" : "CPU", most.what, gibibytes(turn.capacity));
    memory_ = std::move(turn.held);
    return ok_status();
  }

  // The candidate's counterparts of the state that the reference's forward writes.
  Json watched(const Json& r) {
    Json out = Json::array();
    for (const auto written : r.at("state_written").get<std::vector<trace::ValueId>>())
      for (const auto& [theirs, ours] : states_.values)
        if (theirs == written) {
          watched_.push_back({theirs, ours});
          out.push_back(ours);
        }
    return out;
  }

  // The candidate's counterparts of the state that the reference's forward leaves alone.
  Json kept(const Json& r) {
    const auto written = r.at("state_written").get<std::set<trace::ValueId>>();
    std::set<trace::StorageId> storages;  // state that is written may be seen under another name, too
    for (const auto id : written) storages.insert(reference_.values.at(id).storage);
    Json out = Json::array();
    for (size_t i = 0; i < states_.values.size(); ++i) {
      const auto [theirs, ours] = states_.values[i];
      if (!states_.registered[i] || storages.contains(reference_.values.at(theirs).storage)) continue;
      out.push_back(ours);
      kept_names_.push_back(name_of_state(theirs));
    }
    return out;
  }

  std::string name_of_state(trace::ValueId value) const {
    const auto found = std::ranges::find(reference_.state, value, &trace::State::value);
    return found == reference_.state.end() ? "?" : found->name;
  }

  Status connect(const Json& r, const Json& c, const std::set<int>& calls, Deadline deadline) {
    NEREID_TRY(
        auto shared,
        ask_reference(
            {{"do", "share"}, {"states", states_of(true)}, {"calls", calls}, {"frugal", facts_.frugal}}, {},
            deadline));
    if (!shared) return ok_status();
    if (shared->descriptors.empty()) return our_error("the reference's worker sent no block");
    NEREID_TRY(auto attached, ask_candidate({{"do", "attach"}, {"calls", calls}, {"frugal", facts_.frugal}},
                                            {shared->descriptors[0].get()}, deadline));
    if (!attached || !pairing_.difference.empty()) return ok_status();
    if (attached->descriptors.empty()) return our_error("a candidate's worker sent no block");
    Json shapes = Json::array();
    const auto add = [&](trace::ValueId id) {
      const auto& value = candidate_.values[id];
      shapes.push_back({{"dtype", trace::to_string(value.dtype)}, {"sizes", value.sizes}});
    };
    for (const auto& pair : pairing_.pairs) add(pair.candidate);
    const auto inputs = trace::tensors_in(judged_forward(candidate_)->inputs);
    for (const auto& index : r.at("inputs_written")) {
      inputs_mutated_.push_back(index.get<size_t>());
      paths_.push_back(fmt::format("input {} after the call", index.get<size_t>()));
      add(inputs.at(index.get<size_t>()));
    }
    Json state = Json::array();
    const auto written = c.at("state_written").get<std::set<trace::ValueId>>();
    for (const auto& [theirs, ours] : watched_) {
      if (!written.contains(ours)) {
        facts_.state_left.push_back(name_of_state(theirs));
        continue;
      }
      paths_.push_back(name_of_state(theirs) + " after the call");
      add(ours);
      state.push_back(theirs);
    }
    NEREID_TRY(auto taken, ask_reference({{"do", "attach"}, {"outputs", shapes}, {"state", state}},
                                         {attached->descriptors[0].get()}, deadline));
    (void)taken;
    return ok_status();
  }

  // Nothing where the reference's own code failed (`reference_failure_` says how); an Error where the worker
  // is lost.
  Result<std::optional<Message>> ask_reference(const Json& request, const std::vector<int>& fds,
                                               Deadline deadline) {
    if (reference_failure_) return std::optional<Message>();
    auto reply = r_->ask(request, fds, deadline);
    if (reply.interrupted) return Error{"interrupted", Blame::kInterrupted};
    if (!reply.answer && reply.late)
      return our_error("the reference's replay did not end within {} ({})", whose_time(*reply.late),
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

  // Nothing where the candidate failed, died or was too slow (`candidate_failure_` says how).
  Result<std::optional<Message>> ask_candidate(const Json& request, const std::vector<int>& fds,
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
      return our_error("the candidate's replay did not end within {} ({})", whose_time(*reply.late),
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

  // Where memory is dear one side holds next to nothing while the other works.
  Status rest_candidate(Deadline deadline) {
    if (!facts_.frugal || !alive_ || load_failure_) return ok_status();
    const auto failure = candidate_failure_;
    NEREID_TRY(const auto rested, ask_candidate({{"do", "rest"}}, {}, deadline));
    if (rested) candidate_failure_ = failure;  // else it is lost, which the next run reports
    return ok_status();
  }
  Status rest_reference(Deadline deadline) {
    if (!facts_.frugal) return ok_status();
    NEREID_TRY(const auto rested, ask_reference({{"do", "rest"}}, {}, deadline));
    (void)rested;
    return ok_status();
  }

  Result<bool> prepare(TrialReport& report, Deadline deadline) {
    auto trial = report.trial;
    trial.perturb = report.perturbed;
    const auto gpu = share_gpu();
    NEREID_TRY_STATUS(rest_candidate(deadline));
    NEREID_TRY(auto answer, ask_reference({{"do", "prepare"}, {"trial", to_json(trial)}}, {}, deadline));
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

  Result<bool> run(TrialReport& report, const Json& alternatives, Deadline deadline, bool digests = false) {
    if (alive_ && !load_failure_) candidate_failure_.reset();  // an earlier trial's
    if (candidate_failure_) {
      report.failed = candidate_failure_;
      return false;
    }
    const auto gpu = share_gpu();
    NEREID_TRY_STATUS(rest_reference(deadline));
    NEREID_TRY(auto answer, ask_candidate({{"do", "run"},
                                           {"seed", report.trial.seed},
                                           {"sanitize", report.trial.sanitize},
                                           {"seconds", options_.phase_seconds},
                                           {"alternatives", alternatives},
                                           {"digests", digests}},
                                          {}, deadline));
    if (!answer) {
      report.failed = candidate_failure_;
      return false;
    }
    try {
      const Json& document = answer->document;
      for (const auto& finding : document.at("findings"))
        report.findings.push_back(finding_from_json(finding));
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
      report.state_written = written_before_;
      for (const auto& index : document.at("kept_written"))
        report.state_written.push_back(kept_names_.at(index.get<size_t>()));
    } catch (const std::exception& garbled) {
      report.failed =
          Failure{Failure::Kind::kCrashed, {}, std::string("a garbled answer: ") + garbled.what()};
      return false;
    }
    return report.findings.empty();
  }

  // `again`: this trial's inputs were judged before.
  Status judge(TrialReport& report, const Tolerance& tolerance, Deadline deadline, bool again = false) {
    if (!pairing_.difference.empty()) {
      report.comparison = Comparison{};
      report.comparison->agrees = false;
      report.comparison->structure = pairing_.difference;
      return ok_status();
    }
    const auto gpu = share_gpu();
    NEREID_TRY_STATUS(rest_candidate(deadline));
    NEREID_TRY(auto answer, ask_reference({{"do", "judge"},
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

  const trace::Trace reference_, candidate_;
  const SessionOptions options_;
  SessionFacts facts_;
  Pairing pairing_;
  StatePairing states_;
  std::vector<std::pair<trace::ValueId, trace::ValueId>> watched_;  // the reference's and the candidate's
  std::vector<std::string> paths_;
  std::vector<size_t> inputs_mutated_;
  std::vector<std::string> kept_names_;      // state that the reference leaves alone
  std::vector<std::string> written_before_;  // of these, what the candidate's earlier calls write
  std::shared_ptr<void> memory_;             // this session's part; goes after the workers
  std::shared_ptr<Worker> r_, c_;
  std::optional<Failure> reference_failure_, candidate_failure_;
  bool alive_ = true;  // the candidate's worker
  bool reference_unloadable_ = false;
  bool load_failure_ = false;  // its trace could not be prepared: every trial says so
  std::optional<TrialReport> last_;
  std::string gpu_;  // its name
};

}  // namespace

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
