// OpenEnv's contract: episodes over HTTP (/reset, /step, /state) and over a WebSocket (/ws), and what
// describes them (/schema, /metadata, /openapi.json, /mcp). An episode is a task and attempts at it; each
// step is judged.
#include <algorithm>
#include <atomic>

#include "nereid/base/hash.h"
#include "nereid/serve/json_member.h"
#include "nereid/serve/server.h"
#include "nereid/verify/batch/batch_line.h"

namespace nereid::serve {
namespace {

constexpr size_t kMaxEpisodes = 10000;  // the oldest are forgotten
constexpr int64_t kMaxTurns = 1000;
constexpr size_t kMaxQueuedMessages = 64;

std::string fresh_id() {
  static std::atomic<uint64_t> count = 0;
  return sha256_hex(fmt::format("{} {}", seconds_now(), ++count)).substr(0, 32);
}

// The names of all tasks below a folder, without .py, sorted.
std::vector<std::string> task_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, failure))
    if (entry.path().extension() == ".py")
      names.push_back(entry.path().lexically_relative(folder).replace_extension().string());
  std::ranges::sort(names);
  return names;
}

// What a model reads of an attempt: the verdict and its evidence, a line each.
std::string feedback_of(const Json& answer) {
  const Json* verdict = member(answer, "verdict");
  if (verdict == nullptr) return "";
  const std::string text = text_in(*verdict, "feedback");  // none of Verified and Error, nor of older stores
  return text.empty() ? fmt::format("{}: {}", text_in(*verdict, "verdict"), text_in(*verdict, "reason"))
                      : text;
}

Json property(const char* type, const char* description) {
  return {{"type", type}, {"description", description}};
}

Json schemas() {
  const Json action = {
      {"title", "KernelAction"},
      {"type", "object"},
      {"properties",
       {{"code", property("string", "A model's answer with a code block, or source with `class ModelNew`")},
        {"reference", property("string", "The task: its source or its name. Without it: the episode's")},
        {"metadata", property("object", "Not used")}}},
      {"required", Json::array({"code"})}};
  const Json observation = {
      {"title", "KernelObservation"},
      {"type", "object"},
      {"properties",
       {{"episode_id", property("string", "The episode")},
        {"task", property("string", "The task's name, where it has one")},
        {"reference", property("string", "The task's source; after /reset")},
        {"status", property("string", "ready, verified, refused")},
        {"feedback", property("string", "The verdict and its evidence, for a model to read")},
        {"scores", property("object", "valid, correct, speedup")},
        {"reward_components", property("object", "plan, code")},
        {"spans",
         property("array", "Where plan and code stand in `code`, in characters, and what each earned")},
        {"verdict", property("object", "docs/batch_protocol.md")},
        {"receipt", property("object", "What was judged, by what")}}}};
  const Json state = {{"title", "KernelState"},
                      {"type", "object"},
                      {"properties",
                       {{"episode_id", property("string", "The episode")},
                        {"step_count", property("integer", "Attempts so far")},
                        {"task", property("string", "The task's name, where it has one")},
                        {"status", property("string", "ready, verified, refused")},
                        {"done", property("boolean", "Whether no further attempt counts")}}}};
  return {{"action", action}, {"observation", observation}, {"state", state}};
}

Json state_of(const std::string& id, int64_t steps, const std::string& task, const std::string& status,
              bool done) {
  return {{"episode_id", id.empty() ? Json() : Json(id)},
          {"step_count", steps},
          {"task", task},
          {"status", status},
          {"done", done}};
}

Json socket_error(const std::string& message, const char* code) {
  return {{"type", "error"}, {"data", {{"message", message}, {"code", code}}}};
}

}  // namespace

