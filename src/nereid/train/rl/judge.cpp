#include "nereid/train/rl/judge.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "nereid/base/deadline.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/sandbox/zygote/worker_pool.h"

namespace nereid::train {
namespace {

using verify::VerdictKind;

constexpr double kPatience =
    60;  // seconds without a verdict, on top of what the replays of an answer may take
constexpr double kSecondsToEnd = 5;
constexpr int kMaxDeaths = 3, kMaxErrors = 2;  // of one answer
constexpr int kMaxDeathsInARow = 10;           // without a verdict between them: no answer is at fault
constexpr size_t kMaxPhases = 100;             // of a verdict's seconds
constexpr size_t kAhead = 2;  // answers that the program has for each that it judges at a time

Result<VerdictKind> verdict_kind_at(const JsonField& root) {
  NEREID_TRY(const auto field, root.at("verdict"));
  NEREID_TRY(const std::string name, field.text());
  const auto kind = verify::verdict_kind_from_string(name);
  if (!kind) return field.expected("a verdict");
  return *kind;
}

Status read_judged(VerdictKind kind, const JsonField& verdict, JudgedAnswer& answer) {
  Judged& judged = answer.judged;
  judged = judged_of(kind, 0);
  NEREID_TRY(const auto times, verdict.find("times"));
  if (!times || !times->json().is_object() || !times->json().contains("speedup")) return ok_status();
  NEREID_TRY(const auto field, times->at("speedup"));
  NEREID_TRY(judged.speedup, field.number());
  if (!(judged.speedup > 0)) return field.expected("a number above 0");
  NEREID_TRY(const auto reference, times->find("reference_ms"));
  if (reference) {
    NEREID_TRY(answer.reference_ms, reference->number());
  }
  return ok_status();
}

JudgedAnswer no_verdict(std::string reason) {
  return {.kind = VerdictKind::kError, .rule = "internal", .reason = std::move(reason)};
}

// The end of what was appended to the log.
std::string last_words(const std::filesystem::path& log) {
  const auto text = read_file(log);
  if (!text.ok() || text->empty()) return "it said nothing";
  const size_t end = text->find_last_not_of("\r\n");
  if (end == text->npos) return "it said nothing";
  const size_t begin = text->find_last_of("\r\n", end);
  return text->substr(begin + 1, end - begin);
}

}  // namespace

std::vector<std::string> environment_with(std::vector<std::string> environment, int64_t gpu) {
  constexpr std::string_view kVisible = "CUDA_VISIBLE_DEVICES=";
  if (gpu < 0) return environment;
  std::string name = fmt::to_string(gpu);
  for (const std::string& variable : environment) {
    if (!variable.starts_with(kVisible)) continue;
    std::string_view names = std::string_view(variable).substr(kVisible.size());
    for (int64_t skipped = 0; skipped < gpu && !names.empty(); ++skipped)
      names.remove_prefix(std::min(names.find(','), names.size() - 1) + 1);
    name = names.substr(0, names.find(','));
  }
  std::erase_if(environment, [&](const std::string& variable) { return variable.starts_with(kVisible); });
  environment.push_back(std::string(kVisible) + name);
  return environment;
}

Result<std::pair<size_t, JudgedAnswer>> parse_judged(std::string_view line, const std::string& where) {
  NEREID_TRY(const Json json, parse_json(line, where));
  const JsonField root(json, where);
  NEREID_TRY(const auto id_field, root.at("id"));
  NEREID_TRY(const std::string id, id_field.text());
  size_t index = 0;
  const auto [end, failure] = std::from_chars(id.data(), id.data() + id.size(), index);
  if (failure != std::errc() || end != id.data() + id.size()) return id_field.expected("a number");
  JudgedAnswer answer;
  NEREID_TRY(answer.kind, verdict_kind_at(root));
  for (const auto& [name, target] : {std::pair{"rule", &answer.rule},
                                     {"reason", &answer.reason},
                                     {"feedback", &answer.feedback},
                                     {"trace", &answer.trace}}) {
    NEREID_TRY(const auto field, root.find(name));
    if (field && !field->json().is_null()) {
      NEREID_TRY(*target, field->text());
    }
  }
  NEREID_TRY(const auto seconds_field, root.find("seconds"));
  if (seconds_field) {
    NEREID_TRY(answer.seconds, seconds_field->number());
  }
  NEREID_TRY(const auto phases, root.find("phases"));
  if (phases) {
    NEREID_TRY_STATUS(
        phases->each_member(kMaxPhases, [&](const std::string& phase, const JsonField& seconds) -> Status {
          NEREID_TRY(answer.phases[phase], seconds.number());
          return ok_status();
        }));
  }
  NEREID_TRY(const auto without_rules, root.find("verdict_without_rules"));
  if (without_rules) {
    NEREID_TRY(const VerdictKind kind, verdict_kind_at(*without_rules));
    NEREID_TRY_STATUS(read_judged(kind, *without_rules, answer));
  } else {
    NEREID_TRY_STATUS(read_judged(answer.kind, root, answer));
  }
  return std::pair(index, std::move(answer));
}

Result<std::unique_ptr<AnswerJudge>> AnswerJudge::start(const Installation& installation,
                                                        const JudgeSettings& settings,
                                                        const std::filesystem::path& log) {
  std::unique_ptr<AnswerJudge> judge(new AnswerJudge);
  judge->settings_ = settings;
  if (judge->settings_.jobs == 0)
    judge->settings_.jobs = std::max<int64_t>(1, std::thread::hardware_concurrency());
  judge->log_ = log;
  judge->words_ = {(installation.bin / "nereid").string(),
                   "verify",
                   "--batch",
                   "-",
                   "--policy",
                   settings.policy,
                   "--device",
                   settings.device,
                   "--trials",
                   fmt::to_string(settings.trials),
                   "--time-limit",
                   fmt::to_string(settings.time_limit),
                   "--jobs",
                   fmt::to_string(judge->settings_.jobs)};
  if (settings.times) {
    judge->words_.emplace_back(settings.time_only ? "--time-only" : "--time");
    judge->words_.insert(judge->words_.end(), {"--timing-seconds", fmt::to_string(settings.timing_seconds),
                                               "--timing-width", fmt::to_string(settings.timing_width)});
  }
  if (settings.fast_inputs) judge->words_.emplace_back("--fast-inputs");
  if (settings.seed != 0)
    judge->words_.insert(judge->words_.end(), {"--seed", fmt::to_string(settings.seed)});
  if (!settings.rule_reward) judge->words_.emplace_back("--ignore-rules");
  if (!settings.traces.empty())
    judge->words_.insert(judge->words_.end(), {"--traces", settings.traces.string()});
  if (settings.compile_for > 0)
    judge->words_.insert(judge->words_.end(), {"--compile-for", fmt::to_string(settings.compile_for)});
  judge->environment_ = environment_with(sandbox::own_environment(), settings.gpu);
  judge->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!judge->wake_.valid()) return our_error("eventfd: {}", std::strerror(errno));
  NEREID_TRY_STATUS(judge->start_program());
  judge->thread_ = std::thread([raw = judge.get()] { raw->work(); });
  return judge;
}

