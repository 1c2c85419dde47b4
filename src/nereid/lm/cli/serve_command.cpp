// `nereid serve-model`: a model behind OpenAI's chat and text completions. lm/serve has the server.
#include <CLI/CLI.hpp>
#include <optional>

#include "nereid/base/program/exit_on_interrupt.h"
#include "nereid/base/program/standard_output.h"
#include "nereid/lm/chat/chat_template.h"
#include "nereid/lm/cli/command.h"
#include "nereid/lm/cli/engine_options.h"
#include "nereid/lm/cli/loaded_model.h"
#include "nereid/lm/engine/runner/generation.h"
#include "nereid/lm/serve/server.h"

namespace nereid::lm {
namespace {

struct ServeOptions : EngineOptions {
  std::string address = "127.0.0.1", name;
  int port = 8000;
  int64_t max_new = 4096, max_tokens = 0, queue = 1024;
  double grace = 30;
  bool no_thinking = false;
};

Result<Answer> serve(const ServeOptions& options) {
  const c10::NoGradGuard no_gradients;
  const std::filesystem::path folder = options.model;
  std::optional<ExitOnInterrupt> loads(std::in_place);
  NEREID_TRY(const auto tokenizer, lm::Tokenizer::load(folder / "tokenizer.json"));
  NEREID_TRY(const auto loaded, load_model(options));
  const int64_t longest =
      options.max_tokens > 0 ? options.max_tokens : loaded.weights.config.max_position_embeddings;
  auto cache = runner_options(options, loaded.where, options.sequences, longest);
  cache.memory_share = loaded.where.is_cuda() ? 0.9 : 0.25;
  NEREID_TRY(const auto runner, lm::Runner::create(loaded.weights, *loaded.device, cache));
  lm::Generation generation(*runner,
                            {.max_sequences = options.sequences, .max_step_tokens = options.step_tokens});
  CompletionReader reader(tokenizer, loaded.said, lm::read_chat_template(folder, *tokenizer),
                          {.max_new = options.max_new, .thinking = !options.no_thinking});
  loads.reset();
  NEREID_TRY(auto connections, Connections::listen(options.address, options.port));
  NEREID_TRY_STATUS(stream_stdout(fmt::format("http://{}:{}/v1\n", options.address, connections.port())));
  const ServerOptions server = {.names = names_of_model(options.model, options.name),
                                .places = options.sequences,
                                .queue = options.queue,
                                .grace = options.grace};
  return Server(server, tokenizer, std::move(reader), generation, std::move(connections)).run();
}

}  // namespace

void add_serve_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ServeOptions>();
  auto* command =
      app.add_subcommand("serve-model", "Serve a model at OpenAI's chat and text completion endpoints");
  command->footer(R"(Example:
  nereid serve-model --model Qwen3-8B &
  export NEREID_HTTP_BASE=http://127.0.0.1:8000/v1 NEREID_HTTP_MODEL=Qwen3-8B
  nereid optimize task.py -o fast.py --proposer http

A request may name the model (its folder's name or path, or --name). Another name gets 404 model_not_found.

The first line on stdout is the address. There is no authentication: it listens on 127.0.0.1 by default. The
first SIGINT or SIGTERM stops accepting requests and finishes open ones (exit code 0; 130 if --grace was too
short, or at once while the model loads). The second ends the server at once.)");

  command->option_defaults()->group("Server");
  command->add_option("--address", options->address, "IPv4 address to listen on")->capture_default_str();
  command->add_option("--port", options->port, "TCP port; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--name", options->name, "Model name for clients (default: the folder's name)");
  command
      ->add_option("--queue", options->queue,
                   "Maximum waiting requests; further ones get 429 with Retry-After")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 20))
      ->capture_default_str();
  command->add_option("--grace", options->grace, "Seconds to finish running requests after the first signal")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();

  command->option_defaults()->group("Answers");
  command
      ->add_option("--max-tokens", options->max_new,
                   "Maximum tokens of a chat answer unless the request sets it")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 24))
      ->capture_default_str();
  command
      ->add_option("--context", options->max_tokens,
                   "Maximum tokens in a sequence (default: the model's limit)")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 24));
  command->add_flag("--no-thinking", options->no_thinking,
                    "Start answers with an empty <think> block (non-thinking mode)");

  command->option_defaults()->group("Model");
  add_model_option(*command, *options);
  add_engine_options(*command, *options);

  command->option_defaults()->group("Options");
  command->callback([options, &chosen] {
    chosen.run = [options]() -> Result<Answer> {
      NEREID_TRY_STATUS(name_model(*options));
      return serve(*options);
    };
  });
}

}  // namespace nereid::lm
