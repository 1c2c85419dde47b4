// `nereid serve-model`: a model behind OpenAI's chat completions, for `nereid optimize --proposer http` and whoever else speaks them.
//
// One thread: between two steps of the engine it looks at its connections. Requests of many clients are one batch.
#include <ATen/Parallel.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "nereid/base/file.h"
#include "nereid/base/interrupt.h"
#include "nereid/base/json_field.h"
#include "nereid/engine/runner/cuda/cuda_device.h"
#include "nereid/engine/runner/generation.h"
#include "nereid/engine/stop_matcher.h"
#include "nereid/lm/command.h"
#include "nereid/lm/dtype_option.h"
#include "nereid/lm/engine_options.h"
#include "nereid/lm/http_message.h"
#include "nereid/model/chat.h"
#include "nereid/model/decoder/device.h"
#include "nereid/model/decoder/weights.h"
#include "nereid/model/tokenizer.h"

namespace nereid::lm {
namespace {

constexpr size_t kMostConnections = 4096;
constexpr size_t kMostUnsent = size_t{64} << 20;  // of one connection: a client that does not read is cut

struct ServeOptions : EngineOptions {
  std::string address = "127.0.0.1";
  int port = 8000;
  int64_t most_new = 4096, most_tokens = 0;
  bool no_thinking = false;
};

// What a request asks for, beside the engine's part.
struct Asked {
  engine::GenerationRequest request;
  std::vector<std::string> stops;
  bool streams = false, tells_usage = false;
};

struct Choice {
  Choice(const std::shared_ptr<const model::Tokenizer>& tokenizer, const std::vector<std::string>& stops) : decoder(tokenizer, /*skip_special=*/true), stops(stops) {}
  model::StreamDecoder decoder;
  engine::StopMatcher stops;
  std::string text, finish;  // `finish` is empty while it goes on
};

struct Connection {
  Fd fd;
  HttpReader reader;
  std::string unsent;
  bool answered = false;  // all of the answer is in `unsent`
  // While its request is generated:
  bool generates = false, streams = false, tells_usage = false;
  size_t request = 0;
  int64_t prompt_tokens = 0, drawn_tokens = 0, unfinished = 0;
  std::vector<Choice> choices;
};

class Server {
 public:
  Server(const ServeOptions& options, std::shared_ptr<const model::Tokenizer> tokenizer, const model::GenerationConfig& said, engine::Generation& generation, Fd listener)
      : options_(options), tokenizer_(tokenizer), encoder_(tokenizer), said_(said), generation_(generation), listener_(std::move(listener)),
        name_(std::filesystem::path(options.model).lexically_normal().filename().string()) {}

  Result<Answer> run() {
    while (!interrupted()) {
      look_around(generation_.idle() ? -1 : 0);
      if (generation_.idle()) continue;
      generation_.step([&](const engine::Token& token) {
        const auto found = owners_.find(token.request);
        if (found != owners_.end()) take(*found->second, token);
      });
      for (auto& connection : connections_) send(*connection);
    }
    return Error{"interrupted", Blame::kInterrupted};
  }

 private:
  void look_around(int milliseconds) {
    std::vector<pollfd> polled = {{interrupt_fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& connection : connections_)
      polled.push_back({connection->fd.get(), static_cast<short>(POLLIN | (connection->unsent.empty() ? 0 : POLLOUT)), 0});
    if (::poll(polled.data(), polled.size(), milliseconds) <= 0) return;
    for (size_t i = 2; i < polled.size(); ++i) {
      if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) receive(*connections_[i - 2]);
      if (polled[i].revents & POLLOUT) send(*connections_[i - 2]);
    }
    if (polled[1].revents & POLLIN) accept();
    std::erase_if(connections_, [](const auto& connection) { return !connection->fd.valid(); });
  }

  void accept() {
    Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid() || connections_.size() >= kMostConnections) return;
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->fd = std::move(fd);
  }

  void close(Connection& connection) {
    if (connection.generates) {
      generation_.cancel(connection.request);
      owners_.erase(connection.request);
      connection.generates = false;
    }
    connection.fd.reset();
  }

