#include "nereid/cli/search_setup.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "nereid/base/number_option.h"
#include "nereid/base/program/shipped_model.h"
#include "nereid/cli/common.h"
#include "nereid/cli/version.h"
#include "nereid/proposers/compiler.h"
#include "nereid/proposers/http.h"
#include "nereid/proposers/inductor.h"
#include "nereid/proposers/model.h"
#include "nereid/replay/host/gpu_gate.h"
#include "nereid/search/baselines.h"
#include "nereid/skills/admission.h"
#include "nereid/skills/skilled_proposer.h"
#include "nereid/store/identity.h"

namespace nereid::cli {
namespace {

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : list + ",") {
    if (c != ',') {
      if (c != ' ') word += c;
    } else if (!word.empty()) {
      found.push_back(std::move(word));
      word.clear();
    }
  }
  return found;
}

// Where the model writes: as the option says, else where its answers are judged.
Result<replay::Device> model_device(const SearchFlags& flags, replay::Device judged_on) {
  return flags.model_device.empty() ? Result<replay::Device>(judged_on) : device_from(flags.model_device);
}

// The one that was named, else the one that comes with the program.
Result<std::unique_ptr<proposers::Proposer>> make_model(const SearchFlags& flags,
                                                        const Installation& installation,
                                                        replay::Device device) {
  NEREID_TRY(const auto own, model_device(flags, device));
  proposers::ModelOptions options{.folder = flags.model,
                                  .device = own == replay::Device::kCuda ? "cuda" : "cpu"};
  if (flags.model.empty()) {
    NEREID_TRY(options.folder, shipped_model(installation));
  }
  // What is timed has the GPU alone.
  if (own == replay::Device::kCuda && device == replay::Device::kCuda && !flags.untimed)
    options.turn = [] { return std::make_shared<replay::GpuGate::Pass>(replay::gpu_gate().share()); };
  NEREID_TRY(auto model, proposers::ModelProposer::start(installation, std::move(options)));
  return std::unique_ptr<proposers::Proposer>(std::move(model));
}

Result<std::unique_ptr<proposers::Proposer>> make_proposer(const std::string& name, const SearchFlags& flags,
                                                           const Installation& installation,
                                                           replay::Device device, int jobs) {
  if (name == "model") return make_model(flags, installation, device);
  if (name == "compiler") {
    const std::string hardware = device == replay::Device::kCuda ? store::gpu_name() : "";
    compiler::Choices base{
        .target = flags.target.empty() ? compiler::target_of_device(hardware) : flags.target,
        .tf32 = flags.allow_tf32};
    return std::unique_ptr<proposers::Proposer>(
        std::make_unique<proposers::CompilerProposer>(std::move(base)));
  }
  if (name == "inductor") {
    NEREID_TRY(auto inductor, proposers::InductorProposer::start(installation, jobs));
    return std::unique_ptr<proposers::Proposer>(std::move(inductor));
  }
  if (name == "http") {
    NEREID_TRY(auto options, proposers::HttpOptions::from_environment(installation.package / "prompts"));
    return std::unique_ptr<proposers::Proposer>(
        std::make_unique<proposers::HttpProposer>(std::move(options)));
  }
  return input_error("no proposer is called '{}': expected compiler, inductor, model or http", name);
}

verify::Settings settings_of(const SearchFlags& flags, replay::Device device, int jobs) {
  verify::Settings settings;
  settings.policy = *verify::policy_from_string(flags.policy);
  settings.protocol = *verify::protocol_from_string(flags.protocol);
  settings.trials = flags.trials;
  settings.forbid = {flags.forbid.begin(), flags.forbid.end()};
  settings.seed = flags.seed ? *flags.seed : fresh_seed();
  settings.time_limit = flags.time_limit, settings.verdict_limit = flags.verdict_limit;
  settings.shrink = flags.shrink;
  settings.tolerance.allow_tf32 = flags.allow_tf32;
  settings.device = device;
  settings.time = device == replay::Device::kCuda && !flags.untimed;
  settings.threads = jobs > 1 ? 1 : 0;
  if (jobs > 1) settings.timing_seconds = 0.1;  // of many, each is timed a little
  return settings;
}

}  // namespace

