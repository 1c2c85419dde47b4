#include "nereid/lm/engine/scheduler.h"

#include <algorithm>

#include "nereid/base/check.h"

namespace nereid::lm {
namespace {

constexpr auto kById = [](const auto* sequence) { return sequence->id; };

template <typename Sequence>
void insert_by_age(std::vector<Sequence*>& sequences, Sequence* sequence) {
  sequences.insert(std::ranges::lower_bound(sequences, sequence->id, {}, kById), sequence);
}

// Parameters out of range, or a prompt that is empty or leaves no room for a token. `cached`: the tokens that
// the cache holds.
Status check_request(const Request& request, const SchedulerOptions& options, int64_t cached, int64_t room) {
  NEREID_TRY_STATUS(check_sampling(request.sampling));
  if (request.samples < 1) return input_error("samples: expected 1 or more, got {}", request.samples);
  if (request.enough < 0 || request.enough > request.samples)
    return input_error("enough: expected 0 (all) to {} samples, got {}", request.samples, request.enough);
  if (request.prompt.empty()) return input_error("prompt: expected one token or more, got none");
  for (size_t i = 0; i < request.prompt.size(); ++i)
    if (request.prompt[i] < 0 || request.prompt[i] >= options.vocabulary)
      return input_error("prompt[{}]: expected a token from 0 to {}, got {}", i, options.vocabulary - 1,
                         request.prompt[i]);
  if (std::ssize(request.prompt) >= room)
    return input_error("prompt: expected fewer than {} tokens (context {}, cache {}), got {}", room,
                       options.max_length, cached, request.prompt.size());
  return ok_status();
}

}  // namespace

std::string_view to_string(Finish finish) {
  switch (finish) {
    case Finish::kNot:
      return "not";
    case Finish::kStopToken:
      return "stop_token";
    case Finish::kStopText:
      return "stop_text";
    case Finish::kLength:
      return "length";
    case Finish::kCancelled:
      return "cancelled";
  }
  return "?";
}

Scheduler::Scheduler(const SchedulerOptions& options)
    : options_(options), blocks_(options.blocks, options.block_size, options.share_prefixes) {
  NEREID_CHECK(options.max_step_tokens >= 1 && options.max_sequences >= 1 && options.max_length >= 2,
               "a step of a token of a sequence of two, got {}, {}, {}", options.max_step_tokens,
               options.max_sequences, options.max_length);
}

Result<int64_t> Scheduler::add(Request request) {
  NEREID_CHECK(!in_flight_, "to be called between steps");
  const int64_t cached = blocks_.capacity() * blocks_.block_size();
  // A sample's last token is never computed.
  const int64_t room = std::min(options_.max_length, cached + 1);
  NEREID_TRY_STATUS(check_request(request, options_, cached, room));
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (unbegun_ >= options_.max_waiting)
    return Error{fmt::format("the queue is full: {} requests wait", unbegun_), Blame::kOurs};

  const int64_t number = next_request_++;
  Group group{.request = std::move(request)};
  group.max_length = prompt + std::min(group.request.sampling.max_tokens, room - prompt);
  group.left = group.request.samples;
  for (int64_t sample = 0; sample < group.left; ++sample) {
    const SampleId id = {number, sample};
    samples_[id] = std::make_unique<Sequence>(Sequence{.id = id, .tokens = group.request.prompt});
  }
  groups_.emplace(number, std::move(group));
  ++unbegun_;
  wait(*samples_.at({number, 0}));
  return number;
}

Result<int64_t> Scheduler::fork(SampleId from, Request request) {
  const auto found = samples_.find(from);
  if (found == samples_.end())
    return input_error("fork: expected a sample that goes on, got {}/{}", from.request, from.sample);
  const Sequence& source = *found->second;
  if (request.prompt.size() > source.tokens.size() ||
      !std::equal(request.prompt.begin(), request.prompt.end(), source.tokens.begin()))
    return input_error("fork: expected a prompt that {}/{} begins with", from.request, from.sample);
  const bool all = request.prompt.size() == source.tokens.size();
  NEREID_TRY(const int64_t number, add(std::move(request)));
  if (!all || source.state != Sequence::kRunning || running() >= options_.max_sequences) return number;
  Sequence& first = *samples_.at({number, 0});
  std::erase(waiting_, &first);
  first.table = blocks_.fork(source.table);
  first.computed = source.computed;
  reused_ += first.computed;
  groups_.at(number).begun = true;
  --unbegun_;
  run(first);
  return number;
}

std::span<const TokenId> Scheduler::tokens_of(SampleId id) const {
  const auto found = samples_.find(id);
  return found == samples_.end() ? std::span<const TokenId>() : std::span(found->second->tokens);
}

bool Scheduler::append(SampleId id, std::span<const TokenId> tokens) {
  NEREID_CHECK(!in_flight_, "to be called between steps");
  const auto found = samples_.find(id);
  if (found == samples_.end()) return false;
  Sequence& sequence = *found->second;
  const Group& group = groups_.at(id.request);
  if (sequence.tokens.size() == group.request.prompt.size() ||
      sequence.length() + std::ssize(tokens) >= group.max_length)
    return false;
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  return true;
}

std::vector<Scheduler::Sequence*> Scheduler::of_request(int64_t request) {
  std::vector<Sequence*> found;
  for (auto at = samples_.lower_bound({request, 0}); at != samples_.end() && at->first.request == request;
       ++at)
    found.push_back(at->second.get());
  return found;
}

void Scheduler::run(Sequence& sequence) {
  sequence.state = Sequence::kRunning;
  insert_by_age(running_, &sequence);
}

void Scheduler::wait(Sequence& sequence) {
  sequence.state = Sequence::kWaiting;
  insert_by_age(waiting_, &sequence);
}

const Batch& Scheduler::schedule() {
  NEREID_CHECK(!in_flight_, "the last step to be accepted first");
  batch_ = {};
  batch_.step.starts = {0};
  scheduled_.clear();
  budget_ = options_.max_step_tokens;
  joining_ = 0;
  const int64_t preempted_before = preempted_;
  take_steps(true);
  take_steps(false);
  // What was thrown out in this step does not come back in it.
  if (preempted_ == preempted_before) admit();
  NEREID_CHECK(!scheduled_.empty() || samples_.empty(),
               "a step of some sequence, {} are running and {} waiting", running_.size(), waiting_.size());
  in_flight_ = !scheduled_.empty();
  return batch_;
}

void Scheduler::take_steps(bool decoding) {
  // Whom `reserve` throws out comes after the sequence that it is done for.
  for (size_t i = 0; i < running_.size() && budget_ > 0; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.in_step || (sequence.pending() == 1) != decoding) continue;
    const int64_t tokens = std::min(sequence.pending(), budget_);
    if (reserve(sequence, tokens)) put_in(sequence, tokens);
  }
}

