#include "nereid/search/evaluator.h"

#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/program/included_files.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/verify/batch/answer.h"
#include "nereid/verify/verdict_format.h"

namespace nereid::search {
namespace {

constexpr double kTraceSeconds = 60;  // of one file; a loaded machine extends them
constexpr double kTracePatience = 2 * kMaxLimitExtension * kTraceSeconds + 300;

// Why a tracer's answer is no trace, in one sentence.
std::string refusal(const tracer::TraceAnswer& answer) {
  if (const auto* malformed = std::get_if<tracer::Malformed>(&answer)) return malformed->message;
  if (const auto* u = std::get_if<tracer::Untraceable>(&answer))
    return fmt::format("{} raised {}: {}{}", u->phase.empty() ? "the file" : u->phase, u->type,
                       u->message.substr(0, 600),
                       u->line > 0 ? fmt::format(" ({}:{})", u->file, u->line) : "");
  if (const auto* failed = std::get_if<tracer::CompileFailed>(&answer))
    return fmt::format("Triton refuses kernel {}: {}", failed->kernel, failed->message.substr(0, 600));
  if (const auto* late = std::get_if<tracer::TimedOut>(&answer))
    return fmt::format("tracing took longer than {:g} s", late->seconds);
  if (const auto* forged = std::get_if<tracer::Forged>(&answer)) return forged->message;
  return "tracing was stopped: " + std::get<tracer::Killed>(answer).limit;
}

// All that a verdict depends on besides both files. A seed is not part of it: trials are fresh by design.
std::string question_of(const verify::Settings& s, bool answer) {
  Json question = {{"policy", to_string(s.policy)},
                   {"device", s.device == replay::Device::kCuda ? "cuda" : "cpu"},
                   {"trials", s.trials},
                   {"time", s.time ? s.timing_seconds : 0},
                   {"fast_inputs", s.fast_inputs},
                   {"time_limit", s.time_limit},
                   {"shrink", s.shrink},
                   {"protocol", to_string(s.protocol)},
                   {"rtol", s.tolerance.rtol ? Json(*s.tolerance.rtol) : Json()},
                   {"atol", s.tolerance.atol ? Json(*s.tolerance.atol) : Json()},
                   {"allow_tf32", s.tolerance.allow_tf32},
                   {"answer", answer}};
  if (!s.forbid.empty()) question["forbid"] = s.forbid;
  return question.dump();
}

verify::Settings comparing(verify::Settings settings) {
  settings.policy = verify::Policy::kHybrid;
  settings.trials = 1, settings.fast_inputs = true;
  return settings;
}

std::string attempts_hash(const std::vector<proposers::Attempt>& attempts) {
  std::string all;
  for (const auto& a : attempts) all += sha256_hex(a.text) + sha256_hex(a.evidence);
  return all.empty() ? "" : sha256_hex(all);
}

}  // namespace

Evaluator::Evaluator(verify::VerifierBackends backends, EvaluatorOptions options)
    : backends_(backends),
      options_(std::move(options)),
      judge_(backends, options_.settings),
      measure_(std::move(backends), comparing(options_.settings)),
      turns_(options_.judged_at_once > 0 ? options_.judged_at_once : std::counting_semaphore<>::max()) {}

Result<std::unique_ptr<const Task>> Evaluator::trace(const std::string& name, const std::string& source,
                                                     Deadline deadline, std::shared_ptr<Timeline> timeline) {
  auto task = std::make_unique<Task>();
  task->name = name, task->source = source, task->hash = sha256_hex(source);
  tracer::TraceRequest request{.source = source, .path = name};
  request.seconds = kTraceSeconds;
  NEREID_TRY(auto answer,
             backends_.trace(request, Deadline::earlier(deadline, Deadline::after(kTracePatience))));
  auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) return input_error("the reference {}: {}", name, refusal(answer));
  task->trace = std::move(*trace);
  NEREID_TRY(task->facts, backends_.analyze(task->trace));
  if (task->facts.judged() < 0) return our_error("the reference's trace holds no forward");
  task->work = work_of(task->facts);
  if (timeline) task->timeline = std::move(timeline);
  return std::unique_ptr<const Task>(std::move(task));
}

