// `nereid serve`: the judge as a service. serve/ has the server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <random>
#include <thread>

#include "nereid/base/number_option.h"
#include "nereid/base/program/installation.h"
#include "nereid/cli/command.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/cli/serve_fleet.h"
#include "nereid/cli/version.h"
#include "nereid/gpu/nvml.h"
#include "nereid/sandbox/zygote/subprocess.h"
#include "nereid/serve/server.h"
#include "nereid/store/address.h"
#include "nereid/store/identity.h"

namespace nereid::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServeExamples =
    R"(Routes: POST /v1/verify, /v1/verify/batch, /v1/tasks, GET /v1/tasks/ID, /health, /metrics, a live page
at /; OpenEnv's /reset, /step, /state, /schema, /metadata, /ws; /slime, /openrlhf and NeMo-Gym's /verify.
docs/serve.md has their bodies and answers.

Accepted pairs are kept in --store: after a kill they are judged at the next start, and equal pairs are judged
once. After SIGINT or SIGTERM accepted pairs are judged for --grace seconds; the others stay in the store.

Examples:
  nereid serve --tasks tasks/ &                        a reference may be the name of a file in tasks/
  curl -s localhost:8000/v1/verify -d '{"reference": "softmax", "completion": "..."}' | jq .reward
  nereid serve --address 0.0.0.0 --tokens tokens.txt   for other machines; a line of tokens.txt is NAME TOKEN
  nereid serve --gpus 0,1,2,3 --jobs 4 --time          four judges, one per GPU
  nereid serve --ray auto --ray-actors 4:64 --device cuda    4 to 64 judges on a Ray cluster)";

constexpr int kFleetJobs = 4;  // a judge's, where --jobs does not say

struct ServeOptions : VerificationFlags {
  serve::ServerOptions server;
  serve::ServiceOptions service;
  FleetOptions fleet;
  std::string tasks, tokens, store, reward = "hierarchical", gpus;
  std::optional<uint64_t> seed;
  int jobs = 0;
  double keep_days = 7;
  bool time = false, ignore_rules = false, no_tokens = false;
};

// `nereid verify --batch -` with this server's options.
std::vector<std::string> judge_command(const ServeOptions& options, const std::string& device) {
  std::vector<std::string> words = {"verify",
                                    "--batch",
                                    "-",
                                    "--policy",
                                    options.policy,
                                    "--protocol",
                                    options.protocol,
                                    "--device",
                                    device,
                                    "--trials",
                                    fmt::to_string(options.trials),
                                    "--time-limit",
                                    fmt::to_string(options.time_limit)};
  const auto add = [&](const std::string& name, const std::string& value) {
    words.push_back(name);
    if (!value.empty()) words.push_back(value);
  };
  if (options.verdict_limit > 0) add("--verdict-limit", fmt::to_string(options.verdict_limit));
  for (const std::string& remark : options.forbid) add("--forbid", remark);
  if (options.seed) add("--seed", fmt::to_string(*options.seed));
  if (options.time) add("--time", "");
  if (options.ignore_rules) add("--ignore-rules", "");
  return words;
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

Result<std::vector<std::string>> gpu_list(const std::string& text) {
  std::vector<std::string> gpus;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    gpus.push_back(text.substr(at, end - at));
    if (gpus.back().empty() || gpus.back().find_first_not_of("0123456789") != std::string::npos)
      return input_error("--gpus: expected numbers with commas between them, got '{}'", text);
    at = end + 1;
  }
  return gpus;
}

Json gpu_states(const std::vector<std::string>& gpus) {
  Json states = Json::array();
  for (const std::string& name : gpus) {
    const auto nvml = gpu::Nvml::open(std::atoi(name.c_str()));
    if (!nvml.ok()) continue;
    const auto state = nvml->read();
    states.push_back({{"name", name},
                      {"sm_mhz", state.sm_mhz},
                      {"celsius", state.celsius},
                      {"watts", state.watts},
                      {"throttled_by", state.throttled_by}});
  }
  return states;
}

Status check(const ServeOptions& options, bool cuda) {
  if (!serve::is_loopback(options.server.address) && options.tokens.empty() && !options.no_tokens)
    return input_error(
        "--address {}: expected --tokens FILE, for other machines reach this address (--no-tokens lets "
        "everybody ask)",
        options.server.address);
  if (options.time && !cuda) return input_error("--time needs a GPU");
  if (!options.gpus.empty() && !cuda) return input_error("--gpus: expected --device cuda or auto, and a GPU");
  if (!options.gpus.empty() && !options.fleet.address.empty())
    return input_error("--gpus and --ray: expected one of them; --ray takes the cluster's GPUs");
  if (!options.fleet.clocks.empty() && (options.fleet.address.empty() || !options.time))
    return input_error("--ray-clocks: expected --ray and --time");
  if (options.fleet.compile_for > 0 && options.fleet.clocks.empty())
    return input_error("--ray-compile-for: expected --ray-clocks");
  return ok_status();
}

