// The store of earlier results: records written per second by one and by eight processes, and what `find`
// takes.
//
//   tests/postgres_server.py --durable build/release/bin/bench_store [SECONDS]
//
// With $NEREID_TEST_POSTGRES it measures that database, too; its schema `nereid` is emptied first.
#include "nereid/store/store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "nereid/base/deadline.h"
#include "nereid/base/file.h"

namespace {

using namespace nereid;
using store::Store;

constexpr size_t kDocument = 4096;  // bytes; a verdict's JSON has 2 to 6 KB

store::Record record_of(int writer, int64_t number) {
  return {.key = {store::Kind::kVerdict, std::string(64, 'a'), fmt::format("{}.{}", writer, number), "strict",
                  "cpu", "0.1"},
          .state = "Verified",
          .document = std::string(kDocument, static_cast<char>('a' + number % 26))};
}

// Records that `writers` processes write in `seconds`, in all.
int64_t write_records(const std::string& address, int writers, double seconds, int first) {
  int pipe[2];
  if (::pipe(pipe) != 0) std::abort();
  for (int i = 0; i < writers; ++i) {
    if (::fork() != 0) continue;
    const auto store = std::move(Store::open(address)).value();
    int64_t count = 0;
    for (const auto deadline = Deadline::after(seconds); !deadline.passed(); ++count)
      store->put(record_of(first + i, count)).value();
    _exit(::write(pipe[1], &count, sizeof count) == sizeof count ? 0 : 1);
  }
  int64_t all = 0, one = 0;
  for (int i = 0; i < writers; ++i)
    if (::read(pipe[0], &one, sizeof one) == sizeof one) all += one;
  while (::wait(nullptr) > 0) continue;
  ::close(pipe[0]), ::close(pipe[1]);
  return all;
}

// Sorted microseconds of `finds` calls of `find`, of records that are there or not.
std::vector<double> find_times(Store& store, int64_t records, bool there, int finds = 3000) {
  std::mt19937_64 random(1);
  std::vector<double> times;
  for (int i = 0; i < finds; ++i) {
    const auto key =
        record_of(there ? 0 : -1, static_cast<int64_t>(random() % static_cast<uint64_t>(records))).key;
    const Stopwatch watch;
    if (store.find(key).value().has_value() != there) std::abort();
    times.push_back(1e6 * watch.seconds());
  }
  std::sort(times.begin(), times.end());
  return times;
}

void measure(const char* name, const std::string& address, double seconds) {
  const auto store = std::move(Store::open(address)).value();
  store->prune({}).value();
  const int64_t alone = write_records(address, 1, seconds, 0), many = write_records(address, 8, seconds, 1);
  const auto hit = find_times(*store, alone, true), miss = find_times(*store, alone, false);
  const auto at = [](const std::vector<double>& sorted, double share) {
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
  };
  fmt::print("| {} | {:.0f} | {:.0f} | {:.0f} / {:.0f} | {:.0f} / {:.0f} | {} |\n", name,
             static_cast<double>(alone) / seconds, static_cast<double>(many) / seconds, at(hit, 0.5),
             at(hit, 0.99), at(miss, 0.5), at(miss, 0.99), store->count({}).value());
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 5;
  const auto folder = std::move(TemporaryFolder::create("bench_store")).value();
  fmt::print(
      "| store | writes/s, one process | writes/s, eight | find, us: median / p99 | miss | records |\n"
      "|---|---|---|---|---|---|\n");
  std::fflush(stdout);  // before a fork
  measure("SQLite", (folder.path() / "store.db").string(), seconds);
  if (const char* uri = std::getenv("NEREID_TEST_POSTGRES")) measure("PostgreSQL", uri, seconds);
}
