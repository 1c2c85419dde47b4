// Joins connections to an engine: between two steps it looks at its clients; requests of many are one batch.
//
//   POST /v1/chat/completions, POST /v1/completions, GET /v1/models, GET /health
//
// So many requests as ServerOptions::queue says wait beyond those that the engine has places for; more are
// refused with 429. At the first interrupt no request is accepted any more, and accepted ones are finished
// within the grace; the second ends the process.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"
#include "nereid/base/program/command.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/serve/completion.h"
#include "nereid/lm/serve/completion_request.h"
#include "nereid/lm/serve/connections.h"

namespace nereid::lm {

struct ServerOptions {
  std::vector<std::string> names;  // of the model; the first is what answers call it
  int64_t places = 256;            // sequences that the engine runs at a time
  int64_t queue = 1024;
  double grace = 30;  // seconds
};

// What clients may call the model in `folder`: `name`, where one is given, then the folder's own name, then
// its path as written and in full.
std::vector<std::string> names_of_model(const std::string& folder, const std::string& name);

class Server {
 public:
  // `generation` outlives it and has no other user.
  Server(ServerOptions options, std::shared_ptr<const lm::Tokenizer> tokenizer, CompletionReader reader,
         lm::Generation& generation, Connections connections)
      : options_(std::move(options)),
        tokenizer_(std::move(tokenizer)),
        completion_(tokenizer_),
        reader_(std::move(reader)),
        generation_(generation),
        connections_(std::move(connections)) {}

  // Until an interrupt. kYes: all that was taken is finished; else an Error that says how much was not.
  Result<Answer> run();

 private:
  // A request that is being generated, whole.
  struct Job {
    Completion completion;
    std::map<size_t, size_t>
        open;  // the engine's requests that are not over: the choice that each begins with
  };
  void check_connections();
  void answer(ClientId client, const HttpRequest& request);
  void begin(ClientId client, Endpoint endpoint, const std::string& body);
  void take(const lm::Token& token);
  bool complete(const lm::Token& token, Completion& completion, size_t choice, std::string& events);
  void end(ClientId client);
  void drop(ClientId client);
  bool is_full() const;
  bool has_name(const std::string& model) const {
    return std::ranges::find(options_.names, model) != options_.names.end();
  }
  Result<Answer> cut();

  void reply(ClientId client, int status, const Json& body, std::string_view headers = {},
             bool without_body = false);
  void fail(ClientId client, int status, const std::string& message, std::string_view headers = {});
  void fail_without(ClientId client, const std::string& model, bool without_body = false);

  const ServerOptions options_;
  std::shared_ptr<const lm::Tokenizer> tokenizer_;
  lm::CompletionTokens completion_;
  CompletionReader reader_;
  lm::Generation& generation_;
  Connections connections_;
  std::map<ClientId, Job> jobs_;
  std::map<size_t, ClientId> owners_;  // of the engine's requests
  std::optional<Deadline> ending_;     // when an interrupt has come: the end of the grace
};

}  // namespace nereid::lm
