#include "nereid/mutate/campaign.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>

#include "nereid/base/file.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/thread_pool.h"
#include "nereid/verify/analysis/kernel_library.h"

namespace nereid::mutate {
namespace {

constexpr const char* kResultsFile = "results.jsonl";
constexpr const char* kText = "class ModelNew: pass\n";  // never read: the trace is given

// results.jsonl: a first line with the settings, then a line for each result.
class ResultFile {
 public:
  static Result<std::unique_ptr<ResultFile>> open(const CampaignOptions& options) {
    std::error_code failure;
    std::filesystem::create_directories(options.folder, failure);
    if (failure) return input_error("{}: {}", options.folder.string(), failure.message());
    auto file = std::unique_ptr<ResultFile>(new ResultFile);
    file->path_ = options.folder / kResultsFile;
    const std::string settings = Json{
        {"nereid_mutation", 1},
        {"seed", options.seed},
        {"mutants_each", options.mutants_each},
        {"rewrites_each",
         options.rewrites_each}}.dump();
    if (std::filesystem::exists(file->path_)) NEREID_TRY_STATUS(file->read(settings));
    std::string text = settings + "\n";
    for (const auto& line : file->results_)
      text += to_json(line).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    NEREID_TRY_STATUS(write_file_atomically(file->path_, text));  // without a line that a kill cut short
    file->out_.open(file->path_, std::ios::app);
    return file;
  }

  const std::vector<ResultLine>& results() const { return results_; }
  bool has(const std::string& id) const { return done_.contains(id); }
  const ResultLine* find(const std::string& id) const {
    const auto found = done_.find(id);
    return found == done_.end() ? nullptr : &results_[found->second];
  }

  Status add(ResultLine line) {
    const std::lock_guard lock(mutex_);
    out_ << to_json(line).dump(-1, ' ', false, Json::error_handler_t::replace) << "\n" << std::flush;
    if (!out_) return our_error("{} cannot be written", path_.string());
    new_.push_back(std::move(line));
    return ok_status();
  }
  std::vector<ResultLine> all() {
    std::vector<ResultLine> all = std::move(results_);
    std::move(new_.begin(), new_.end(), std::back_inserter(all));
    return all;
  }

 private:
  ResultFile() = default;

  Status read(const std::string& settings) {
    NEREID_TRY(const auto text, read_file(path_));
    std::istringstream lines(text);
    std::string line;
    if (!std::getline(lines, line) || line != settings)
      return input_error("{} holds results of other settings ({}): expected {}; choose another folder",
                         path_.string(), line.substr(0, 200), settings);
    for (int number = 2; std::getline(lines, line); ++number) {
      const std::string what = fmt::format("{}:{}", path_.string(), number);
      const auto json = parse_json(line, what);
      if (!json.ok() && lines.eof()) break;  // cut short by a kill
      if (!json.ok()) return json.error();
      NEREID_TRY(auto result, result_from_json(*json, what));
      if (result.our_error) continue;
      done_[result.id] = results_.size();
      results_.push_back(std::move(result));
    }
    return ok_status();
  }

  std::filesystem::path path_;
  std::ofstream out_;
  std::mutex mutex_;
  std::vector<ResultLine> results_, new_;
  std::map<std::string, size_t> done_;
};

// The judge, whose traces are given by name.
class TraceJudge {
 public:
  TraceJudge(replay::Server& server, const CampaignOptions& options)
      : judge_(
            {.trace = [this](const tracer::TraceRequest& request, Deadline) { return given(request.path); },
             .replay =
                 [&server](const trace::Trace& reference, const trace::Trace& candidate,
                           const replay::SessionOptions& session, Deadline deadline) {
                   return server.begin(reference, candidate, session, deadline);
                 },
             .analyze = [this](const trace::Trace& trace) { return verify::analyze_trace(trace, kernels_); }},
            settings_of(options)) {}

  // A verdict that the deadline cut short is an Error.
  verify::Verdict judge(const Subject& subject, const std::string& id, const trace::Trace& candidate,
                        Deadline deadline) {
    const std::string reference = "reference of " + subject.id;
    {
      const std::lock_guard lock(mutex_);
      traces_[reference] = subject.reference.get();
      traces_[id] = &candidate;
    }
    verify::Pair pair;
    pair.reference_name = pair.reference_source = reference;
    pair.candidate_name = id, pair.candidate_text = kText, pair.form = verify::Pair::Form::kSource;
    pair.settings.policy = subject.policy, pair.deadline = deadline;
    auto verdict = judge_.judge(pair);
    const std::lock_guard lock(mutex_);
    traces_.erase(id);
    return verdict;
  }

 private:
  static verify::Settings settings_of(const CampaignOptions& options) {
    verify::Settings settings;
    settings.seed = options.seed, settings.threads = 1, settings.time_limit = options.time_limit;
    return settings;
  }