// With --ray, `auto` is the GPU if the cluster has one now.
Result<bool> on_gpus(const ServeOptions& options, const Installation& installation) {
  if (options.fleet.address.empty()) {
    NEREID_TRY(const auto device, device_from(options.device));
    return device == replay::Device::kCuda;
  }
  NEREID_TRY(const auto cluster, probe_cluster(installation, options.fleet));
  return options.device == "cuda" || (options.device == "auto" && cluster.gpus > 0);
}

// Of judges on processors and clocks on GPUs, which draw the same.
FleetCommands words_apart(const ServeOptions& given, const std::string& jobs) {
  ServeOptions options = given;
  options.time = false;
  if (!options.seed) options.seed = 1 + std::random_device()() % 0x7ffffffe;
  FleetCommands words{.judge = judge_command(options, "cpu"), .clock = judge_command(options, "cuda")};
  words.judge.insert(words.judge.end(), {"--jobs", jobs, "--traces", "{traces}"});
  if (options.fleet.compile_for > 0)
    words.judge.insert(words.judge.end(), {"--compile-for", fmt::to_string(options.fleet.compile_for)});
  words.clock.insert(words.clock.end(), {"--jobs", "1", "--traces", "{traces}", "--time-only"});
  return words;
}

Result<std::vector<serve::JudgePlace>> judge_places(const ServeOptions& options,
                                                    const Installation& installation,
                                                    std::vector<std::string> words, bool cuda,
                                                    const std::vector<std::string>& gpus) {
  words.insert(words.end(), {"--jobs", fmt::to_string(options.service.jobs)});
  const double patience = 120 + 10 * options.time_limit;
  std::vector<serve::JudgePlace> places;
  if (!options.fleet.address.empty()) {
    const FleetCommands both = options.fleet.clocks.empty()
                                   ? FleetCommands{.judge = words, .clock = {}}
                                   : words_apart(options, fmt::to_string(options.service.jobs));
    NEREID_TRY(auto place,
               fleet_place(installation, options.fleet, both, options.service.jobs, cuda, patience));
    places.push_back(std::move(place));
    return places;
  }
  serve::JudgeSpec spec{.words = {(installation.bin / "nereid").string()},
                        .environment = sandbox::own_environment(),
                        .patience = patience};
  spec.words.insert(spec.words.end(), words.begin(), words.end());
  for (const std::string& gpu : gpus) {
    auto own = spec;
    std::erase_if(own.environment,
                  [](const auto& variable) { return variable.starts_with("CUDA_VISIBLE_DEVICES="); });
    own.environment.push_back("CUDA_VISIBLE_DEVICES=" + gpu);
    places.push_back({.name = "cuda:" + gpu, .spec = std::move(own)});
  }
  if (places.empty()) places.push_back({.name = cuda ? "cuda:0" : "cpu", .spec = std::move(spec)});
  return places;
}

