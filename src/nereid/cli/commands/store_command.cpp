#include <ctime>

#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/base/program/progress.h"
#include "nereid/cli/command_group.h"
#include "nereid/cli/common.h"
#include "nereid/cli/output.h"
#include "nereid/cli/version.h"
#include "nereid/store/identity.h"
#include "nereid/store/store.h"

namespace nereid::cli {
namespace {

constexpr const char* kStoreExamples =
    R"(The store keeps results of `optimize` and `eval`, so that no work is done twice: verdicts, times,
proposals (with their source) and runs. A key holds all that a result depends on: task, settings, hardware and
versions. The store is --store, else $NEREID_STORE, else $XDG_DATA_HOME/nereid/store.db, else
~/.local/share/nereid/store.db. It may be deleted at any time. A path is an SQLite file;
postgresql://USER@HOST:PORT/DATABASE is the schema `nereid` of a PostgreSQL database, which many machines may
share. Its password belongs in ~/.pgpass or $PGPASSWORD: other users can see command lines.

Examples:
  nereid store                                    number of records of each kind, and the store's size
  nereid store list --kind verdict --state Mismatch
  nereid store show 3fa8                          one record (by its key's first digits), with its source
  nereid store prune --older-than 30d             remove old records
  nereid store prune --other-versions --dry-run   number of records of other builds
  nereid store check                              is it whole? exit code 1: it is damaged
  nereid store copy postgresql://me@db/kernels    from this store to a database; again: what is new
  NEREID_STORE=postgresql://me@db/kernels nereid store)";

struct StoreOptions {
  std::string address, target;
  std::string kind, task, state, key, older_than;
  bool other_versions = false, dry_run = false, all = false;
  int64_t limit = 40;
};

Result<std::unique_ptr<store::Store>> open(const StoreOptions& options) {
  return store::Store::open(options.address.empty() ? store::Store::default_address() : options.address);
}

std::string time_text(int64_t made) {
  const auto time = static_cast<std::time_t>(made);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return {text, size};
}

Result<store::Filter> filter_of(const StoreOptions& options) {
  store::Filter filter{
      .key = options.key, .task = options.task, .state = options.state, .most = options.limit};
  if (!options.kind.empty()) filter.kind = store::kind_from_string(options.kind);
  if (!options.older_than.empty()) {
    NEREID_TRY(const double age, seconds_from(options.older_than, "--older-than", false));
    filter.made_before = static_cast<int64_t>(std::time(nullptr)) - static_cast<int64_t>(age);
  }
  if (options.other_versions) {
    NEREID_TRY(const auto installation, Installation::locate());
    filter.other_versions_than = store::versions(installation, NEREID_VERSION);
  }
  return filter;
}

Json record_json(const store::Record& record) {
  Json json = {{"key", record.key.hash()},
               {"kind", to_string(record.key.kind)},
               {"task", record.key.task},
               {"subject", record.key.subject},
               {"question", record.key.question},
               {"hardware", record.key.hardware},
               {"versions", record.key.versions},
               {"state", record.state},
               {"ms", record.milliseconds ? Json(*record.milliseconds) : Json()},
               {"made", record.made}};
  auto document = parse_json(record.document, "document");
  json["document"] = document.ok() ? *std::move(document) : Json(record.document);
  return json;
}

Result<Answer> summarize(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto store, open(options));
  NEREID_TRY(const int64_t bytes, store->bytes());
  Json counts = Json::object();
  for (const auto kind :
       {store::Kind::kVerdict, store::Kind::kTime, store::Kind::kProposal, store::Kind::kRun}) {
    NEREID_TRY(const int64_t count, store->count({.kind = kind}));
    counts[std::string(to_string(kind))] = count;
  }
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line({{"path", store->name()},
                                              {"bytes", bytes},
                                              {"schema", store::Store::kSchema},
                                              {"records", counts}})));
    return Answer::kYes;
  }
  std::string text = fmt::format("{}: {:.1f} MB\n", store->name(), static_cast<double>(bytes) / 1e6);
  for (const auto& [kind, count] : counts.items())
    text += fmt::format("{:>8} {}{}\n", count.get<int64_t>(), kind, count == 1 ? "" : "s");
  NEREID_TRY_STATUS(write_text(text));
  return Answer::kYes;
}

Result<Answer> list(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto store, open(options));
  NEREID_TRY(const auto filter, filter_of(options));
  NEREID_TRY(const auto records, store->list(filter));
  std::string text;
  for (const auto& record : records) {
    if (json)
      text += json_line(record_json(record));
    else
      text += fmt::format("{}  {}  {:8}  {:12}  {:>10}  task {}  {}\n", record.key.hash().substr(0, 10),
                          time_text(record.made), to_string(record.key.kind), record.state.substr(0, 12),
                          record.milliseconds ? fmt::format("{:.4f} ms", *record.milliseconds) : "",
                          record.key.task.substr(0, 10), record.key.subject.substr(0, 16));
  }
  NEREID_TRY_STATUS(write_text(text));
  if (std::ssize(records) == options.limit)
    fmt::print(stderr, "the newest {}; --limit shows more\n", options.limit);
  return Answer::kYes;
}

