#include "nereid/cli/commands/train_pairs.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <span>

#include "nereid/base/deadline.h"
#include "nereid/base/json.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/base/thread_pool.h"
#include "nereid/cli/output.h"
#include "nereid/dataset/given_pairs.h"
#include "nereid/dataset/pair_file.h"

namespace nereid::cli {
namespace {

constexpr int64_t kGroup = 8;         // tasks of one thread between two appends to the file
constexpr size_t kMaxGivenShown = 3;  // refusals in the report

struct GivenPairsOptions {
  std::vector<std::string> inputs;
  std::string output, policy = "strict";
  uint64_t seed = 0, verify_every = 1;
  int variants = 2, threads = 0;
};

void count_yield(dataset::Progress& progress, const dataset::Yield& yield) {
  ++progress.next;
  progress.programs += yield.lines.empty() ? 0 : 1;
  progress.pairs += yield.lines.size();
  progress.not_lowered += yield.not_lowered.empty() ? 0 : 1;
  progress.degenerate += yield.degenerate.empty() ? 0 : 1;
  for (const auto& [word, count] : yield.verdicts) progress.verdicts[word] += count;
}

// The tasks from where the file ends, some at a time, in order.
Status write_given_pairs(const GivenPairsOptions& options, const std::vector<dataset::GivenTask>& tasks,
                         dataset::PairFile& file, std::vector<std::string>& refused) {
  dataset::Progress now = file.progress();
  if (now.next >= tasks.size()) return ok_status();
  ThreadPool pool(options.threads);
  NEREID_TRY(const auto processes,
             verify::VerifierProcesses::open({.jobs = pool.threads(), .at_once = options.verify_every > 0}));
  dataset::GivenPairMaker maker(*processes, {.variants = options.variants,
                                             .seed = options.seed,
                                             .policy = *verify::policy_from_string(options.policy),
                                             .verify_every = options.verify_every});
  nereid::Progress progress("train pairs", std::ssize(tasks));
  progress.advance(static_cast<int64_t>(now.next));
  while (now.next < tasks.size()) {
    const auto first = static_cast<size_t>(now.next);
    const auto count = std::min(kGroup * pool.threads(), static_cast<int64_t>(tasks.size() - first));
    // Judged tasks one by one, so that no thread waits long for another.
    const int64_t size = options.verify_every == 0 ? kGroup : 1, groups = (count + size - 1) / size;
    std::vector<std::optional<Result<std::vector<dataset::Yield>>>> yields(static_cast<size_t>(groups));
    pool.parallel_for(groups, [&](int64_t g, int) {
      const auto begin = static_cast<size_t>(g * size),
                 end = static_cast<size_t>(std::min(count, (g + 1) * size));
      if (!interrupted())
        yields[static_cast<size_t>(g)].emplace(
            maker.make(std::span(tasks).subspan(first + begin, end - begin)));
    });
    if (interrupted()) return Error{"interrupted; run the same command to resume", Blame::kInterrupted};
    std::string lines;
    for (const auto& made : yields) {
      if (!made->ok()) return made->error();
      for (const dataset::Yield& yield : **made) {
        count_yield(now, yield);
        for (const auto* why : {&yield.first_refused, &yield.not_lowered})
          if (!why->empty() && refused.size() < kMaxGivenShown) refused.push_back(*why);
        for (const auto& line : yield.lines) lines += line + "\n";
      }
    }
    NEREID_TRY_STATUS(file.append(lines, now));
    progress.advance(count);
  }
  return file.save();
}

Result<Answer> make_given_pairs(const GivenPairsOptions& options, bool json) {
  NEREID_TRY(const auto tasks, dataset::read_given_tasks(options.inputs));
  NEREID_TRY(auto file,
             dataset::PairFile::open(
                 options.output, fmt::format("tasks={} variants={} seed={} policy={} verify_every={}",
                                             fmt::join(options.inputs, ","), options.variants, options.seed,
                                             options.policy, options.verify_every)));
  const Stopwatch watch;
  std::vector<std::string> refused;
  NEREID_TRY_STATUS(write_given_pairs(options, tasks, file, refused));
  const dataset::Progress& done = file.progress();
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line({{"tasks", tasks.size()},
                                              {"with_pairs", done.programs},
                                              {"pairs", done.pairs},
                                              {"not_lowered", done.not_lowered},
                                              {"degenerate", done.degenerate},
                                              {"verdicts", done.verdicts},
                                              {"refused", refused},
                                              {"seconds", watch.seconds()}})));
    return Answer::kYes;
  }
  std::string text =
      fmt::format("{}: {} pairs of {} of {} tasks; left out: {} that could not be lowered, {} degenerate\n",
                  options.output, done.pairs, done.programs, tasks.size(), done.not_lowered, done.degenerate);
  for (const auto& why : refused) text += "  not written: " + why + "\n";
  NEREID_TRY_STATUS(write_text(text));
  return Answer::kYes;
}

}  // namespace

void add_pairs_command(CLI::App& train, Chosen& chosen) {
  auto options = std::make_shared<GivenPairsOptions>();
  auto* command = train.add_subcommand(
      "pairs", "Write training pairs of given tasks: the compiler's verified answers; resumes");
  command->footer(R"(Example:
  nereid train pairs harvest/train.jsonl -o pairs.jsonl --variants 3

docs/data.md describes the lines of both files.)");
  command->add_option("FILE", options->inputs, "Files of lines with `code`, as `nereid harvest` writes them")
      ->required();
  command->add_option("-o,--output", options->output, "File of pairs, FILE.jsonl")->required();
  command->add_option("--variants", options->variants, "Maximum answers to each task")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the variants and of the verdicts")
      ->capture_default_str();
  command
      ->add_option("--verify-every", options->verify_every,
                   "Judge one task in N (0: none); other lines have no verdict and are many times as fast")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--policy", options->policy, "Policy of the verdicts (see `nereid verify --help`)")
      ->check(CLI::IsMember({"strict", "mostly", "hybrid"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Number of threads; 0: one per core")
      ->check(CLI::Range(0, 256))
      ->capture_default_str();
  add_json_flag(*command, chosen, "Print one JSON object: tasks, pairs, not_lowered, verdicts, ...");
  command->callback([options, &chosen] {
    chosen.run = [options, &chosen] { return make_given_pairs(*options, chosen.json); };
  });
}

}  // namespace nereid::cli
