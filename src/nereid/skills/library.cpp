#include "nereid/skills/library.h"

#include <array>
#include <cstdlib>
#include <ctime>

#include "nereid/base/json.h"

namespace nereid::skills {
namespace {

using store::Value;

constexpr std::array<const char*, 1> kSqliteSkills = {R"(
CREATE TABLE skills (
  name TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, document TEXT NOT NULL,
  made INTEGER NOT NULL,
  PRIMARY KEY (name, version)) WITHOUT ROWID;
CREATE INDEX skills_by_state ON skills (state);
CREATE TABLE decisions (
  name TEXT NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL, document TEXT NOT NULL,
  made INTEGER NOT NULL,
  number INTEGER NOT NULL, PRIMARY KEY (name, number)) WITHOUT ROWID;
CREATE TABLE samples (
  skill TEXT NOT NULL, version INTEGER NOT NULL, question TEXT NOT NULL, task TEXT NOT NULL,
  number INTEGER NOT NULL,
  verified INTEGER NOT NULL, ms REAL NOT NULL, reference_ms REAL NOT NULL,
  PRIMARY KEY (skill, version, question, task, number)) WITHOUT ROWID;
)"};
constexpr std::array<const char*, 1> kPostgresSkills = {R"(
CREATE TABLE skills (
  name BYTEA NOT NULL, version BIGINT NOT NULL, state BYTEA NOT NULL, document BYTEA NOT NULL,
  made BIGINT NOT NULL,
  PRIMARY KEY (name, version));
CREATE INDEX skills_by_state ON skills (state);
CREATE TABLE decisions (
  name BYTEA NOT NULL, version BIGINT NOT NULL, state BYTEA NOT NULL, document BYTEA NOT NULL,
  made BIGINT NOT NULL,
  number BIGINT NOT NULL, PRIMARY KEY (name, number));
CREATE TABLE samples (
  skill BYTEA NOT NULL, version BIGINT NOT NULL, question BYTEA NOT NULL, task BYTEA NOT NULL,
  number BIGINT NOT NULL,
  verified BIGINT NOT NULL, ms DOUBLE PRECISION NOT NULL, reference_ms DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (skill, version, question, task, number));
)"};
constexpr store::Layout kSkillsLayout = {.part = "skills",
                                         .application = 0x4e534b4c,  // "NSKL"
                                         .stranger = "no skill library",
                                         .sqlite = kSqliteSkills,
                                         .postgres = kPostgresSkills};
constexpr int kMaxAttempts = 200;  // of a version number: each one lost is another writer's

constexpr std::array<std::string_view, 6> kStates = {"candidate",  "admitted", "refused",
                                                     "superseded", "evicted",  "removed"};

int64_t now() { return static_cast<int64_t>(std::time(nullptr)); }
std::string text_of(State state) { return std::string(to_string(state)); }

}  // namespace

std::string_view to_string(State state) { return kStates.at(static_cast<size_t>(state)); }

std::optional<State> state_from_string(std::string_view name) {
  for (size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == name) return static_cast<State>(i);
  return std::nullopt;
}

std::string Library::default_address() {
  const char* named = std::getenv("NEREID_SKILLS");
  return named != nullptr && *named != 0 ? named : store::data_file("skills.db").string();
}

Result<std::unique_ptr<Library>> Library::open(const std::string& text) {
  NEREID_TRY(const auto address, store::Address::parse(text));
  NEREID_TRY(auto database, store::Database::open(address, kSkillsLayout));
  return std::unique_ptr<Library>(new Library(std::move(database)));
}

Result<std::vector<Entry>> Library::select(const std::string& condition,
                                           const std::vector<Value>& parameters) {
  NEREID_TRY(const auto rows,
             database_->run("SELECT version, state, document, made FROM skills " + condition, parameters));
  std::vector<Entry> entries;
  for (const auto& row : rows) {
    NEREID_TRY(const Json json, parse_json(row.text(2), "a skill of " + database_->name()));
    auto skill = skill_from_json(json);
    if (!skill.ok()) return our_error("{}: {}", database_->name(), skill.error().message);
    const auto state = state_from_string(row.text(1));
    if (!state) return our_error("{}: a skill has no state '{}'", database_->name(), row.text(1));
    entries.push_back({*std::move(skill), row.integer(0), *state, row.integer(3)});
  }
  return entries;
}

Result<Entry> Library::add(const Skill& skill) {
  const std::lock_guard lock(mutex_);
  for (int number = 1;; ++number) {
    NEREID_TRY(const auto latest, select("WHERE name = $1 ORDER BY version DESC LIMIT 1", {skill.name}));
    if (!latest.empty() && latest.front().skill.hash() == skill.hash() &&
        latest.front().state != State::kRemoved)
      return latest.front();
    Entry entry{skill, latest.empty() ? 1 : latest.front().version + 1, State::kCandidate, now()};
    NEREID_TRY(const auto rows, database_->run("INSERT INTO skills (name, version, state, document, made) "
                                               "VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                                               {skill.name, entry.version, text_of(entry.state),
                                                to_json(skill).dump(), entry.made}));
    if (rows.changed == 1) return entry;
    if (number == kMaxAttempts) return our_error("{}: '{}' is being changed", database_->name(), skill.name);
  }
}

Result<std::vector<Entry>> Library::list(bool all_versions) {
  const std::lock_guard lock(mutex_);
  return select(all_versions ? "ORDER BY name, version"
                             : "WHERE NOT EXISTS (SELECT 1 FROM skills AS later WHERE later.name = "
                               "skills.name AND later.version > skills.version) ORDER BY name",
                {});
}

