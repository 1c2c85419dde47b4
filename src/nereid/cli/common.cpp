#include "nereid/cli/common.h"

#include <sys/random.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <map>

#include "nereid/verify/stages/verifier_processes.h"

namespace nereid::cli {

Result<double> seconds_from(const std::string& text, const std::string& option, bool plain) {
  const std::map<std::string, double> units = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
  size_t used = 0;
  double amount = -1;
  try {
    amount = std::stod(text, &used);
  } catch (const std::exception&) {
  }
  const std::string unit = amount < 0 ? "?" : text.substr(used);
  if (amount >= 0 && amount < 1e6 && plain && unit.empty()) return amount;
  if (!(amount >= 0 && amount < 1e6) || !units.contains(unit))
    return input_error("{} '{}': expected a number with s, m, h or d, as in 90s", option, text);
  return amount * units.at(unit);
}

uint64_t fresh_seed() {
  uint64_t seed = 0;
  if (::getrandom(&seed, sizeof seed, 0) != sizeof seed)
    seed = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return seed >> 11;
}

Result<replay::Device> device_from(const std::string& name) {
  const bool gpu = verify::has_gpu();
  if (name == "cuda" && !gpu) return input_error("--device cuda: this machine has no NVIDIA GPU");
  return name == "cuda" || (name == "auto" && gpu) ? replay::Device::kCuda : replay::Device::kCpu;
}

void add_verification_flags(CLI::App& command, VerificationFlags& flags) {
  command
      .add_option("--policy", flags.policy,
                  "Share of the work that Triton must do: strict (all), mostly (90 %), hybrid (any)")
      ->check(CLI::IsMember({"strict", "mostly", "hybrid"}))
      ->capture_default_str();
  command
      .add_option("--protocol", flags.protocol,
                  "Comparison of outputs: nereid (docs/tolerance.md) or kernelbench (allclose on 5 draws of "
                  "the task's own inputs)")
      ->check(CLI::IsMember({"nereid", "kernelbench"}))
      ->capture_default_str();
  command.add_option("--device", flags.device, "Device of the replays; auto: the GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option("--trials", flags.trials,
                  "Number of draws of the task's own inputs; other input distributions are added")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      .add_option("--time-limit", flags.time_limit,
                  "Time limit for each phase of a candidate, in seconds of work (docs/deadlines.md)")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command
      .add_option("--forbid", flags.forbid,
                  "Remarks that make a candidate Disallowed, separated by commas (default: none)")
      ->delimiter(',')
      ->check(
          CLI::IsMember(std::vector<std::string>(verify::kForbiddable.begin(), verify::kForbiddable.end())));
  command
      .add_option(
          "--verdict-limit", flags.verdict_limit,
          "Time limit for all replays of a candidate, in seconds of work (default: 5 times --time-limit)")
      ->check(CLI::Range(0.1, 864000.0));
}

Ticker::Ticker(Progress& progress, std::function<std::string()> suffix)
    : thread_([this, &progress, suffix = std::move(suffix)](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; }) &&
               !stop.stop_requested())
          suffix ? progress.suffix(suffix()) : progress.advance(0);
      }) {}

}  // namespace nereid::cli