void Server::add_openenv_routes() {
  routes_["/reset"] = {
      "POST", false, [this](const ExchangePtr& exchange, const Json& body) {
        const auto episode = new_episode(body);
        if (!episode.ok()) return fail(exchange, 422, episode.error().message);
        keep(*episode);
        send(exchange, 200,
             {{"observation", observation(*episode, Json::object())}, {"reward", nullptr}, {"done", false}});
      }};
  routes_["/step"] = {"POST", false,
                      [this](const ExchangePtr& exchange, const Json& body) { step(exchange, body); }};
  routes_["/state"] = {"GET", false, [this](const ExchangePtr& exchange, const Json&) {
                         const Episode* episode = episode_in(Json::object(), exchange->request);
                         send(exchange, 200,
                              episode == nullptr ? state_of("", 0, "", "ready", false)
                                                 : state_of(episode->id, episode->steps, episode->task,
                                                            episode->status, episode->done));
                       }};
  routes_["/schema"] = {"GET", true,
                        [this](const ExchangePtr& exchange, const Json&) { send(exchange, 200, schemas()); }};
  routes_["/metadata"] = {"GET", true, [this](const ExchangePtr& exchange, const Json&) {
                            send(exchange, 200,
                                 {{"name", "nereid"},
                                  {"description",
                                   "Judges Triton kernels against PyTorch modules: verdicts with "
                                   "evidence, rewards with components and spans."},
                                  {"version", options_.version}});
                          }};
  routes_["/mcp"] = {"POST", false, [this](const ExchangePtr& exchange, const Json& body) {
                       model_context(exchange, body);
                     }};
  routes_["/openapi.json"] = {
      "GET", true, [this](const ExchangePtr& exchange, const Json&) {
        Json paths = Json::object();
        for (const auto& [path, route] : routes_) {
          const std::string shown = path.ends_with('/') && path.size() > 1 ? path + "{id}" : path;
          std::string method = route.method;
          std::ranges::transform(method, method.begin(), ::tolower);
          paths[shown][method] = {{"responses", {{"200", {{"description", "docs/serve.md"}}}}}};
        }
        send(exchange, 200,
             {{"openapi", "3.1.0"},
              {"info", {{"title", "nereid serve"}, {"version", "1." + options_.version}}},
              {"paths", paths}});
      }};
}

// `task` or `reference`, else the task that `seed` draws from the server's folder, else none: actions bring
// their own.
Result<Server::Episode> Server::new_episode(const Json& given) const {
  Episode episode;
  episode.id = text_in(given, "episode_id");
  if (episode.id.size() > 255) return input_error("episode_id: expected at most 255 characters");
  if (episode.id.empty()) episode.id = fresh_id();
  std::string reference = text_in(given, "reference");
  if (reference.empty()) reference = text_in(given, "task");
  if (reference.empty() && !options_.questions.tasks.empty()) {
    const auto names = task_names(options_.questions.tasks);
    const Json* seed = member(given, "seed");
    if (seed != nullptr && !seed->is_number_unsigned())
      return input_error("seed: expected an integer from 0");
    if (!names.empty()) reference = names[(seed != nullptr ? seed->get<uint64_t>() : 0) % names.size()];
  }
  if (!reference.empty()) {
    NEREID_TRY(episode.reference, reference_source(reference, options_.questions.tasks));
    if (reference.find('\n') == std::string::npos) episode.task = reference;
  }
  if (const Json* turns = member(given, "max_turns")) {
    if (!turns->is_number_unsigned() || turns->get<uint64_t>() < 1 || turns->get<uint64_t>() > kMaxTurns)
      return input_error("max_turns: expected an integer from 1 to {}", kMaxTurns);
    episode.turns = turns->get<int64_t>();
  }
  for (const char* key : {"reward", "speedup_limit", "options"})
    if (const Json* value = member(given, key)) episode.reward_settings[key] = *value;
  NEREID_TRY([[maybe_unused]] const auto settings,
             read_reward(episode.reward_settings, "reset", options_.questions.reward));
  return episode;
}

void Server::keep(const Episode& episode) {
  if (!episodes_.contains(episode.id)) episode_order_.push_back(episode.id);
  episodes_[episode.id] = episode;
  while (episode_order_.size() > kMaxEpisodes) {
    episodes_.erase(episode_order_.front());
    episode_order_.pop_front();
  }
}

// Named in the body or in the query `episode_id=`.
Server::Episode* Server::episode_in(const Json& given, const HttpRequest& request) {
  std::string id = text_in(given, "episode_id");
  constexpr std::string_view kQuery = "episode_id=";
  if (id.empty() && request.query.starts_with(kQuery)) id = request.query.substr(kQuery.size());
  const auto found = episodes_.find(id);
  return found == episodes_.end() ? nullptr : &found->second;
}