Result<std::unique_ptr<const Task>> Evaluator::with_trace(const Task& task, trace::Trace trace) {
  auto other = std::make_unique<Task>();
  other->name = task.name, other->source = task.source, other->hash = task.hash;
  other->trace = std::move(trace), other->timeline = task.timeline;
  NEREID_TRY(other->facts, backends_.analyze(other->trace));
  other->work = work_of(other->facts);
  return std::unique_ptr<const Task>(std::move(other));
}

Judged Evaluator::judge(const Task& task, const std::string& proposer, const proposers::Proposal& proposal,
                        Deadline deadline) {
  return judge_by(judge_, task, proposer, proposal, deadline);
}

Judged Evaluator::measure(const Task& task, const std::string& proposer, const proposers::Proposal& proposal,
                          Deadline deadline) {
  return judge_by(measure_, task, proposer, proposal, deadline);
}

Judged Evaluator::judge_by(verify::Judge& judge, const Task& task, const std::string& proposer,
                           const proposers::Proposal& proposal, Deadline deadline) {
  const store::Key key{store::Kind::kVerdict,     task.hash,
                       sha256_hex(proposal.text), question_of(judge.settings(), proposal.answer),
                       options_.hardware,         options_.versions};
  const auto source =
      proposal.answer ? verify::read_answer(proposal.text) : verify::read_source(proposal.text);
  const auto* code = std::get_if<verify::Code>(&source);
  Judged judged;
  const std::string about = code == nullptr ? "" : task.hash + sha256_hex(code->source) + key.question;
  {
    const std::lock_guard lock(mutex_);
    if (const auto again = judged_.find(about); again != judged_.end()) judged = again->second;
  }
  if (const auto known = judged.remembered ? std::nullopt : look_up(key)) {
    if (auto again = judged_from(known->document); again.ok()) judged = *std::move(again);
  }
  if (!judged.remembered) {
    Stopwatch watch;
    verify::Pair pair{.reference_name = task.name,
                      .reference_source = task.source,
                      .candidate_name = proposer + ".py",
                      .candidate_text = proposal.text,
                      .form = proposal.answer ? verify::Pair::Form::kAnswer : verify::Pair::Form::kSource,
                      .deadline = deadline,
                      .traced = [&](const verify::TraceAnalysis& facts) {
                        judged.work = work_of(facts), judged.traced_seconds = watch.seconds();
                      }};
    turns_.acquire();
    watch = Stopwatch();
    const double from = task.timeline->now();
    const verify::Verdict verdict = judge.judge(pair);
    task.timeline->add({.kind = Span::Kind::kJudged,
                        .label = proposer,
                        .from = from,
                        .to = task.timeline->now(),
                        .verified = verdict.kind == verify::VerdictKind::kVerified});
    turns_.release();
    judged.kind = verdict.kind, judged.reason = verify::reason(verdict);
    judged.verdict = verify::to_json(verdict).dump(-1, ' ', false, Json::error_handler_t::replace);
    judged.broken_off = verdict.kind == verify::VerdictKind::kError && deadline.passed();
    judged.times = verdict.times;
    judged.evidence = verify::format_verdict(
        verdict, {.explain = true, .source_of = [&](const std::string& file) -> std::string_view {
                    return file == pair.candidate_name ? std::string_view(pair.candidate_text) : "";
                  }});
    if (!judged.verified()) judged.work.reset();
    if (judged.verified() && code != nullptr && !judged.work)  // judged at smaller sizes
      judged.work = work_of_candidate(task, code->source);
    judged.seconds = watch.seconds();
    // A fault of ours is no verdict; an interrupted one is none either.
    if (verdict.kind != verify::VerdictKind::kError && !interrupted())
      keep({.key = key,
            .state = std::string(to_string(judged.kind)),
            .milliseconds = judged.times ? std::optional(judged.times->candidate_ms) : std::nullopt,
            .document = document_of(judged)},
           {task.source, proposal.text});
    if (verdict.kind != verify::VerdictKind::kError && !interrupted() && code != nullptr) {
      const std::lock_guard lock(mutex_);
      judged_.emplace(about, judged).first->second.remembered = true;
    }
  }
  judged.proposer = proposer, judged.variant = proposal.variant, judged.plan = proposal.plan;
  judged.regions = proposal.regions, judged.rank = 0, judged.sample = true;
  if (code != nullptr) judged.source = code->source;
  return judged;
}

