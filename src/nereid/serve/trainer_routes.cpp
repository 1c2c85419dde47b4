// Routes in the shapes that trainers send: slime's remote_rm, OpenRLHF's remote_rm_url, NeMo-Gym's resources
// server.
#include "nereid/serve/json_member.h"
#include "nereid/serve/server.h"

namespace nereid::serve {
namespace {

// A label that is a task's name or its source; one that is empty is none.
void set_reference(Json& item, const Json* label) {
  if (label != nullptr && label->is_string() && !label->get_ref<const std::string&>().empty())
    item["reference"] = *label;
}

// The text of an OpenAI response's last message.
std::string output_text(const Json& response) {
  const Json* output = member(response, "output");
  if (output == nullptr || !output->is_array()) return "";
  Json messages = Json::array();
  for (const Json& item : *output)
    if (const Json* type = member(item, "type"); item.is_object() && (type == nullptr || *type == "message"))
      messages.push_back(item);
  return completion_text(messages);
}

}  // namespace

void Server::add_trainer_routes() {
  const auto take = [this](auto method) {
    return [this, method](const ExchangePtr& exchange, const Json& body) { (this->*method)(exchange, body); };
  };
  routes_["/slime"] = {"POST", false, take(&Server::slime)};
  routes_["/openrlhf"] = {"POST", false, take(&Server::openrlhf)};
  const auto seed = [this](const ExchangePtr& exchange, const Json&) { send(exchange, 200, Json::object()); };
  for (const std::string prefix : {"", "/nemo_gym"}) {
    routes_[prefix + "/verify"] = {"POST", false, take(&Server::nemo_gym_verify)};
    routes_[prefix + "/seed_session"] = {"POST", false, seed};
    routes_[prefix + "/close_session"] = {"POST", false, seed};
    routes_[prefix + "/aggregate_metrics"] = {"POST", false, take(&Server::nemo_gym_metrics)};
  }
}

void Server::slime(const ExchangePtr& exchange, const Json& body) {
  Json item = Json::object();
  for (const auto& [from, to] : {std::pair{"response", "completion"}, {"prompt", "prompt"}})
    if (const Json* value = member(body, from)) item[to] = *value;
  set_reference(item, member(body, "label"));
  judge(exchange, read_question(item, "body", options_.questions), options_.timeout,
        [this, exchange](const Json& answer) { send(exchange, status_of(answer), answer); });
}

// `query` holds prompt and answer in one text. There is no place for a missing reward: one fault fails all.
void Server::openrlhf(const ExchangePtr& exchange, const Json& body) {
  const Json *queries = member(body, "query"), *prompts = member(body, "prompts"),
             *labels = member(body, "labels");
  if (queries == nullptr || !queries->is_array() || queries->empty())
    return fail(exchange, 400, "body.query: expected a list of texts");
  for (const Json* list : {prompts, labels})
    if (list != nullptr && (!list->is_array() || list->size() != queries->size()))
      return fail(exchange, 400,
                  fmt::format("body: expected {} prompts and labels, as there are queries", queries->size()));
  std::vector<Result<Question>> questions;
  for (size_t i = 0; i < queries->size(); ++i) {
    Json item = {{"completion", (*queries)[i]}};
    if (prompts != nullptr) {
      item["prompt"] = (*prompts)[i];
      const std::string prompt = prompt_text((*prompts)[i]);
      if (item["completion"].is_string() &&
          item["completion"].get_ref<const std::string&>().starts_with(prompt))
        item["completion"] = item["completion"].get<std::string>().substr(prompt.size());
    }
    if (labels != nullptr) set_reference(item, &(*labels)[i]);
    questions.push_back(read_question(item, fmt::format("body.query[{}]", i), options_.questions));
  }
  judge_all(exchange, std::move(questions), options_.timeout,
            [this, exchange](const std::vector<Json>& answers) {
              Json rewards = Json::array(), scores = Json::array(), logs = Json::object();
              for (size_t i = 0; i < answers.size(); ++i) {
                const Json& answer = answers[i];
                if (answer["status"] == "error") {
                  return fail(exchange, status_of(answer),
                              fmt::format("no reward for query {}: {}", i, answer.value("error", "")));
                }
                rewards.push_back(answer["reward"]);
                scores.push_back(answer["scores"]["correct"]);
                for (const char* part : {"scores", "reward_components"})
                  for (const auto& [name, value] : answer[part].items()) logs[name].push_back(value);
              }
              send(exchange, 200,
                   {{"rewards", rewards}, {"scores", scores}, {"extra_logs", logs}, {"answers", answers}});
            });
}

void Server::nemo_gym_verify(const ExchangePtr& exchange, const Json& body) {
  const Json* response = member(body, "response");
  if (response == nullptr || !response->is_object())
    return fail(exchange, 422, "body.response: expected a response of OpenAI's shape, with `output`");
  Json item = {{"completion", output_text(*response)}};
  const Json* parameters = member(body, "responses_create_params");
  if (const Json* input = parameters != nullptr ? member(*parameters, "input") : nullptr)
    item["prompt"] = *input;
  const Json* metadata = member(body, "verifier_metadata");
  for (const Json* place : {member(body, "label"), member(body, "reference"),
                            metadata != nullptr ? member(*metadata, "reference") : nullptr})
    set_reference(item, place);
  judge(exchange, read_question(item, "body", options_.questions), options_.timeout,
        [this, exchange, body](const Json& answer) {
          if (const int status = status_of(answer); status != 200) return send(exchange, status, answer);
          Json whole = body;
          whole.update(answer);
          for (const auto& [name, value] : answer["scores"].items()) whole[name] = value;
          send(exchange, 200, whole);
        });
}

// Means of the numbers that verify answered with.
void Server::nemo_gym_metrics(const ExchangePtr& exchange, const Json& body) {
  const Json* responses = member(body, "verify_responses");
  if (responses == nullptr || !responses->is_array())
    return fail(exchange, 422, "body.verify_responses: expected a list of answers of /verify");
  Json means = Json::object();
  for (const char* name : {"reward", "valid", "correct", "speedup"}) {
    double sum = 0;
    int64_t count = 0;
    for (const Json& response : *responses)
      if (const Json* value = member(response, name); value != nullptr && value->is_number())
        sum += value->get<double>(), ++count;
    if (count > 0) means[fmt::format("mean/{}", name)] = sum / static_cast<double>(count);
  }
  send(exchange, 200,
       {{"group_level_metrics", Json::array()}, {"agent_metrics", means}, {"key_metrics", means}});
}

}  // namespace nereid::serve
