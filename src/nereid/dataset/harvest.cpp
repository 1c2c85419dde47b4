#include "nereid/dataset/harvest.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/dataset/harvest_labels.h"
#include "nereid/dataset/harvest_packages.h"
#include "nereid/dataset/harvest_progress.h"
#include "nereid/sandbox/zygote/zygote.h"
#include "nereid/tracer/tracer.h"

namespace nereid::dataset {
namespace {

constexpr size_t kEntriesTogether = 12;  // in one child, which imports the package once
constexpr size_t kTracedTogether = 24;   // tasks in one child
constexpr double kBatchSeconds = 30;     // after which a child begins no more entries
constexpr double kAboutSeconds = 60;
constexpr double kListSeconds = 600;     // imports of all modules of a large package
constexpr double kSecondsOfATrace = 10;  // of one task
constexpr double kWait = 3600;
constexpr size_t kMostTasks = 2000, kMostCode = 64'000;  // of one entry

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
    NEREID_TRY_STATUS(start_worker());
    NEREID_TRY_STATUS(ask_about_all());
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
  Status start_worker() {
    Installation installation = installation_;
    if (!options_.python.empty()) installation.python = options_.python;
    sandbox::ZygoteOptions zygote{.installation = installation, .module = "nereid._harvest"};
    zygote.children = 1;
    zygote.limits.memory_bytes = int64_t{8} << 30;
    zygote.limits.cpu_seconds = static_cast<int64_t>(kListSeconds);
    NEREID_TRY(worker_, sandbox::Zygote::start(zygote));
    return ok_status();
  }

  // A child's answer as JSON; nothing where it gave none, with the reason.
  struct Asked {
    std::optional<Json> json{};
    std::string why{};
  };
  Result<Asked> ask(const Json& request, double seconds) {
    NEREID_TRY(const auto outcome, worker_->run(request.dump(), seconds, Deadline::after(kWait)));
    Asked asked;
    if (const auto* answer = std::get_if<sandbox::Answer>(&outcome)) {
      auto json = parse_json(answer->bytes, "a child's answer");
      if (!json.ok()) return asked.why = "an answer that is no JSON", asked;
      if (json->is_object() && json->contains("failed") && (*json)["failed"].is_string()) {
        std::string words = (*json)["failed"].get<std::string>();
        while (!words.empty() && words.back() == '\n') words.pop_back();
        return asked.why = words.substr(words.rfind('\n') + 1), asked;
      }
      asked.json = *std::move(json);
    } else if (const auto* late = std::get_if<sandbox::OutOfTime>(&outcome)) {
      asked.why = fmt::format("took longer than {:g} s", late->seconds);
    } else {
      asked.why = "ended by itself or a limit: " + std::get<sandbox::Killed>(outcome).limit;
    }
    return asked;
  }

  // Which packages are there, in which versions; the error names all that are not.
  Status ask_about_all() {
    std::string missing, install;
    packages_ = options_.packages;
    for (auto& package : packages_) {
      progress_.say(package.name);
      NEREID_TRY(const Asked asked, ask({{"about", package.name}}, kAboutSeconds));
      if (!asked.json) return our_error("{}: {}", package.name, asked.why);
      try {
        const Json& about = *asked.json;
        const std::string wanted =
            package.version.empty() ? package.name : package.name + "==" + package.version;
        if (about.contains("missing")) {
          missing += fmt::format("{}{}", missing.empty() ? "" : ", ", wanted);
          install += " " + wanted;
          continue;
        }
        for (const auto& name : about.at("modules"))
          if (is_refused(name.get<std::string>()))
            return input_error("{} holds the module {}, a benchmark's: it is never collected", package.name,
                               name.get<std::string>());
        PackageFacts& facts = facts_[package.name];
        about.at("version").get_to(facts.version), about.at("licence").get_to(facts.licence);
        about.at("author").get_to(facts.author);
        if (!package.version.empty() && facts.version != package.version) {
          missing += fmt::format("{}{} (installed: {})", missing.empty() ? "" : ", ", wanted, facts.version);
          install += " " + wanted;
        }
      } catch (const nlohmann::json::exception& e) {
        return our_error("{}: {}", package.name, e.what());
      }
    }
    if (!missing.empty())
      return input_error("not installed for {}: {}. Install with: {} -m pip install{}", python().string(),
                         missing, python().string(), install);
    hold_out();
    return ok_status();
  }

  const std::filesystem::path& python() const {
    return options_.python.empty() ? installation_.python : options_.python;
  }

  // Named packages, and those of the same authors. Training packages come first: a held-out task that is one
  // of theirs, too, is dropped.
  void hold_out() {
    std::set<std::string> authors;
    for (auto& package : packages_) {
      for (const auto& name : options_.hold_out)
        package.held_out = package.held_out || normalized(name) == normalized(package.name);
      if (package.held_out) authors.merge(authors_of(facts_[package.name].author));
    }
    for (auto& package : packages_)
      for (const auto& author : authors_of(facts_[package.name].author))
        package.held_out = package.held_out || authors.contains(author);
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
    for (const auto& side : sides_) NEREID_TRY_STATUS(remember(side.path()));
    Json split = {{"train", Json::array()}, {"held_out", Json::array()}};
    for (const auto& package : packages_)
      split[package.held_out ? "held_out" : "train"].push_back({{"package", package.name},
                                                                {"version", facts_[package.name].version},
                                                                {"author", facts_[package.name].author}});
    NEREID_TRY_STATUS(write_file_atomically(options_.output / "split.json", split.dump(1) + "\n"));
    return save();
  }