Result<Answer> show(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto store, open(options));
  NEREID_TRY(const auto found, store->list({.key = options.key, .most = 2}));
  if (found.empty()) return input_error("no record's key begins with '{}'", options.key);
  if (found.size() > 1) return input_error("several keys begin with '{}': give more digits", options.key);
  Json document = record_json(found.front());
  for (const char* field : {"task", "subject", "state"}) {
    NEREID_TRY(const auto text, store->text(document[field].get<std::string>()));
    if (text) document[std::string(field) + "_source"] = *text;
  }
  if (json) {
    NEREID_TRY_STATUS(write_stdout(json_line(document)));
    return Answer::kYes;
  }
  std::string text;
  for (const auto& [field, value] : document.items())
    if (!field.ends_with("_source") && field != "document")
      text += fmt::format("{:10} {}\n", field, value.is_string() ? value.get<std::string>() : value.dump());
  text += document["document"].dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (const char* field : {"task_source", "subject_source", "state_source"})
    if (document.contains(field))
      text += fmt::format("\n--- {}\n{}\n", field, document[field].get<std::string>());
  NEREID_TRY_STATUS(write_text(text));
  return Answer::kYes;
}

Result<Answer> prune(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto filter, filter_of(options));
  const bool some = filter.made_before || filter.kind || !filter.task.empty() || !filter.state.empty() ||
                    !filter.other_versions_than.empty();
  if (!some && !options.all)
    return input_error(
        "which records? --older-than, --other-versions, --kind, --task or --state, or --all for every one");
  NEREID_TRY(const auto store, open(options));
  NEREID_TRY(const int64_t count, options.dry_run ? store->count(filter) : store->prune(filter));
  const std::string done = options.dry_run ? "would be removed" : "removed";
  NEREID_TRY_STATUS(write_stdout(json ? json_line({{options.dry_run ? "would_remove" : "removed", count}})
                                      : fmt::format("{} record{} {}\n", count, count == 1 ? "" : "s", done)));
  return Answer::kYes;
}

Result<Answer> check(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto store, open(options));
  NEREID_TRY(const std::string trouble, store->check());
  NEREID_TRY_STATUS(write_stdout(json ? json_line({{"ok", trouble.empty()}, {"trouble", trouble}})
                                      : (trouble.empty() ? "ok" : trouble) + "\n"));
  return trouble.empty() ? Answer::kYes : Answer::kNo;
}

// One record with its texts, where the other store has none as new for its key.
Result<bool> copy_record(store::Store& from, store::Store& to, const store::Record& record) {
  NEREID_TRY(const auto there, to.find(record.key));
  if (there && there->made >= record.made) return false;
  for (const std::string& hash : {record.key.task, record.key.subject, record.state}) {
    NEREID_TRY(const auto text, from.text(hash));
    if (!text) continue;
    NEREID_TRY([[maybe_unused]] const auto kept, to.keep_text(*text));
  }
  NEREID_TRY_STATUS(to.put(record));
  return true;
}

// In 256 parts, by the first digits of keys, so that a part fits into memory.
Result<Answer> copy(const StoreOptions& options, bool json) {
  NEREID_TRY(const auto from, open(options));
  NEREID_TRY(const auto to, store::Store::open(options.target));
  NEREID_TRY(const int64_t count, from->count({}));
  Progress progress("copying", count);
  int64_t copied = 0, present = 0;
  for (int part = 0; part < 256; ++part) {
    NEREID_TRY(const auto records, from->list({.key = fmt::format("{:02x}", part), .most = INT64_MAX}));
    for (const auto& record : records) {
      if (interrupted()) return Error{"interrupted: the same command resumes", Blame::kInterrupted};
      NEREID_TRY(const bool fresh, copy_record(*from, *to, record));
      ++(fresh ? copied : present);
      progress.advance();
    }
  }
  NEREID_TRY_STATUS(write_stdout(json ? json_line({{"copied", copied}, {"present", present}})
                                      : fmt::format("{} record{} copied to {}, {} there already\n", copied,
                                                    copied == 1 ? "" : "s", to->name(), present)));
  return Answer::kYes;
}

void add_filters(CLI::App& command, StoreOptions& options) {
  command.add_option("--kind", options.kind, "Kind of records (default: all)")
      ->check(CLI::IsMember({"verdict", "time", "proposal", "run"}));
  command.add_option("--task", options.task, "Records of the task whose SHA-256 begins with these digits");
  command.add_option("--state", options.state, "Records in this state: a verdict kind or a run's state");
  command.add_option("--older-than", options.older_than, "Records older than this: 90s, 12h, 30d");
  command.add_flag("--other-versions", options.other_versions, "Records of other builds or versions");
}

}  // namespace

void add_store_command(CLI::App& app, Chosen& chosen) {
  CommandGroup<StoreOptions> store(app, chosen, "store", "Show and prune the store of earlier results",
                                   summarize, [](CLI::App& command, StoreOptions& options) {
                                     command.add_option(
                                         "--store", options.address,
                                         "File or postgresql:// URI (see `nereid store --help`)");
                                   });
  store.command().footer(kStoreExamples);
  StoreOptions& options = store.options();
  CLI::App& listing = store.add("list", "List records, the newest first", list);
  add_filters(listing, options);
  listing.add_option("--limit", options.limit, "Maximum number of results")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  store.add("show", "Show one record", show)
      .add_option("KEY", options.key, "First digits of the record's key")
      ->required();
  CLI::App& pruning = store.add("prune", "Remove records", prune);
  add_filters(pruning, options);
  pruning.add_flag("--all", options.all, "Remove every record");
  pruning.add_flag("--dry-run", options.dry_run, "Only print how many");
  store.add("copy", "Copy records that another store lacks", copy)
      .add_option("TO", options.target, "File or postgresql:// URI")
      ->required();
  store.add("check", "Check that the store is whole", check);
}

}  // namespace nereid::cli
