#include "nereid/cli/commands/skills_command.h"

#include <ctime>

#include "nereid/base/file.h"
#include "nereid/base/program/installation.h"
#include "nereid/cli/commands/skills_measure.h"
#include "nereid/cli/output.h"
#include "nereid/cli/traced.h"
#include "nereid/skills/retrieval.h"
#include "nereid/tracer/tracer.h"

namespace nereid::cli {
namespace {

constexpr const char* kSkillsExamples =
    R"(A skill is a short text with a code pattern and when to use it, which language models get with a task.
Only skills that were measured to make answers faster are offered (`nereid skills admit`; docs/skills.md). The
library is --store, else $NEREID_SKILLS, else $XDG_DATA_HOME/nereid/skills.db, else
~/.local/share/nereid/skills.db: a path (an SQLite file) or postgresql://USER@HOST:PORT/DATABASE.

Examples:
  nereid skills                                   the library's skills
  nereid skills add one-pass-softmax.md           a candidate from a file
  nereid skills learn task.py slow.py fast.py     a candidate from two answers
  nereid skills admit one-pass-softmax --tasks held_out/ --proposer http    measure it: admitted or refused
  nereid skills show one-pass-softmax             its text, worth and decisions
  nereid skills search 'softmax over rows'        what a query finds among admitted skills
  nereid skills search --task task.py             what is offered for a task
  nereid optimize task.py -o fast.py --proposers http --skills --samples 8    use it

Exit code 1: nothing was found, or a skill was not admitted.)";

Result<Answer> list(const SkillsOptions& options, bool json) {
  NEREID_TRY(const auto library, open_library(options.address));
  NEREID_TRY(const auto entries, library->list(options.all_versions));
  std::string text;
  for (const auto& entry : entries) {
    NEREID_TRY(const auto samples, library->samples(entry.skill.name, entry.version));
    const auto worth = skills::worth_of(samples);
    if (json)
      text += json_line(entry_json(entry, worth));
    else
      text += fmt::format("{:28}  v{:<3} {:10}  {}\n    {}\n", entry.skill.name, entry.version,
                          to_string(entry.state), worth_text(worth), entry.skill.when);
  }
  if (text.empty() && !json) fmt::print(stderr, "{} holds no skill\n", library->where());
  NEREID_TRY_STATUS(json ? write_stdout(text) : write_text(text));
  return Answer::kYes;
}

Result<Answer> add(const SkillsOptions& options, bool json) {
  std::vector<skills::Skill> read;
  for (const auto& file : options.files) {
    NEREID_TRY(const std::string text, read_file(file, size_t{1} << 20));
    NEREID_TRY(read.emplace_back(), skills::parse_skill(text, file));
  }
  NEREID_TRY(const auto library, open_library(options.address));
  std::string text;
  for (const auto& skill : read) {
    NEREID_TRY(const auto entry, library->add(skill));
    text += json
                ? json_line(entry_json(entry, {}))
                : fmt::format("{} version {}: {}\n", entry.skill.name, entry.version, to_string(entry.state));
  }
  NEREID_TRY_STATUS(json ? write_stdout(text) : write_text(text));
  return Answer::kYes;
}

Json decision_json(const skills::Decision& decision) {
  const auto document = parse_json(decision.document, "decision");
  return {{"version", decision.version},
          {"state", to_string(decision.state)},
          {"made", decision.made},
          {"evidence", document.ok() ? *document : Json()}};
}

Result<Answer> show(const SkillsOptions& options, bool json) {
  NEREID_TRY(const auto library, open_library(options.address));
  NEREID_TRY(const auto entry, find_skill(*library, options.name, options.version));
  NEREID_TRY(const auto samples, library->samples(entry.skill.name, entry.version));
  NEREID_TRY(const auto decisions, library->decisions(options.name));
  const auto worth = skills::worth_of(samples);
  if (json) {
    Json whole = entry_json(entry, worth);
    whole["decisions"] = Json::array();
    for (const auto& decision : decisions) whole["decisions"].push_back(decision_json(decision));
    NEREID_TRY_STATUS(write_stdout(json_line(whole)));
    return Answer::kYes;
  }
  std::string text = fmt::format("# version {}, {}; speed-up {}\n", entry.version, to_string(entry.state),
                                 worth_text(worth));
  for (const auto& decision : decisions) {
    const Json evidence = decision_json(decision)["evidence"];
    text += fmt::format("# version {} {}: {}\n", decision.version, to_string(decision.state),
                        evidence.is_object() ? evidence.value("reason", "") : "");
  }
  NEREID_TRY_STATUS(write_text(text + to_markdown(entry.skill)));
  return Answer::kYes;
}

Result<Answer> remove(const SkillsOptions& options, bool json) {
  NEREID_TRY(const auto library, open_library(options.address));
  NEREID_TRY([[maybe_unused]] const auto entry, find_skill(*library, options.name, 0));
  int64_t purged = 0;
  if (options.purge) {
    NEREID_TRY(purged, library->purge(options.name));
  } else {
    NEREID_TRY(const bool removed, library->remove(options.name));
    if (!removed) return input_error("'{}' is removed already; --purge deletes its versions", options.name);
  }
  if (json)
    NEREID_TRY_STATUS(write_stdout(json_line({{"name", options.name}, {"purged", purged}})));
  else
    NEREID_TRY_STATUS(write_text(
        options.purge
            ? fmt::format("{}: {} version{} deleted\n", options.name, purged, purged == 1 ? "" : "s")
            : fmt::format("{}: removed, still readable by `show`\n", options.name)));
  return Answer::kYes;
}

// The query for a task's file.
Result<std::string> query_for(const SkillsOptions& options) {
  NEREID_TRY(const auto installation, Installation::locate());
  NEREID_TRY(auto tracer, tracer::Tracer::start({.installation = installation, .workers = 1, .limits = {}}));
  NEREID_TRY(const std::string source, read_module(options.task, options.module));
  const tracer::TraceRequest request{.source = source, .path = options.task};
  NEREID_TRY(tracer::TraceAnswer answer, tracer->trace(request, Deadline::after(330)));
  const Traced found = traced(std::move(answer), options.task);
  if (const auto* no = std::get_if<NoTrace>(&found)) return input_error("{}", no->text);
  return skills::query_of(std::get<trace::Trace>(found));
}

Result<Answer> search(const SkillsOptions& options, bool json) {
  if (options.query.empty() == options.task.empty())
    return input_error("expected a QUERY or --task FILE, got {}", options.query.empty() ? "neither" : "both");
  NEREID_TRY(const auto library, open_library(options.address));
  NEREID_TRY(const auto skills, skills::rated(*library));
  std::string query = options.query;
  if (query.empty()) {
    NEREID_TRY(query, query_for(options));
  }
  const auto found = skills::search(skills, query, static_cast<size_t>(options.limit));
  std::string text;
  Json list = Json::array();
  for (const auto& one : found) {
    const auto& [entry, worth] = skills[one.index];
    list.push_back({{"name", entry.skill.name},
                    {"version", entry.version},
                    {"bm25", one.bm25},
                    {"speedup", worth.speedup},
                    {"score", one.score},
                    {"when", entry.skill.when}});
    text += fmt::format("{:6.3f} = {:.3f} x {:.2f}  {}\n    {}\n", one.score, one.bm25, worth.speedup,
                        entry.skill.name, entry.skill.when);
  }
  if (found.empty() && !json)
    fmt::print(stderr, "nothing found for '{}' among {} admitted skills\n", printable(query), skills.size());
  NEREID_TRY_STATUS(json ? write_stdout(json_line({{"query", query}, {"found", list}})) : write_text(text));
  return found.empty() ? Answer::kNo : Answer::kYes;
}

}  // namespace

