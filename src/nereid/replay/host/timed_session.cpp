#include "nereid/replay/host/timed_session.h"

#include "nereid/base/deadline.h"
#include "nereid/gpu/nvml.h"
#include "nereid/gpu/roofline.h"
#include "nereid/gpu/timing.h"
#include "nereid/replay/known_reference.h"

namespace nereid::replay {
namespace {

constexpr double kPatience = 60;  // seconds for a batch of timed runs, beyond what they take
constexpr int kNeedSamples = 64;  // elements of each input
constexpr double kNeedSeconds = 10;

class RemoteProgram final : public gpu::TimedProgram {
 public:
  using Ask = std::function<Result<std::optional<Json>>(const Json&)>;
  RemoteProgram(const Ask& ask, bool& failed) : ask_(ask), failed_(failed) {}

  Result<std::vector<double>> sample(gpu::LaunchMode mode, int count) override {
    NEREID_TRY(const auto answer, ask_({{"do", "time"},
                                        {"mode", mode == gpu::LaunchMode::kGraph ? "graph" : "launches"},
                                        {"count", count},
                                        {"seconds", kPatience}}));
    if (!answer) {
      failed_ = true;
      return our_error("a timed run failed");
    }
    return answer->at("samples").get<std::vector<double>>();
  }

 private:
  const Ask& ask_;
  bool& failed_;
};

class TimedSession {
 public:
  TimedSession(const TimedSides& sides, const TimeRequest& request, Deadline deadline)
      : sides_(sides), request_(request), gentle_(request.gentle), deadline_(deadline) {}

  Result<TimeReport> run() {
    report_.device = sides_.device;
    for (const InputDistribution kind : request_.kinds) {
      NEREID_TRY(const bool applies, one_kind(kind));
      if (report_.spoiled || !report_.impossible.empty()) return report_;
      if (!applies && comparisons_.empty()) return our_error("the task's own inputs cannot be timed");
    }
    report_.counted = report_.kinds[static_cast<size_t>(gpu::slowest_distribution(comparisons_))];
    return report_;
  }

 private:
  // False where the task has no input that this kind would change.
  Result<bool> one_kind(InputDistribution kind) {
    Trial trial{.seed = request_.seed + report_.kinds.size(),
                .distribution = kind,
                .perturb = true,
                .gentle = gentle_,
                .sanitize = false};
    const Since trying = since();
    NEREID_TRY(TrialReport ran, request_.compare_once ? sides_.replay(trial) : sides_.trial(trial));
    if (ran.reference_failed && kind == InputDistribution::kOwn && !gentle_) {
      gentle_ = trial.gentle = true;
      NEREID_TRY(ran, request_.compare_once ? sides_.replay(trial) : sides_.trial(trial));
    }
    spend("trial", trying);
    if (!ran.applicable || ran.reference_failed) return false;
    NEREID_TRY(const bool chosen, choose(ran));
    if (!chosen) return false;
    if (!good(ran)) {
      report_.spoiled = std::move(ran);
      return false;
    }
    NEREID_TRY(const bool begun, begin(kind));
    if (!begun) return false;
    NEREID_TRY(const bool timed, time_exclusively(kind));
    if (!timed) return false;
    NEREID_TRY(const bool right, look(trial));
    if (right) NEREID_TRY_STATUS(check_roofline(report_.kinds.back()));
    if (!report_.impossible.empty() && request_.reference) request_.reference->forget(kind);
    return right;
  }

  // It goes on: what was compared agrees, or the reference is not defined on such inputs.
  bool good(const TrialReport& report) const {
    if (!report.comparison) return report.ran() && request_.compare_once;
    return report.ok() || !report.comparison->defined;
  }

  Result<bool> time_exclusively(InputDistribution kind) {
    const Since sampling = since();
    const auto alone = sides_.gate->alone(sides_.use);
    NEREID_TRY(bool timed, take_turns(kind));
    if (timed) {
      NEREID_TRY(timed, take_launches());
    }
    spend("samples", sampling);
    return timed;
  }

  struct Since {
    Stopwatch watch{};
    double waited = 0;
  };
  Since since() const { return {.waited = sides_.use->waited}; }
  void spend(const char* what, const Since& since) {
    const double waited = sides_.use->waited - since.waited;
    report_.spent["wait"] += waited;
    report_.spent[what] += since.watch.seconds() - waited;
  }

