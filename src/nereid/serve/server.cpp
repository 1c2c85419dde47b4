#include "nereid/serve/server.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nereid/base/program/interrupt.h"
#include "nereid/serve/json_member.h"
#include "nereid/verify/batch/batch_line.h"

namespace nereid::serve {
namespace {

constexpr double kTick = 0.2;       // seconds
constexpr size_t kMaxItems = 4096;  // of one request
constexpr std::string_view kTask = "/v1/tasks/";
constexpr std::string_view kClientHeader = "x-nereid-client";
constexpr int kRetrySeconds = 1;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    if (pair.starts_with(key) && pair.substr(key.size()).starts_with('='))
      return std::string(pair.substr(key.size() + 1));
  }
  return std::nullopt;
}

}  // namespace

bool from_another_site(const HttpRequest& request, bool only_by_address) {
  const std::string_view origin = request.header("origin"), host = request.header("host");
  const size_t scheme = origin.find("://");
  if (!origin.empty() && (scheme == origin.npos || origin.substr(scheme + 3) != host)) return true;
  const std::string_view name =
      host.starts_with('[') ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  return only_by_address && !name.empty() && name != "localhost" && !name.starts_with('[') &&
         name.find_first_not_of("0123456789.") != name.npos;
}

bool is_loopback(std::string_view address) { return address == "::1" || address.starts_with("127."); }

Result<std::unique_ptr<Server>> Server::create(ServerOptions options, ServiceOptions service,
                                               std::unique_ptr<TaskStore> store,
                                               const std::vector<JudgePlace>& places) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  HttpHandlers handlers{
      .on_head = [raw = server.get()](const HttpRequest& request) { return raw->check_head(request); },
      .on_request = [raw = server.get()](HttpRequest request,
                                         Reply reply) { raw->handle(std::move(request), std::move(reply)); },
      .socket_path = "/ws",
      .on_socket = [raw = server.get()](
                       const HttpRequest& request,
                       std::shared_ptr<WebSocket> socket) { raw->handle_socket(request, socket); }};
  const auto& given = server->options_;
  NEREID_TRY(server->http_, HttpServer::listen(given.address, given.port, given.limits, std::move(handlers)));
  NEREID_TRY(server->service_, Service::start(std::move(service), std::move(store), places,
                                              [http = server->http_.get()](std::function<void()> work) {
                                                http->post(std::move(work));
                                              }));
  server->add_routes();
  server->add_trainer_routes();
  server->add_openenv_routes();
  return server;
}

Result<Answer> Server::run() {
  http_->when_readable(interrupt_fd(), [this] { begin_end(); });
  http_->every(kTick, [this] {
    service_->tick();
    if (end_at_ == 0) return;
    http_->close_idle();
    if (!gave_up_ && seconds_now() > end_at_) {
      gave_up_ = true;
      service_->give_up();
    }
    if ((service_->idle() || gave_up_) && (http_->unanswered() == 0 || seconds_now() > end_at_ + 5))
      http_->stop();
  });
  http_->run();
  return Answer::kYes;
}

void Server::begin_end() {
  end_at_ = seconds_now() + options_.grace;
  service_->end();
  http_->stop_listening();
}

// -- requests ----------------------------------------------------------------------------------------------

void Server::add_routes() {
  const auto take = [this](auto method) {
    return [this, method](const ExchangePtr& exchange, const Json& body) { (this->*method)(exchange, body); };
  };
  routes_["/v1/verify"] = {"POST", false, take(&Server::verify)};
  routes_["/v1/verify/batch"] = {"POST", false, take(&Server::verify_batch)};
  routes_["/v1/tasks"] = {"POST", false, take(&Server::submit)};
  routes_["/v1/tasks/wait"] = {"POST", false, take(&Server::wait_for_tasks)};
  routes_[std::string(kTask)] = {"GET", false,
                                 [this](const ExchangePtr& exchange, const Json&) { show_task(exchange); }};
  routes_["/health"] = {"GET", true, [this](const ExchangePtr& exchange, const Json&) { health(exchange); }};
  routes_["/v1/status"] = {"GET", false, [this](const ExchangePtr& exchange, const Json&) {
                             Json status = service_->status();
                             status["gpus"] = options_.gpus ? options_.gpus() : Json::array();
                             send(exchange, 200, status);
                           }};
  routes_["/metrics"] = {
      "GET", false, [this](const ExchangePtr& exchange, const Json&) {
        exchange->reply({.body = service_->metrics(), .type = "text/plain; version=0.0.4"});
      }};
  routes_["/"] = {"GET", true, [](const ExchangePtr& exchange, const Json&) {
                    exchange->reply({.body = std::string(live_page()),
                                     .type = "text/html; charset=utf-8",
                                     .headers = {{"Content-Security-Policy",
                                                  "default-src 'none'; script-src 'unsafe-inline'; style-src "
                                                  "'unsafe-inline'; connect-src 'self'; base-uri 'none'"},
                                                 {"Cache-Control", "no-store"}}});
                  }};
}

