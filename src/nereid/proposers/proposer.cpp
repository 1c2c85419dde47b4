#include "nereid/proposers/proposer.h"

#include "nereid/base/json.h"
#include "nereid/base/json_field.h"

namespace nereid::proposers {

Cost& Cost::operator+=(const Cost& other) {
  seconds += other.seconds, dollars += other.dollars;
  prompt_tokens += other.prompt_tokens, completion_tokens += other.completion_tokens;
  return *this;
}

namespace {

// One after the other, each on demand.
class OneByOne : public Answers {
 public:
  OneByOne(Proposer& proposer, Request request, std::vector<int> samples)
      : proposer_(proposer), request_(std::move(request)), samples_(std::move(samples)) {}

  Result<std::optional<One>> next(Deadline deadline) override {
    if (given_ == samples_.size()) return std::optional<One>();
    request_.sample = samples_[given_++];
    NEREID_TRY(auto answer, proposer_.propose(request_, deadline));
    return std::optional<One>({request_.sample, std::move(answer)});
  }

 private:
  Proposer& proposer_;
  Request request_;
  const std::vector<int> samples_;
  size_t given_ = 0;
};

}  // namespace

std::unique_ptr<Answers> Proposer::propose_several(Request request, std::vector<int> samples) {
  return std::make_unique<OneByOne>(*this, std::move(request), std::move(samples));
}

Json to_json(const Cost& cost) {
  return {{"seconds", cost.seconds},
          {"prompt_tokens", cost.prompt_tokens},
          {"completion_tokens", cost.completion_tokens},
          {"dollars", cost.dollars}};
}

Json to_json(const Answer& answer) {
  Json proposals = Json::array();
  for (const auto& p : answer.proposals) {
    Json regions = Json::array();
    for (const auto& region : p.regions)
      regions.push_back({{"kernel", region.kernel}, {"steps", region.steps}});
    proposals.push_back({{"text", p.text},
                         {"answer", p.answer},
                         {"plan", p.plan},
                         {"variant", p.variant},
                         {"regions", regions}});
  }
  return {{"proposals", proposals}, {"declined", answer.declined}, {"cost", to_json(answer.cost)}};
}

namespace {

Result<Region> region_from(const JsonField& field) {
  Region region;
  NEREID_TRY(region.kernel, field.text_at("kernel"));
  NEREID_TRY(const auto steps, field.at("steps"));
  NEREID_TRY_STATUS(steps.each(1 << 20, [&](const JsonField& step) -> Status {
    NEREID_TRY(const int64_t number, step.integer(0, 1 << 20));
    region.steps.push_back(static_cast<int>(number));
    return ok_status();
  }));
  return region;
}

}  // namespace

Result<Answer> answer_from_json(const Json& json) {
  constexpr size_t kMaxText = size_t{16} << 20;
  const JsonField root(json, "answer");
  Answer answer;
  NEREID_TRY(answer.declined, root.text_at("declined"));
  NEREID_TRY(const auto proposals, root.at("proposals"));
  NEREID_TRY_STATUS(proposals.each(64, [&](const JsonField& field) -> Status {
    Proposal p;
    NEREID_TRY(p.text, field.text_at("text", kMaxText));
    NEREID_TRY(p.answer, field.boolean_at("answer", false));
    NEREID_TRY(p.plan, field.text_at("plan", kMaxText));
    NEREID_TRY(p.variant, field.text_at("variant"));
    NEREID_TRY(const auto regions, field.find("regions"));
    if (regions)
      NEREID_TRY_STATUS(regions->each(1 << 16, [&](const JsonField& one) -> Status {
        NEREID_TRY(auto region, region_from(one));
        p.regions.push_back(std::move(region));
        return ok_status();
      }));
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

}  // namespace nereid::proposers