  // Once: which alternative of each launch. What was chosen is judged before it is timed.
  Result<bool> choose(TrialReport& ran) {
    if (!good(ran)) return true;
    if (!chosen_ && !sides_.must_choose) {
      alternatives_ = sides_.alternatives;
      chosen_ = true;
    }
    if (!chosen_) {
      const auto alone = sides_.gate->alone(sides_.use);
      NEREID_TRY(const auto answer, sides_.request_candidate({{"do", "choose"},
                                                              {"seconds", request_.seconds},
                                                              {"alternatives", sides_.alternatives}}));
      if (!answer) return spoil();
      alternatives_ = answer->at("alternatives");
      report_.alternatives_timed = answer->at("timed").get<int>();
      report_.alternatives = alternatives_.get<std::vector<std::pair<int, int>>>();
      chosen_ = true;
    }
    if (alternatives_ == sides_.alternatives) return true;
    NEREID_TRY(ran, sides_.again(alternatives_));
    return true;
  }

  // Both forwards as graphs; where one of them cannot be captured, both as launches. A reference whose time
  // as a graph is known is not captured again for a candidate that is a graph.
  Result<bool> begin(InputDistribution kind) {
    const Since capturing = since();
    const auto pass = sides_.gate->share(sides_.use);
    Json request = {{"do", "time_begin"}, {"alternatives", alternatives_}, {"seconds", kPatience}};
    NEREID_TRY(const auto candidate, sides_.request_candidate(request));
    if (!candidate) return spoil();
    report_.input_sets = candidate->at("input_sets").get<int>();
    const auto why = [](const Json& answer) { return answer.at("graph").get<std::string>(); };
    report_.not_captured = why(*candidate).empty() ? "" : "the candidate: " + why(*candidate);
    known_ms_.reset();
    if (report_.not_captured.empty()) known_ms_ = known_ms(kind);
    if (!known_ms_) {
      request["alternatives"] = Json::array();
      NEREID_TRY(const auto reference, sides_.request_reference(request));
      if (!reference) return our_error("the reference fails when it is captured");
      if (!why(*reference).empty()) report_.not_captured = "the reference: " + why(*reference);
    }
    report_.method = report_.not_captured.empty() ? "graph" : "launches";
    spend("capture", capturing);
    return true;
  }

  std::optional<double> known_ms(InputDistribution kind) const {
    return request_.reference ? request_.reference->ms(kind) : std::nullopt;
  }

  Result<bool> take_turns(InputDistribution kind) {
    bool reference_failed = false, candidate_failed = false;
    RemoteProgram reference(sides_.request_reference, reference_failed),
        candidate(sides_.request_candidate, candidate_failed);
    const bool own = comparisons_.empty();
    const bool graphs = report_.method == "graph";
    if (graphs && !known_ms_) known_ms_ = known_ms(kind);  // found while this waited to be alone
    gpu::TimingOptions options;
    options.relative_width = request_.relative_width;
    // Half for the task's own kind, the rest for the others.
    options.budget_seconds =
        own ? request_.seconds / 2 : request_.seconds / 2 / static_cast<double>(request_.kinds.size());
    options.bootstrap.seed = request_.seed + 1;
    const auto mode = graphs ? gpu::LaunchMode::kGraph : gpu::LaunchMode::kPlain;
    const auto compared = known_ms_ ? gpu::measure(candidate, *known_ms_ * 1e-3, mode, options, deadline_)
                                    : gpu::compare(reference, candidate, mode, options, deadline_);
    if (candidate_failed) return spoil();
    if (!compared.ok()) return compared.error();
    if (graphs && request_.reference) request_.reference->keep_ms(kind, compared->reference_seconds * 1e3);
    comparisons_.push_back(*compared);
    report_.kinds.push_back({.kind = kind,
                             .reference_ms = compared->reference_seconds * 1e3,
                             .candidate_ms = compared->candidate_seconds * 1e3,
                             .speedup = compared->speedup,
                             .ci_low = compared->speedup_interval.low,
                             .ci_high = compared->speedup_interval.high,
                             .samples = compared->samples,
                             .converged = compared->converged});
    if (own && !request_.graphs_alone) read_clocks();
    return true;
  }

