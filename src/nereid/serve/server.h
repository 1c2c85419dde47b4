// `nereid serve`: the service's routes. docs/serve.md lists them, with their bodies and answers.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nereid/base/json.h"
#include "nereid/base/program/command.h"
#include "nereid/base/result.h"
#include "nereid/serve/http_server.h"
#include "nereid/serve/question.h"
#include "nereid/serve/service.h"
#include "nereid/serve/tokens.h"

namespace nereid::serve {

struct ServerOptions {
  std::string address = "127.0.0.1";
  int port = 8000;  // 0: any that is free
  HttpLimits limits;
  Tokens tokens;         // none: no authentication
  double timeout = 600;  // seconds that a request waits for its verdict at most
  double grace = 30;     // seconds to finish accepted requests after a signal
  QuestionDefaults questions;
  std::function<Json()> gpus;  // what the page shows of them
  std::string version;
};

// One request on its way through the routes.
struct Exchange {
  HttpRequest request;
  Client client;
  Reply reply;
};

class Server {
 public:
  static Result<std::unique_ptr<Server>> create(ServerOptions options, ServiceOptions service,
                                                std::unique_ptr<TaskStore> store,
                                                const std::vector<JudgePlace>& places);
  int port() const { return http_->port(); }
  // Until SIGINT or SIGTERM: what is accepted by then is judged within the grace, and what is left stays in
  // the store.
  Result<Answer> run();

 private:
  struct Route {
    const char* method;
    bool open = false;  // without a token
    std::function<void(const std::shared_ptr<Exchange>&, const Json& body)> run;
  };
  using ExchangePtr = std::shared_ptr<Exchange>;
  explicit Server(ServerOptions options) : options_(std::move(options)) {}
  void add_routes();
  void add_trainer_routes();
  void add_openenv_routes();
  const Route* find_route(const std::string& path) const;
  std::optional<HttpResponse> check_head(const HttpRequest& request);
  std::optional<Client> client_of(const HttpRequest& request) const;
  void handle(HttpRequest request, Reply reply);
  void run_route(const ExchangePtr& exchange);
  void handle_socket(const HttpRequest& request, const std::shared_ptr<WebSocket>& socket);
  void begin_end();

  void send(const ExchangePtr& exchange, int status, const Json& body, int retry_after = 0);
  void fail(const ExchangePtr& exchange, int status, const std::string& message, int retry_after = 0);

  // Judges one question; `then` gets the answer object. A refusal is answered here.
  void judge(const ExchangePtr& exchange, const Result<Question>& question, double timeout,
             std::function<void(Json answer)> then);
  // Judges many; the answers are in their order. A question that is none has an answer that says so.
  void judge_all(const ExchangePtr& exchange, std::vector<Result<Question>> questions, double timeout,
                 std::function<void(std::vector<Json> answers)> then);
  Json answer_of(const Question& question, const std::optional<Answered>& answered) const;
  std::vector<Result<Question>> read_items(const Json& body) const;
  Result<double> timeout_in(const Json& body) const;  // seconds

  void verify(const ExchangePtr& exchange, const Json& body);
  void verify_batch(const ExchangePtr& exchange, const Json& body);
  void submit(const ExchangePtr& exchange, const Json& body);
  void show_task(const ExchangePtr& exchange);
  void wait_for_tasks(const ExchangePtr& exchange, const Json& body);
  void health(const ExchangePtr& exchange);

  void slime(const ExchangePtr& exchange, const Json& body);
  void openrlhf(const ExchangePtr& exchange, const Json& body);
  void nemo_gym_verify(const ExchangePtr& exchange, const Json& body);
  void nemo_gym_metrics(const ExchangePtr& exchange, const Json& body);

  // OpenEnv: an episode is a task and the attempts at it.
  struct Episode {
    std::string id{}, task{}, reference{};
    int64_t steps = 0, turns = 1;
    bool done = false;
    Json reward_settings = Json::object();  // `reward`, `speedup_limit`, `options`
    std::string status = "ready";
    std::optional<double> reward{};
  };
  Result<Episode> new_episode(const Json& given) const;
  Episode* episode_in(const Json& given, const HttpRequest& request);
  void keep(const Episode& episode);
  Json observation(const Episode& episode, const Json& answer) const;
  Result<Question> action_question(const Episode& episode, const Json& action) const;
  void take_step(Episode& episode, const Json& answer) const;
  void step(const ExchangePtr& exchange, const Json& body);
  using SocketReply = std::function<void(const Json& answer, bool last)>;
  void socket_message(const std::string& text, const Client& client, const std::shared_ptr<Episode>& episode,
                      const SocketReply& reply);
  void model_context(const ExchangePtr& exchange, const Json& body);

  ServerOptions options_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<Service> service_;
  std::map<std::string, Route> routes_;
  std::map<std::string, Episode> episodes_;
  std::deque<std::string> episode_order_;  // the oldest first
  double end_at_ = 0;                      // when it ends: seconds since 1970
  bool gave_up_ = false;
};

bool is_loopback(std::string_view address);

// A page of another site in a browser on this machine: by its Origin, or, where no token is needed
// (`only_by_address`), by a host name that leads here.
bool from_another_site(const HttpRequest& request, bool only_by_address);

// What `GET /` shows: a page that asks /v1/status again and again.
std::string_view live_page();

}  // namespace nereid::serve
