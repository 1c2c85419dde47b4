// A database in one SQLite file, which any number of processes may read and write at once.
#pragma once

#include "nereid/base/file.h"
#include "nereid/store/database.h"

struct sqlite3;

namespace nereid::store {

// Waits up to 30 s for other writers. A kill -9 loses nothing that was committed; a power cut may lose the
// last transactions, whole.
class SqliteDatabase : public Database {
 public:
  // Exclusive use holds a lock on the file PATH.lock.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path, const Layout& layout,
                                                Use use);
  ~SqliteDatabase() override;

  Result<Rows> run(const std::string& sql, const std::vector<Value>& parameters, Pace pace) override;
  Status transaction(const std::function<Status()>& work) override;
  Status compact() override { return script("VACUUM"); }
  Result<std::string> check() override;
  Result<int64_t> bytes() override;

 private:
  SqliteDatabase(const std::filesystem::path& path, Fd lock)
      : Database(path.string()), path_(path), lock_(std::move(lock)) {}
  Status connect();
  Status prepare_schema(const Layout& layout);
  Status write_ahead();
  Status script(const char* sql);  // without parameters and without rows
  Result<int64_t> integer(const std::string& sql);
  Error error(std::string_view what) const;

  std::filesystem::path path_;
  Fd lock_;
  sqlite3* handle_ = nullptr;
};

}  // namespace nereid::store
