#include "nereid/proposers/speculative_chat.h"

#include <numeric>

#include "nereid/base/program/interrupt.h"

namespace nereid::proposers {
namespace {

std::vector<size_t> others(size_t samples) {
  std::vector<size_t> places(samples - 1);
  std::iota(places.begin(), places.end(), 1);
  return places;
}

// Where the answer's program ends, if that is among these.
std::optional<size_t> program_end(const std::vector<lm::Boundary>& found) {
  for (const lm::Boundary& one : found)
    if (one.kind == lm::Boundary::Kind::kProgram) return one.at;
  return std::nullopt;
}

}  // namespace

SpeculativeChat::SpeculativeChat(ChatOptions options, Result<std::vector<Message>> messages,
                                 std::vector<int> samples, bool continues, const std::atomic<bool>* no_more,
                                 MakeAnswer make_answer)
    : options_(std::move(options)),
      messages_(std::move(messages)),
      samples_(std::move(samples)),
      continues_(continues),
      no_more_(no_more),
      make_answer_(std::move(make_answer)),
      policy_(others(samples_.size())),
      left_(samples_.size()) {
  if (!messages_.ok()) return;
  const std::lock_guard lock(mutex_);
  begin({0}, "", "");
  begin(continues_ ? policy_.fresh() : policy_.rest(), "", "");
}

SpeculativeChat::~SpeculativeChat() {
  cancelled_ = true;
  while (true) {
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      threads.swap(threads_);
    }
    if (threads.empty()) return;
    for (auto& thread : threads) thread.join();
  }
}

// With mutex_ held.
void SpeculativeChat::begin(const std::vector<size_t>& places, const std::string& beginning,
                            std::string_view branch) {
  for (const size_t place : places)
    threads_.emplace_back([this, place, beginning, branch] { write(place, beginning, branch); });
}

// Where the first answer's program ends, once it does.
std::optional<size_t> SpeculativeChat::watch_trunk(const std::string& text) {
  const auto found = boundaries_.push(std::string_view(text).substr(boundaries_.text().size()));
  const std::lock_guard lock(mutex_);
  for (const lm::Boundary& boundary : found)
    if (continues_ && !cancelled_)
      begin(policy_.branch_at(boundary.kind), text.substr(0, boundary.at), to_string(boundary.kind));
  return program_end(found);
}

void SpeculativeChat::write(size_t place, const std::string& beginning, std::string_view branch) {
  const double from = watch_.seconds();
  auto messages = *messages_;
  if (!beginning.empty()) messages.push_back({"assistant", beginning});
  lm::AnswerBoundaries own;
  own.push(beginning);
  std::optional<size_t> end;
  const auto on_text = [&](const std::string& text) {
    const size_t known = own.text().size() - beginning.size();
    end = place == 0 ? watch_trunk(text) : program_end(own.push(std::string_view(text).substr(known)));
    return !end;
  };
  const auto said =
      chat(options_, messages, Deadline::never(), {.on_text = on_text, .cancelled = &cancelled_});
  const std::lock_guard lock(mutex_);
  --left_;
  if (said.ok()) {
    any_ = true;
    std::string text = (beginning + said->text).substr(0, end.value_or(std::string::npos));
    const auto shared = static_cast<int64_t>(place == 0 ? text.size() : beginning.size());
    const double to = watch_.seconds();
    ready_.push_back({.one = {.sample = samples_[place],
                              .answer = make_answer_(*said, std::move(text), to - from),
                              .branch = std::string(branch),
                              .from = from,
                              .to = to},
                      .shared = shared});
  } else if (!failure_) {
    failure_ = said.error();
  }
  if (place == 0 && !cancelled_) begin(policy_.rest(), "", "");
  changed_.notify_all();
}

Result<std::optional<Answers::One>> SpeculativeChat::next(Deadline deadline) {
  if (!messages_.ok()) return messages_.error();
  std::unique_lock lock(mutex_);
  while (true) {
    if (!ready_.empty()) {
      std::vector<int64_t> shared;
      for (const Ready& one : ready_) shared.push_back(one.shared);
      const auto chosen = ready_.begin() + static_cast<ptrdiff_t>(lm::newest(shared));
      One one = std::move(chosen->one);
      ready_.erase(chosen);
      return std::optional(std::move(one));
    }
    if (left_ == 0 && !any_ && failure_) return *failure_;
    if (left_ == 0) return std::optional<One>();
    if (interrupted()) return Error{"interrupted", Blame::kInterrupted};
    if (no_more_ != nullptr && *no_more_) return our_error("{}: cancelled", options_.base);
    if (deadline.passed()) return our_error("{}: no answer in the time that was left", options_.base);
    // An interrupt does not wake waiters on this.
    changed_.wait_until(lock, Deadline::earlier(deadline, Deadline::after(0.05)).when());
  }
}

}  // namespace nereid::proposers