void add_search_flags(CLI::App& command, SearchFlags& flags) {
  command.option_defaults()->group("Proposers");
  command
      .add_option(
          "--proposers,--proposer", flags.proposers,
          "Proposers, separated by commas: compiler, inductor, model (--model), http ($NEREID_HTTP_BASE)")
      ->capture_default_str();
  command.add_option("--model", flags.model,
                     "Checkpoint folder of the model proposer (default: the shipped model)");
  command
      .add_option("--model-device", flags.model_device, "Device of the model proposer (default: as --device)")
      ->check(CLI::IsMember({"cpu", "cuda"}));
  command.add_option("--samples", flags.samples, "Samples of each proposer that is a language model")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      .add_option("--repairs", flags.repairs,
                  "Repair rounds: times that a proposer gets the evidence against its answer")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();

  command.add_flag("--speculate", flags.speculate,
                   "Branch samples off an answer while it is written, and judge the newest first "
                   "(model, http)");
  command.add_flag("--skills", flags.skills,
                   "Give language models skills from the library (see `nereid skills --help`)");
  command.add_option("--skill-library", flags.skill_library,
                     "With --skills: the library, a file or a postgresql:// URI (default: $NEREID_SKILLS)");
  command
      .add_option("--without-skills", flags.without_skills,
                  "With --skills: share of samples without skills, as a control group")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();

  command.option_defaults()->group("Search");
  command.add_option("--budget", flags.budget,
                     "Time budget for each task, as 30s or 5m: after it everything is cancelled but writing "
                     "the best (default: 60s; with --once 10m)");
  command.add_flag("--first", flags.first, "End with the first verified result");
  command
      .add_option("--target-speedup", flags.target_speedup,
                  "End at the first verified result with this speed-up over eager PyTorch (default: none)")
      ->check(CLI::PositiveNumber);
  command.add_flag("--once", flags.once,
                   "First answer of each proposer only: no repairs, subgraphs or tuning");
  command.add_flag(
      "--every-sample", flags.every_sample,
      "Judge all samples, even after one that beats the cost model's expectation (always in `eval`)");
  command.add_flag("--whole-only", flags.whole_only, "Do not cut the program into subgraphs");
  command.add_option("--target", flags.target,
                     "GPU architecture of the compiler's kernels: sm_80, sm_90 or sm_100 (default: this "
                     "machine's GPU, else sm_90)");

  command.option_defaults()->group("Verdict");
  add_verification_flags(command, flags);
  command.add_option("--seed", flags.seed, "Seed of the trials (default: fresh)")->check(a_seed());
  command.add_flag("--allow-tf32", flags.allow_tf32,
                   "Allow TF32 in float32 contractions, in kernels and in the verdict");
  command.add_flag("--shrink", flags.shrink, "Judge at smaller sizes if the task does not fit into memory");

  command.option_defaults()->group("Times");
  command.add_option("--baselines", flags.baselines,
                     "Time these baselines, separated by commas: eager, graph (eager as a CUDA graph), "
                     "compile, max-autotune, inductor (its kernels replayed), eager-tf32, compile-tf32, "
                     "max-autotune-tf32");
  command.add_flag("--against-compile", flags.against_compile,
                   "Time all baselines of PyTorch (see --baselines)");
  command.add_flag("--untimed", flags.untimed, "Rank by the cost model on a GPU, too: no timing");

  command.option_defaults()->group("Earlier results");
  command.add_option("--store", flags.store,
                     "File or postgresql:// URI of earlier results (see `nereid store --help`)");
  command.add_flag("--fresh", flags.fresh, "Ignore earlier results of the store");
  command.add_flag("--no-store", flags.forget, "Neither read nor write the store");

  command.option_defaults()->group("Options");
}

Result<std::vector<std::string>> baselines_of(const SearchFlags& flags, replay::Device device) {
  const auto modes = words(flags.baselines);
  const auto& all = search::baseline_names();
  for (const auto& mode : modes)
    if (std::find(all.begin(), all.end(), mode) == all.end())
      return input_error("--baselines: no mode is called '{}': expected some of {}", mode,
                         fmt::join(all, ", "));
  if (modes.empty() && !flags.baselines.empty()) return input_error("--baselines names no mode");
  return modes.empty() && flags.against_compile ? search::default_baselines(device) : modes;
}

std::string SearchSetup::at_work() const {
  std::string all;
  for (const auto* proposer : proposers)
    if (const std::string what = proposer->at_work(); !what.empty())
      all += fmt::format("{}{}: {}", all.empty() ? "" : "; ", proposer->name(), what);
  return all;
}

Result<skills::Prompts> skill_prompts(const std::string& proposer, const SearchFlags& flags,
                                      const Installation& installation) {
  const std::filesystem::path usual = installation.package / "prompts";
  const char* named = std::getenv("NEREID_HTTP_PROMPTS");
  std::filesystem::path folder = usual;
  if (proposer == "http" && named != nullptr && *named != 0) folder = named;
  if (proposer == "model") {
    std::filesystem::path model = flags.model;
    if (flags.model.empty()) {
      NEREID_TRY(model, shipped_model(installation));
    }
    folder = lm::prompts_of(model, usual);
  }
  return skills::Prompts::load(folder, usual);
}

