#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <unordered_set>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/number_option.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/base/thread_pool.h"
#include "nereid/cli/command.h"
#include "nereid/cli/output.h"
#include "nereid/cli/synth_options.h"
#include "nereid/compiler/output/trace_summary.h"
#include "nereid/dataset/weak_task.h"
#include "nereid/synth/coverage.h"
#include "nereid/synth/sample/maker.h"
#include "nereid/synth/traced.h"

namespace nereid::cli {
namespace {

constexpr const char* kSynthHelp = R"(Examples:
  nereid synth --operators 1 --count 1                      one program, on stdout
  nereid synth --operators 5 --count 1000 -o tasks          tasks/L5_000000.py and on, and tasks/index.jsonl
  nereid synth --operators 5 --count 1000000 -o l5.jsonl    one JSON object a line, its `code` the file
  nereid synth --operators 3 --count 50 --only softmax,matmul,relu,sum -o few
  nereid synth --operators 20 --count 100 --uniform programs --max-elements 2^20 -o small
  nereid synth --operators 2 --count 500 --held-out 0.05 --split held-out -o test
  nereid synth --operators 3 --count 10000 --pairs -o pairs.jsonl    training pairs; resumes

A program is a graph of operators (`nereid ops` lists them) that PyTorch runs: class Model, get_inputs() and
get_init_inputs(), in one of many code styles. docs/synth.md gives the probabilities. The same options give
the same programs on every machine and with any number of threads, so the same command writes the same files
again after an interruption. Duplicates are dropped by a hash of the graph. The side of the held-out split
follows from the graph without its sizes, whatever the seed.)";

constexpr int kBatch = 2'048;
constexpr size_t kCheckedTogether = 8;  // traced in one child
constexpr int kMaxLaterSizes = 64;

// What the traced forward of a program does, in words; empty where only Python knows.
std::string forward_of(const synth::Made& made) {
  const auto trace = synth::traced(made.program, made.style, made.layout, "model.py");
  return trace ? compiler::prefill_summary(*trace, made.code) : "";
}

// Where programs go: a folder of files with an index, one file of lines, or stdout.
class Sink {
 public:
  static Result<Sink> open(const SynthOptions& options, bool json) {
    Sink sink;
    sink.length_ = options.length,
    sink.sharded_ = options.count * static_cast<uint64_t>(1 + options.later_sizes) > 10'000;
    if (options.output.empty()) {
      sink.plain_ = !json;
      return sink;
    }
    const std::filesystem::path path = options.output;
    std::filesystem::path lines = path;
    if (path.extension() != ".jsonl") {
      std::error_code error;
      std::filesystem::create_directories(path, error);
      if (error) return input_error("-o: cannot make the folder {}: {}", path.string(), error.message());
      sink.folder_ = path;
      lines = path / "index.jsonl";
    }
    sink.lines_ = Fd(::open(lines.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!sink.lines_.valid())
      return input_error("-o: cannot write {}: {}", lines.string(), std::strerror(errno));
    return sink;
  }

  bool to_stdout() const { return !lines_.valid(); }

  Status add(const synth::Made& made, Json line) {
    const uint64_t number = count_++;
    if (plain_) {
      text_ += count_ > 1 ? "\n\n" : "";
      text_ += made.code;
      return ok_status();
    }
    if (folder_.empty()) {
      line["code"] = made.code;
    } else {
      std::string name = fmt::format("L{}_{:06}.py", length_, number);
      if (sharded_) {
        const std::string shard = fmt::format("{:03}", number / 1'000);
        if (number % 1'000 == 0) NEREID_TRY_STATUS(make_folder(folder_ / shard));
        name = shard + "/" + name;
      }
      NEREID_TRY_STATUS(write_file((folder_ / name).string(), made.code));
      line["file"] = name;
    }
    text_ += line.dump();
    text_ += '\n';
    return text_.size() > size_t{1} << 20 ? flush() : ok_status();
  }

  // Whole lines only reach the file.
  Status flush() {
    if (to_stdout()) {
      const Status written = stream_stdout(text_);
      text_.clear();
      return written;
    }
    NEREID_TRY_STATUS(write_all(lines_.get(), text_));
    text_.clear();
    return ok_status();
  }

 private:
  static Status make_folder(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return our_error("cannot make the folder {}: {}", path.string(), error.message());
    return ok_status();
  }
  static Status write_all(int fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t written = ::write(fd, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return our_error("-o: cannot write all of it: {}", std::strerror(errno));
      text.remove_prefix(static_cast<size_t>(written));
    }
    return ok_status();
  }
  // No sync: what a power cut takes, the same command makes again.
  static Status write_file(const std::string& path, std::string_view text) {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd.valid()) return our_error("cannot write {}: {}", path, std::strerror(errno));
    return write_all(fd.get(), text);
  }

  std::filesystem::path folder_;  // empty: lines hold the code
  Fd lines_;
  std::string text_;
  uint64_t count_ = 0;
  int length_ = 0;
  bool sharded_ = false, plain_ = false;
};

struct Counts {
  uint64_t made = 0, drawn = 0, duplicates = 0, other_split = 0, other_bytes = 0, no_size = 0, degenerate = 0;
  uint64_t degenerate_by_replay = 0, not_replayed = 0;
  bool exhausted = false, interrupted = false;
};

class Run {
 public:
  Run(const SynthOptions& options, const synth::Space& space, Sink sink)
      : options_(options),
        space_(space),
        pool_(options.threads),
        coverage_(space.operators()),
        sink_(std::move(sink)) {
    for (int t = 0; t < pool_.threads(); ++t)
      makers_.push_back(std::make_unique<synth::Maker>(space_, maker_config(options)));
  }

  Status make() {
    if (makers_[0]->sampler().empty())
      return input_error("no program of {} from this list is within these bounds",
                         operators_text(options_.length));
    if (options_.check == "replay") {
      NEREID_TRY(processes_, verify::VerifierProcesses::open({.jobs = pool_.threads(), .one_author = true}));
    }
    Progress progress("programs", static_cast<int64_t>(options_.count));
    uint64_t draws_without_result = 0;
    const uint64_t per_index = 1 + static_cast<uint64_t>(options_.later_sizes);
    while (!done()) {
      if (interrupted()) {
        counts_.interrupted = true;
        break;
      }
      const uint64_t wanted = (options_.count - counts_.made) * 5 / 4 + 16;
      const uint64_t most =
          processes_ ? kCheckedTogether * 4 * static_cast<uint64_t>(pool_.threads()) : kBatch;
      const auto batch = static_cast<size_t>(std::min<uint64_t>(most, wanted) * per_index);
      const uint64_t before = counts_.made;
      if (const Status done = batch_of(batch, per_index); !done.ok()) {
        if (!interrupted()) return done.error();
        counts_.interrupted = true;
        break;
      }
      progress.advance(static_cast<int64_t>(counts_.made - before));
      draws_without_result = counts_.made > before ? 0 : draws_without_result + batch;
      if (draws_without_result > kPatience) {
        counts_.exhausted = true;
        break;
      }
    }
    return sink_.flush();
  }

  const Counts& counts() const { return counts_; }
  const synth::Coverage& coverage() const { return coverage_; }

 private:
  bool done() const { return counts_.made >= options_.count; }

  // In parallel: draw and write. In order: keep what is new.
  Status batch_of(size_t size, uint64_t per_index) {
    batch_.resize(std::max(batch_.size(), size));
    forwards_.resize(batch_.size());
    pool_.parallel_for(
        static_cast<int64_t>(size),
        [&](int64_t i, int thread) {
          synth::Made& made = batch_[static_cast<size_t>(i)];
          synth::Maker& maker = *makers_[static_cast<size_t>(thread)];
          const auto place = static_cast<uint64_t>(i);
          maker.draw(next_ + place / per_index, static_cast<int>(place % per_index), made);
          if (made.outcome != synth::Outcome::kMade || !is_asked_for(made)) return;
          maker.write(made);
          if (options_.forward) forwards_[static_cast<size_t>(i)] = forward_of(made);
        },
        64);
    if (processes_) NEREID_TRY_STATUS(check_batch(size));
    for (size_t i = 0; i < size; ++i) {
      // Later sizes belong to a program that was kept.
      if (i % per_index == 0) {
        if (done()) break;
        kept_ = false;
      } else if (!kept_) {
        continue;
      }
      ++counts_.drawn;
      if (!is_wanted(batch_[i]) || !is_checked(i)) continue;
      if (i % per_index == 0) kept_ = true, ++counts_.made;
      Json line = line_of(options_, batch_[i]);
      if (options_.forward) line["forward"] = std::move(forwards_[i]);
      NEREID_TRY_STATUS(sink_.add(batch_[i], std::move(line)));
      coverage_.add(batch_[i].program);
    }
    next_ += size / per_index;
    return ok_status();
  }

  // Replays what was drawn, some programs at a time.
  Status check_batch(size_t size) {
    checked_.assign(size, {});
    std::vector<size_t> all;
    for (size_t i = 0; i < size; ++i)
      if (batch_[i].outcome == synth::Outcome::kMade && is_asked_for(batch_[i])) all.push_back(i);
    std::optional<Error> failure;
    std::mutex mutex;
    pool_.parallel_for(static_cast<int64_t>((all.size() + kCheckedTogether - 1) / kCheckedTogether),
                       [&](int64_t group, int) {
                         const size_t first = static_cast<size_t>(group) * kCheckedTogether,
                                      last = std::min(first + kCheckedTogether, all.size());
                         std::vector<std::string> sources;
                         for (size_t i = first; i < last; ++i) sources.push_back(batch_[all[i]].code);
                         auto checked = dataset::check_tasks(*processes_, sources, options_.seed);
                         const std::lock_guard lock(mutex);
                         if (!checked.ok()) failure = checked.error();
                         for (size_t i = first; i < last && checked.ok(); ++i)
                           checked_[all[i]] = std::move((*checked)[i - first]);
                       });
    if (failure) return *failure;
    return ok_status();
  }

  bool is_checked(size_t i) {
    if (!processes_) return true;
    if (!checked_[i].weak.empty()) return ++counts_.degenerate_by_replay, false;
    if (!checked_[i].trouble.empty()) return ++counts_.not_replayed, false;
    return true;
  }

  bool is_asked_for(const synth::Made& made) const {
    return is_in_split(options_, made) && is_in_size_range(options_, made);
  }

  bool is_wanted(const synth::Made& made) {
    if (made.outcome == synth::Outcome::kNoSize) return ++counts_.no_size, false;
    if (made.outcome == synth::Outcome::kDegenerate) return ++counts_.degenerate, false;
    if (!is_in_split(options_, made)) return ++counts_.other_split, false;
    if (!is_in_size_range(options_, made)) return ++counts_.other_bytes, false;
    if (!seen_.insert(made.hashes.program).second) return ++counts_.duplicates, false;
    return true;
  }

  const SynthOptions& options_;
  const synth::Space& space_;
  ThreadPool pool_;
  synth::Coverage coverage_;
  Sink sink_;
  std::vector<std::unique_ptr<synth::Maker>> makers_;
  std::vector<synth::Made> batch_;
  std::vector<std::string> forwards_;                     // of these, with --forwards
  std::unique_ptr<verify::VerifierProcesses> processes_;  // where what is drawn is replayed
  std::vector<dataset::Checked> checked_;
  std::unordered_set<uint64_t> seen_;
  uint64_t next_ = 0;
  bool kept_ = false;
  Counts counts_;
};

Json report_of(const SynthOptions& options, const Counts& counts, const synth::Coverage& coverage,
               double seconds) {
  return {{"operators", options.length},
          {"seed", options.seed},
          {"uniform", options.uniform},
          {"made", counts.made},
          {"wanted", options.count},
          {"drawn", counts.drawn},
          {"dropped",
           {{"duplicates", counts.duplicates},
            {"degenerate", counts.degenerate},
            {"no_size", counts.no_size},
            {"degenerate_by_replay", counts.degenerate_by_replay},
            {"not_replayed", counts.not_replayed},
            {"other_split", counts.other_split},
            {"other_bytes", counts.other_bytes}}},
          {"exhausted", counts.exhausted},
          {"interrupted", counts.interrupted},
          {"seconds", seconds},
          {"coverage", coverage.to_json()}};
}

Status check(const SynthOptions& options) {
  if (options.held_out < 0 || options.held_out >= 1)
    return input_error("--held-out: expected a share from 0 to below 1, got {}", options.held_out);
  if (options.split == "held-out" && options.held_out == 0)
    return input_error("--split held-out: expected a share to hold out too, as --held-out 0.05");
  if (options.count > 1'000'000'000)
    return input_error("--count: expected at most 1e9, got {}", options.count);
  return ok_status();
}

Result<Answer> run(SynthOptions options, bool json) {
  NEREID_TRY_STATUS(check(options));
  NEREID_TRY_STATUS(read_bytes(options));
  if (options.pairs) return make_pairs(options, json);
  NEREID_TRY(const synth::Space space, space_of(options));
  NEREID_TRY(Sink sink, Sink::open(options, json));
  const bool to_stdout = sink.to_stdout();
  Stopwatch watch;
  Run run(options, space, std::move(sink));
  NEREID_TRY_STATUS(run.make());
  const Counts& counts = run.counts();
  const Json report = report_of(options, counts, run.coverage(), watch.seconds());
  if (!to_stdout) {
    const std::filesystem::path path = options.output;
    const auto report_path = path.extension() == ".jsonl"
                                 ? std::filesystem::path(options.output + ".coverage.json")
                                 : path / "coverage.json";
    NEREID_TRY_STATUS(write_file_atomically(report_path, report.dump(1) + "\n"));
  }
  const std::string replayed =
      options.check != "replay" ? ""
                                : fmt::format(", {} degenerate when replayed, {} that could not be replayed",
                                              counts.degenerate_by_replay, counts.not_replayed);
  return report_end(
      options, json,
      {.report = report,
       .text = fmt::format("{} programs of {}; dropped: {} duplicates, {} degenerate, {} without sizes{}\n",
                           counts.made, operators_text(options.length), counts.duplicates, counts.degenerate,
                           counts.no_size, replayed),
       .coverage = &run.coverage(),
       .reached = counts.made,
       .gave = "were made",
       .exhausted = counts.exhausted,
       .interrupted = counts.interrupted,
       .interruption =
           fmt::format("interrupted: {} of {} programs were written", counts.made, options.count)});
}

void add_sampling_options(CLI::App* command, SynthOptions* options) {
  command->option_defaults()->group("Programs");
  command->add_option("--operators", options->length, "Number of operators of each program")
      ->required()
      ->check(CLI::Range(1, synth::kMaxLength));
  command->add_option("--count", options->count, "Number of programs")->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the programs")
      ->check(a_seed())
      ->capture_default_str();
  command
      ->add_option("--only", options->only,
                   "Draw only these operators: names separated by commas, or drtriton for the 61 of its "
                   "paper (default: all)")
      ->delimiter(',');
  command
      ->add_option("--uniform", options->uniform,
                   "What is uniform: sequences (of operators, then wirings, then sizes) or whole programs")
      ->check(CLI::IsMember({"sequences", "programs"}))
      ->capture_default_str();
  command
      ->add_option("--free-forms", options->free_forms,
                   "Share of programs with windows and layers beyond the enumerated ones (default: 0)")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--check", options->check,
                   "How degenerate programs are found: estimate (of their values), or replay (also on the "
                   "CPU; always with --pairs)")
      ->check(CLI::IsMember({"estimate", "replay"}))
      ->capture_default_str();

  command->option_defaults()->group("Sizes");
  command->add_option(
      "--max-elements", options->max_elements,
      fmt::format("Maximum elements of a tensor, rounded down to a power of 8 (default: {}; with --pairs {})",
                  kMaxElements, kMaxElementsOfPairs));
  command->add_option(
      "--max-work", options->max_work,
      fmt::format("Maximum multiply-adds of a contraction, rounded likewise (default: {}; with --pairs {})",
                  kMaxWork, kMaxWorkOfPairs));
  command->add_option(
      "--min-bytes", options->min_bytes,
      "Minimum bytes that a program's steps read and write in eager PyTorch, as 2^26 (default: 0)");
  command->add_option("--max-bytes", options->max_bytes, "Maximum bytes of these steps (default: no limit)");
  command
      ->add_option("--free-sizes", options->free_sizes,
                   "Share of programs with any sizes of their classes, not those of the grid (default: 0)")
      ->check(CLI::Range(0.0, 1.0));
  command
      ->add_option("--later-sizes", options->later_sizes,
                   "Number of further files of each program at other sizes (default: 0)")
      ->check(CLI::Range(0, kMaxLaterSizes));

  command->option_defaults()->group("Output");
  command->add_option(
      "-o,--output", options->output,
      "Folder (a file per program, index.jsonl, coverage.json) or FILE.jsonl (default: stdout)");
  command->add_option("--held-out", options->held_out,
                      "Share of graphs that is held out of training (default: 0)");
  command->add_option("--split", options->split, "Side of the split to write")
      ->check(CLI::IsMember({"all", "train", "held-out"}))
      ->capture_default_str();
}

void add_pair_options(CLI::App* command, SynthOptions* options) {
  command->option_defaults()->group("Training data");
  auto* forward = command->add_flag("--forward", options->forward,
                                    "Add `forward` to each line: the trace summary for a response prefill; "
                                    "empty where only Python can trace it");
  auto* pairs = command
                    ->add_flag("--pairs", options->pairs,
                               "Write training pairs: the compiler's verified code with a plan in words; the "
                               "same command resumes")
                    ->excludes(forward);
  command
      ->add_option("--variants", options->variants,
                   "With --pairs: maximum variants of each task, the compiler's default first")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->needs(pairs);
  command
      ->add_option("--wordings", options->wordings,
                   "With --pairs: wordings of the plan and comments of each variant")
      ->check(CLI::Range(1, 64))
      ->capture_default_str()
      ->needs(pairs);
  command
      ->add_flag("--brief", options->brief,
                 "With --pairs: one short plan without traffic figures, for small models")
      ->needs(pairs)
      ->excludes("--wordings");
  command
      ->add_option("--verify-every", options->verify_every,
                   "With --pairs: judge one program in N (0: none); other lines have no verdict and are many "
                   "times as fast")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str()
      ->needs(pairs);
  command
      ->add_option("--policy", options->policy,
                   "With --pairs: policy of the verdicts (see `nereid verify --help`)")
      ->check(CLI::IsMember({"strict", "mostly", "hybrid"}))
      ->capture_default_str()
      ->needs(pairs);
}

}  // namespace

void add_synth_command(CLI::App& app, Chosen& chosen) {
  auto* command = app.add_subcommand("synth", "Sample programs of the operator space as PyTorch tasks");
  command->footer(kSynthHelp);
  auto options = std::make_shared<SynthOptions>();
  add_sampling_options(command, options.get());
  add_pair_options(command, options.get());
  command->option_defaults()->group("Options");
  command->add_option("--threads", options->threads, "Number of threads; 0: one per core")
      ->check(CLI::Range(0, 256));
  add_json_flag(*command, chosen,
                "Print JSON: without -o one object per program with its code; with -o the coverage report");
  command->callback(
      [options, &chosen] { chosen.run = [options, &chosen] { return run(*options, chosen.json); }; });
}

}  // namespace nereid::cli
