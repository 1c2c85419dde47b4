#include "nereid/lm/serve/logprobs.h"

#include <algorithm>

namespace nereid::lm {
namespace {

// JSON has no infinity: OpenAI's word for what is never drawn.
double finite(float logprob) { return std::max(static_cast<double>(logprob), -9999.0); }

std::string text_of(const lm::Tokenizer& tokenizer, int64_t token) {
  const auto id = static_cast<lm::TokenId>(token);
  return tokenizer.decode({&id, 1});
}

std::string spelled(const lm::Tokenizer& tokenizer, int64_t token) {
  const std::string_view bytes = tokenizer.bytes(static_cast<lm::TokenId>(token));
  std::string text = text_of(tokenizer, token);
  if (text == bytes) return text;
  std::string escaped = "bytes:";
  for (const char byte : bytes) escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return escaped;
}

Json chat_token(const lm::Tokenizer& tokenizer, int64_t token, float logprob) {
  Json bytes = Json::array();
  for (const char byte : tokenizer.bytes(static_cast<lm::TokenId>(token)))
    bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", text_of(tokenizer, token)}, {"logprob", finite(logprob)}, {"bytes", std::move(bytes)}};
}

int64_t characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; });
}

}  // namespace

Json chat_logprobs(const lm::Tokenizer& tokenizer, const std::vector<ReportedToken>& tokens) {
  Json content = Json::array();
  for (const ReportedToken& reported : tokens) {
    Json entry = chat_token(tokenizer, reported.token, reported.logprob);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const auto& likely : reported.likeliest)
      top.push_back(chat_token(tokenizer, likely.token, likely.logprob));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json completion_logprobs(const lm::Tokenizer& tokenizer, const std::vector<ReportedToken>& tokens,
                         bool likeliest, std::string_view text) {
  Json spellings = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  for (const ReportedToken& reported : tokens) {
    const std::string spelling = spelled(tokenizer, reported.token);
    spellings.push_back(spelling);
    logprobs.push_back(finite(reported.logprob));
    offsets.push_back(characters(text.substr(0, reported.from)));
    Json top = Json::object();
    for (const auto& likely : reported.likeliest)
      top[spelled(tokenizer, likely.token)] = finite(likely.logprob);
    top[spelling] = finite(reported.logprob);
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(spellings)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", likeliest ? std::move(tops) : Json()},
          {"text_offset", std::move(offsets)}};
}

}  // namespace nereid::lm
