#include "nereid/store/database.h"

#include "nereid/store/postgres.h"
#include "nereid/store/sqlite.h"

namespace nereid::store {

Result<std::unique_ptr<Database>> Database::open(const Address& address, const Layout& layout, Use use) {
  if (address.is_file()) return SqliteDatabase::open(address.path(), layout, use);
  return PostgresDatabase::open(address, layout, use);
}

}  // namespace nereid::store
