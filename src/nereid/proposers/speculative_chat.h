// Several answers of an endpoint side by side, of which some go on from another while that is being written.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/lm/speculation/branch_policy.h"
#include "nereid/proposers/chat.h"
#include "nereid/proposers/proposer.h"

namespace nereid::proposers {

// A connection for each sample, which is closed when its answer holds its program, or when this goes. Where
// the endpoint continues beginnings, lm::BranchPolicy says which samples wait for boundaries of the first;
// else all begin at once. The newest answer that is there is handed out first.
class SpeculativeChat : public Answers {
 public:
  using MakeAnswer = std::function<Answer(const ChatAnswer& said, std::string text, double seconds)>;
  // `messages`: an Error is what `next` returns. At least one sample; the first is the one that others go on
  // from. `no_more`: as Request::cancelled.
  SpeculativeChat(ChatOptions options, Result<std::vector<Message>> messages, std::vector<int> samples,
                  bool continues, const std::atomic<bool>* no_more, MakeAnswer make_answer);
  ~SpeculativeChat() override;

  // An Error where no answer has come of any connection, or the deadline has passed.
  Result<std::optional<One>> next(Deadline deadline) override;

 private:
  struct Ready {
    One one;
    int64_t shared = 0;  // bytes of the first answer; of that itself: all
  };

  void begin(const std::vector<size_t>& places, const std::string& beginning, std::string_view branch);
  void write(size_t place, const std::string& beginning, std::string_view branch);
  std::optional<size_t> watch_trunk(const std::string& text);

  const ChatOptions options_;
  const Result<std::vector<Message>> messages_;
  const std::vector<int> samples_;
  const bool continues_;
  const std::atomic<bool>* const no_more_;
  const MakeAnswer make_answer_;
  const Stopwatch watch_;
  std::atomic<bool> cancelled_ = false;
  lm::AnswerBoundaries boundaries_;  // of the first answer; its thread's
  std::mutex mutex_;                 // guards what follows
  std::condition_variable changed_;
  lm::BranchPolicy policy_;
  std::vector<Ready> ready_;
  size_t left_ = 0;  // samples that have neither come nor failed
  bool any_ = false;
  std::optional<Error> failure_;
  std::vector<std::thread> threads_;
};

}  // namespace nereid::proposers
