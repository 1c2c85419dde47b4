// `nereid synth --pairs`: programs in order to threads in groups, their pairs in order to the file.

#include <atomic>
#include <condition_variable>
#include <map>
#include <optional>
#include <thread>
#include <unordered_set>

#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/cli/synth_options.h"
#include "nereid/dataset/maker.h"
#include "nereid/dataset/pair_file.h"
#include "nereid/synth/coverage.h"

namespace nereid::cli {
namespace {

constexpr size_t kGroup = 8;       // programs traced in one child
constexpr size_t kMaxShown = 3;    // refusals in the report
constexpr uint64_t kRunAhead = 4;  // groups a thread, finished before an earlier one is

// Programs in the order of their numbers, each of which is new and on the right side.
class ProgramDrawer {
 public:
  ProgramDrawer(const SynthOptions& options, const synth::Space& space)
      : options_(options), maker_(space, maker_config(options)) {}

  bool empty() const { return maker_.sampler().empty(); }
  uint64_t next() const { return next_; }
  bool exhausted() const { return draws_without_result_ > kPatience; }
  const std::map<std::string, uint64_t>& dropped() const { return dropped_; }

  // The next program with its later sizes; empty where its number gave none. Without their text.
  std::vector<synth::Made> draw() {
    std::vector<synth::Made> all;
    for (int sizes = 0; sizes <= options_.later_sizes; ++sizes) {
      synth::Made made;
      maker_.draw(next_, sizes, made);
      if (is_wanted(made))
        all.push_back(std::move(made));
      else if (sizes == 0)
        break;
    }
    ++next_;
    draws_without_result_ = all.empty() ? draws_without_result_ + 1 : 0;
    return all;
  }
  // What another run has looked at.
  void skip_to(uint64_t next) {
    while (next_ < next && !interrupted()) (void)draw();
  }
  void write(std::vector<synth::Made>& made) const {
    for (auto& each : made) maker_.write(each);
  }

 private:
  bool is_wanted(const synth::Made& made) {
    if (made.outcome == synth::Outcome::kNoSize) return ++dropped_["no_size"], false;
    if (made.outcome == synth::Outcome::kDegenerate) return ++dropped_["degenerate"], false;
    if (!is_in_split(options_, made)) return ++dropped_["other_split"], false;
    if (!is_in_size_range(options_, made)) return ++dropped_["other_bytes"], false;
    if (!seen_.insert(made.hashes.program).second) return ++dropped_["duplicates"], false;
    return true;
  }

  const SynthOptions& options_;
  synth::Maker maker_;
  std::unordered_set<uint64_t> seen_;
  uint64_t next_ = 0, draws_without_result_ = 0;
  std::map<std::string, uint64_t> dropped_{
      {"no_size", 0}, {"degenerate", 0}, {"other_split", 0}, {"other_bytes", 0}, {"duplicates", 0}};
};

struct PairGroup {
  uint64_t number = 0;
  std::vector<synth::Made> programs{};  // of one number (sizes apart) next to each other
  std::vector<uint64_t> next{};         // of each: the number after it
  std::vector<dataset::Yield> yields{};
};

class PairRun {
 public:
  PairRun(const SynthOptions& options, const synth::Space& space, std::optional<dataset::PairFile> file)
      : options_(options),
        drawer_(options, space),
        coverage_(space.operators()),
        file_(std::move(file)),
        threads_(options.threads > 0 ? options.threads
                                     : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))) {
    if (file_) done_ = file_->progress();
  }

  Status make() {
    if (drawer_.empty())
      return input_error("no program of {} from this list is within these bounds",
                         operators_text(options_.length));
    drawer_.skip_to(done_.next);
    started_at_ = done_;
    if (done_.programs >= options_.count) return ok_status();
    NEREID_TRY(const auto processes,
               verify::VerifierProcesses::open(
                   {.jobs = threads_, .at_once = options_.verify_every > 0, .one_author = true}));
    dataset::PairMaker maker(*processes, {.variants = options_.variants,
                                          .wordings = options_.wordings,
                                          .brief = options_.brief,
                                          .seed = options_.seed,
                                          .policy = *verify::policy_from_string(options_.policy),
                                          .verify_every = options_.verify_every});
    nereid::Progress progress("programs with pairs", static_cast<int64_t>(options_.count));
    progress_ = &progress;
    progress.advance(static_cast<int64_t>(done_.programs));
    const Ticker ticker(progress);
    std::vector<std::thread> threads;
    for (int t = 1; t < threads_; ++t) threads.emplace_back([&] { work(maker); });
    work(maker);
    for (auto& thread : threads) thread.join();
    const Status saved = file_ ? file_->save() : ok_status();
    if (failure_) return *failure_;
    return saved;
  }