  Result<tracer::TraceAnswer> given(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = traces_.find(name);
    if (found == traces_.end()) return our_error("no trace is named {}", name);
    return tracer::TraceAnswer(*found->second);
  }

  std::mutex mutex_;
  std::map<std::string, const trace::Trace*> traces_;
  verify::KernelLibrary kernels_;
  verify::Judge judge_;
};

void take_verdict(const verify::Verdict& verdict, ResultLine& line) {
  line.verdict = verify::to_string(verdict.kind);
  line.our_error = verdict.kind == verify::VerdictKind::kError && !verdict.input_to_blame;
  if (!verdict.evidence.empty()) {
    line.rule = verdict.evidence.front().rule;
    line.sentence = verdict.evidence.front().sentence.substr(0, 600);
  }
  if (verdict.errors) line.inputs = verdict.errors->inputs;
}

void take_mutant(const Mutant& mutant, ResultLine& line) {
  line.fault = mutant.fault, line.what = mutant.what, line.kernel = mutant.kernel, line.file = mutant.file;
  line.line = mutant.line, line.source = mutant.source, line.before = mutant.before,
  line.after = mutant.after;
}

class Campaign {
 public:
  Campaign(replay::Server& server, ResultFile& file, const CampaignOptions& options)
      : server_(server), file_(file), options_(options), judge_(server, options) {}

  Result<CampaignEnd> run(const std::vector<Source>& sources, bool keep_subjects) {
    keep_subjects_ = keep_subjects;
    NEREID_TRY_STATUS(load(sources));
    choose();
    NEREID_TRY_STATUS(judge_mutants());
    end_.results = file_.all();
    end_.interrupted = interrupted();
    return std::move(end_);
  }

 private:
  struct Loaded {
    Subject subject;
    std::vector<Mutant> mutants;
    std::unique_ptr<WitnessSearch> search;
  };
  struct Item {
    Loaded* of;
    const Mutant* mutant;
    std::string id;
  };

  Status load(const std::vector<Source>& sources) {
    Progress progress("candidates judged", static_cast<int64_t>(sources.size()));
    ThreadPool pool(options_.jobs);
    pool.parallel_for(static_cast<int64_t>(sources.size()), [&](int64_t i, int) {
      if (interrupted() || failed()) return;
      const auto& source = sources[static_cast<size_t>(i)];
      auto subjects = source.load(until_);
      if (subjects.ok())
        for (auto& subject : *subjects) take(judge_honest(std::move(subject)));
      {
        const std::lock_guard lock(mutex_);
        if (until_.passed())
          ++end_.sources_left;
        else if (!subjects.ok() && !interrupted())
          end_.not_loaded.push_back(source.id + ": " + subjects.error().message);
      }
      progress.advance();
    });
    return failure_ ? Status(*failure_) : ok_status();
  }

  // The subject's own verdict, and those of what is as honest.
  Status judge_honest(Subject subject) {
    ResultLine line{.kind = ResultLine::Kind::kHonest, .id = subject.id, .subject = subject.id};
    if (const auto* done = file_.find(subject.id)) {
      line = *done;
    } else {
      const Stopwatch watch;
      const auto verdict = judge_.judge(subject, subject.id, *subject.candidate, until_);
      if (interrupted() || until_.passed()) return ok_status();
      take_verdict(verdict, line);
      line.seconds = watch.seconds();
      NEREID_TRY_STATUS(file_.add(line));
    }
    if (!line.verified()) return ok_status();
    if (subject.mutated)
      for (const auto& rewrite : rewrites_of(subject, options_.seed, options_.rewrites_each))
        NEREID_TRY_STATUS(judge_rewrite(subject, rewrite));
    auto loaded = std::make_unique<Loaded>();
    const bool slow = line.seconds > options_.slowest;
    if (subject.mutated && !slow) loaded->mutants = mutants_of(subject, options_.seed, options_.mutants_each);
    loaded->subject = std::move(subject);
    loaded->search = std::make_unique<WitnessSearch>(server_, loaded->subject, options_.time_limit, until_);
    const std::lock_guard lock(mutex_);
    if (keep_subjects_) end_.subjects.push_back(loaded->subject);
    end_.slow += loaded->subject.mutated && slow ? 1 : 0;
    if (!loaded->mutants.empty()) loaded_.push_back(std::move(loaded));
    return ok_status();
  }