bool Scheduler::reserve(Sequence& sequence, int64_t tokens) {
  const int64_t to = sequence.computed + tokens;
  while (blocks_.needed(sequence.table, sequence.computed, to) > blocks_.available()) {
    Sequence* youngest = nullptr;
    for (size_t i = running_.size(); i-- > 0 && running_[i]->id > sequence.id && youngest == nullptr;)
      if (!running_[i]->in_step) youngest = running_[i];
    if (youngest == nullptr) return false;
    preempt(*youngest);
  }
  blocks_.prepare(sequence.table, sequence.computed, to, batch_.copies);
  return true;
}

void Scheduler::preempt(Sequence& sequence) {
  blocks_.release(sequence.table);
  sequence.computed = 0;
  std::erase(running_, &sequence);
  wait(sequence);
  ++preempted_;
}

void Scheduler::admit() {
  // One block at least is needed: looking for those that are there already is not free.
  while (!waiting_.empty() && budget_ > 0 && running() + joining_ < options_.max_sequences &&
         running() < blocks_.available()) {
    Sequence& sequence = *waiting_.front();
    sequence.computed = blocks_.share(sequence.table, sequence.tokens);
    // Who runs will need a block each before long: who begins leaves it to them, not to be thrown out for it
    // soon.
    const int64_t needed = blocks_.needed(sequence.table, sequence.computed, sequence.length()) + running();
    if (needed > blocks_.available()) {
      blocks_.release(sequence.table);
      sequence.computed = 0;
      return;
    }
    reused_ += sequence.computed;
    waiting_.erase(waiting_.begin());
    run(sequence);
    Group& group = groups_.at(sequence.id.request);
    if (!std::exchange(group.begun, true)) --unbegun_;
    const int64_t tokens = std::min(sequence.pending(), budget_);
    blocks_.prepare(sequence.table, sequence.computed, sequence.computed + tokens, batch_.copies);
    put_in(sequence, tokens);
  }
}