Result<tracer::TraceAnswer> Evaluator::trace_candidate(const Task& task, const std::string& source) {
  tracer::TraceRequest request{
      .source = with_files_of(source, task.source), .path = "candidate.py", .class_name = "ModelNew"};
  request.reference = &task.trace;
  return backends_.trace(request, Deadline::after(kTracePatience));
}

Result<trace::Trace> Evaluator::trace_of(const Task& task, const std::string& source,
                                         const std::string& class_name, Deadline deadline) {
  const bool reference = class_name == "Model";
  tracer::TraceRequest request{.source = with_files_of(source, task.source),
                               .path = reference ? task.name : "candidate.py",
                               .class_name = class_name};
  if (!reference) request.reference = &task.trace;
  request.seconds = kTraceSeconds;
  NEREID_TRY(auto answer,
             backends_.trace(request, Deadline::earlier(deadline, Deadline::after(kTracePatience))));
  auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) return input_error("{}: {}", class_name, refusal(answer));
  return std::move(*trace);
}

Result<Evaluator::Candidate> Evaluator::candidate(const Task& task, const std::string& source,
                                                  Deadline deadline) {
  NEREID_TRY(auto answer, trace_candidate(task, source));
  auto* trace = std::get_if<trace::Trace>(&answer);
  if (trace == nullptr) return input_error("the candidate: {}", refusal(answer));
  Candidate candidate{.trace = std::move(*trace)};
  if (settings().device != replay::Device::kCuda) return candidate;
  NEREID_TRY(auto compiled, backends_.compile(candidate.trace, deadline));
  if (!compiled.refused.empty()) return input_error("a kernel: {}", compiled.refused.begin()->second);
  candidate.kernels = std::move(compiled.kernels);
  return candidate;
}

std::optional<Work> Evaluator::work_of_candidate(const Task& task, const std::string& source) {
  const auto answer = trace_candidate(task, source);
  const auto* trace = answer.ok() ? std::get_if<trace::Trace>(&*answer) : nullptr;
  if (trace == nullptr) return std::nullopt;
  const auto facts = backends_.analyze(*trace);
  if (!facts.ok()) return std::nullopt;
  return work_of(*facts);
}

store::Key Evaluator::proposal_key(const proposers::Proposer& proposer, const Task& task, int sample,
                                   const std::vector<proposers::Attempt>& attempts, int round,
                                   bool speculate) const {
  Json question = {{"sample", sample}, {"attempts", attempts_hash(attempts)}, {"name", task.name}};
  if (round > 0) question["round"] = round;
  if (speculate) question["speculate"] = true;
  return {store::Kind::kProposal, task.hash, proposer.identity(), question.dump(), "", options_.versions};
}

std::optional<proposers::Answer> Evaluator::remembered(const store::Key& key) {
  const auto known = look_up(key);
  if (!known) return std::nullopt;
  const auto json = parse_json(known->document, "the store's proposal");
  if (!json.ok()) return std::nullopt;
  auto answer = proposers::answer_from_json(*json);
  if (!answer.ok()) return std::nullopt;
  answer->cost = {};  // paid for already
  return *std::move(answer);
}

void Evaluator::remember(const store::Key& key, const Task& task, const proposers::Answer& answer) {
  keep({.key = key,
        .state = answer.proposals.empty() ? "declined" : "proposed",
        .document = proposers::to_json(answer).dump(-1, ' ', false, Json::error_handler_t::replace)},
       {task.source});
}

Result<proposers::Answer> Evaluator::ask(proposers::Proposer& proposer, const Task& task, int sample,
                                         const std::vector<proposers::Attempt>& attempts, Deadline deadline,
                                         const std::atomic<bool>* cancelled) {
  const auto key = proposal_key(proposer, task, sample, attempts);
  if (auto known = remembered(key)) return *std::move(known);
  NEREID_TRY(auto answer, proposer.propose({.name = task.name,
                                            .source = task.source,
                                            .trace = &task.trace,
                                            .sample = sample,
                                            .attempts = attempts,
                                            .cancelled = cancelled},
                                           deadline));
  remember(key, task, answer);
  return answer;
}

