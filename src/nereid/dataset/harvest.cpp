#include "nereid/dataset/harvest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/dataset/harvest_index.h"
#include "nereid/dataset/harvest_labels.h"
#include "nereid/dataset/harvest_packages.h"
#include "nereid/dataset/harvest_progress.h"
#include "nereid/dataset/harvest_worker.h"
#include "nereid/tracer/tracer.h"

namespace nereid::dataset {
namespace {

constexpr size_t kEntriesTogether = 12;  // in one child, which imports the package once
constexpr size_t kTracedTogether = 24;   // tasks in one child
constexpr double kBatchSeconds = 30;     // after which a child begins no more entries
constexpr double kAboutSeconds = 60;
constexpr double kSecondsOfATrace = 10;                // of one task
constexpr size_t kMaxTasks = 2000, kMaxCode = 64'000;  // of one entry

struct PackageFacts {
  std::string version, licence, author;
};

// A text that a child answered.
struct Candidate {
  std::string code, form, class_name, entry;
};

class Harvest {
 public:
  Harvest(const HarvestOptions& options, const Installation& installation)
      : options_(options), installation_(installation), progress_("collecting") {}

  Result<Json> run() {
    NEREID_TRY(worker_, HarvestWorker::start(options_.python, installation_));
    NEREID_TRY_STATUS(resolve_packages());
    NEREID_TRY_STATUS(open());
    NEREID_TRY(tracer_, tracer::Tracer::start({.installation = installation_, .workers = 1, .limits = {}}));
    const double before = seconds_before_;
    const Status status = collect_all();
    seconds_before_ = before + watch_.seconds();
    const bool stopped = !status.ok() && status.error().blame == Blame::kInterrupted;
    NEREID_TRY_STATUS(save());
    if (!status.ok() && !stopped) return status.error();
    Json report = coverage();
    report["interrupted"] = stopped || interrupted();
    NEREID_TRY_STATUS(write_file_atomically(options_.output / "coverage.json", report.dump(1) + "\n"));
    return report;
  }

 private:
  // Of an installed package; nothing where it is not installed.
  Result<std::optional<PackageFacts>> ask_about(const std::string& name) {
    progress_.say(name);
    NEREID_TRY(const HarvestWorker::Reply reply, worker_->ask({{"about", name}}, kAboutSeconds));
    if (!reply.json) return our_error("{}: {}", name, reply.why);
    try {
      const Json& about = *reply.json;
      if (about.contains("missing")) return std::optional<PackageFacts>();
      for (const auto& module : about.at("modules"))
        if (is_refused(module.get<std::string>()))
          return input_error("{} holds the module {}, a benchmark's: it is never collected", name,
                             module.get<std::string>());
      return std::optional(PackageFacts{.version = about.at("version").get<std::string>(),
                                        .licence = about.at("licence").get<std::string>(),
                                        .author = about.at("author").get<std::string>()});
    } catch (const nlohmann::json::exception& e) {
      return our_error("{}: {}", name, e.what());
    }
  }

  // Which packages are there, in which versions; the error names all that are not.
  Status resolve_packages() {
    std::string missing, install;
    packages_ = options_.packages;
    for (const auto& package : packages_) {
      const std::string wanted =
          package.version.empty() ? package.name : package.name + "==" + package.version;
      NEREID_TRY(const auto facts, ask_about(package.name));
      if (facts) facts_[package.name] = *facts;
      if (facts && (package.version.empty() || facts->version == package.version)) continue;
      missing += fmt::format("{}{}{}", missing.empty() ? "" : ", ", wanted,
                             facts ? fmt::format(" (installed: {})", facts->version) : "");
      install += " " + wanted;
    }
    if (!missing.empty())
      return input_error("not installed for {}: {}. Install with: {} -m pip install{}", python().string(),
                         missing, python().string(), install);
    for (const auto& package : options_.held_out_elsewhere) {
      NEREID_TRY(const auto facts, ask_about(package.name));
      if (facts)
        held_out_authors_.merge(authors_of(facts->author));
      else
        fmt::print(stderr,
                   "nereid: {} is held out and not installed, so its authors are not known: other packages "
                   "of theirs are not held out\n",
                   package.name);
    }
    hold_out();
    return ok_status();
  }

  const std::filesystem::path& python() const {
    return options_.python.empty() ? installation_.python : options_.python;
  }

