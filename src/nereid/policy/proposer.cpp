#include "nereid/policy/proposer.h"

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"

namespace nereid::policy {

Cost& Cost::operator+=(const Cost& other) {
  seconds += other.seconds, dollars += other.dollars;
  prompt_tokens += other.prompt_tokens, completion_tokens += other.completion_tokens;
  return *this;
}

Json to_json(const Cost& cost) {
  return {{"seconds", cost.seconds},
          {"prompt_tokens", cost.prompt_tokens},
          {"completion_tokens", cost.completion_tokens},
          {"dollars", cost.dollars}};
}

Json to_json(const Answer& answer) {
  Json proposals = Json::array();
  for (const auto& p : answer.proposals)
    proposals.push_back({{"text", p.text}, {"answer", p.answer}, {"plan", p.plan}, {"variant", p.variant}});
  return {{"proposals", proposals}, {"declined", answer.declined}, {"cost", to_json(answer.cost)}};
}

Result<Answer> answer_from_json(const Json& json) {
  constexpr size_t kMostText = size_t{16} << 20;
  const JsonField root(json, "answer");
  Answer answer;
  NEREID_TRY(answer.declined, root.text_at("declined"));
  NEREID_TRY(const auto proposals, root.at("proposals"));
  NEREID_TRY_STATUS(proposals.each(64, [&](const JsonField& field) -> Status {
    Proposal p;
    NEREID_TRY(p.text, field.text_at("text", kMostText));
    NEREID_TRY(p.answer, field.boolean_at("answer", false));
    NEREID_TRY(p.plan, field.text_at("plan", kMostText));
    NEREID_TRY(p.variant, field.text_at("variant"));
    answer.proposals.push_back(std::move(p));
    return ok_status();
  }));
  NEREID_TRY(const auto cost, root.at("cost"));
  NEREID_TRY(const auto seconds, cost.at("seconds"));
  NEREID_TRY(answer.cost.seconds, seconds.number());
  NEREID_TRY(const auto dollars, cost.at("dollars"));
  NEREID_TRY(answer.cost.dollars, dollars.number());
  NEREID_TRY(answer.cost.prompt_tokens, cost.integer_at("prompt_tokens", 0, 0, INT64_MAX));
  NEREID_TRY(answer.cost.completion_tokens, cost.integer_at("completion_tokens", 0, 0, INT64_MAX));
  return answer;
}

}  // namespace nereid::policy
