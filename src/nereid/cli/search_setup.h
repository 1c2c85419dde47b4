// What `optimize` and `eval` set up alike: the store, the processes, the proposers that were named.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nereid/base/program/installation.h"
#include "nereid/cli/common.h"
#include "nereid/proposers/proposer.h"
#include "nereid/search/evaluator.h"
#include "nereid/search/search.h"
#include "nereid/skills/library.h"
#include "nereid/skills/prompts.h"
#include "nereid/store/store.h"
#include "nereid/verify/stages/verifier_processes.h"

namespace nereid::cli {

struct SearchFlags : VerificationFlags {
  std::string proposers = "compiler,inductor", model, model_device, store;
  std::string budget;  // empty: what budget_text() says
  std::optional<uint64_t> seed;
  int samples = 1, repairs = 2;
  bool shrink = false, fresh = false, forget = false, against_compile = false, whole_only = false,
       once = false, every_sample = false, first = false, untimed = false, speculate = false;
  double target_speedup = 0;
  std::string baselines;  // modes, with commas
  std::string target;     // of the compiler; empty: the GPU that is there
  bool allow_tf32 = false;
  bool skills = false;  // --skills
  std::string skill_library;
  double without_skills = 0.25;

  // The first answers alone are judged whatever that takes: many tasks at a time wait for one GPU.
  std::string budget_text() const { return !budget.empty() ? budget : once ? "10m" : "60s"; }
};
void add_search_flags(CLI::App& command, SearchFlags& flags);

// Of --baselines and --against-compile; empty where neither was given. An Error names a mode that there is
// not.
Result<std::vector<std::string>> baselines_of(const SearchFlags& flags, replay::Device device);

// All of it lives as long as this.
struct SearchSetup {
  Installation installation;
  std::unique_ptr<store::Store> store;  // null with --no-store, or where it cannot be opened (which is said)
  std::unique_ptr<verify::VerifierProcesses> processes;
  std::vector<std::unique_ptr<proposers::Proposer>> owned;
  std::vector<proposers::Proposer*> proposers;
  // What they do right now, for people who wait.
  std::string at_work() const;
  std::unique_ptr<search::Evaluator> evaluator;
  std::string hardware, versions;
  // A language model of ours writes on a GPU: for more tasks at a time than can be judged.
  bool model_on_gpu = false;
  std::unique_ptr<skills::Library> library;  // of --skills; null without
  // What became of samples with and without skills goes to the library. A library that fails is reported on
  // stderr, and changes no result.
  void record(const search::Task& task, const search::Outcome& outcome) const;

  // `jobs`: tasks at the same time.
  static Result<std::unique_ptr<SearchSetup>> make(const SearchFlags& flags, int jobs);

 private:
  Status add_skills(const SearchFlags& flags, bool timed);
  std::map<std::string, std::string> skill_questions_;  // by proposer: what its samples' outcomes depend on
};

// Prompts with skills of a proposer that is a language model ("http", "model").
Result<skills::Prompts> skill_prompts(const std::string& proposer, const SearchFlags& flags,
                                      const Installation& installation);
// What the answers of a model and their times depend on besides the task.
std::string skill_question(const std::string& purpose, const proposers::Proposer& proposer,
                           const SearchFlags& flags, const std::string& hardware, bool timed);

}  // namespace nereid::cli
