#include "nereid/proposers/http.h"

#include <cctype>
#include <cstdlib>

#include "nereid/proposers/conversation.h"
#include "nereid/proposers/speculative_chat.h"

namespace nereid::proposers {
namespace {

std::string environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return {};
}

Result<double> number_in(const std::string& text, const char* name) {
  try {
    size_t used = 0;
    const double value = std::stod(text, &used);
    if (used == text.size() && value >= 0 && value < 1e9) return value;
  } catch (const std::exception&) {
  }
  return input_error("${}: expected a number, got '{}'", name, text);
}

// What stands before the first code block: the plan in the model's own words, without its thinking.
std::string plan_in(const std::string& text) {
  const size_t think = text.rfind("</think>");
  const size_t from = think == text.npos ? 0 : think + 8;
  const size_t first = text.find_first_not_of(" \n\t\r", from);
  const size_t code = text.find("```", from);
  if (first == text.npos || code == text.npos || first >= code) return "";
  std::string plan = text.substr(first, std::min<size_t>(code - first, 4000));
  while (!plan.empty() && std::isspace(static_cast<unsigned char>(plan.back())) != 0) plan.pop_back();
  return plan;
}

}  // namespace

Result<HttpOptions> HttpOptions::from_environment(const std::filesystem::path& prompts) {
  HttpOptions options;
  options.chat.base = environment({"NEREID_HTTP_BASE", "OPENAI_BASE_URL"});
  options.chat.key = environment({"NEREID_HTTP_KEY", "OPENAI_API_KEY"});
  options.chat.model = environment({"NEREID_HTTP_MODEL"});
  if (options.chat.base.empty())
    return input_error("the proposer http needs $NEREID_HTTP_BASE, as in https://api.example.com/v1");
  if (!options.chat.base.starts_with("http://") && !options.chat.base.starts_with("https://"))
    return input_error("$NEREID_HTTP_BASE: expected http:// or https://, got '{}'", options.chat.base);
  if (options.chat.model.empty())
    return input_error("the proposer http needs $NEREID_HTTP_MODEL, a model's name");
  if (const auto price = environment({"NEREID_HTTP_PRICE"}); !price.empty()) {
    const size_t comma = price.find(',');
    if (comma == price.npos)
      return input_error("$NEREID_HTTP_PRICE: expected two numbers, as in 0.5,1.5, got '{}'", price);
    NEREID_TRY(const double in, number_in(price.substr(0, comma), "NEREID_HTTP_PRICE"));
    NEREID_TRY(const double out, number_in(price.substr(comma + 1), "NEREID_HTTP_PRICE"));
    options.dollars_per_prompt_token = in / 1e6, options.dollars_per_completion_token = out / 1e6;
  }
  if (const auto timeout = environment({"NEREID_HTTP_TIMEOUT"}); !timeout.empty()) {
    NEREID_TRY(options.chat.stall_seconds, number_in(timeout, "NEREID_HTTP_TIMEOUT"));
  }
  const auto continues = environment({"NEREID_HTTP_CONTINUES"});
  if (!continues.empty() && continues != "0" && continues != "1")
    return input_error("$NEREID_HTTP_CONTINUES: expected 0 or 1, got '{}'", continues);
  options.continues = continues == "1";
  const auto folder = environment({"NEREID_HTTP_PROMPTS"});
  NEREID_TRY(options.prompts, lm::Prompts::load(folder.empty() ? prompts : std::filesystem::path(folder)));
  return options;
}

std::string HttpProposer::identity() const {
  return fmt::format("http {} {} {} {} {}", options_.chat.base, options_.chat.model,
                     options_.chat.temperature, options_.chat.max_tokens, options_.prompts.hash);
}

Result<std::vector<Message>> HttpProposer::messages(const Request& request) const {
  return conversation(options_.prompts, request.name, request);
}

Result<Answer> HttpProposer::propose(const Request& request, Deadline deadline) {
  const Stopwatch watch;
  NEREID_TRY(const auto messages, this->messages(request));
  NEREID_TRY(const auto said, chat(options_.chat, messages, deadline, {.cancelled = request.cancelled}));
  std::string text = said.text;
  return answer_of(said, std::move(text), watch.seconds());
}

Answer HttpProposer::answer_of(const ChatAnswer& said, std::string text, double seconds) const {
  Answer answer;
  answer.cost = cost_of(said, seconds);
  std::string plan = plan_in(text);
  answer.proposals.push_back({.text = std::move(text), .answer = true, .plan = std::move(plan)});
  return answer;
}

std::unique_ptr<Answers> HttpProposer::propose_several(Request request, std::vector<int> samples) {
  if (!request.speculate || samples.size() < 2)
    return Proposer::propose_several(std::move(request), std::move(samples));
  return std::make_unique<SpeculativeChat>(options_.chat, messages(request), std::move(samples),
                                           options_.continues, request.cancelled,
                                           [this](const ChatAnswer& said, std::string text, double seconds) {
                                             return answer_of(said, std::move(text), seconds);
                                           });
}

Result<std::optional<Reply>> HttpProposer::converse(const std::vector<Message>& messages, Deadline deadline) {
  const Stopwatch watch;
  NEREID_TRY(auto said, chat(options_.chat, messages, deadline));
  const Cost cost = cost_of(said, watch.seconds());
  return std::optional(Reply{std::move(said.text), cost});
}

Cost HttpProposer::cost_of(const ChatAnswer& said, double seconds) const {
  return {.seconds = seconds,
          .prompt_tokens = said.prompt_tokens,
          .completion_tokens = said.completion_tokens,
          .dollars = static_cast<double>(said.prompt_tokens) * options_.dollars_per_prompt_token +
                     static_cast<double>(said.completion_tokens) * options_.dollars_per_completion_token};
}

}  // namespace nereid::proposers
