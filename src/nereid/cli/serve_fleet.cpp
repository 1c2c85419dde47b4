#include "nereid/cli/serve_fleet.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <utility>

#include "nereid/base/deadline.h"
#include "nereid/base/json.h"
#include "nereid/sandbox/zygote/subprocess.h"

namespace nereid::cli {
namespace {

constexpr double kSecondsToProbe = 90;
constexpr double kSecondsBetweenReports = 120;  // it reports every 5 s: this is a process that hangs
constexpr size_t kMaxActors = 4096;

sandbox::SpawnSpec fleet_process(const Installation& installation, const FleetOptions& options) {
  sandbox::SpawnSpec spec;
  spec.words = {installation.python.string(), "-m", "nereid._fleet", "--address", options.address};
  spec.environment = sandbox::own_environment();
  std::erase_if(spec.environment,
                [](const auto& variable) { return variable.starts_with("NEREID_PROGRAM="); });
  spec.environment.push_back("NEREID_PROGRAM=" + (installation.bin / "nereid").string());
  spec.environment.push_back("PYTHONPATH=" + installation.package.parent_path().string());
  return spec;
}

Result<std::pair<size_t, size_t>> actor_range(const char* option, const std::string& text) {
  const auto number = [](std::string_view digits) -> std::optional<size_t> {
    size_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure != std::errc() || end != digits.data() + digits.size() || value > kMaxActors)
      return std::nullopt;
    return value;
  };
  const size_t colon = text.find(':');
  const auto least = number(std::string_view(text).substr(0, colon));
  const auto most = colon == text.npos ? least : number(std::string_view(text).substr(colon + 1));
  if (!least || !most || *most == 0 || *least > *most)
    return input_error("{}: expected MIN:MAX with 0 <= MIN <= MAX, 1 <= MAX <= {}, got '{}'", option,
                       kMaxActors, text);
  return std::pair(*least, *most);
}

}  // namespace

void add_fleet_options(CLI::App& command, FleetOptions& options) {
  command.add_option("--ray", options.address,
                     "Judges on a Ray cluster with this machine as a node: auto, or HOST:PORT of its head");
  command
      .add_option("--ray-actors", options.actors,
                  "MIN:MAX judge processes on the cluster, by the queue's length")
      ->capture_default_str();
  command.add_option("--ray-clocks", options.clocks,
                     "MIN:MAX actors with a GPU that only time what others verified on processors (default: "
                     "each judge does both)");
  command
      .add_option(
          "--ray-compile-for", options.compile_for,
          "With --ray-clocks: compute capability that kernels are compiled for ahead (90: 9.0), into a "
          "NEREID_CACHE that all nodes share")
      ->check(CLI::Range(70, 999));
}

Result<ClusterResources> probe_cluster(const Installation& installation, const FleetOptions& options) {
  if (options.address.find("://") != options.address.npos)
    return input_error(
        "--ray {}: expected auto or HOST:PORT of the cluster's head; the server runs on a node of the "
        "cluster",
        options.address);
  NEREID_TRY_STATUS(actor_range("--ray-actors", options.actors));
  if (!options.clocks.empty()) NEREID_TRY_STATUS(actor_range("--ray-clocks", options.clocks));
  auto spec = fleet_process(installation, options);
  spec.words.emplace_back("--probe");
  NEREID_TRY(const std::string text, sandbox::run_program(spec, Deadline::after(kSecondsToProbe)));
  NEREID_TRY(const Json found, parse_json(text, "python -m nereid._fleet --probe"));
  if (const auto error = found.find("error"); error != found.end())
    return input_error("--ray {}: {}", options.address, error->get<std::string>());
  return ClusterResources{.cpus = found.value("cpus", 0.0), .gpus = found.value("gpus", 0.0)};
}

Result<serve::JudgePlace> fleet_place(const Installation& installation, const FleetOptions& options,
                                      const FleetCommands& words, size_t jobs, bool cuda, double patience) {
  NEREID_TRY(const auto range, actor_range("--ray-actors", options.actors));
  auto process = fleet_process(installation, options);
  auto& all = process.words;
  all.insert(all.end(), {"--actors", fmt::to_string(range.first), fmt::to_string(range.second), "--jobs",
                         fmt::to_string(jobs), "--patience", fmt::to_string(patience)});
  size_t most = range.second;
  if (!words.clock.empty()) {
    NEREID_TRY(const auto clocks, actor_range("--ray-clocks", options.clocks));
    all.insert(all.end(), {"--clock", Json(words.clock).dump(), "--clocks", fmt::to_string(clocks.first),
                           fmt::to_string(clocks.second)});
    most += clocks.second;
  } else if (cuda) {
    all.emplace_back("--cuda");
  }
  all.emplace_back("--");
  all.insert(all.end(), words.judge.begin(), words.judge.end());
  return serve::JudgePlace{.name = "ray",
                           .spec = {.words = std::move(process.words),
                                    .environment = std::move(process.environment),
                                    .patience = kSecondsBetweenReports,
                                    .fleet = true},
                           .judges = most};
}

}  // namespace nereid::cli