  // What the lines of an earlier run hold.
  Status remember(const std::filesystem::path& path) {
    NEREID_TRY(const std::string text, read_file(path, size_t{8} << 30));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      NEREID_TRY(const Json json, parse_json(line, path.string()));
      try {
        note(json);
        texts_.insert(sha256_hex(json.at("code").get<std::string>()));
      } catch (const nlohmann::json::exception& e) {
        return input_error("{}: {}; remove the folder to start over", path.string(), e.what());
      }
    }
    return ok_status();
  }

  // Counts a line, and knows it from now on.
  void note(const Json& line) {
    digests_.insert(line.at("digest").get<std::string>());
    const auto structure = line.at("structure").get<std::string>();
    ++structures_[structure];
    const auto split = line.at("split").get<std::string>();
    if (split == "train") in_training_.insert(structure);
    ++counts_["split"][split];
    ++counts_["package"][line.at("package").get<std::string>()];
    ++counts_["licence"][line.at("licence").get<std::string>()];
    ++counts_["difficulty"][line.at("difficulty").get<std::string>()];
    ++counts_["form"][line.at("form").get<std::string>()];
    ++counts_["operator_count"][std::to_string(line.at("operators").size())];
    std::set<std::string> operators, classes;
    for (const auto& name : line.at("operators")) operators.insert(name.get<std::string>());
    for (const auto& name : line.at("classes")) classes.insert(name.get<std::string>());
    for (const auto& name : operators) ++counts_["operator"][name];
    for (const auto& name : classes) ++counts_["operator_class"][name];
    ++total_;
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
    NEREID_TRY(const Asked listed, ask({{"list", package.name}}, kListSeconds));
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
      progress_.say(fmt::format("{} {} of {}, {} tasks", package.name, done.next, entries.size(), total_));
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
    NEREID_TRY(const Asked asked, ask({{"collect", package.name},
                                       {"entries", batch},
                                       {"seconds", begins},
                                       {"seed", options_.seed},
                                       {"max_operators", options_.max_operators},
                                       {"entry_seconds", options_.entry_seconds},
                                       {"per_entry", options_.per_entry}},
                                      seconds));
    if (!asked.json) {
      if (batch.size() == 1) {
        ++done.failed, ++done.next;
        count_cause(done.failures, cause_of(asked.why));
        return ok_status();
      }
      for (auto& entry : batch) {
        if (enough(done)) break;
        NEREID_TRY_STATUS(collect_batch(package, done, {std::move(entry)}));
      }
      return ok_status();
    }
    std::vector<Candidate> candidates;
    const size_t answered = read_results(*asked.json, batch, done, candidates);
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
        if (!task.is_object() || candidates.size() >= kMostTasks * kEntriesTogether) break;
        Candidate one{.code = text(task, "code"),
                      .form = text(task, "form") == "author" ? "author" : "subgraph",
                      .class_name = text(task, "class").substr(0, 200),
                      .entry = entry};
        if (!one.code.empty() && one.code.size() <= kMostCode) candidates.push_back(std::move(one));
      }
    }
    return looked_at;
  }

  Status add(const HarvestPackage& package, PackageProgress& done, std::vector<Candidate>& candidates) {
    std::vector<Candidate> fresh;
    for (auto& one : candidates) {
      ++done.texts;
      if (texts_.insert(sha256_hex(one.code)).second)
        fresh.push_back(std::move(one));
      else
        count_cause(done.dropped, "equal text");
    }
    for (size_t first = 0; first < fresh.size(); first += kTracedTogether) {
      const size_t last = std::min(fresh.size(), first + kTracedTogether);
      std::vector<tracer::TraceRequest> requests;
      for (size_t i = first; i < last; ++i)
        requests.push_back({.source = fresh[i].code, .calls = 1, .seconds = kSecondsOfATrace});
      NEREID_TRY(const auto answers, tracer_->trace_several(requests, Deadline::after(kWait)));
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
    if (digests_.contains(labels->digest))
      return count_cause(done.dropped, "equal canonical trace"), ok_status();
    if (package.held_out && in_training_.contains(labels->structure))
      return count_cause(done.dropped, "held out, and its structure is in training"), ok_status();
    if (const auto known = structures_.find(labels->structure);
        known != structures_.end() && known->second >= static_cast<uint64_t>(options_.same_structure))
      return count_cause(done.dropped, "structure known in enough sizes"), ok_status();
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
    note(line);
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
    return {{"tasks", total_},
            {"structures", structures_.size()},
            {"seconds", seconds_before_},
            {"packages", std::move(packages)},
            {"counts", counts_},
            {"seed", options_.seed},
            {"max_operators", options_.max_operators}};
  }

  const HarvestOptions& options_;
  const Installation& installation_;
  Progress progress_;
  std::unique_ptr<sandbox::Zygote> worker_;
  std::unique_ptr<tracer::Tracer> tracer_;
  std::vector<HarvestPackage> packages_;
  std::map<std::string, PackageFacts> facts_;
  std::map<std::string, PackageProgress> done_;
  std::vector<HarvestLines> sides_;
  std::unordered_set<std::string> texts_, digests_, in_training_;
  std::unordered_map<std::string, uint64_t> structures_;
  std::map<std::string, std::map<std::string, uint64_t>> counts_;
  uint64_t total_ = 0;
  double seconds_before_ = 0;
  Stopwatch watch_;
};

}  // namespace

Result<Json> harvest(const HarvestOptions& options, const Installation& installation) {
  return Harvest(options, installation).run();
}

}  // namespace nereid::dataset