  void receive(Connection& connection) {
    char chunk[1 << 16];
    const ssize_t got = ::recv(connection.fd.get(), chunk, sizeof chunk, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return close(connection);  // a client that has gone asks for nothing any more
    if (connection.answered || connection.generates) return;
    if (!connection.reader.feed({chunk, static_cast<size_t>(got)})) return;
    if (const auto& refusal = connection.reader.refusal()) return fail(connection, refusal->status, refusal->reason);
    answer(connection, connection.reader.request());
  }

  void send(Connection& connection) {
    while (connection.fd.valid() && !connection.unsent.empty()) {
      const ssize_t sent = ::send(connection.fd.get(), connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN && connection.unsent.size() <= kMostUnsent) return;
      if (sent < 0) return close(connection);
      connection.unsent.erase(0, static_cast<size_t>(sent));
    }
    if (connection.fd.valid() && connection.answered) close(connection);
  }

  void reply(Connection& connection, int status, const Json& body) {
    connection.unsent += http_response(status, "application/json", body.dump(-1, ' ', false, Json::error_handler_t::replace));
    connection.answered = true;
    send(connection);
  }
  void fail(Connection& connection, int status, const std::string& message) {
    reply(connection, status, {{"error", {{"message", message}, {"type", status < 500 ? "invalid_request_error" : "server_error"}}}});
  }

  void answer(Connection& connection, const HttpRequest& request) {
    const bool gets = request.method == "GET";
    if (request.path == "/health" && gets) return reply(connection, 200, {{"status", "ok"}});
    if (request.path == "/v1/models" && gets)
      return reply(connection, 200, {{"object", "list"}, {"data", {{{"id", name_}, {"object", "model"}, {"owned_by", "nereid"}}}}});
    if (request.path != "/v1/chat/completions") return fail(connection, 404, fmt::format("{} {}: expected POST /v1/chat/completions, GET /v1/models or GET /health", request.method, request.path));
    if (request.method != "POST") return fail(connection, 405, fmt::format("{}: expected POST", request.method));
    const auto asked = read(request.body);
    if (!asked.ok()) return fail(connection, asked.error().blame == Blame::kInput ? 400 : 500, asked.error().message);
    const auto added = generation_.add(asked->request);
    if (!added.ok()) return fail(connection, added.error().blame == Blame::kInput ? 400 : 503, added.error().message);
    connection.generates = true;
    connection.request = *added;
    connection.streams = asked->streams, connection.tells_usage = asked->tells_usage;
    connection.prompt_tokens = static_cast<int64_t>(asked->request.prompt.size());
    connection.unfinished = asked->request.samples;
    for (int64_t i = 0; i < asked->request.samples; ++i) connection.choices.emplace_back(tokenizer_, asked->stops);
    owners_[*added] = &connection;
    if (!connection.streams) return;
    connection.unsent += http_response(200, "text/event-stream", {});
    for (size_t i = 0; i < connection.choices.size(); ++i) event(connection, i, {{"role", "assistant"}, {"content", ""}}, nullptr);
  }

  Result<Asked> read(const std::string& body) {
    NEREID_TRY(const Json document, parse_json(body, "body"));
    const JsonField root(document, "body");
    const auto given = [&](const char* name) -> Result<std::optional<JsonField>> {
      NEREID_TRY(auto field, root.find(name));
      if (field && field->json().is_null()) field.reset();
      return field;
    };
    const auto number = [&](const char* name, double otherwise, double lowest, double highest) -> Result<double> {
      NEREID_TRY(const auto field, given(name));
      if (!field) return otherwise;
      NEREID_TRY(const double value, field->number());
      if (!(value >= lowest && value <= highest)) return field->expected(fmt::format("a number from {} to {}", lowest, highest));
      return value;
    };
    const auto whole = [&](const char* name, int64_t otherwise, int64_t lowest, int64_t highest) -> Result<int64_t> {
      NEREID_TRY(const auto field, given(name));
      return field ? field->integer(lowest, highest) : otherwise;
    };
    Asked asked;
    NEREID_TRY(const JsonField messages, root.at("messages"));
    NEREID_TRY(const auto conversation, model::chat_messages(messages.json(), "body.messages"));
    NEREID_TRY(const std::string text, model::render_qwen3_chat(conversation, {.thinking = !options_.no_thinking}));
    std::vector<model::TokenId> ids;
    NEREID_TRY_STATUS(encoder_.encode(text, {}, ids));
    asked.request.prompt.assign(ids.begin(), ids.end());
    NEREID_TRY(asked.request.most_new, whole("max_tokens", options_.most_new, 1, 1 << 24));
    NEREID_TRY(asked.request.most_new, whole("max_completion_tokens", asked.request.most_new, 1, 1 << 24));
    NEREID_TRY(asked.request.samples, whole("n", 1, 1, 1024));
    auto& draw = asked.request.draw;
    NEREID_TRY(draw.temperature, number("temperature", said_.temperature.value_or(1), 0, 100));
    NEREID_TRY(draw.top_p, number("top_p", said_.top_p.value_or(1), 1e-9, 1));
    NEREID_TRY(draw.min_p, number("min_p", 0, 0, 1));
    NEREID_TRY(draw.top_k, whole("top_k", said_.top_k.value_or(0), 0, 1 << 24));
    // Without a seed every request has another.
    NEREID_TRY(const int64_t seed, whole("seed", static_cast<int64_t>(++unseeded_), INT64_MIN, INT64_MAX));
    draw.seed = static_cast<uint64_t>(seed);
    asked.request.end_tokens = said_.eos_token_ids;
    NEREID_TRY(const auto stop, given("stop"));
    if (stop && stop->json().is_string()) {
      asked.stops.push_back(stop->json().get<std::string>());
    } else if (stop) {
      NEREID_TRY_STATUS(stop->each(64, [&](const JsonField& item) -> Status {
        NEREID_TRY(const std::string one, item.text());
        asked.stops.push_back(one);
        return ok_status();
      }));
    }
    NEREID_TRY(asked.streams, root.boolean_at("stream", false));
    NEREID_TRY(const auto stream_options, given("stream_options"));
    if (stream_options) {
      NEREID_TRY(asked.tells_usage, stream_options->boolean_at("include_usage", false));
    }
    return asked;
  }

  // One token of a request that a connection waits for.
  void take(Connection& connection, const engine::Token& token) {
    Choice& choice = connection.choices[static_cast<size_t>(token.sample)];
    ++connection.drawn_tokens;
    const bool is_end = std::find(said_.eos_token_ids.begin(), said_.eos_token_ids.end(), token.token) != said_.eos_token_ids.end();
    std::string certain = is_end ? "" : choice.stops.push(choice.decoder.push(static_cast<model::TokenId>(token.token)));
    const bool last = token.last && !choice.stops.matched();
    if (last) {
      certain += choice.stops.push(choice.decoder.finish());
      certain += choice.stops.finish();
    }
    if (connection.streams && !certain.empty()) event(connection, static_cast<size_t>(token.sample), {{"content", certain}}, nullptr);
    choice.text += certain;
    if (!last && !choice.stops.matched()) return;
    if (!token.last) generation_.cancel(token.request, token.sample);
    choice.finish = choice.stops.matched() || is_end ? "stop" : "length";
    if (connection.streams) event(connection, static_cast<size_t>(token.sample), Json::object(), choice.finish);
    if (--connection.unfinished == 0) finish(connection);
  }

  void finish(Connection& connection) {
    owners_.erase(connection.request);
    connection.generates = false;
    const Json usage = {{"prompt_tokens", connection.prompt_tokens}, {"completion_tokens", connection.drawn_tokens}, {"total_tokens", connection.prompt_tokens + connection.drawn_tokens}};
    if (!connection.streams) {
      Json body = head(connection, "chat.completion");
      for (size_t i = 0; i < connection.choices.size(); ++i)
        body["choices"].push_back({{"index", i}, {"message", {{"role", "assistant"}, {"content", connection.choices[i].text}}}, {"finish_reason", connection.choices[i].finish}});
      body["usage"] = usage;
      return reply(connection, 200, body);
    }
    if (connection.tells_usage) {
      Json body = head(connection, "chat.completion.chunk");
      body["usage"] = usage;
      push(connection, body);
    }
    connection.unsent += "data: [DONE]\n\n";
    connection.answered = true;
  }

  Json head(const Connection& connection, const char* object) const {
    return {{"id", fmt::format("nereid-{}", connection.request)}, {"object", object}, {"created", std::time(nullptr)}, {"model", name_}, {"choices", Json::array()}};
  }
  void event(Connection& connection, size_t index, Json delta, const Json& finish) {
    Json body = head(connection, "chat.completion.chunk");
    body["choices"].push_back({{"index", index}, {"delta", std::move(delta)}, {"finish_reason", finish}});
    push(connection, body);
  }
  static void push(Connection& connection, const Json& body) {
    connection.unsent += "data: " + body.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
  }

  const ServeOptions& options_;
  std::shared_ptr<const model::Tokenizer> tokenizer_;
  model::Encoder encoder_;
  const model::GenerationConfig& said_;
  engine::Generation& generation_;
  Fd listener_;
  std::string name_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<size_t, Connection*> owners_;  // by request
  uint64_t unseeded_ = 0;
};

// Listens, and says where: the port is the system's choice where 0 is asked for.
Result<Fd> listen_at(const std::string& address, int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &at.sin_addr) != 1) return input_error("--address: expected an IPv4 address, got '{}'", address);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  socklen_t size = sizeof at;
  if (!fd.valid() || ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      ::listen(fd.get(), 512) != 0 || ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0)
    return input_error("{}:{}: {}", address, port, std::strerror(errno));
  fmt::print("http://{}:{}/v1\n", address, ntohs(at.sin_port));
  std::fflush(stdout);
  return fd;
}