Result<std::unique_ptr<skills::Library>> open_library(const std::string& address) {
  return skills::Library::open(address.empty() ? skills::Library::default_address() : address);
}

Json entry_json(const skills::Entry& entry, const skills::Worth& worth) {
  Json json = skills::to_json(entry.skill);
  json["version"] = entry.version, json["state"] = to_string(entry.state), json["made"] = entry.made;
  json["worth"] = worth.groups > 0 ? skills::to_json(worth) : Json();
  return json;
}

std::string worth_text(const skills::Worth& worth) {
  if (worth.compared == 0) return "not measured";
  std::string interval;
  if (worth.compared > 1)
    interval = fmt::format(" ({:.2f} to {:.2f})", worth.speedup_interval.low, worth.speedup_interval.high);
  return fmt::format("{:.2f}{} over {} task{}", worth.speedup, interval, worth.compared,
                     worth.compared == 1 ? "" : "s");
}

Result<skills::Entry> find_skill(skills::Library& library, const std::string& name, int64_t version) {
  NEREID_TRY(auto found, library.find(name, version));
  if (found) return *std::move(found);
  return input_error("{} has no skill '{}'{}", library.where(), name,
                     version > 0 ? fmt::format(" of version {}", version) : "");
}

void add_skills_command(CLI::App& app, Chosen& chosen) {
  CommandGroup<SkillsOptions> skills(
      app, chosen, "skills", "Skills for language models: add, learn, measure and find them", list,
      [](CLI::App& command, SkillsOptions& options) {
        command.add_option("--store", options.address,
                           "Library: a file or a postgresql:// URI (see `nereid skills --help`)");
      });
  SkillsOptions& options = skills.options();
  skills.add("add", "Add skills from files, as candidates", add)
      .add_option("FILE", options.files, "Markdown with TOML front matter (docs/skills.md)")
      ->required();
  skills.add("list", "List skills with their state and measured speed-up", list)
      .add_flag("--all", options.all_versions, "All versions (default: the latest of each)");
  CLI::App& showing = skills.add("show", "Show a skill with its decisions", show);
  showing.add_option("NAME", options.name, "The skill's name")->required();
  showing
      .add_option("--version", options.version, "Its version (default: the admitted one, else the latest)")
      ->check(CLI::Range(int64_t{1}, INT64_MAX));
  CLI::App& removing = skills.add("remove", "Stop offering a skill; its versions stay readable", remove);
  removing.add_option("NAME", options.name, "The skill's name")->required();
  removing.add_flag("--purge", options.purge, "Delete all versions, samples and decisions");
  CLI::App& searching = skills.add("search", "Find admitted skills by BM25 times their speed-up", search);
  searching.add_option("QUERY", options.query, "Words: operators, tags, text");
  searching.add_option("--task", options.task, "Task file: its operators, their classes and dtypes");
  searching.add_option("--limit", options.limit, "Maximum number of results")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_module_flags(searching, options.module);
  add_skill_measurements(skills);
  skills.command().footer(kSkillsExamples);  // after them, which would have it, too
}

}  // namespace nereid::cli