void Scheduler::put_in(Sequence& sequence, int64_t tokens) {
  Step& step = batch_.step;
  const int64_t size = blocks_.block_size(), to = sequence.computed + tokens;
  for (int64_t at = sequence.computed; at < to; ++at) {
    step.tokens.push_back(sequence.tokens[static_cast<size_t>(at)]);
    step.positions.push_back(at);
    step.slots.push_back(sequence.table.blocks[static_cast<size_t>(at / size)] * size + at % size);
  }
  step.starts.push_back(static_cast<int32_t>(step.tokens.size()));
  step.lengths.push_back(static_cast<int32_t>(to));
  step.blocks.push_back(sequence.table.blocks);
  budget_ -= tokens;
  sequence.in_step = true;
  scheduled_.push_back({&sequence, tokens});
  if (to < sequence.length()) return;

  const Group& group = groups_.at(sequence.id.request);
  const size_t row = step.wanted.size();
  step.wanted.push_back(static_cast<int64_t>(step.tokens.size()) - 1);
  const auto draw = [&](const Sequence& who) {
    const auto drawn = who.tokens.size() - group.request.prompt.size();
    batch_.draws.push_back({who.id, row, static_cast<int64_t>(drawn), &group.request.sampling});
  };
  draw(sequence);
  if (group.forked) return;
  // Samples that follow draw here too, as far as they may run.
  for (const Sequence* follower : of_request(sequence.id.request)) {
    if (follower->state != Sequence::kFollowing || running() + joining_ >= options_.max_sequences) continue;
    draw(*follower);
    ++joining_;
  }
}

std::vector<Event> Scheduler::accept(std::span<const TokenId> tokens) {
  NEREID_CHECK(in_flight_, "a step to be accepted");
  NEREID_CHECK(tokens.size() == batch_.draws.size(), "{} tokens, one for each draw, got {}",
               batch_.draws.size(), tokens.size());
  in_flight_ = false;
  for (const auto& [sequence, count] : scheduled_) {
    sequence->computed += count;
    sequence->in_step = false;
    blocks_.offer(sequence->table, sequence->tokens, sequence->computed);
  }
  fork_followers();
  std::vector<Event> events;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const SampleId id = batch_.draws[i].id;
    const auto found = samples_.find(id);
    if (found == samples_.end()) continue;  // those before it were enough
    Sequence& sequence = *found->second;
    sequence.tokens.push_back(tokens[i]);
    const Finish finish = finish_of(sequence);
    if (finish == Finish::kNot) {
      events.push_back({id, tokens[i], finish});
    } else {
      end(id, tokens[i], finish, events);
    }
  }
  return events;
}

// Before any of them goes on, or ends.
void Scheduler::fork_followers() {
  std::vector<int64_t> read;
  const Sequence* leader = nullptr;
  for (const Draw& draw : batch_.draws) {
    Sequence& sequence = *samples_.at(draw.id);
    if (sequence.state == Sequence::kFollowing) {
      sequence.table = blocks_.fork(leader->table);
      sequence.computed = leader->computed;
      reused_ += sequence.computed;
      run(sequence);
    } else {
      leader = &sequence;
      if (!std::exchange(groups_.at(draw.id.request).forked, true)) read.push_back(draw.id.request);
    }
  }
  for (const int64_t request : read)
    for (Sequence* sequence : of_request(request))
      if (sequence->state == Sequence::kFollowing) wait(*sequence);
}

Finish Scheduler::finish_of(const Sequence& sequence) const {
  const Group& group = groups_.at(sequence.id.request);
  const auto& stops = group.request.sampling.stop_tokens;
  if (std::ranges::find(stops, sequence.tokens.back()) != stops.end()) return Finish::kStopToken;
  return sequence.length() >= group.max_length ? Finish::kLength : Finish::kNot;
}