  Status judge_rewrite(const Subject& subject, const Mutant& rewrite) {
    ResultLine line{.kind = ResultLine::Kind::kHonest, .subject = subject.id};
    line.id = fmt::format("{}~{}-{}", subject.id, rewrite.kernel, number_of(subject.id));
    if (interrupted() || until_.passed() || file_.has(line.id)) return ok_status();
    take_mutant(rewrite, line);
    const Stopwatch watch;
    const auto verdict = judge_.judge(subject, line.id, applied(subject, rewrite), until_);
    if (interrupted() || until_.passed()) return ok_status();
    take_verdict(verdict, line);
    line.seconds = watch.seconds();
    return file_.add(std::move(line));
  }
  int number_of(const std::string& subject) {
    const std::lock_guard lock(mutex_);
    return rewrites_[subject]++;
  }

  // In an order that the seed alone decides, so that the first of them are a fair sample: a few of one
  // candidate, for which its reference is prepared once, then a few of another.
  void choose() {
    std::ranges::sort(loaded_, {}, [](const auto& loaded) { return loaded->subject.id; });
    const auto wanted = [&](Fault fault) {
      return options_.faults.empty() || std::ranges::find(options_.faults, fault) != options_.faults.end();
    };
    std::vector<std::vector<Item>> groups;
    for (const auto& loaded : loaded_) {
      groups.emplace_back();
      for (size_t m = 0; m < loaded->mutants.size(); ++m) {
        if (!wanted(loaded->mutants[m].fault)) continue;
        if (groups.back().size() == kGroup) groups.emplace_back();
        groups.back().push_back(
            {loaded.get(), &loaded->mutants[m], fmt::format("{}#{}", loaded->subject.id, m)});
      }
    }
    std::mt19937_64 random(options_.seed + 1);
    std::ranges::shuffle(groups, random);
    for (const auto& group : groups) std::ranges::copy(group, std::back_inserter(items_));
    std::erase_if(items_, [&](const Item& item) { return file_.has(item.id); });
    const auto most = options_.limit > 0 ? static_cast<size_t>(options_.limit) : items_.size();
    end_.left = static_cast<int64_t>(items_.size());
    if (items_.size() > most) items_.resize(most);
  }

  Status judge_mutants() {
    if (items_.empty()) return ok_status();
    Progress progress("mutants judged", static_cast<int64_t>(items_.size()));
    ThreadPool pool(options_.jobs);
    std::atomic<int64_t> judged = 0, witnessed = 0, survived = 0;
    pool.parallel_for(static_cast<int64_t>(items_.size()), [&](int64_t i, int) {
      if (interrupted() || failed() || until_.passed()) return;
      auto line = judge_mutant(items_[static_cast<size_t>(i)]);
      if (interrupted() || until_.passed()) return;
      if (line.ok()) {
        witnessed += line->witness ? 1 : 0;
        survived += line->witness && line->verified() ? 1 : 0;
        ++judged;
        take(file_.add(*std::move(line)));
      } else {
        const std::lock_guard lock(mutex_);
        ++errors_;
        if (errors_ <= kMaxErrors)
          end_.not_loaded.push_back(items_[static_cast<size_t>(i)].id + ": " + line.error().message);
      }
      progress.advance();
      progress.say(fmt::format("{} witnessed, {} of them survived", witnessed.load(), survived.load()));
    });
    end_.left -= judged;
    return failure_ ? Status(*failure_) : ok_status();
  }

  Result<ResultLine> judge_mutant(const Item& item) {
    const Subject& subject = item.of->subject;
    const trace::Trace mutated = applied(subject, *item.mutant);
    ResultLine line{.id = item.id, .subject = subject.id};
    take_mutant(*item.mutant, line);
    const Stopwatch watch;
    NEREID_TRY(const auto searched, item.of->search->search(*item.mutant, mutated));
    line.witness = searched.witness, line.trials = searched.trials;
    line.kernelbench = searched.kernelbench;
    take_verdict(judge_.judge(subject, item.id, mutated, until_), line);
    line.seconds = watch.seconds();
    return line;
  }

  static constexpr int kMaxErrors = 20;
  static constexpr size_t kGroup = 16;  // mutants of one candidate after each other

  void take(const Status& status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && !failure_) failure_ = status.error();
  }
  bool failed() {
    const std::lock_guard lock(mutex_);
    return failure_.has_value();
  }

  replay::Server& server_;
  ResultFile& file_;
  const CampaignOptions& options_;
  const Deadline until_ = options_.until;
  TraceJudge judge_;
  bool keep_subjects_ = false;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Loaded>> loaded_;
  std::vector<Item> items_;
  std::map<std::string, int> rewrites_;
  std::optional<Error> failure_;
  int errors_ = 0;
  CampaignEnd end_;
};

}  // namespace

Result<CampaignEnd> run_campaign(const std::vector<Source>& sources, const CampaignOptions& options,
                                 bool keep_subjects) {
  NEREID_TRY(const auto file, ResultFile::open(options));
  NEREID_TRY(const auto server, replay::Server::start({.one_author = true}));
  return Campaign(*server, *file, options).run(sources, keep_subjects);
}

}  // namespace nereid::mutate
