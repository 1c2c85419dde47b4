// A line of training data as the text that a model sees and the text that it is to answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "nereid/base/json.h"
#include "nereid/base/result.h"
#include "nereid/lm/chat/chat.h"

namespace nereid::train {

struct Example {
  std::string prompt;  // as it is encoded: with the marks of a conversation, up to where the answer begins
  std::string answer;  // with the mark that ends it
  bool has_special = false;  // the prompt has all special tokens: the tokenizer adds none
};

// Why a line gives no example, though nothing is wrong with it. One of a few: they are counted.
struct LeftOut {
  const char* why;
};

struct ExampleSettings {
  // The messages that ask for a kernel for the file with this source.
  std::function<Result<std::vector<lm::ChatMessage>>(const std::string& source)> ask;
  lm::ChatTemplate chat{};     // that of the tokenizer's checkpoint
  bool without_plans = false;  // the thought is empty, as in Qwen 3's non-thinking mode
  std::string split;           // "train" or "held-out": only lines of that `split`; empty: all
};

// A line is an object of one of these kinds; an error (blamed on the input) says what is missing, at `where`.
//   {"task", "plan", "code", ...}  a pair as `nereid synth --pairs` writes it. The answer is the plan as
//   thinking, then the code in one
//                                  fenced block. Where it has a `verdict`, that must be Verified.
//   {"messages": [...]}            a conversation; its last message, the assistant's, is the answer
//   {"prompt", "answer"}           both as they are
Result<std::variant<Example, LeftOut>> example_of(const Json& line, const std::string& where,
                                                  const ExampleSettings& settings);

}  // namespace nereid::train
