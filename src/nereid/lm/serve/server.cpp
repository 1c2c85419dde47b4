#include "nereid/lm/serve/server.h"

#include <algorithm>
#include <filesystem>

#include "nereid/base/program/interrupt.h"

namespace nereid::lm {
namespace {

constexpr std::string_view kRetryAfter = "Retry-After: 1\r\n";

Json error_json(int status, const std::string& message, const Json& parameter = nullptr,
                const Json& code = nullptr) {
  const char* type = status == 429  ? "rate_limit_error"
                     : status < 500 ? "invalid_request_error"
                                    : "server_error";
  return {{"error", {{"message", message}, {"type", type}, {"param", parameter}, {"code", code}}}};
}

constexpr std::string_view kModels = "/v1/models";

}  // namespace

std::vector<std::string> names_of_model(const std::string& folder, const std::string& name) {
  auto whole = std::filesystem::absolute(folder).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // it was written with a / at its end
  std::vector<std::string> names;
  for (const std::string& one : {name, whole.filename().string(), folder, whole.string()})
    if (!one.empty() && std::ranges::find(names, one) == names.end()) names.push_back(one);
  return names;
}

Result<Answer> Server::run() {
  while (true) {
    if (interrupted() && !ending_) {
      ending_ = Deadline::after(options_.grace);
      connections_.stop_listening();
    }
    if (ending_ && jobs_.empty() && connections_.all_sent()) return Answer::kYes;
    if (ending_ && ending_->passed()) return cut();
    check_connections();
    generation_.step([&](const lm::Token& token) { take(token); });
  }
}

void Server::check_connections() {
  // While it ends, what was sent meanwhile may have been the last.
  const int milliseconds = !generation_.idle() ? 0
                           : ending_           ? std::min(ending_->poll_milliseconds(), 20)
                                               : -1;
  connections_.wait(
      milliseconds, ending_ ? -1 : interrupt_fd(),
      {.on_request = [&](ClientId client, const HttpRequest& request) { answer(client, request); },
       .on_refusal =
           [&](ClientId client, const HttpReader::Refusal& refusal) {
             fail(client, refusal.status, refusal.reason);
           },
       .on_gone = [&](ClientId client) { drop(client); }});
}

void Server::reply(ClientId client, int status, const Json& body, std::string_view headers,
                   bool without_body) {
  std::string response = http_response(status, "application/json",
                                       body.dump(-1, ' ', false, Json::error_handler_t::replace), headers);
  if (without_body) response.resize(response.find("\r\n\r\n") + 4);
  connections_.send(client, response);
  connections_.finish(client);
}

void Server::fail(ClientId client, int status, const std::string& message, std::string_view headers) {
  reply(client, status, error_json(status, message), headers);
}

// As OpenAI's: a client that waits for another model must not take this one's words for that one's.
void Server::fail_without(ClientId client, const std::string& model, bool without_body) {
  reply(client, 404,
        error_json(404,
                   fmt::format("model: expected '{}', which is served here, or none, got '{}'",
                               options_.names.front(), model),
                   "model", "model_not_found"),
        {}, without_body);
}

void Server::answer(ClientId client, const HttpRequest& request) {
  const std::string& path = request.path;
  const bool head = request.method == "HEAD", chats = path == "/v1/chat/completions",
             one_model = path.starts_with(fmt::format("{}/", kModels));
  const bool informs = path == "/health" || path == kModels || one_model;
  if (ending_) return fail(client, 503, "this server is ending", kRetryAfter);
  if (!informs && !chats && path != "/v1/completions")
    return fail(
        client, 404,
        fmt::format(
            "{} {}: expected POST /v1/chat/completions, POST /v1/completions, GET /v1/models or GET /health",
            request.method, path));
  const std::string_view allowed = informs ? "GET, HEAD" : "POST";
  if (informs ? request.method != "GET" && !head : request.method != "POST")
    return fail(client, 405,
                fmt::format("{} {}: expected {}", request.method, path, informs ? "GET" : "POST"),
                fmt::format("Allow: {}\r\n", allowed));
  const Json model = {
      {"id", options_.names.front()}, {"object", "model"}, {"created", 0}, {"owned_by", "nereid"}};
  if (one_model) {
    const std::string named = path.substr(kModels.size() + 1);
    return has_name(named) ? reply(client, 200, model, {}, head) : fail_without(client, named, head);
  }
  if (informs)
    return reply(
        client, 200,
        path == kModels ? Json{{"object", "list"}, {"data", Json::array({model})}} : Json{{"status", "ok"}},
        {}, head);
  if (is_full())
    return fail(client, 429,
                fmt::format("{} requests wait already (--queue {})", generation_.scheduler().unbegun(),
                            options_.queue),
                kRetryAfter);
  begin(client, chats ? Endpoint::kChat : Endpoint::kCompletions, request.body);
}

// The engine's free places are those of the requests that wait first.
bool Server::is_full() const {
  const auto& scheduler = generation_.scheduler();
  return static_cast<int64_t>(scheduler.unbegun()) >=
         options_.queue + std::max<int64_t>(0, options_.places - scheduler.running());
}

void Server::begin(ClientId client, Endpoint endpoint, const std::string& body) {
  const auto request = reader_.read(endpoint, body);
  if (!request.ok())
    return fail(client, request.error().blame == Blame::kInput ? 400 : 500, request.error().message);
  if (!request->model.empty() && !has_name(request->model)) return fail_without(client, request->model);
  Job job{.completion = {*request, tokenizer_,
                         fmt::format("{}-{}", endpoint == Endpoint::kChat ? "chatcmpl" : "cmpl", client),
                         options_.names.front()},
          .open = {}};
  for (size_t i = 0; i < request->prompts.size(); ++i) {
    lm::GenerationRequest generation = request->generation;
    generation.prompt = request->prompts[i];
    const auto added = generation_.add(std::move(generation));
    if (!added.ok()) {
      for (const auto& [number, choice] : job.open) generation_.cancel(number);
      return fail(client, added.error().blame == Blame::kInput ? 400 : 503, added.error().message);
    }
    job.open[*added] = i * static_cast<size_t>(request->generation.samples);
  }
  for (const auto& [number, choice] : job.open) owners_[number] = client;
  if (job.completion.streams())
    connections_.send(client, http_response(200, "text/event-stream", {}) + job.completion.first_events());
  jobs_.emplace(client, std::move(job));
}

void Server::take(const lm::Token& token) {
  const auto owner = owners_.find(token.request);
  if (owner == owners_.end()) return;
  const ClientId client = owner->second;
  Job& job = jobs_.at(client);
  std::string events;
  const size_t choice = job.open.at(token.request) + static_cast<size_t>(token.sample);
  if (job.completion.take(choice, token, events) || complete(token, job.completion, choice, events))
    generation_.cancel(token.request, token.sample);
  connections_.send(client, events);
  if (job.completion.done()) end(client);
}

// Sizes that follow from what was written. True where the choice is over with them.
bool Server::complete(const lm::Token& token, Completion& completion, size_t choice, std::string& events) {
  if (token.last) return false;
  auto next = completion.next(choice, completion_);
  if (!next.tokens.empty() && !generation_.append(token.request, token.sample, next.tokens)) return false;
  generation_.restrict(token.request, token.sample, std::move(next.allowed));
  return completion.take_completed(choice, next.tokens, events);
}

void Server::end(ClientId client) {
  const Completion& completion = jobs_.at(client).completion;
  if (completion.streams()) {
    connections_.send(client, completion.last_events());
    connections_.finish(client);
  } else {
    reply(client, 200, completion.body());
  }
  drop(client);
}

void Server::drop(ClientId client) {
  const auto job = jobs_.find(client);
  if (job == jobs_.end()) return;
  for (const auto& [number, choice] : job->second.open) {
    generation_.cancel(number);
    owners_.erase(number);
  }
  jobs_.erase(job);
}

// The grace is over: waiting requests get an error.
Result<Answer> Server::cut() {
  const size_t left = jobs_.size();
  const std::string message = "this server ended before the answer was whole";
  for (const auto& [client, job] : jobs_) {
    if (!job.completion.streams()) {
      fail(client, 503, message, kRetryAfter);
      continue;
    }
    connections_.send(client, server_event(error_json(503, message)));
    connections_.finish(client);
  }
  connections_.wait(0, -1,
                    {.on_request = [](ClientId, const HttpRequest&) {},
                     .on_refusal = [](ClientId, const HttpReader::Refusal&) {},
                     .on_gone = [](ClientId) {}});
  return Error{fmt::format("interrupted: {} {} not finished within {} s (--grace)", left,
                           left == 1 ? "request was" : "requests were", options_.grace),
               Blame::kInterrupted};
}

}  // namespace nereid::lm