Json Server::observation(const Episode& episode, const Json& answer) const {
  Json seen = {{"episode_id", episode.id},
               {"task", episode.task},
               {"status", episode.status},
               {"feedback", feedback_of(answer)},
               {"scores", answer.value("scores", Json::object())},
               {"reward_components", answer.value("reward_components", Json::object())},
               {"spans", answer.value("spans", Json::array())},
               {"verdict", answer.value("verdict", Json())},
               {"receipt", answer.value("receipt", Json())}};
  if (answer.empty()) seen["reference"] = episode.reference;
  return seen;
}

Result<Question> Server::action_question(const Episode& episode, const Json& action) const {
  if (!action.is_object()) return input_error("action: expected an object");
  Json item = episode.reward_settings;
  for (const char* key : {"code", "completion", "response"})
    if (const Json* code = member(action, key)) item["completion"] = *code;
  if (!item.contains("completion")) return input_error("action.code: expected a text");
  std::string reference = text_in(action, "reference");
  if (reference.empty()) reference = text_in(action, "task");
  if (reference.empty()) reference = episode.reference;
  if (!reference.empty()) item["reference"] = reference;
  if (const Json* prompt = member(action, "prompt")) item["prompt"] = *prompt;
  return read_question(item, "action", options_.questions);
}

void Server::take_step(Episode& episode, const Json& answer) const {
  ++episode.steps;
  episode.status = answer.at("status");
  episode.reward = answer.at("reward").get<double>();
  episode.done = episode.status == "verified" || episode.steps >= episode.turns;
}

void Server::step(const ExchangePtr& exchange, const Json& body) {
  const Json* action = member(body, "action");
  if (action == nullptr) return fail(exchange, 422, "body.action: expected an object");
  Episode* known = episode_in(body, exchange->request);
  if (known == nullptr && !text_in(body, "episode_id").empty())
    return fail(exchange, 404, "body.episode_id: there is no such episode; POST /reset begins one");
  // OpenEnv's HTTP steps have no session: one without an episode is an episode of one step.
  const Episode episode = known != nullptr ? *known : Episode{.id = fresh_id(), .task = {}, .reference = {}};
  if (episode.done) return fail(exchange, 422, "the episode is over; POST /reset begins another");
  const auto question = action_question(episode, *action);
  if (!question.ok()) return fail(exchange, 422, question.error().message);
  const auto timeout = timeout_in(body);
  if (!timeout.ok()) return fail(exchange, 422, timeout.error().message);
  const bool kept = known != nullptr;
  judge(exchange, question, *timeout, [this, exchange, kept, begun = episode](const Json& answer) {
    Episode episode = begun;
    if (const int status = status_of(answer); status != 200) return send(exchange, status, answer);
    if (const auto found = episodes_.find(episode.id); found != episodes_.end()) episode = found->second;
    take_step(episode, answer);
    if (kept) keep(episode);
    send(exchange, 200,
         {{"observation", observation(episode, answer)},
          {"reward", answer["reward"]},
          {"done", episode.done}});
  });
}

// -- WebSocket ---------------------------------------------------------------------------------------------

namespace {

// Messages of one connection, answered one after the other.
struct Conversation {
  std::deque<std::string> waiting;
  bool busy = false, open = true;
};

}  // namespace

void Server::handle_socket(const HttpRequest& request, const std::shared_ptr<WebSocket>& socket) {
  const auto episode = std::make_shared<Episode>();
  const auto conversation = std::make_shared<Conversation>();
  const Client client = client_of(request).value_or(Client{});
  const std::weak_ptr<WebSocket> weak = socket;
  socket->on_close = [conversation] { conversation->open = false; };
  // Answers a message when the ones before it are answered: `socket_message` sends exactly one answer to
  // each.
  const auto next = std::make_shared<std::function<void()>>();
  *next = [this, weak, episode, conversation, client, again = std::weak_ptr(next)] {
    const auto alive = weak.lock();
    if (!alive || !conversation->open || conversation->busy || conversation->waiting.empty()) return;
    const std::string text = std::move(conversation->waiting.front());
    conversation->waiting.pop_front();
    conversation->busy = true;
    socket_message(text, client, episode, [weak, conversation, again](const Json& answer, bool last) {
      conversation->busy = false;
      if (const auto still = weak.lock(); still && conversation->open) {
        if (!answer.is_null()) still->send(answer.dump(-1, ' ', false, Json::error_handler_t::replace));
        if (last) return still->close();
      }
      if (const auto more = again.lock()) (*more)();
    });
  };
  socket->on_message = [weak, conversation, next](std::string text) {
    conversation->waiting.push_back(std::move(text));
    if (conversation->waiting.size() > kMaxQueuedMessages) {
      if (const auto alive = weak.lock()) alive->close();
      return;
    }
    (*next)();
  };
}