  // Named packages, and those of the same authors. Training packages come first: a held-out task that is one
  // of theirs, too, is dropped.
  void hold_out() {
    for (auto& package : packages_) {
      for (const auto& name : options_.hold_out)
        package.held_out = package.held_out || normalized(name) == normalized(package.name);
      if (package.held_out) held_out_authors_.merge(authors_of(facts_[package.name].author));
    }
    for (auto& package : packages_)
      for (const auto& author : authors_of(facts_[package.name].author))
        package.held_out = package.held_out || held_out_authors_.contains(author);
    std::stable_partition(packages_.begin(), packages_.end(),
                          [](const HarvestPackage& package) { return !package.held_out; });
  }

  // All that decides what is in the folder, but for how much.
  std::string made_by() const {
    std::string text =
        fmt::format("seed {}, max-operators {}, per-module {}, same-structure {}, packages", options_.seed,
                    options_.max_operators, options_.per_entry, options_.same_structure);
    for (const auto& package : packages_)
      text += fmt::format(" {}=={}{}", package.name, facts_.at(package.name).version,
                          package.held_out ? " (held out)" : "");
    return text;
  }

  Status open() {
    std::error_code error;
    std::filesystem::create_directories(options_.output, error);
    if (error)
      return input_error("-o: cannot make the folder {}: {}", options_.output.string(), error.message());
    const auto file = options_.output / "progress.json";
    uint64_t bytes[2] = {0, 0};
    if (std::filesystem::exists(file)) {
      NEREID_TRY(const std::string text, read_file(file));
      NEREID_TRY(const Json json, parse_json(text, file.string()));
      try {
        if (const auto other = json.at("made_by").get<std::string>(); other != made_by())
          return input_error("{} was made with other options ({}; now {}); name another folder",
                             options_.output.string(), other, made_by());
        json.at("bytes").at(0).get_to(bytes[0]), json.at("bytes").at(1).get_to(bytes[1]);
        json.at("seconds").get_to(seconds_before_);
        for (const auto& [name, about] : json.at("packages").items()) done_[name] = package_progress(about);
      } catch (const nlohmann::json::exception& e) {
        return input_error("{}: {}; remove the folder to start over", file.string(), e.what());
      }
    } else if (std::filesystem::exists(options_.output / "train.jsonl")) {
      return input_error("{} holds train.jsonl without progress.json; name another folder",
                         options_.output.string());
    }
    NEREID_TRY(auto train, HarvestLines::open(options_.output / "train.jsonl", bytes[0]));
    NEREID_TRY(auto held_out, HarvestLines::open(options_.output / "held_out.jsonl", bytes[1]));
    sides_.push_back(std::move(train)), sides_.push_back(std::move(held_out));
    for (const auto& side : sides_) NEREID_TRY_STATUS(lines_.read(side.path()));
    Json split = {{"train", Json::array()}, {"held_out", Json::array()}};
    for (const auto& package : packages_)
      split[package.held_out ? "held_out" : "train"].push_back({{"package", package.name},
                                                                {"version", facts_[package.name].version},
                                                                {"author", facts_[package.name].author}});
    NEREID_TRY_STATUS(write_file_atomically(options_.output / "split.json", split.dump(1) + "\n"));
    return save();
  }

  bool out_of_time() const { return options_.seconds > 0 && watch_.seconds() >= options_.seconds; }

  Status collect_all() {
    for (const auto& package : packages_) {
      PackageProgress& done = done_[package.name];
      const Stopwatch watch;
      const double before = done.seconds;
      const Status status = collect(package, done, [&] { done.seconds = before + watch.seconds(); });
      if (!status.ok()) return status;
      if (out_of_time()) break;
    }
    return ok_status();
  }

  bool enough(const PackageProgress& done) const {
    return out_of_time() || (options_.limit > 0 && done.tasks >= options_.limit);
  }

  template <typename Tick>
  Status collect(const HarvestPackage& package, PackageProgress& done, Tick tick) {
    if (done.done || enough(done)) return ok_status();
    progress_.say("importing " + package.name);
    NEREID_TRY(const HarvestWorker::Reply listed,
               worker_->ask({{"list", package.name}}, HarvestWorker::kListSeconds));
    std::vector<std::string> entries;
    try {
      if (!listed.json) throw std::runtime_error(listed.why);
      entries = listed.json->at("entries").get<std::vector<std::string>>();
    } catch (const std::exception& e) {
      count_cause(done.failures, cause_of(fmt::format("cannot be imported: {}", e.what())));
      progress_.note(fmt::format("nereid: {}: cannot be listed: {}", package.name, printable(e.what())));
      done.done = true, tick();
      return save();
    }
    shuffle(entries, package.name);
    done.entries = entries.size();
    while (done.next < entries.size() && !enough(done)) {
      const size_t end = std::min(entries.size(), static_cast<size_t>(done.next) + kEntriesTogether);
      std::vector<std::string> batch(entries.begin() + static_cast<std::ptrdiff_t>(done.next),
                                     entries.begin() + static_cast<std::ptrdiff_t>(end));
      progress_.say(
          fmt::format("{} {} of {}, {} tasks", package.name, done.next, entries.size(), lines_.total()));
      NEREID_TRY_STATUS(collect_batch(package, done, std::move(batch)));
      tick();
      NEREID_TRY_STATUS(save());
    }
    done.done = done.next >= entries.size();
    return save();
  }