AnswerJudge::~AnswerJudge() {
  if (!thread_.joinable()) {
    end_program();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  (void)::eventfd_write(wake_.get(), 1);
  thread_.join();
}

size_t AnswerJudge::submit(AnswerToJudge answer) {
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = numbers_++;
    asked_[number].answer = std::move(answer);
    waiting_.push_back(number);
  }
  (void)::eventfd_write(wake_.get(), 1);
  return number;
}

Result<JudgedAnswer> AnswerJudge::wait(size_t number, bool interruptible) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (const auto found = judged_.find(number); found != judged_.end()) {
      JudgedAnswer answer = std::move(found->second);
      judged_.erase(found);
      return answer;
    }
    if (failure_) return *failure_;
    if (interruptible && interrupted()) return Error{"interrupted", Blame::kInterrupted};
    changed_.wait_for(lock, std::chrono::milliseconds(100));
  }
}

Status AnswerJudge::wait_for_any(bool interruptible) {
  std::unique_lock lock(mutex_);
  if (failure_) return *failure_;
  if (interruptible && interrupted()) return Error{"interrupted", Blame::kInterrupted};
  changed_.wait_for(lock, std::chrono::milliseconds(20));
  return ok_status();
}

void AnswerJudge::give_up(const std::vector<size_t>& numbers) {
  const std::lock_guard lock(mutex_);
  for (const size_t number : numbers) {
    if (!asked_.contains(number)) continue;
    std::erase(waiting_, number);
    settle(number, no_verdict("the step's other answers had their verdicts long before"));
  }
}

std::optional<JudgedAnswer> AnswerJudge::take(size_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = judged_.find(number);
  if (found == judged_.end()) return std::nullopt;
  JudgedAnswer answer = std::move(found->second);
  judged_.erase(found);
  return answer;
}

int AnswerJudge::deaths_under(size_t number) const {
  const auto asked = asked_.find(number);
  return asked == asked_.end() ? 0 : asked->second.deaths;
}

int64_t AnswerJudge::restarts() const {
  const std::lock_guard lock(mutex_);
  return restarts_;
}

Status AnswerJudge::start_program() {
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  Fd child_in(in[0]);
  to_ = Fd(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  Fd child_out(out[1]);
  from_ = Fd(out[0]);
  const Fd errors(::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!errors.valid()) return our_error("{}: {}", log_.string(), std::strerror(errno));
  (void)::fcntl(to_.get(), F_SETFL, O_NONBLOCK);
  NEREID_TRY(pid_,
             sandbox::spawn({.words = words_,
                             .environment = environment_,
                             .descriptors = {{child_in.get(), 0}, {child_out.get(), 1}, {errors.get(), 2}},
                             .own_session = true}));
  killed_at_exit_ = KilledAtExit(pid_);
  return ok_status();
}

// Where it is idle, and workers are to be kept warm for the next command: by itself, for nothing more comes.
void AnswerJudge::begin_shutdown() {
  if (pid_ < 0 || !under_way_.empty() || !outgoing_.empty() || sandbox::seconds_kept_warm() == 0) return;
  to_.reset();
  const auto patience = Deadline::after(kSecondsToEnd);
  char bytes[4096];
  for (;;) {
    pollfd closed{from_.get(), POLLIN, 0};
    const int ready = ::poll(&closed, 1, patience.poll_milliseconds());
    if (ready == 0 || (ready > 0 && ::read(from_.get(), bytes, sizeof bytes) <= 0)) return;
  }
}

// Killed: its verdicts under way are of no use any more, and its workers end with it.
void AnswerJudge::end_program() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  killed_at_exit_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  to_.reset(), from_.reset();
  outgoing_.clear(), incoming_.clear();
}