void Server::socket_message(const std::string& text, const Client& client,
                            const std::shared_ptr<Episode>& episode, const SocketReply& reply) {
  const verify::LooseJson json = verify::parse_loose_json(text);
  if (!json.error.empty() || !json.value.is_object())
    return reply(socket_error(fmt::format("expected a JSON object: {}", json.error), "INVALID_JSON"), false);
  const std::string type = text_in(json.value, "type");
  const Json* data = member(json.value, "data");
  if (type == "close") return reply(nullptr, true);
  if (type == "state")
    return reply(
        {{"type", "state"},
         {"data", state_of(episode->id, episode->steps, episode->task, episode->status, episode->done)}},
        false);
  if (type == "reset") {
    auto begun = new_episode(data != nullptr ? *data : Json::object());
    if (!begun.ok()) return reply(socket_error(begun.error().message, "VALIDATION_ERROR"), false);
    *episode = *std::move(begun);
    return reply(
        {{"type", "observation"},
         {"data",
          {{"observation", observation(*episode, Json::object())}, {"reward", nullptr}, {"done", false}}}},
        false);
  }
  if (type != "step")
    return reply(socket_error("type: expected reset, step, state or close", "UNKNOWN_TYPE"), false);
  if (episode->done)
    return reply(socket_error("the episode is over: reset begins another", "SESSION_ERROR"), false);
  const auto question = action_question(*episode, data != nullptr ? *data : Json());
  if (!question.ok()) return reply(socket_error(question.error().message, "VALIDATION_ERROR"), false);
  if (const auto refusal = service_->accept({*question}, client))
    return reply(
        socket_error(refusal->message, refusal->status == 429 ? "CAPACITY_REACHED" : "EXECUTION_ERROR"),
        false);
  service_->wait(
      {question->id}, 1, options_.timeout,
      [this, question = *question, episode, reply](const std::vector<std::optional<Answered>>& answered) {
        const Json answer = answer_of(question, answered.front());
        if (answer["status"] == "error")
          return reply(socket_error(answer["error"], "EXECUTION_ERROR"), false);
        take_step(*episode, answer);
        reply({{"type", "observation"},
               {"data",
                {{"observation", observation(*episode, answer)},
                 {"reward", answer["reward"]},
                 {"done", episode->done}}}},
              false);
      });
}

// -- the model context protocol: one tool, `verify` --------------------------------------------------------

void Server::model_context(const ExchangePtr& exchange, const Json& body) {
  const Json id = body.value("id", Json());
  const auto answer = [this, exchange, id](const char* key, const Json& value) {
    send(exchange, 200, {{"jsonrpc", "2.0"}, {"id", id}, {key, value}});
  };
  const std::string method = text_in(body, "method");
  const Json* parameters = member(body, "params");
  if (method == "tools/list") {
    Json schema = schemas()["action"];
    return answer("result",
                  {{"tools", Json::array({{{"name", "verify"},
                                           {"description", "Judges a kernel against a PyTorch module"},
                                           {"inputSchema", schema}}})}});
  }
  if (method != "tools/call" || parameters == nullptr || text_in(*parameters, "name") != "verify")
    return answer("error", {{"code", method.empty() ? -32600 : -32601},
                            {"message", "expected tools/list, or tools/call of verify"}});
  const Json* action = member(*parameters, "arguments");
  const auto question = action_question(Episode{}, action != nullptr ? *action : Json());
  if (!question.ok()) return answer("error", {{"code", -32602}, {"message", question.error().message}});
  judge(exchange, question, options_.timeout, [answer](const Json& judged) {
    answer("result", {{"content", Json::array({{{"type", "text"}, {"text", feedback_of(judged)}}})},
                      {"structuredContent", judged},
                      {"isError", judged["status"] == "error"}});
  });
}

}  // namespace nereid::serve
