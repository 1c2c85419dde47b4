// The skills that there are: every version of each, samples with and without them, and decisions, in an
// SQLite file of its own or in a PostgreSQL database (store/database.h), which any number of processes use at
// once.
//
//   NEREID_TRY(auto library, Library::open(Library::default_address()));
//   NEREID_TRY(const auto entry, library->add(skill));      // version 1, a candidate
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nereid/base/result.h"
#include "nereid/skills/skill.h"
#include "nereid/skills/worth.h"
#include "nereid/store/database.h"

namespace nereid::skills {

// Of one version. At most one version of a skill is admitted.
enum class State {
  kCandidate,   // not decided
  kAdmitted,    // offered to models
  kRefused,     // measured, and not good enough
  kSuperseded,  // was admitted, until a later version was
  kEvicted,     // was admitted, until better ones took its place or it lost its worth
  kRemoved,     // by `nereid skills remove`
};
std::string_view to_string(State state);  // "candidate", ...
std::optional<State> state_from_string(std::string_view name);

struct Entry {
  Skill skill{};
  int64_t version = 1;
  State state = State::kCandidate;
  int64_t made = 0;  // seconds since 1970
};

// What `admit` or an eviction found, and why.
struct Decision {
  std::string skill{};
  int64_t version = 0;
  State state = State::kRefused;  // the version's from then on
  std::string document{};         // JSON: the evidence
  int64_t made = 0;               // 0 in `decide`: now
};

// Thread-safe. Not to be used in a forked child.
class Library {
 public:
  // $NEREID_SKILLS, else $XDG_DATA_HOME/nereid/skills.db, else ~/.local/share/nereid/skills.db.
  static std::string default_address();
  // A path or a postgresql:// URI (store::Address). Makes the tables, and a file's folder, where they are
  // missing. An error (blamed on the input) where it is another program's file.
  static Result<std::unique_ptr<Library>> open(const std::string& address);

  // As a candidate with the next version number. A skill that reads as its latest version is that version
  // (the error-free way to add a file twice).
  Result<Entry> add(const Skill& skill);
  // The latest versions in the order of their names, or all versions.
  Result<std::vector<Entry>> list(bool all_versions = false);
  // Version 0: the admitted one, else the latest.
  Result<std::optional<Entry>> find(const std::string& name, int64_t version = 0);
  Result<std::vector<Entry>> admitted();
  // Removed: not offered, still readable. False where there is none of this name that is not removed yet.
  Result<bool> remove(const std::string& name);
  // All versions with samples and decisions. Returns how many versions went.
  Result<int64_t> purge(const std::string& name);

  // Keeps the decision and gives the version its state; an admitted one supersedes the one before.
  Status decide(const Decision& decision);
  Result<std::vector<Decision>> decisions(const std::string& name);  // the latest first

  // Replaces a sample of the same skill, version, question, task and number.
  Status record(const std::vector<Sample>& samples);
  // Of this version, with those without skills of the same questions and tasks. `question`: of this one
  // alone.
  Result<std::vector<Sample>> samples(const std::string& name, int64_t version,
                                      const std::string& question = "");

  const std::string& where() const { return database_->name(); }

 private:
  explicit Library(std::unique_ptr<store::Database> database) : database_(std::move(database)) {}
  Result<std::vector<Entry>> select(const std::string& condition,
                                    const std::vector<store::Value>& parameters);
  Status put(const Decision& decision);

  std::mutex mutex_;
  std::unique_ptr<store::Database> database_;
};

}  // namespace nereid::skills