  // An order of its own for each seed, the same on every machine.
  void shuffle(std::vector<std::string>& entries, const std::string& package) const {
    std::vector<std::pair<std::string, std::string>> keyed;
    for (auto& entry : entries)
      keyed.emplace_back(sha256_hex(fmt::format("{} {} {}", options_.seed, package, entry)), entry);
    std::ranges::sort(keyed);
    for (size_t i = 0; i < entries.size(); ++i) entries[i] = keyed[i].second;
  }

  // As many of the entries as one child gets through; all of them count as looked at then. Where the child
  // answers nothing, each gets a child of its own, and the ones that end theirs are counted as failed.
  Status collect_batch(const HarvestPackage& package, PackageProgress& done, std::vector<std::string> batch) {
    // Imports, then one entry more than the child begins in its time.
    const double begins = std::min(kBatchSeconds, 2 * options_.entry_seconds);
    const double seconds = 3 * options_.entry_seconds + (batch.size() == 1 ? 0 : begins);
    NEREID_TRY(const HarvestWorker::Reply reply, worker_->ask({{"collect", package.name},
                                                               {"entries", batch},
                                                               {"seconds", begins},
                                                               {"seed", options_.seed},
                                                               {"max_operators", options_.max_operators},
                                                               {"entry_seconds", options_.entry_seconds},
                                                               {"per_entry", options_.per_entry}},
                                                              seconds));
    if (!reply.json) {
      if (batch.size() == 1) {
        ++done.failed, ++done.next;
        count_cause(done.failures, cause_of(reply.why));
        return ok_status();
      }
      for (auto& entry : batch) {
        if (enough(done)) break;
        NEREID_TRY_STATUS(collect_batch(package, done, {std::move(entry)}));
      }
      return ok_status();
    }
    std::vector<Candidate> candidates;
    const size_t answered = read_results(*reply.json, batch, done, candidates);
    NEREID_TRY_STATUS(add(package, done, candidates));
    done.next += std::max<size_t>(1, answered);
    return ok_status();
  }