void Scheduler::end(SampleId id, TokenId token, Finish finish, std::vector<Event>& events) {
  events.push_back({id, token, finish});
  Group& group = groups_.at(id.request);
  const bool enough = ++group.ended == group.request.enough;
  remove(id);
  if (!enough) return;
  for (const Sequence* other : of_request(id.request))
    events.push_back({other->id, lm::kNoToken, Finish::kCancelled});
  cancel(id.request);
}

std::vector<Event> Scheduler::stop(SampleId id) {
  NEREID_CHECK(!in_flight_, "to be called between steps");
  std::vector<Event> events;
  if (samples_.contains(id)) end(id, lm::kNoToken, Finish::kStopText, events);
  return events;
}

void Scheduler::cancel(SampleId id) {
  NEREID_CHECK(!in_flight_, "to be called between steps");
  if (samples_.contains(id)) remove(id);
}

void Scheduler::cancel(int64_t request) {
  for (const Sequence* sequence : of_request(request)) cancel(sequence->id);
}

void Scheduler::remove(SampleId id) {
  const std::unique_ptr<Sequence> sequence = std::move(samples_.at(id));
  samples_.erase(id);
  blocks_.release(sequence->table);
  std::erase(running_, sequence.get());
  std::erase(waiting_, sequence.get());
  Group& group = groups_.at(id.request);
  if (--group.left == 0) {
    unbegun_ -= !group.begun;
    groups_.erase(id.request);
    return;
  }
  // Who read the prompt for the others is gone: the next one reads it.
  if (!group.forked && sequence->state != Sequence::kFollowing) wait(*of_request(id.request).front());
}

void Scheduler::check() const {
  std::vector<const BlockTable*> tables;
  size_t running = 0, waiting = 0;
  std::map<int64_t, int64_t> left, leaders;
  for (const auto& [id, sequence] : samples_) {
    const Sequence& s = *sequence;
    ++left[id.request];
    leaders[id.request] += s.state != Sequence::kFollowing;
    tables.push_back(&s.table);
    running += s.state == Sequence::kRunning;
    waiting += s.state == Sequence::kWaiting;
    NEREID_CHECK(s.pending() >= 1, "something to compute of sample {}/{}", id.request, id.sample);
    NEREID_CHECK(s.state == Sequence::kRunning || (s.table.blocks.empty() && s.computed == 0),
                 "no blocks of {}/{}, which does not run", id.request, id.sample);
    const auto blocks = static_cast<int64_t>(s.table.blocks.size());
    NEREID_CHECK(
        in_flight_ ? blocks >= blocks_.blocks_for(s.computed) : blocks == blocks_.blocks_for(s.computed),
        "blocks of {}/{} for its {} tokens, got {}", id.request, id.sample, s.computed, blocks);
    NEREID_CHECK(in_flight_ || !s.in_step, "{}/{} in no step", id.request, id.sample);
  }
  NEREID_CHECK(running == running_.size() && waiting == waiting_.size(), "{} running, {} waiting, got {}, {}",
               running, waiting, running_.size(), waiting_.size());
  NEREID_CHECK(this->running() <= options_.max_sequences, "{} to run at most", options_.max_sequences);
  NEREID_CHECK(std::ranges::is_sorted(running_, {}, kById) && std::ranges::is_sorted(waiting_, {}, kById),
               "the oldest first");
  NEREID_CHECK(groups_.size() == left.size(), "{} requests, got {}", left.size(), groups_.size());
  size_t unbegun = 0;
  for (const auto& [number, group] : groups_) {
    NEREID_CHECK(group.left == left[number], "{} samples of request {}, got {}", left[number], number,
                 group.left);
    NEREID_CHECK(group.forked ? leaders[number] == left[number] : leaders[number] == 1,
                 "one reader, or none who follows, in request {}", number);
    unbegun += !group.begun;
  }
  NEREID_CHECK(unbegun == unbegun_, "{} requests that have not begun, got {}", unbegun, unbegun_);
  blocks_.check(tables);
}

}  // namespace nereid::lm
