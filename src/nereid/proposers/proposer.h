// Proposers write kernels: one interface for our compiler, Inductor and language models. None that implements
// it is trusted: what it hands out is judged like any candidate.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/proposers/message.h"
#include "nereid/trace/trace.h"

namespace nereid::proposers {

// What an answer took.
struct Cost {
  double seconds = 0;
  int64_t prompt_tokens = 0, completion_tokens = 0;
  double dollars = 0;  // 0 where no price is known

  Cost& operator+=(const Cost& other);
};

// A language model's answer that is no proposal.
struct Reply {
  std::string text{};
  Cost cost{};
};

// One kernel, and the steps of the traced forward that it does.
struct Region {
  std::string kernel{};
  std::vector<int> steps{};
};

struct Proposal {
  std::string text{};             // a file with ModelNew, or a model's raw answer
  bool answer = false;            // the text is a raw answer, of which the last code block counts
  std::string plan{};             // in words: what is fused with what, and why
  std::string variant{};          // which of a proposer's ways: "native_matmul"; empty where it has one
  std::vector<Region> regions{};  // for people who look at it, where the proposer gives them; not trusted
};

// Why a proposal was not verified, as far as another way of writing the same may mend it.
struct Failure {
  enum class Kind : uint8_t {
    kWrong,     // its numbers are not the reference's
    kTooLarge,  // a kernel asks for more registers or shared memory than the GPU has
  } kind = Kind::kWrong;
  std::string kernel{};  // the function to blame; empty where none is known
};

// An earlier proposal to the same request, and what became of it.
struct Attempt {
  std::string text{};
  std::string evidence{};  // verify/feedback.h
};

struct Request {
  std::string name{};                   // of the task's file
  std::string source{};                 // the reference: class Model, get_inputs(), get_init_inputs()
  const trace::Trace* trace = nullptr;  // of that reference
  int sample = 0;                       // which answer, where the same question has several
  int round = 0;                    // later ones are drawn more boldly, where all of those before were wrong
  std::vector<Attempt> attempts{};  // for a proposer that repairs
  // Samples may go on from what another has written so far (docs/speculation.md). Their answers come newest
  // first, and end with their programs. For a proposer that speculates.
  bool speculate = false;
  std::string guidance{};  // what a language model is given after the task (skills/)
  // Where it is set and becomes true no answer is wanted any more: who waits for a language model gets an
  // Error soon. Outlives the request.
  const std::atomic<bool>* cancelled = nullptr;
};

struct Answer {
  std::vector<Proposal> proposals{};  // the most promising first
  std::string declined{};             // why there is none
  Cost cost{};
};

// Several answers to one request, in the order in which they are done. What has not come when this goes is
// wanted no more. Used by one thread.
class Answers {
 public:
  struct One {
    int sample = 0;
    Answer answer{};
    // Of a proposer that speculates.
    std::string branch{};     // what it goes on from: "plan", "kernel"; empty: the question
    double from = 0, to = 0;  // seconds since the question in which it was written
  };
  virtual ~Answers() = default;
  // The next; nothing where all have come. An Error (as of Proposer::propose) ends it.
  virtual Result<std::optional<One>> next(Deadline deadline) = 0;
};

// One proposal done otherwise in one respect after another, where a clock can measure what is better. Used by
// one thread.
class Tuner {
 public:
  virtual ~Tuner() = default;
  virtual std::optional<Proposal> next() = 0;          // nothing: all was tried
  virtual void observe(std::optional<double> ms) = 0;  // of the last; nothing where it was not verified
};

// Other ways of writing a proposal that failed, one after the other. Used by one thread.
class Fallback {
 public:
  virtual ~Fallback() = default;
  // After the latest, which failed so; nothing: there is no other way.
  virtual std::optional<Proposal> next(const Failure& failure) = 0;
  // Of the latest, which took `ms`; null where there is nothing to turn.
  virtual std::unique_ptr<Tuner> tuner(double /*ms*/) { return nullptr; }
};

// Thread-safe.
class Proposer {
 public:
  virtual ~Proposer() = default;
  virtual std::string_view name() const = 0;  // "compiler"
  // What its answers depend on besides the request and this program: a model, a prompt. Part of what they
  // are remembered by.
  virtual std::string identity() const { return std::string(name()); }
  virtual bool repairs() const { return false; }     // looks at `attempts`
  virtual bool samples() const { return false; }     // another `sample` is another answer
  virtual bool speculates() const { return false; }  // knows Request::speculate
  virtual bool paid() const { return false; }        // every question costs money
  // By the cost model its kernels for a program are no slower than its kernels for subgraphs put together.
  virtual bool fuses_whole_programs() const { return false; }
  // Programs of more operators are better cut into subgraphs than asked about as a whole.
  virtual int max_operators() const { return INT_MAX; }
  // What it does right now, for people who wait: "1240 tokens, 182 a second"; empty where there is nothing to
  // say.
  virtual std::string at_work() const { return {}; }
  // For what it proposed to this request first, which took `ms`; null where there is nothing to turn. Refers
  // to the request's trace.
  virtual std::unique_ptr<Tuner> tuner(const Request& /*request*/, double /*ms*/) { return nullptr; }
  // For what it proposed to this request first, where that fails; null where there is no other way. Refers to
  // the request's trace.
  virtual std::unique_ptr<Fallback> fallback(const Request& /*request*/) { return nullptr; }
  // An Error where it could not be asked (a lost worker, no network): no word about the task.
  virtual Result<Answer> propose(const Request& request, Deadline deadline) = 0;
  // These samples of the request, side by side where the proposer can do that, else one after the other. The
  // trace outlives the answers, and so does this.
  virtual std::unique_ptr<Answers> propose_several(Request request, std::vector<int> samples);
  // What the language model answers to these messages, which ask for no kernel; nothing where there is none.
  virtual Result<std::optional<Reply>> converse(const std::vector<Message>& /*messages*/,
                                                Deadline /*deadline*/) {
    return std::optional<Reply>();
  }
};

nlohmann::json to_json(const Answer& answer);
Result<Answer> answer_from_json(const nlohmann::json& json);
nlohmann::json to_json(const Cost& cost);

}  // namespace nereid::proposers