const Server::Route* Server::find_route(const std::string& path) const {
  auto found = routes_.find(path);
  if (found == routes_.end() && path.starts_with(kTask)) found = routes_.find(std::string(kTask));
  return found == routes_.end() ? nullptr : &found->second;
}

std::optional<Client> Server::client_of(const HttpRequest& request) const {
  const std::string name(request.header(std::string(kClientHeader)).substr(0, 200));
  if (options_.tokens.empty()) return Client{request.peer, name};
  if (const auto principal = options_.tokens.name(request.header("authorization")))
    return Client{*principal, name};
  return std::nullopt;
}

// All that can be refused before a body is read.
std::optional<HttpResponse> Server::check_head(const HttpRequest& request) {
  const auto refuse = [&](int status, const std::string& message,
                          std::vector<std::pair<std::string, std::string>> headers = {}) {
    ++service_->statistics()
          .requests[{find_route(request.path) ? request.path.substr(0, 40) : "other", status}];
    return HttpResponse{
        .status = status, .body = dump(error_answer(message, Blame::kInput)), .headers = std::move(headers)};
  };
  if (from_another_site(request, options_.tokens.empty() && is_loopback(options_.address)))
    return refuse(
        403, "expected no request of another site's page: its Origin, or its Host, is not this server's");
  const bool socket = request.path == "/ws";
  const Route* route = find_route(request.path);
  if (route == nullptr && !socket)
    return refuse(404, fmt::format("{} {}: there is no such route (docs/serve.md lists them)",
                                   request.method.substr(0, 20), request.path.substr(0, 200)));
  if (!client_of(request) && !(route != nullptr && route->open)) {
    ++service_->statistics().refused["token"];
    return refuse(401, "expected `Authorization: Bearer TOKEN` with a token of this server",
                  {{"WWW-Authenticate", "Bearer"}});
  }
  if (socket) {
    if (request.header("upgrade").empty())
      return refuse(426, "expected a WebSocket", {{"Upgrade", "websocket"}});
    return std::nullopt;
  }
  const bool head = request.method == "HEAD" && std::string_view(route->method) == "GET";
  if (request.method != route->method && !head)
    return refuse(
        405, fmt::format("{} {}: expected {}", request.method.substr(0, 20), request.path, route->method),
        {{"Allow", route->method}});
  return std::nullopt;
}

void Server::handle(HttpRequest request, Reply reply) {
  const auto exchange = std::make_shared<Exchange>();
  exchange->request = std::move(request);
  exchange->client = client_of(exchange->request).value_or(Client{});
  exchange->reply = std::move(reply);
  // A fault of ours costs one request, not the server.
  try {
    run_route(exchange);
  } catch (const std::exception& e) {
    service_->statistics().error(fmt::format("{}: unexpected: {}", exchange->request.path, e.what()));
    fail(exchange, 503, "unexpected: this request met a fault of the server");
  }
}

void Server::run_route(const ExchangePtr& exchange) {
  const Route& route = *find_route(exchange->request.path);
  Json body = Json::object();
  if (std::string_view(route.method) == "POST" && !exchange->request.body.empty()) {
    verify::LooseJson json = verify::parse_loose_json(exchange->request.body);
    if (!json.error.empty()) return fail(exchange, 400, fmt::format("body: {}", json.error));
    if (!json.value.is_object()) return fail(exchange, 400, "body: expected an object");
    body = std::move(json.value);
    exchange->request.body.clear();
  }
  route.run(exchange, body);
}

void Server::send(const ExchangePtr& exchange, int status, const Json& body, int retry_after) {
  const std::string& path = exchange->request.path;
  ++service_->statistics()
        .requests[{path.starts_with(kTask) && !routes_.contains(path) ? "/v1/tasks/ID" : path, status}];
  HttpResponse response{.status = status, .body = dump(body)};
  if (retry_after > 0) response.headers.emplace_back("Retry-After", fmt::to_string(retry_after));
  exchange->reply(std::move(response));
}

void Server::fail(const ExchangePtr& exchange, int status, const std::string& message, int retry_after) {
  const Blame blame = status >= 500 || status == 429 ? Blame::kOurs : Blame::kInput;
  send(exchange, status, error_answer(message, blame), retry_after);
}

// -- questions ---------------------------------------------------------------------------------------------