class Evaluator::SeveralAnswers : public proposers::Answers {
 public:
  SeveralAnswers(Evaluator& evaluator, proposers::Proposer& proposer, const Task& task,
                 const std::vector<int>& samples, int round, bool speculate,
                 const std::atomic<bool>* cancelled)
      : evaluator_(evaluator), proposer_(proposer), task_(task), round_(round), speculate_(speculate) {
    std::vector<int> unknown;
    for (const int sample : samples) {
      if (auto known =
              evaluator.remembered(evaluator.proposal_key(proposer, task, sample, {}, round, speculate)))
        known_.push_back({sample, *std::move(known)});
      else
        unknown.push_back(sample);
    }
    if (unknown.empty()) return;
    requested_at_ = task.timeline->now();
    left_ = unknown.size();
    asked_ = proposer.propose_several({.name = task.name,
                                       .source = task.source,
                                       .trace = &task.trace,
                                       .round = round,
                                       .speculate = speculate,
                                       .cancelled = cancelled},
                                      std::move(unknown));
  }
  // What has not come is wanted no more.
  ~SeveralAnswers() override {
    if (left_ > 0) written(requested_at_, task_.timeline->now(), fmt::format("{} cancelled", left_));
  }

  Result<std::optional<One>> next(Deadline deadline) override {
    if (given_ < known_.size()) return std::optional(std::move(known_[given_++]));
    if (!asked_) return std::optional<One>();
    NEREID_TRY(auto one, asked_->next(deadline));
    if (!one) left_ = 0;
    if (!one) return one;
    --left_;
    // Of one that does not say when it wrote: since it was asked.
    written(requested_at_ + one->from, one->to > 0 ? requested_at_ + one->to : task_.timeline->now(),
            fmt::format("sample {}{}{}", one->sample, one->branch.empty() ? "" : " from ", one->branch));
    evaluator_.remember(evaluator_.proposal_key(proposer_, task_, one->sample, {}, round_, speculate_), task_,
                        one->answer);
    return one;
  }

 private:
  void written(double from, double to, const std::string& label) {
    if (!proposer_.samples()) return;
    task_.timeline->add({.kind = Span::Kind::kWritten,
                         .label = fmt::format("{} {}", proposer_.name(), label),
                         .from = from,
                         .to = to});
  }

  Evaluator& evaluator_;
  proposers::Proposer& proposer_;
  const Task& task_;
  const int round_;
  const bool speculate_;
  double requested_at_ = 0;
  size_t left_ = 0;  // samples that have not come
  std::vector<One> known_;
  size_t given_ = 0;
  std::unique_ptr<proposers::Answers> asked_;
};

std::unique_ptr<proposers::Answers> Evaluator::request_samples(proposers::Proposer& proposer,
                                                               const Task& task,
                                                               const std::vector<int>& samples, int round,
                                                               bool speculate,
                                                               const std::atomic<bool>* cancelled) {
  return std::make_unique<SeveralAnswers>(*this, proposer, task, samples, round,
                                          speculate && proposer.speculates(), cancelled);
}

std::optional<store::Record> Evaluator::look_up(const store::Key& key) {
  if (options_.store == nullptr || options_.fresh) return std::nullopt;
  auto found = options_.store->find(key);
  if (found.ok()) return *std::move(found);
  note(found.error());
  return std::nullopt;
}

void Evaluator::keep(const store::Record& record, std::initializer_list<std::string_view> texts) {
  if (options_.store == nullptr) return;
  if (const auto put = options_.store->put(record); !put.ok()) return note(put.error());
  for (const auto text : texts)
    if (const auto kept = options_.store->keep_text(text); !kept.ok()) return note(kept.error());
}

void Evaluator::note(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (trouble_.empty()) trouble_ = error.message;
}

std::string Evaluator::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

}  // namespace nereid::search
