#include "nereid/proposers/model_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/text.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::proposers {
namespace {

constexpr std::chrono::milliseconds kTurn(100);
constexpr double kPaceSeconds = 2;  // after so long without a word nothing is being written
constexpr size_t kMaxStderrTail = 2000, kMaxModelLine = size_t{64} << 20, kMaxModelText = size_t{16} << 20;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

ModelProcess::ModelProcess(pid_t pid, Fd talk, Fd errors, std::function<std::shared_ptr<void>()> turn)
    : pid_(pid),
      killed_at_exit_(pid),
      talk_(std::move(talk)),
      errors_(std::move(errors)),
      turn_(std::move(turn)),
      reader_([this] { read(); }) {
  if (turn_) turns_ = std::thread([this] { schedule_turns(); });
}

Result<std::unique_ptr<ModelProcess>> ModelProcess::start(std::vector<std::string> words,
                                                          std::function<std::shared_ptr<void>()> turn) {
  int ends[2], pipes[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return our_error("socketpair: {}", std::strerror(errno));
  Fd talk(ends[0]), its(ends[1]);
  if (::pipe2(pipes, O_CLOEXEC) != 0) return our_error("pipe: {}", std::strerror(errno));
  Fd errors(pipes[0]), child_errors(pipes[1]);
  sandbox::SpawnSpec spec{.words = std::move(words), .environment = sandbox::own_environment()};
  spec.descriptors = {{its.get(), 0}, {its.get(), 1}, {child_errors.get(), 2}};
  spec.own_session = true;  // Ctrl-C is passed on by us
  NEREID_TRY(const pid_t pid, sandbox::spawn(spec));
  return std::unique_ptr<ModelProcess>(
      new ModelProcess(pid, std::move(talk), std::move(errors), std::move(turn)));
}

ModelProcess::~ModelProcess() {
  ::kill(pid_, SIGKILL);  // not yet waited for: the number is still its own
  reader_.join();
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  if (turns_.joinable()) turns_.join();
  killed_at_exit_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
}

// Until it has ended, and all that was there then was read. Children of its own may hold the same
// descriptors.
bool ModelProcess::asked() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& entry) { return !entry.second.over; });
}

void ModelProcess::schedule_turns() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || lost_ || asked(); });
    if (ends_ || lost_) return;
    lock.unlock();
    const auto turn = turn_();
    send("{\"go\":true}\n");
    lock.lock();
    holds_ = false;
    changed_.wait_for(lock, kTurn, [&] { return ends_ || lost_ || !asked(); });
    lock.unlock();
    send("{\"go\":false}\n");
    lock.lock();
    changed_.wait(lock, [&] { return ends_ || lost_ || holds_; });  // until its last step is done
  }
}

void ModelProcess::read() {
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  std::string rest;
  bool talks = true, errs = true, lives = true;
  while (lives || talks || errs) {
    pollfd all[3] = {{talks ? talk_.get() : -1, POLLIN, 0},
                     {errs ? errors_.get() : -1, POLLIN, 0},
                     {lives ? process.get() : -1, POLLIN, 0}};
    const int ready = ::poll(all, 3, lives ? -1 : 0);
    if (ready < 0) continue;
    if (ready == 0) break;
    if (all[2].revents != 0) lives = false;
    char chunk[1 << 16];
    if (all[1].revents != 0) {
      const ssize_t got = ::read(errors_.get(), chunk, sizeof chunk);
      errs = got > 0 || (got < 0 && errno == EINTR);
      if (got > 0) last_words_.append(chunk, static_cast<size_t>(got));
      if (last_words_.size() > kMaxStderrTail) last_words_.erase(0, last_words_.size() - kMaxStderrTail);
    }
    if (all[0].revents == 0) continue;
    const ssize_t got = ::read(talk_.get(), chunk, sizeof chunk);
    talks = got > 0 || (got < 0 && errno == EINTR);
    if (got > 0) rest.append(chunk, static_cast<size_t>(got));
    size_t at = 0;
    Status taken = ok_status();
    for (size_t end; taken.ok() && (end = rest.find('\n', at)) != rest.npos; at = end + 1)
      taken = take(rest.substr(at, end - at));
    rest.erase(0, at);
    if (rest.size() > kMaxModelLine) taken = our_error("a line without an end");
    if (!taken.ok()) {
      last_words_ = taken.error().message;
      break;
    }
    if (!talks && lives) break;  // it has closed what it talks by
  }
  ::kill(pid_, SIGKILL);  // of one that has only stopped talking
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) continue;
  const int status = ended.si_code == CLD_EXITED ? ended.si_status << 8 : ended.si_status;
  const std::string words(trimmed(last_words_));
  const std::lock_guard lock(mutex_);
  lost_ = Error{fmt::format("the language model's process (nereid-lm) {}{}{}", how_it_ended(status),
                            words.empty() ? "" : ": ", words),
                WIFEXITED(status) && WEXITSTATUS(status) == 2 ? Blame::kInput : Blame::kOurs};
  changed_.notify_all();
}