Result<std::optional<Entry>> Library::find(const std::string& name, int64_t version) {
  const std::lock_guard lock(mutex_);
  std::vector<Entry> found;
  if (version > 0) {
    NEREID_TRY(found, select("WHERE name = $1 AND version = $2", {name, version}));
  } else {
    NEREID_TRY(found, select("WHERE name = $1 AND state = $2", {name, text_of(State::kAdmitted)}));
    if (found.empty()) {
      NEREID_TRY(found, select("WHERE name = $1 ORDER BY version DESC LIMIT 1", {name}));
    }
  }
  return found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

Result<std::vector<Entry>> Library::admitted() {
  const std::lock_guard lock(mutex_);
  return select("WHERE state = $1 ORDER BY name", {text_of(State::kAdmitted)});
}

Result<bool> Library::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(const auto rows, database_->run("UPDATE skills SET state = $1 WHERE name = $2 AND state <> $1",
                                             {text_of(State::kRemoved), name}));
  return rows.changed > 0;
}

Result<int64_t> Library::purge(const std::string& name) {
  const std::lock_guard lock(mutex_);
  int64_t removed = 0;
  NEREID_TRY_STATUS(database_->transaction([&]() -> Status {
    NEREID_TRY([[maybe_unused]] const auto samples,
               database_->run("DELETE FROM samples WHERE skill = $1", {name}));
    NEREID_TRY([[maybe_unused]] const auto decisions,
               database_->run("DELETE FROM decisions WHERE name = $1", {name}));
    NEREID_TRY(const auto versions, database_->run("DELETE FROM skills WHERE name = $1", {name}));
    removed = versions.changed;
    return ok_status();
  }));
  return removed;
}

Status Library::put(const Decision& decision) {
  const int64_t made = decision.made != 0 ? decision.made : now();
  NEREID_TRY(const auto last,
             database_->run("SELECT max(number) FROM decisions WHERE name = $1", {decision.skill}));
  NEREID_TRY([[maybe_unused]] const auto kept,
             database_->run("INSERT INTO decisions (name, version, state, document, made, number) "
                            "VALUES ($1, $2, $3, $4, $5, $6)",
                            {decision.skill, decision.version, text_of(decision.state), decision.document,
                             made, last.front().integer(0) + 1}));
  if (decision.state == State::kAdmitted) {
    NEREID_TRY([[maybe_unused]] const auto before,
               database_->run("UPDATE skills SET state = $1 WHERE name = $2 AND state = $3",
                              {text_of(State::kSuperseded), decision.skill, text_of(State::kAdmitted)}));
  }
  NEREID_TRY([[maybe_unused]] const auto changed,
             database_->run("UPDATE skills SET state = $1 WHERE name = $2 AND version = $3",
                            {text_of(decision.state), decision.skill, decision.version}));
  return ok_status();
}

Status Library::decide(const Decision& decision) {
  const std::lock_guard lock(mutex_);
  return database_->transaction([&] { return put(decision); });
}

Result<std::vector<Decision>> Library::decisions(const std::string& name) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(const auto rows, database_->run("SELECT version, state, document, made FROM decisions "
                                             "WHERE name = $1 ORDER BY number DESC",
                                             {name}));
  std::vector<Decision> decisions;
  for (const auto& row : rows)
    decisions.push_back({name, row.integer(0), state_from_string(row.text(1)).value_or(State::kCandidate),
                         row.text(2), row.integer(3)});
  return decisions;
}

Status Library::record(const std::vector<Sample>& samples) {
  const std::lock_guard lock(mutex_);
  return database_->transaction([&]() -> Status {
    for (const Sample& sample : samples) {
      NEREID_TRY([[maybe_unused]] const auto kept,
                 database_->run("INSERT INTO samples (skill, version, question, task, number, verified, ms, "
                                "reference_ms) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (skill, "
                                "version, question, task, number) DO UPDATE SET verified = "
                                "excluded.verified, ms = excluded.ms, reference_ms = excluded.reference_ms",
                                {sample.skill, sample.version, sample.question, sample.task, sample.number,
                                 int64_t{sample.verified}, sample.ms, sample.reference_ms}));
    }
    return ok_status();
  });
}

Result<std::vector<Sample>> Library::samples(const std::string& name, int64_t version,
                                             const std::string& question) {
  const std::lock_guard lock(mutex_);
  NEREID_TRY(const auto rows,
             database_->run(
                 fmt::format(
                     "SELECT skill, version, question, task, number, verified, ms, reference_ms FROM samples "
                     "WHERE ((skill = $1 AND version = $2) OR (skill = $3 AND EXISTS (SELECT 1 FROM samples "
                     "AS of_skill WHERE of_skill.skill = $1 AND of_skill.version = $2 AND of_skill.question "
                     "= samples.question AND of_skill.task = samples.task))){} "
                     "ORDER BY question, task, skill, number",
                     question.empty() ? "" : " AND question = $4"),
                 question.empty() ? std::vector<Value>{name, version, std::string()}
                                  : std::vector<Value>{name, version, std::string(), question}));
  std::vector<Sample> samples;
  for (const auto& row : rows)
    samples.push_back({row.text(0), row.integer(1), row.text(2), row.text(3), row.integer(4),
                       row.integer(5) != 0, row.number(6), row.number(7)});
  return samples;
}

}  // namespace nereid::skills