Json Server::answer_of(const Question& question, const std::optional<Answered>& answered) const {
  if (!answered)
    return error_answer("the pair is accepted and has no verdict yet: ask again", Blame::kOurs, nullptr,
                        {{"id", question.id}});
  if (!answered->verdict) return error_answer(answered->fault, Blame::kOurs, nullptr, answered->receipt);
  return reward_answer(*answered->verdict, question.reward, answered->receipt);
}

Result<double> Server::timeout_in(const Json& body) const {
  const Json* given = member(body, "timeout_s");
  if (given == nullptr) return options_.timeout;
  if (!given->is_number() || !(given->get<double>() >= 0))
    return input_error("body.timeout_s: expected seconds, a number from 0");
  return std::min(given->get<double>(), options_.timeout);
}

void Server::judge(const ExchangePtr& exchange, const Result<Question>& question, double timeout,
                   std::function<void(Json answer)> then) {
  judge_all(exchange, {question}, timeout,
            [then = std::move(then)](std::vector<Json> answers) { then(std::move(answers.front())); });
}

void Server::judge_all(const ExchangePtr& exchange, std::vector<Result<Question>> questions, double timeout,
                       std::function<void(std::vector<Json> answers)> then) {
  std::vector<Question> good;
  for (const auto& question : questions)
    if (question.ok()) good.push_back(*question);
  if (const auto refusal = service_->accept(good, exchange->client))
    return fail(exchange, refusal->status, refusal->message, refusal->retry_after);
  std::vector<std::string> ids;
  for (Question& question : good) {
    ids.push_back(question.id);
    question.line.clear();  // the store has it
  }
  for (auto& question : questions)
    if (question.ok()) question->line.clear(), question->reference.clear();
  const size_t count = ids.size();
  service_->wait(std::move(ids), count, timeout,
                 [this, questions = std::move(questions),
                  then = std::move(then)](const std::vector<std::optional<Answered>>& answered) {
                   std::vector<Json> answers;
                   size_t next = 0;
                   for (const auto& question : questions)
                     answers.push_back(question.ok() ? answer_of(*question, answered[next++])
                                                     : error_answer(question.error().message, Blame::kInput));
                   then(std::move(answers));
                 });
}

void Server::verify(const ExchangePtr& exchange, const Json& body) {
  Json item = body;
  item.erase("timeout_s");
  const auto timeout = timeout_in(body);
  if (!timeout.ok()) return fail(exchange, 422, timeout.error().message);
  judge(exchange, read_question(item, "body", options_.questions), *timeout,
        [this, exchange](const Json& answer) {
          const int status = status_of(answer);
          send(exchange, status, answer, status == 503 ? kRetrySeconds : 0);
        });
}

// `items` of a body, each with what the body says of all.
std::vector<Result<Question>> Server::read_items(const Json& body) const {
  std::vector<Result<Question>> questions;
  const Json& items = body.at("items");
  for (size_t i = 0; i < items.size(); ++i) {
    Json item = items[i];
    if (item.is_object())
      for (const char* key : {"reference", "prompt", "files", "form", "options", "reward", "speedup_limit"})
        if (const Json* common = member(body, key);
            common != nullptr && !item.contains(key) &&
            !(std::string_view(key) == "prompt" && item.contains("reference")))
          item[key] = *common;
    questions.push_back(read_question(item, fmt::format("body.items[{}]", i), options_.questions));
  }
  return questions;
}

void Server::verify_batch(const ExchangePtr& exchange, const Json& body) {
  const Json* items = member(body, "items");
  if (items == nullptr || !items->is_array() || items->empty() || items->size() > kMaxItems)
    return fail(exchange, 400, fmt::format("body.items: expected a list of 1 to {} questions", kMaxItems));
  std::optional<train::ObjectiveSettings> objective;
  if (const Json* given = member(body, "advantages")) {
    const auto read = read_objective(*given, "body.advantages");
    if (!read.ok()) return fail(exchange, 400, read.error().message);
    objective = *read;
  }
  const auto timeout = timeout_in(body);
  if (!timeout.ok()) return fail(exchange, 422, timeout.error().message);
  auto questions = read_items(body);
  std::vector<std::string> groups;
  for (const auto& question : questions) groups.push_back(question.ok() ? question->group : "");
  judge_all(exchange, std::move(questions), *timeout,
            [this, exchange, objective, groups](const std::vector<Json>& answers) {
              Json all = {{"answers", answers}};
              std::vector<std::optional<train::Judged>> judged;
              int status = 200;
              for (const Json& answer : answers) {
                if (status_of(answer) == 503) status = 503;
                judged.push_back(answer["status"] == "error" ? std::nullopt : judged_in(answer["verdict"]));
              }
              if (objective) all["advantages"] = group_advantages(judged, groups, *objective);
              send(exchange, status, all, status == 503 ? kRetrySeconds : 0);
            });
}