  Json report(double seconds) const {
    Json verdicts = done_.verdicts;
    return {{"operators", options_.length},
            {"seed", options_.seed},
            {"uniform", options_.uniform},
            {"made", done_.programs},
            {"wanted", options_.count},
            {"pairs", done_.pairs},
            {"pairs_before", started_at_.pairs},
            {"drawn", done_.next},
            {"dropped", drawer_.dropped()},
            {"degenerate_by_replay", done_.degenerate},
            {"not_lowered", done_.not_lowered},
            {"traced_by_python", traced_by_python_},
            {"verdicts", std::move(verdicts)},
            {"refused", refused_},
            {"exhausted", exhausted()},
            {"interrupted", interrupted()},
            {"seconds", seconds},
            {"coverage", coverage_.to_json()}};
  }
  const dataset::Progress& done() const { return done_; }
  uint64_t pairs_before() const { return started_at_.pairs; }
  bool exhausted() const { return drawer_.exhausted() && done_.programs < options_.count; }
  const std::vector<std::string>& refused() const { return refused_; }
  const synth::Coverage& coverage() const { return coverage_; }

 private:
  void work(dataset::PairMaker& maker) {
    while (auto group = take()) {
      drawer_.write(group->programs);  // which needs no lock
      std::vector<Json> about;
      for (const auto& made : group->programs) {
        about.push_back(line_of(options_, made));
        about.back()["id"] = fmt::format("L{}-s{}-{}{}", options_.length, options_.seed, made.index,
                                         made.sizes > 0 ? fmt::format("-z{}", made.sizes) : "");
      }
      auto yields = maker.make(group->programs, about);
      const auto failure = yields.ok() ? std::nullopt : std::optional<Error>(yields.error());
      if (yields.ok()) group->yields = *std::move(yields);
      give(*std::move(group), failure);
    }
  }

  bool over() const { return failure_ || interrupted() || done_.programs >= options_.count; }

  std::optional<PairGroup> take() {
    std::unique_lock lock(mutex_);
    const auto ahead = [&] { return taken_ - written_ >= kRunAhead * static_cast<uint64_t>(threads_); };
    const auto enough = [&] { return done_.programs + in_flight_ >= options_.count; };
    while (!over() && (ahead() || enough())) turn_.wait_for(lock, std::chrono::milliseconds(200));
    if (over() || drawer_.exhausted()) return std::nullopt;
    PairGroup group{.number = taken_++};
    const uint64_t left = options_.count - done_.programs - in_flight_;
    const size_t share = std::max<size_t>(1, static_cast<size_t>(left) / static_cast<size_t>(threads_));
    size_t bases = 0;
    while (bases < std::min(kGroup, share) && !drawer_.exhausted() && !interrupted()) {
      auto all = drawer_.draw();
      if (all.empty()) continue;
      ++bases;
      for (auto& made : all) {
        group.programs.push_back(std::move(made));
        group.next.push_back(drawer_.next());
      }
    }
    in_flight_ += bases;
    return group;
  }

  void give(PairGroup group, std::optional<Error> failure) {
    const std::lock_guard lock(mutex_);
    if (failure && !failure_ && !interrupted()) failure_ = std::move(failure);
    if (!group.yields.empty() || group.programs.empty()) finished_.emplace(group.number, std::move(group));
    while (!finished_.empty() && finished_.begin()->first == written_ && !over()) {
      const PairGroup next = std::move(finished_.extract(finished_.begin()).mapped());
      if (const Status written = write(next); !written.ok() && !failure_) failure_ = written.error();
      ++written_;
    }
    turn_.notify_all();
  }