Result<Answer> serve(ServeOptions options) {
  const bool fleet = !options.fleet.address.empty();
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(const bool cuda, on_gpus(options, installation));
  NEREID_TRY_STATUS(check(options, cuda));
  NEREID_TRY(auto gpus, gpu_list(options.gpus));
  const auto words = judge_command(options, cuda ? "cuda" : "cpu");

  options.service.versions = store::versions(installation, NEREID_VERSION);
  options.service.hardware = !cuda ? "cpu" : fleet ? "GPUs of a Ray cluster" : store::gpu_name();
  options.service.keep = options.keep_days * 86400;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  options.service.jobs = static_cast<size_t>(options.jobs > 0 ? options.jobs : fleet ? kFleetJobs : cores);
  if (options.service.per_client == 0)
    options.service.per_client = std::max<size_t>(1, options.service.queue * 3 / 4);

  auto& server = options.server;
  server.version = NEREID_VERSION;
  if (!options.tokens.empty()) {
    NEREID_TRY(server.tokens, serve::Tokens::read(options.tokens));
  }
  if (!options.tasks.empty()) {
    std::error_code failure;
    const fs::directory_iterator readable(options.tasks, failure);
    if (failure) return input_error("--tasks {}: {}", options.tasks, failure.message());
    server.questions.tasks = fs::absolute(options.tasks);
  }
  server.questions.time_limit = options.time_limit;
  server.questions.reward.objective = *serve::objective_from_string(options.reward);
  server.questions.identity =
      fmt::format("{}\n{}\n{}", joined(words), options.service.versions, options.service.hardware);
  NEREID_TRY(const auto places, judge_places(options, installation, words, cuda, gpus));
  NEREID_TRY(auto tasks, serve::TaskStore::open(options.store.empty() ? store::data_file("serve.db").string()
                                                                      : options.store));
  if (cuda && gpus.empty() && !fleet) gpus = {"0"};
  server.gpus = [gpus] { return gpu_states(gpus); };

  const std::string address =
      server.address.find(':') == std::string::npos ? server.address : "[" + server.address + "]";
  NEREID_TRY(const auto running,
             serve::Server::create(std::move(server), std::move(options.service), std::move(tasks), places));
  NEREID_TRY_STATUS(stream_stdout(fmt::format("http://{}:{}\n", address, running->port())));
  return running->run();
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  command.option_defaults()->group("Server");
  command.add_option("--address", options.server.address, "IP address to listen on")->capture_default_str();
  command
      .add_option("--port", options.server.port,
                  "TCP port; 0: any free port; the first line on stdout is the address")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      .add_option("--tokens", options.tokens,
                  "File with a line NAME TOKEN for each client (default: clients need no token)")
      ->check(CLI::ExistingFile);
  command.add_flag("--no-tokens", options.no_tokens, "Serve other machines without tokens");
  command
      .add_option("--max-body", options.server.limits.body, "Maximum bytes of a request; larger ones get 413")
      ->check(CLI::Range(size_t{1024}, size_t{1} << 30))
      ->capture_default_str();
  command
      .add_option("--request-timeout", options.server.limits.seconds,
                  "Seconds for a request to arrive, and for the client to read its answer")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command
      .add_option("--timeout", options.server.timeout,
                  "Seconds that a request waits for its verdict; then it gets 503 and may be sent again")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command
      .add_option("--grace", options.server.grace, "Seconds to judge accepted pairs after SIGINT or SIGTERM")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();

  command.option_defaults()->group("Requests");
  command.add_option("--tasks", options.tasks, "Folder of references that requests name: NAME.py")
      ->check(CLI::ExistingDirectory);
  command.add_option("--store", options.store,
                     "File or postgresql:// URI for accepted requests and their answers (default: serve.db "
                     "in $XDG_DATA_HOME/nereid)");
  command.add_option("--keep", options.keep_days, "Days to keep answers")
      ->check(CLI::Range(0.001, 36500.0))
      ->capture_default_str();
  command
      .add_option("--queue", options.service.queue,
                  "Maximum waiting pairs; further ones get 429 with Retry-After")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  command
      .add_option("--queue-per-client", options.service.per_client,
                  "Maximum waiting pairs of one client (default: three quarters of --queue)")
      ->default_val(0)
      ->default_str("")
      ->check(CLI::Range(1, 1 << 24));
}

}  // namespace

void add_serve_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ServeOptions>();
  auto& server = options->server;
  CLI::App* command = app.add_subcommand("serve", "Serve verdicts and rewards over HTTP, for trainers");
  command->footer(kServeExamples);
  add_server_options(*command, *options);

  command->option_defaults()->group("Judges");
  command
      ->add_option("--jobs", options->jobs,
                   "Pairs that each judge process judges in parallel (default: one per core; with --ray 4)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--gpus", options->gpus,
                      "GPUs, one judge process for each: 0,1,2 (default: one process)");
  add_fleet_options(*command, options->fleet);

  command->option_defaults()->group("Rewards");
  command
      ->add_option("--reward", options->reward,
                   "Default reward objective of a request: binary, hierarchical, uniform or decoupled")
      ->check(CLI::IsMember({"binary", "hierarchical", "uniform", "decoupled"}))
      ->capture_default_str();
  command
      ->add_option("--speedup-limit", server.questions.reward.speedup_limit,
                   "Upper limit of the speed-up in rewards")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
  command->add_flag("--time", options->time,
                    "Time Verified candidates, for the speed-up in rewards (GPU only)");
  command->add_flag("--ignore-rules", options->ignore_rules, "Compute rewards as if rules were not checked");

  command->option_defaults()->group("Verdict");
  add_verification_flags(*command, *options);
  command->add_option("--seed", options->seed, "Seed of the trials' inputs (default: fresh)")
      ->check(a_seed());

  command->option_defaults()->group("Options");
  command->callback([options, &chosen] { chosen.run = [options] { return serve(*options); }; });
}

}  // namespace nereid::cli