// -- tasks -------------------------------------------------------------------------------------------------

void Server::submit(const ExchangePtr& exchange, const Json& body) {
  const Json* items = member(body, "items");
  const bool one = items == nullptr;
  if (!one && (!items->is_array() || items->empty() || items->size() > kMaxItems))
    return fail(exchange, 400, fmt::format("body.items: expected a list of 1 to {} questions", kMaxItems));
  const auto questions =
      one ? std::vector{read_question(body, "body", options_.questions)} : read_items(body);
  if (one && !questions.front().ok()) return fail(exchange, 422, questions.front().error().message);
  std::vector<Question> good;
  for (const auto& question : questions)
    if (question.ok()) good.push_back(*question);
  if (const auto refusal = service_->accept(good, exchange->client))
    return fail(exchange, refusal->status, refusal->message, refusal->retry_after);
  Json tasks = Json::array();
  for (const auto& question : questions) {
    if (!question.ok()) {
      tasks.push_back(error_answer(question.error().message, Blame::kInput));
      continue;
    }
    const bool answered = service_->stage(question->id) == Service::Stage::kAnswered;
    tasks.push_back({{"id", question->id}, {"state", answered ? "answered" : "waiting"}});
  }
  send(exchange, 202, one ? tasks.front() : Json{{"tasks", tasks}});
}

void Server::show_task(const ExchangePtr& exchange) {
  const std::string id = exchange->request.path.substr(kTask.size());
  const auto stage = service_->stage(id);
  if (stage == Service::Stage::kUnknown)
    return fail(exchange, 404, fmt::format("there is no task {} here", id.substr(0, 80)));
  if (stage != Service::Stage::kAnswered)
    return send(exchange, 202,
                {{"id", id}, {"state", stage == Service::Stage::kUnderWay ? "running" : "waiting"}});
  Json given = Json::object();
  if (const auto reward = query_value(exchange->request.query, "reward")) given["reward"] = *reward;
  if (const auto limit = query_value(exchange->request.query, "speedup_limit")) {
    double number = NAN;
    std::from_chars(limit->data(), limit->data() + limit->size(), number);
    given["speedup_limit"] = number;
  }
  const auto settings = read_reward(given, "query", options_.questions.reward);
  if (!settings.ok()) return fail(exchange, 400, settings.error().message);
  service_->wait({id}, 1, 0, [this, exchange, id, settings = *settings](const auto& answered) {
    Question question;
    question.id = id, question.reward = settings;
    const Json answer = answer_of(question, answered.front());
    const int status = status_of(answer);
    send(exchange, status == 422 ? 200 : status, {{"id", id}, {"state", "answered"}, {"answer", answer}},
         status == 503 ? kRetrySeconds : 0);
  });
}

// Returns as soon as one of the tasks is answered.
void Server::wait_for_tasks(const ExchangePtr& exchange, const Json& body) {
  const Json* given = member(body, "ids");
  if (given == nullptr || !given->is_array() || given->empty() || given->size() > kMaxItems)
    return fail(exchange, 400, fmt::format("body.ids: expected a list of 1 to {} ids", kMaxItems));
  const auto settings = read_reward(body, "body", options_.questions.reward);
  if (!settings.ok()) return fail(exchange, 400, settings.error().message);
  const auto timeout = timeout_in(body);
  if (!timeout.ok()) return fail(exchange, 422, timeout.error().message);
  std::vector<std::string> ids;
  Json unknown = Json::array();
  for (const Json& id : *given) {
    if (!id.is_string()) return fail(exchange, 400, "body.ids: expected texts");
    if (service_->stage(id.get<std::string>()) == Service::Stage::kUnknown)
      unknown.push_back(id);
    else
      ids.push_back(id.get<std::string>());
  }
  auto copy = ids;
  service_->wait(std::move(copy), unknown.empty() ? 1 : 0, *timeout,
                 [this, exchange, ids, unknown, settings = *settings](const auto& answered) {
                   Json answers = Json::object(), waiting = Json::array();
                   for (size_t i = 0; i < ids.size(); ++i) {
                     Question question;
                     question.id = ids[i], question.reward = settings;
                     if (answered[i])
                       answers[ids[i]] = answer_of(question, answered[i]);
                     else
                       waiting.push_back(ids[i]);
                   }
                   send(exchange, 200, {{"answers", answers}, {"waiting", waiting}, {"unknown", unknown}});
                 });
}

void Server::health(const ExchangePtr& exchange) {
  const bool healthy = service_->healthy() && !service_->ending();
  send(exchange, healthy ? 200 : 503, {{"status", healthy ? "healthy" : "unhealthy"}});
}

}  // namespace nereid::serve