Result<Answer> serve(const ServeOptions& options) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const auto dtype, dtype_option(options.dtype));
  const std::filesystem::path folder = options.model;
  NEREID_TRY(const auto tokenizer, model::Tokenizer::load(folder / "tokenizer.json"));
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(const at::Device where, model::open_device(options.device));
  NEREID_TRY(const auto weights, model::load_weights(folder, where, dtype));
  NEREID_TRY(const auto said, model::read_generation_config(folder, weights.config));
  if (where.is_cpu() && !options.plain) at::set_num_threads(1);  // libtorch has next to nothing to do
  NEREID_TRY(const auto device, engine::open_engine_device(where, installation, !options.plain));
  engine::RunnerOptions runner_options{.block_size = options.block_size, .memory_share = where.is_cuda() ? 0.9 : 0.25, .most_tokens = options.most_tokens};
  // More than all sequences at their longest would never be used.
  const int64_t longest = options.most_tokens > 0 ? options.most_tokens : weights.config.max_position_embeddings;
  runner_options.most_blocks = options.sequences * ((longest + options.block_size - 1) / options.block_size) + 1;
  if (where.is_cuda() && !options.no_graphs) runner_options.recorded_sizes = engine::recorded_sizes_up_to(options.sequences);
  NEREID_TRY(const auto runner, engine::Runner::create(weights, *device, runner_options));
  engine::Generation generation(*runner, {.most_sequences = options.sequences, .most_step_tokens = options.step_tokens});
  NEREID_TRY(auto listener, listen_at(options.address, options.port));
  return Server(options, tokenizer, said, generation, std::move(listener)).run();
}

}  // namespace