  // In order, up to the last program that is wanted.
  Status write(const PairGroup& group) {
    dataset::Progress now = done_;
    std::string lines;
    bool base_kept = false;
    for (size_t i = 0; i < group.programs.size(); ++i) {
      const dataset::Yield& yield = group.yields[i];
      const bool base = group.programs[i].sizes == 0;
      if (base) {
        --in_flight_;
        if (now.programs >= options_.count) break;
        base_kept = !yield.lines.empty();
        now.programs += base_kept ? 1 : 0;
      }
      now.next = group.next[i];
      traced_by_python_ += yield.traced_by_python ? 1 : 0;
      now.not_lowered += yield.not_lowered.empty() ? 0 : 1;
      now.degenerate += yield.degenerate.empty() ? 0 : 1;
      for (const auto& [word, count] : yield.verdicts) now.verdicts[word] += count;
      for (const auto* why : {&yield.first_refused, &yield.not_lowered})
        if (!why->empty() && refused_.size() < kMaxShown) refused_.push_back(*why);
      if (!base_kept || yield.lines.empty()) continue;  // later sizes belong to a program that was kept
      now.pairs += yield.lines.size();
      for (const auto& line : yield.lines) lines += line + "\n";
      coverage_.add(group.programs[i].program);
    }
    if (file_)
      NEREID_TRY_STATUS(file_->append(lines, now));
    else
      NEREID_TRY_STATUS(stream_stdout(lines));
    progress_->advance(static_cast<int64_t>(now.programs - done_.programs));
    progress_->say(fmt::format("{} pairs", now.pairs));
    done_ = std::move(now);
    return ok_status();
  }

  const SynthOptions& options_;
  std::mutex mutex_;
  std::condition_variable turn_;
  ProgramDrawer drawer_;
  synth::Coverage coverage_;
  std::optional<dataset::PairFile> file_;
  const int threads_;
  nereid::Progress* progress_ = nullptr;
  dataset::Progress done_, started_at_;
  std::map<uint64_t, PairGroup> finished_;            // before their turn
  uint64_t taken_ = 0, written_ = 0, in_flight_ = 0;  // groups, groups, programs
  std::optional<Error> failure_;
  std::vector<std::string> refused_;
  uint64_t traced_by_python_ = 0;  // of this run
};

// What decides the lines of a file, its number of programs and of threads apart.
std::string made_by(const SynthOptions& o) {
  return fmt::format(
      "operators={} seed={} only={} uniform={} split={} held-out={} max-elements={} max-work={} "
      "later-sizes={} "
      "variants={} wordings={}{} policy={}{}{}{}{}{}",
      o.length, o.seed, o.only.empty() ? "all" : fmt::format("{}", fmt::join(o.only, ",")), o.uniform,
      o.split, o.held_out, o.max_elements.empty() ? kMaxElementsOfPairs : o.max_elements,
      o.max_work.empty() ? kMaxWorkOfPairs : o.max_work, o.later_sizes, o.variants, o.wordings,
      o.brief ? " brief" : "", o.policy,
      o.verify_every != 1 ? fmt::format(" verify-every={}", o.verify_every) : "",
      o.free_sizes > 0 ? fmt::format(" free-sizes={}", o.free_sizes) : "",
      o.free_forms > 0 ? fmt::format(" free-forms={}", o.free_forms) : "",
      !o.min_bytes.empty() ? fmt::format(" min-bytes={}", o.min_bytes) : "",
      !o.max_bytes.empty() ? fmt::format(" max-bytes={}", o.max_bytes) : "");
}

}  // namespace

Result<Answer> make_pairs(const SynthOptions& options, bool json) {
  if (!options.output.empty() && std::filesystem::path(options.output).extension() != ".jsonl")
    return input_error("-o: pairs are lines of one file; expected a name that ends in .jsonl, got {}",
                       options.output);
  NEREID_TRY(const synth::Space space, space_of(options));
  std::optional<dataset::PairFile> file;
  if (!options.output.empty()) {
    NEREID_TRY(file, dataset::PairFile::open(options.output, made_by(options)));
  }
  Stopwatch watch;
  PairRun run(options, space, std::move(file));
  NEREID_TRY_STATUS(run.make());
  const double seconds = watch.seconds();
  const auto& done = run.done();
  std::string words;
  for (const auto& [word, count] : done.verdicts)
    words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, word);
  std::string text = fmt::format(
      "{} pairs of {} programs of {}, {:.1f} a second; variants: {}; programs left out: {} degenerate when "
      "replayed, {} that could not be lowered\n",
      done.pairs, done.programs, operators_text(options.length),
      static_cast<double>(done.pairs - run.pairs_before()) / seconds, words.empty() ? "none" : words,
      done.degenerate, done.not_lowered);
  for (const auto& why : run.refused()) text += "  not written: " + why + "\n";
  if (interrupted() && !options.output.empty())
    fmt::print(stderr, "Run the same command to resume {}.\n", options.output);
  return report_end(options, json,
                    {.report = run.report(seconds),
                     .text = std::move(text),
                     .coverage = &run.coverage(),
                     .reached = done.programs,
                     .gave = "gave pairs",
                     .exhausted = run.exhausted(),
                     .interrupted = interrupted()});
}

}  // namespace nereid::cli