  // The number of entries that were looked at. The answer is hostile: what is not as expected is left out.
  size_t read_results(const Json& answer, const std::vector<std::string>& batch, PackageProgress& done,
                      std::vector<Candidate>& candidates) {
    const auto text = [](const Json& json, const char* key) {
      const auto found = json.find(key);
      return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    const auto results = answer.is_object() ? answer.find("results") : answer.end();
    if (!answer.is_object() || results == answer.end() || !results->is_array()) {
      count_cause(done.failures, "an answer without results");
      return batch.size();
    }
    size_t looked_at = 0;
    for (const Json& result : *results) {
      if (looked_at >= batch.size() || !result.is_object()) break;
      const std::string& entry = batch[looked_at++];
      if (const std::string error = text(result, "error"); !error.empty()) {
        ++done.failed;
        count_cause(done.failures, cause_of(printable(error)));
        continue;
      }
      const auto tasks = result.find("tasks");
      if (tasks == result.end() || !tasks->is_array()) continue;
      for (const Json& task : *tasks) {
        if (!task.is_object() || candidates.size() >= kMaxTasks * kEntriesTogether) break;
        Candidate one{.code = text(task, "code"),
                      .form = text(task, "form") == "author" ? "author" : "subgraph",
                      .class_name = text(task, "class").substr(0, 200),
                      .entry = entry};
        if (!one.code.empty() && one.code.size() <= kMaxCode) candidates.push_back(std::move(one));
      }
    }
    return looked_at;
  }

  Status add(const HarvestPackage& package, PackageProgress& done, std::vector<Candidate>& candidates) {
    std::vector<Candidate> fresh;
    for (auto& one : candidates) {
      ++done.texts;
      if (lines_.add_text(one.code))
        fresh.push_back(std::move(one));
      else
        count_cause(done.dropped, "equal text");
    }
    for (size_t first = 0; first < fresh.size(); first += kTracedTogether) {
      const size_t last = std::min(fresh.size(), first + kTracedTogether);
      std::vector<tracer::TraceRequest> requests;
      for (size_t i = first; i < last; ++i)
        requests.push_back({.source = fresh[i].code, .calls = 1, .seconds = kSecondsOfATrace});
      NEREID_TRY(const auto answers, tracer_->trace_several(requests, Deadline::after(HarvestWorker::kWait)));
      for (size_t i = first; i < last; ++i)
        NEREID_TRY_STATUS(add_traced(package, done, fresh[i], answers[i - first]));
    }
    return ok_status();
  }

  Status add_traced(const HarvestPackage& package, PackageProgress& done, const Candidate& one,
                    const tracer::TraceAnswer& answer) {
    const auto* trace = std::get_if<trace::Trace>(&answer);
    if (trace == nullptr) {
      const auto* why = std::get_if<tracer::Untraceable>(&answer);
      count_cause(done.dropped, why != nullptr ? "untraceable: " + why->type : "untraceable");
      return ok_status();
    }
    const auto labels = harvest_labels(*trace);
    if (!labels.ok()) return count_cause(done.dropped, labels.error().message), ok_status();
    if (labels->operators.size() > static_cast<size_t>(options_.max_operators))
      return count_cause(done.dropped, "more operators than --max-operators"), ok_status();
    if (const auto why = lines_.rejection_reason(*labels, package.held_out, options_.same_structure);
        !why.empty())
      return count_cause(done.dropped, why), ok_status();
    const PackageFacts& facts = facts_[package.name];
    const Json line = {{"id", "H-" + labels->digest.substr(0, 16)},
                       {"package", package.name},
                       {"version", facts.version},
                       {"licence", facts.licence},
                       {"author", facts.author},
                       {"entry", one.entry},
                       {"class", one.class_name},
                       {"form", one.form},
                       {"split", package.held_out ? "held-out" : "train"},
                       {"operators", labels->operators},
                       {"classes", labels->classes},
                       {"difficulty", labels->difficulty},
                       {"inputs", labels->inputs},
                       {"flops", labels->flops},
                       {"bytes", labels->bytes},
                       {"digest", labels->digest},
                       {"structure", labels->structure},
                       {"code", one.code}};
    NEREID_TRY_STATUS(sides_[package.held_out ? 1 : 0].append(
        line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"));
    lines_.add(line);
    ++done.tasks;
    return ok_status();
  }

  Status save() {
    for (const auto& side : sides_) NEREID_TRY_STATUS(side.sync());
    Json packages = Json::object();
    for (const auto& [name, done] : done_) packages[name] = to_json(done);
    const Json json = {{"made_by", made_by()},
                       {"bytes", {sides_[0].bytes(), sides_[1].bytes()}},
                       {"seconds", seconds_before_},
                       {"packages", packages}};
    return write_file_atomically(options_.output / "progress.json",
                                 json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  Json coverage() const {
    Json packages = Json::array();
    for (const auto& package : packages_) {
      const auto found = done_.find(package.name);
      const PackageProgress done = found == done_.end() ? PackageProgress() : found->second;
      const PackageFacts& facts = facts_.at(package.name);
      Json one = to_json(done);
      one["package"] = package.name, one["version"] = facts.version, one["licence"] = facts.licence;
      one["split"] = package.held_out ? "held-out" : "train";
      one["tasks_per_minute"] = done.seconds > 0 ? 60 * static_cast<double>(done.tasks) / done.seconds : 0;
      packages.push_back(std::move(one));
    }
    return {{"tasks", lines_.total()},
            {"structures", lines_.structures()},
            {"seconds", seconds_before_},
            {"packages", std::move(packages)},
            {"counts", lines_.counts()},
            {"seed", options_.seed},
            {"max_operators", options_.max_operators}};
  }

  const HarvestOptions& options_;
  const Installation& installation_;
  Progress progress_;
  std::unique_ptr<HarvestWorker> worker_;
  std::unique_ptr<tracer::Tracer> tracer_;
  std::vector<HarvestPackage> packages_;
  std::map<std::string, PackageFacts> facts_;
  std::set<std::string> held_out_authors_;
  std::map<std::string, PackageProgress> done_;
  std::vector<HarvestLines> sides_;
  HarvestIndex lines_;
  double seconds_before_ = 0;
  Stopwatch watch_;
};

}  // namespace

Result<Json> harvest(const HarvestOptions& options, const Installation& installation) {
  return Harvest(options, installation).run();
}

}  // namespace nereid::dataset