Status ModelProcess::take(const std::string& line) {
  NEREID_TRY(const Json document, parse_json(line, "what nereid-lm says"));
  const JsonField root(document, "line");
  NEREID_TRY(const bool ready, root.boolean_at("ready", false));
  if (ready) return ok_status();
  NEREID_TRY(const bool holds, root.boolean_at("holds", false));
  if (holds) {
    const std::lock_guard lock(mutex_);
    holds_ = true;
    changed_.notify_all();
    return ok_status();
  }
  NEREID_TRY(const int64_t tokens, root.integer_at("written", 0, 0, INT64_MAX));
  if (tokens > 0) {
    NEREID_TRY(const auto took, root.at("seconds"));
    NEREID_TRY(const double seconds, took.number());
    const std::lock_guard lock(mutex_);
    pace_.tokens += tokens;
    pace_.a_second = static_cast<double>(tokens) / std::max(seconds, 1e-9);
    paced_ = Stopwatch();
    return ok_status();
  }
  NEREID_TRY(const int64_t id, root.integer_at("id", -1, 0, INT64_MAX));
  NEREID_TRY(const bool over, root.boolean_at("over", false));
  Written written;
  NEREID_TRY(written.refused, root.text_at("refused"));
  const bool last = over || !written.refused.empty();
  if (!last) {
    NEREID_TRY(const int64_t number, root.integer_at("sample", -1, 0, INT32_MAX));
    written.sample = static_cast<int>(number);
    NEREID_TRY(written.text, root.text_at("text", kMaxModelText));
    NEREID_TRY(const std::string finish, root.text_at("finish"));
    written.whole = finish == "end";
    NEREID_TRY(written.tokens, root.integer_at("tokens", 0, 0, INT64_MAX));
    NEREID_TRY(written.prompt_tokens, root.integer_at("prompt_tokens", 0, 0, INT64_MAX));
    NEREID_TRY(const auto seconds, root.at("seconds"));
    NEREID_TRY(written.seconds, seconds.number());
    NEREID_TRY(const auto from, root.find("from"));
    if (from) {
      NEREID_TRY(written.from, from->number());
    }
    NEREID_TRY(written.branch, root.text_at("branch"));
    NEREID_TRY(written.shared, root.integer_at("shared", 0, 0, INT64_MAX));
  }
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return ok_status();  // no waiter is left
  if (!over) found->second.written.push_back(std::move(written));
  found->second.over = last;
  changed_.notify_all();
  return ok_status();
}

ModelProcess::Pace ModelProcess::pace() const {
  const std::lock_guard lock(mutex_);
  const bool writes = !lost_ && asked() && paced_.seconds() < kPaceSeconds;
  return {.tokens = pace_.tokens, .a_second = writes ? pace_.a_second : 0};
}

// An end of the process is reported by the reader.
void ModelProcess::send(const std::string& line) {
  const std::lock_guard lock(sending_);
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t sent = ::send(talk_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    rest.remove_prefix(static_cast<size_t>(sent));
  }
}

std::unique_ptr<ModelProcess::Answers> ModelProcess::ask(const Question& question) {
  int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    waiting_[id];
    changed_.notify_all();
  }
  Json messages = Json::array();
  for (const auto& message : question.messages)
    messages.push_back({{"role", message.role}, {"content", message.content}});
  Json line = {{"id", id},
               {"messages", messages},
               {"samples", question.samples},
               {"seed", static_cast<int64_t>(question.seed)},
               {"enough", question.enough}};
  if (!question.prefills.empty()) line["prefill"] = question.prefills;
  if (question.temperature) line["temperature"] = *question.temperature;
  if (question.top_p) line["top_p"] = *question.top_p;
  if (question.branches != lm::BranchStart::kNone)
    line["branches"] = question.branches == lm::BranchStart::kAtOnce ? "at_once" : "after";
  if (question.max_tokens > 0) line["max_tokens"] = question.max_tokens;
  send(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  return std::unique_ptr<Answers>(new Answers(*this, id));
}

ModelProcess::Answers::~Answers() {
  bool over = false;
  {
    const std::lock_guard lock(process_.mutex_);
    const auto found = process_.waiting_.find(id_);
    over = found->second.over || process_.lost_;
    process_.waiting_.erase(found);
  }
  if (!over) process_.send(Json{{"cancel", id_}}.dump() + "\n");
}

Result<std::optional<Written>> ModelProcess::Answers::next(Deadline deadline, bool newest,
                                                           const std::atomic<bool>* cancelled) {
  std::unique_lock lock(process_.mutex_);
  Waiting& waiting = process_.waiting_.at(id_);
  while (true) {
    if (!waiting.written.empty()) {
      std::vector<int64_t> shared;
      for (const Written& one : waiting.written) shared.push_back(one.shared);
      const auto next = waiting.written.begin() + static_cast<ptrdiff_t>(newest ? lm::newest(shared) : 0);
      Written taken = std::move(*next);
      waiting.written.erase(next);
      return std::optional(std::move(taken));
    }
    if (waiting.over) return std::optional<Written>();
    if (process_.lost_) return *process_.lost_;
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (cancelled != nullptr && *cancelled) return our_error("the language model's answer is wanted no more");
    if (deadline.passed()) return our_error("the language model was not done in the time that was left");
    // An interrupt does not wake waiters on this.
    const auto soon = Deadline::earlier(deadline, Deadline::after(0.05));
    process_.changed_.wait_until(lock, soon.when());
  }
}

}  // namespace nereid::proposers