std::string skill_question(const std::string& purpose, const proposers::Proposer& proposer,
                           const SearchFlags& flags, const std::string& hardware, bool timed) {
  return fmt::format("{} of {}, policy {}, on {}, {}", purpose, proposer.identity(), flags.policy, hardware,
                     timed ? "measured" : "modelled");
}

Status SearchSetup::add_skills(const SearchFlags& flags, bool timed) {
  NEREID_TRY(library, skills::Library::open(flags.skill_library.empty() ? skills::Library::default_address()
                                                                        : flags.skill_library));
  NEREID_TRY(const auto rated, skills::rated(*library));
  for (auto*& proposer : proposers) {
    const std::string name(proposer->name());
    if (!proposer->samples()) continue;  // no language model
    NEREID_TRY(auto prompts, skill_prompts(name, flags, installation));
    skill_questions_[name] = skill_question("use", *proposer, flags, hardware, timed);
    owned.push_back(std::make_unique<skills::SkilledProposer>(
        *proposer, rated, std::move(prompts), skills::SkilledOptions{.without = flags.without_skills}));
    proposer = owned.back().get();
  }
  if (skill_questions_.empty())
    return input_error("--skills: expected a language model among --proposers (http, model), got {}",
                       flags.proposers);
  return ok_status();
}

void SearchSetup::record(const search::Task& task, const search::Outcome& outcome) const {
  if (!library) return;
  const auto kept = skills::record_outcome(*library, task, outcome.tried, skill_questions_);
  if (!kept.ok()) fmt::print(stderr, "nereid: worth of skills was not updated: {}\n", kept.error().message);
}

Result<std::unique_ptr<SearchSetup>> SearchSetup::make(const SearchFlags& flags, int jobs) {
  auto setup = std::make_unique<SearchSetup>();
  NEREID_TRY(const auto device, device_from(flags.device));
  if (!flags.target.empty()) {
    NEREID_TRY([[maybe_unused]] const compiler::Target target, compiler::target_named(flags.target));
  }
  NEREID_TRY(setup->installation, Installation::locate());
  std::set<std::string> named;
  for (const auto& name : words(flags.proposers)) {
    if (!named.insert(name).second) continue;
    NEREID_TRY(auto proposer, make_proposer(name, flags, setup->installation, device, jobs));
    setup->proposers.push_back(proposer.get());
    setup->owned.push_back(std::move(proposer));
  }
  if (named.contains("model")) {
    NEREID_TRY(const auto own, model_device(flags, device));
    setup->model_on_gpu = own == replay::Device::kCuda;
  }
  if (named.empty()) return input_error("--proposers names no proposer");
  const bool cuda = device == replay::Device::kCuda;
  setup->hardware = cuda ? store::gpu_name() : "cpu";
  if (setup->hardware.empty()) setup->hardware = "an unnamed GPU";
  setup->versions = store::versions(setup->installation, NEREID_VERSION);
  if (flags.skills || !flags.skill_library.empty())
    NEREID_TRY_STATUS(setup->add_skills(flags, cuda && !flags.untimed));
  if (!flags.forget) {
    auto store = store::Store::open(flags.store.empty() ? store::Store::default_address() : flags.store);
    if (store.ok())
      setup->store = *std::move(store);
    else if (!flags.store.empty() && store.error().blame == Blame::kInput)  // a full disk is no wrong name
      return store.error();
    else
      fmt::print(stderr, "nereid: results are not stored: {}\n", store.error().message);
  }
  NEREID_TRY(const auto modes, baselines_of(flags, device));
  const bool inductor = named.contains("inductor") || std::count(modes.begin(), modes.end(), "inductor") > 0;
  NEREID_TRY(setup->processes,
             verify::VerifierProcesses::open({.jobs = jobs + 1, .device = device, .inductor = inductor}));
  // On a CPU one of each task, on a GPU one of each proposer's.
  const int judged_at_once = cuda ? jobs * static_cast<int>(setup->proposers.size()) : jobs;
  setup->evaluator = std::make_unique<search::Evaluator>(
      setup->processes->backends(), search::EvaluatorOptions{.settings = settings_of(flags, device, jobs),
                                                             .store = setup->store.get(),
                                                             .fresh = flags.fresh,
                                                             .hardware = setup->hardware,
                                                             .versions = setup->versions,
                                                             .judged_at_once = judged_at_once});
  return setup;
}

}  // namespace nereid::cli