void AnswerJudge::work() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (ending_) break;
    }
    fill();
    if (exchange()) continue;
    if (const Status restarted = died(); !restarted.ok()) {
      const std::lock_guard lock(mutex_);
      failure_ = restarted.error();
      changed_.notify_all();
      break;
    }
  }
  begin_shutdown();
  end_program();
}

// What waits goes to the program, as far as it keeps it busy. What was under way when a program died is
// requested for again alone: so the one that kills it is found out.
void AnswerJudge::fill() {
  const std::lock_guard lock(mutex_);
  while (!waiting_.empty()) {
    const size_t number = waiting_.front();
    const Asked& asked = asked_.at(number);
    const bool alone =
        asked.deaths > 0 || (!under_way_.empty() && deaths_under(under_way_.begin()->second) > 0);
    if (under_way_.size() >= (alone ? 1 : kAhead * static_cast<size_t>(settings_.jobs))) return;
    waiting_.pop_front();
    const size_t id = sent_++;
    under_way_[id] = number;
    Json line = {{"id", fmt::to_string(id)},
                 {"reference_source", asked.answer.task},
                 {"candidate_source", asked.answer.answer},
                 {"form", "answer"}};
    if (!asked.answer.trace.empty()) line["trace"] = asked.answer.trace;
    outgoing_ += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
}

// Waits for something to happen, and does it. False: the program is gone, or silent for too long.
bool AnswerJudge::exchange() {
  pollfd all[3] = {
      {from_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}, {outgoing_.empty() ? -1 : to_.get(), POLLOUT, 0}};
  const auto patience = Deadline::after(kPatience + 4 * settings_.time_limit);
  const int ready = ::poll(all, 3, under_way_.empty() ? -1 : patience.poll_milliseconds());
  if (ready < 0) return errno == EINTR;
  if (ready == 0) return false;
  if (all[1].revents != 0) {
    eventfd_t count = 0;
    (void)::eventfd_read(wake_.get(), &count);
  }
  if (all[2].revents != 0) {
    const ssize_t sent = ::write(to_.get(), outgoing_.data(), outgoing_.size());
    if (sent < 0) return errno == EINTR || errno == EAGAIN;
    outgoing_.erase(0, static_cast<size_t>(sent));
  }
  if (all[0].revents == 0) return true;
  char bytes[65536];
  const ssize_t got = ::read(from_.get(), bytes, sizeof bytes);
  if (got < 0) return errno == EINTR;
  if (got == 0) return false;
  incoming_.append(bytes, static_cast<size_t>(got));
  for (size_t end; (end = incoming_.find('\n')) != incoming_.npos; incoming_.erase(0, end + 1))
    take_line(std::string_view(incoming_).substr(0, end));
  return true;
}

void AnswerJudge::take_line(std::string_view line) {
  auto parsed = parse_judged(line, "the judge's answer");
  const std::lock_guard lock(mutex_);
  if (!parsed.ok()) {
    failure_ = our_error("{}", parsed.error().message);
    changed_.notify_all();
    return;
  }
  const auto found = under_way_.find(parsed->first);
  if (found == under_way_.end()) return;
  const size_t number = found->second;
  under_way_.erase(found);
  deaths_in_a_row_ = 0;
  if (!asked_.contains(number)) return;  // it was given up
  if (parsed->second.kind == VerdictKind::kError && parsed->second.rule != "input" &&
      ++asked_.at(number).errors < kMaxErrors)
    return waiting_.push_back(number);
  settle(number, std::move(parsed->second));
}

void AnswerJudge::settle(size_t number, JudgedAnswer judged) {
  judged_[number] = std::move(judged);
  asked_.erase(number);
  changed_.notify_all();
}

Status AnswerJudge::died() {
  end_program();
  const std::lock_guard lock(mutex_);
  ++restarts_;
  for (auto under_way = under_way_.rbegin(); under_way != under_way_.rend(); ++under_way) {
    const size_t number = under_way->second;
    if (!asked_.contains(number)) continue;
    if (++asked_.at(number).deaths < kMaxDeaths)
      waiting_.push_front(number);
    else
      settle(number, no_verdict(fmt::format("the judge ended {} times while it had this", kMaxDeaths)));
  }
  under_way_.clear();
  if (++deaths_in_a_row_ >= kMaxDeathsInARow)
    return our_error("the judge ended {} times without a verdict; {}: {}", kMaxDeathsInARow, log_.string(),
                     last_words(log_));
  return start_program();
}

}  // namespace nereid::train