  // What the last timed run gave goes to where it is judged. Then, of the task's own kind, launches.
  Result<bool> take_launches() {
    NEREID_TRY(const auto handed, sides_.request_candidate({{"do", "time_end"}}));
    if (!handed) return spoil();
    if (comparisons_.size() > 1 || request_.graphs_alone || known_ms_) return true;
    bool failed = false, reference_failed = false;
    RemoteProgram reference(sides_.request_reference, reference_failed),
        candidate(sides_.request_candidate, failed);
    gpu::TimingOptions options;
    options.budget_seconds = request_.seconds / 8;
    options.max_samples = 30;
    const auto launched = gpu::compare(reference, candidate, gpu::LaunchMode::kPlain, options, deadline_);
    if (failed) return spoil();
    if (!launched.ok()) return launched.error();
    report_.reference_launches_ms = launched->reference_seconds * 1e3;
    report_.candidate_launches_ms = launched->candidate_seconds * 1e3;
    return true;
  }

  // A timed run is as good as any other: what the last one gave is judged.
  Result<bool> look(const Trial& trial) {
    const Since comparing = since();
    NEREID_TRY(TrialReport judged, sides_.judge());
    spend("judge", comparing);
    judged.trial = trial;
    if (!judged.ok() && !(judged.comparison && !judged.comparison->defined)) {
      report_.spoiled = std::move(judged);
      return false;
    }
    return true;
  }

  Result<bool> spoil() {
    report_.spoiled = sides_.failed();
    return false;
  }

  void read_clocks() {
    static const auto nvml = gpu::Nvml::open(0);  // costs more than a reading does
    if (!nvml.ok()) return;
    const gpu::GpuState state = nvml->read();
    report_.gpu = {{"sm_mhz", state.sm_mhz},
                   {"sm_mhz_max", state.max_sm_mhz},
                   {"memory_mhz", state.memory_mhz},
                   {"celsius", state.celsius},
                   {"watts", state.watts}};
    report_.throttled_by = state.throttled_by;
  }

  Status check_roofline(KindTimes& times) {
    const gpu::DevicePeaks* peaks = gpu::peaks_of(sides_.device);
    if (peaks == nullptr) return ok_status();
    const LeastWork& least = request_.least;
    gpu::Work work{least.input_bytes, least.bytes_written, least.f64, least.f32,
                   least.tf32,        least.half,          least.f8};
    const double seconds = times.candidate_ms * 1e-3;
    const bool fast = !gpu::below_roofline(*peaks, work, seconds).empty();
    work.bytes_read = 0;
    if (fast) {
      NEREID_TRY(work.bytes_read, certainly_read_bytes(times.kind));
    }
    times.roofline_ms = gpu::roofline(*peaks, work).seconds * 1e3;
    report_.impossible = gpu::below_roofline(*peaks, work, seconds);
    return ok_status();
  }

  // Bytes of the inputs that reach the last trial's outputs.
  Result<double> certainly_read_bytes(InputDistribution kind) {
    if (request_.reference)
      if (const auto known = request_.reference->bytes_read(kind)) return *known;
    const Since trying = since();
    const auto pass = sides_.gate->share(sides_.use);
    NEREID_TRY(const auto answer, sides_.request_reference({{"do", "needs"},
                                                            {"seed", request_.seed},
                                                            {"samples", kNeedSamples},
                                                            {"seconds", kNeedSeconds}}));
    if (!answer) return our_error("the reference fails when its inputs are changed");
    double bytes = 0;
    for (const Json& input : answer->at("inputs"))
      bytes += input.at("bytes").get<double>() *
               gpu::sure_share(input.at("mattered").get<int>(), input.at("tried").get<int>());
    spend("needs", trying);
    if (request_.reference) request_.reference->keep_bytes_read(kind, bytes);
    return bytes;
  }

  const TimedSides& sides_;
  const TimeRequest& request_;
  bool gentle_;
  const Deadline deadline_;
  TimeReport report_;
  std::vector<gpu::Comparison> comparisons_;  // one for each of report_.kinds
  Json alternatives_ = Json::array();
  bool chosen_ = false;
  std::optional<double> known_ms_;  // the reference's, of the kind at hand
};

}  // namespace

Result<TimeReport> time_sides(const TimedSides& sides, const TimeRequest& request, Deadline deadline) {
  return TimedSession(sides, request, deadline).run();
}

}  // namespace nereid::replay
