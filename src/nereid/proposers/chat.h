// A conversation with a language model behind any endpoint that speaks OpenAI's chat completions.
//
// Streams, so that a stalled answer is noticed early; tries again, with growing pauses, after what may pass
// (429, 5xx, a refused or cut connection, a stall, an answer that cannot be read) and not after what will not
// (401, 404, 400).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/result.h"
#include "nereid/proposers/message.h"

namespace nereid::proposers {

struct ChatOptions {
  std::string base{};  // "https://api.example.com/v1"
  std::string key{};   // empty: no Authorization header
  std::string model{};
  double temperature = 0.7;
  int64_t max_tokens = 0;     // of an answer; 0: the endpoint's own limit
  int tries = 5;              // in all
  double first_pause = 1;     // seconds; doubles with each try, and is varied by half of itself
  double longest_pause = 60;  // Retry-After beyond it is not waited for
  double connect_seconds = 10;
  double stall_seconds = 120;           // without a byte
  size_t max_bytes = size_t{16} << 20;  // of one answer
};

struct ChatAnswer {
  std::string text{};
  std::string finish{};  // "stop", "length", ...
  int64_t prompt_tokens = 0, completion_tokens = 0;
  bool tokens_known = false;  // the endpoint reported them; of all tries together, as far as it did
  int tries = 0;
};

// An answer as it comes.
struct ChatWatch {
  // All of its text so far; false: that is enough, and the connection is closed. After the first text no
  // other try is made.
  std::function<bool(const std::string& text)> on_text{};
  // Ends the conversation soon: an Error.
  const std::atomic<bool>* cancelled = nullptr;
};

// The last message may be the assistant's: the answer goes on from it and does not repeat it, where the
// endpoint knows `continue_final_message` (vLLM, SGLang, `nereid serve-model`).
//
// Thread-safe. An Error names the endpoint, what was expected and what came, and how many tries were made:
// blamed on the input where asking again is no use, on us where it may be, on an interrupt where there was
// one.
Result<ChatAnswer> chat(const ChatOptions& options, const std::vector<Message>& messages, Deadline deadline,
                        const ChatWatch& watch = {});

// Bytes of a streamed answer (server-sent events) as they come. Hostile: bounded, and an error instead of a
// crash.
class EventReader {
 public:
  explicit EventReader(size_t max_bytes) : max_bytes_(max_bytes) {}
  Status feed(std::string_view bytes);
  // What has come of the text.
  const std::string& text() const { return answer_.text; }
  // The answer so far, of which no more is wanted.
  ChatAnswer take() { return std::move(answer_); }
  // When all has come: an error where the stream was cut, or said nothing.
  Result<ChatAnswer> finish();

 private:
  Status line(std::string_view line);
  Status data(const std::string& text);
  const size_t max_bytes_;
  size_t seen_ = 0;
  std::string buffer_;
  bool done_ = false;
  int choices_ = 0;
  ChatAnswer answer_;
};
// The same of an answer that was not streamed.
Result<ChatAnswer> read_whole_answer(std::string_view body, size_t max_bytes);

}  // namespace nereid::proposers
