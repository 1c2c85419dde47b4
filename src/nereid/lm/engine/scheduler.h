// Continuous batching: which tokens of which sequences the next forward computes.
//
// A request is a prompt and how many samples of its continuation are wanted. Its first sample reads the
// prompt; when it has, the others fork from it, with its blocks, and draw from the same logits. In each step
//   1. every sequence that decodes takes one token, the oldest first;
//   2. the step's remaining tokens go to sequences that are still reading, piece by piece, the oldest
//   first;
//   3. then waiting ones begin, in the order of their arrival, as long as blocks for all their tokens are
//   available.
// A sequence that finds no block takes those of the youngest sequence after it that is not in the step yet:
// that one waits again, and reads all its tokens anew (most of its blocks are usually still there). So the
// oldest always goes on, and everything ends.
//
// What a sample draws depends on its own tokens, seed and number alone, whatever it is computed with.
//
//   while (scheduler.busy()) {
//     const Batch& batch = scheduler.schedule();
//     ... batch.copies, then a forward of batch.step; of its logits a token for each of batch.draws ...
//     for (const Event& event : scheduler.accept(tokens)) ...
//   }
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/lm/engine/block_manager.h"
#include "nereid/lm/engine/runner/step.h"
#include "nereid/lm/engine/sampling.h"

namespace nereid::lm {

struct Request {
  std::vector<TokenId> prompt;
  SamplingParameters sampling = {};
  int64_t samples = 1;
  int64_t enough = 0;  // so many samples that ended by themselves end the others; 0: all are wanted
};

struct SchedulerOptions {
  BlockId blocks = 0;  // block 0, which is unused, included
  int64_t block_size = 16;
  bool share_prefixes = true;
  int64_t max_step_tokens = 2048;
  int64_t max_sequences = 256;     // that run at a time
  int64_t max_length = 1 << 20;    // tokens of a sequence, as the model's context allows
  size_t max_waiting = 4096;       // requests that have not begun
  int64_t vocabulary = INT32_MAX;  // prompts have tokens below this
};

// Who a sample is: the number of its request, from 0, and its own.
struct SampleId {
  int64_t request = 0, sample = 0;
  auto operator<=>(const SampleId&) const = default;
};

// A token to be drawn from a row of logits.
struct Draw {
  SampleId id;
  size_t row = 0;                                // of step.wanted; samples that begin together share one
  int64_t index = 0;                             // of the token among those that the sample draws
  const SamplingParameters* sampling = nullptr;  // of the request; valid until the step is accepted
};

struct Batch {
  std::vector<std::pair<BlockId, BlockId>> copies;  // of whole blocks, (from, to), before the forward
  Step step;
  std::vector<Draw> draws;
};

enum class Finish {
  kNot,
  kStopToken,  // it drew one
  kStopText,   // as the reader of the text says
  kLength,     // max_tokens, or the longest sequence that fits
  kCancelled,  // because others of its request were enough
};
std::string_view to_string(Finish finish);

struct Event {
  SampleId id;
  TokenId token = lm::kNoToken;  // none where others ended it
  Finish finish = Finish::kNot;  // if not kNot, the last event of this sample
};

// Not thread-safe.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);

  // The number of the request. An error: parameters out of range, a prompt that is empty or leaves no room
  // for a token, a full queue.
  Result<int64_t> add(Request request);
  // Between steps: a request that goes on from a sample which has not ended; its prompt is how that sample's
  // tokens begin. Where it is all of them, the first of the new samples runs at once on the same blocks, of
  // which the last is copied before a write, and nothing is computed again; else full blocks are found by
  // their names. Draws are by the new request's own seed, so what follows is an independent sample.
  Result<int64_t> fork(SampleId from, Request request);
  // A sample's prompt and what it has drawn; empty where it has ended.
  std::span<const TokenId> tokens_of(SampleId id) const;
  // Between steps: a sample that has drawn goes on with these tokens, as if it had drawn them; they are read
  // together in the next step. False, and nothing is done: it has ended, or would be as long as it may be.
  bool append(SampleId id, std::span<const TokenId> tokens);
  // Between steps: ends a sample, or all of a request, without an event. What has ended already stays so.
  void cancel(SampleId id);
  void cancel(int64_t request);
  // Between steps: the sample's text ended it. The events are its own, then those of samples that are wanted
  // no longer.
  std::vector<Event> stop(SampleId id);

  // Samples that begin from now on find nothing of what was computed until now: the model has other weights.
  void forget_prefixes() { blocks_.forget(); }

  bool busy() const { return !samples_.empty(); }
  bool knows(int64_t request) const { return groups_.contains(request); }  // samples of it are left
  size_t unbegun() const { return unbegun_; }  // requests of which nothing was computed yet
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t preempted() const { return preempted_; }  // so often until now
  int64_t reused() const { return reused_; }        // tokens that samples found in blocks and did not compute
  const BlockManager& blocks() const { return blocks_; }

  // The next step; without tokens only where there is nothing to do, else to be accepted before the next.
  // Valid until then.
  const Batch& schedule();
  // One token for each draw of the batch.
  std::vector<Event> accept(std::span<const TokenId> tokens);

  // Aborts where the books do not agree: blocks lost or held wrongly, sequences in two places. For tests.
  void check() const;

 private:
  struct Sequence {
    SampleId id;
    std::vector<TokenId> tokens;  // the prompt, then what was drawn
    int64_t computed = 0;         // of these, from the front, have keys and values in the blocks
    BlockTable table = {};
    enum State { kFollowing, kWaiting, kRunning } state = kFollowing;  // kFollowing: another reads its prompt
    bool in_step = false;
    int64_t length() const { return static_cast<int64_t>(tokens.size()); }
    int64_t pending() const { return length() - computed; }
  };
  struct Group {
    Request request;
    int64_t max_length = 0;  // of a sample
    int64_t left = 0;        // samples
    int64_t ended = 0;       // of them, by themselves
    bool begun = false;      // blocks were found for its first sample
    bool forked = false;     // the prompt was read: no more samples follow
  };
  struct Scheduled {
    Sequence* sequence;
    int64_t tokens;
  };

  // Making a step.
  void take_steps(bool decoding);
  bool reserve(Sequence& sequence, int64_t tokens);
  void preempt(Sequence& sequence);
  void admit();
  void put_in(Sequence& sequence, int64_t tokens);
  // After it.
  void fork_followers();
  Finish finish_of(const Sequence& sequence) const;
  void end(SampleId id, TokenId token, Finish finish, std::vector<Event>& events);
  void remove(SampleId id);

  void run(Sequence& sequence);
  void wait(Sequence& sequence);
  std::vector<Sequence*> of_request(int64_t request);

  SchedulerOptions options_;
  BlockManager blocks_;
  std::map<int64_t, Group> groups_;
  std::map<SampleId, std::unique_ptr<Sequence>> samples_;  // the oldest first, as everywhere
  std::vector<Sequence*> running_;
  std::vector<Sequence*> waiting_;
  int64_t next_request_ = 0, preempted_ = 0, reused_ = 0;
  size_t unbegun_ = 0;  // groups
  // The step that is being made or computed.
  int64_t budget_ = 0;
  int64_t joining_ = 0;  // followers that draw in it
  bool in_flight_ = false;
  Batch batch_;
  std::vector<Scheduled> scheduled_;
};

}  // namespace nereid::lm