void add_serve_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve-model", "A model behind OpenAI's chat completions, on this machine");
  command->footer(R"(Example:
  nereid serve-model --model Qwen3-8B &
  NEREID_HTTP_BASE=http://127.0.0.1:8000/v1 NEREID_HTTP_MODEL=Qwen3-8B nereid optimize task.py -o fast.py --proposer http

Its first line on stdout is its address. Nobody is asked who they are: it listens on 127.0.0.1 unless told otherwise.)");
  add_model_option(*command, *options);
  command->add_option("--address", options->address, "An IPv4 address of this machine")->capture_default_str();
  command->add_option("--port", options->port, "0: any that is free")->check(CLI::Range(0, 65535))->capture_default_str();
  command->add_option("--max-tokens", options->most_new, "Of an answer, where a request does not say")->check(CLI::Range(int64_t{1}, int64_t{1} << 24))->capture_default_str();
  command->add_option("--context", options->most_tokens, "At most so many tokens in a sequence; the model's own limit where not given")->check(CLI::Range(int64_t{2}, int64_t{1} << 24));
  command->add_flag("--no-thinking", options->no_thinking, "Answers begin with an empty thought");
  add_engine_options(*command, *options);
  command->callback([options, &chosen] { chosen.run = [options] { return serve(*options); }; });
}

}  // namespace nereid::lm
