#include "nereid/verify/batch/batch.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/printable.h"
#include "nereid/base/program/interrupt.h"
#include "nereid/verify/batch/batch_line.h"

namespace nereid::verify {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = size_t{1} << 18;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The output file: what it holds already, and appending to it line by line.
class Output {
 public:
  static Result<Output> open(const fs::path& path) {
    Output out;
    out.fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!out.fd_.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
    out.path_ = path;
    struct stat what{};
    if (::fstat(out.fd_.get(), &what) != 0) return our_error("{}: {}", path.string(), std::strerror(errno));
    if (!S_ISREG(what.st_mode)) return out;  // a pipe or a device holds nothing to go on from
    std::ifstream lines(path);
    std::string line;
    off_t whole = 0;
    while (std::getline(lines, line) && !lines.eof()) {
      whole += static_cast<off_t>(line.size()) + 1;
      const auto [json, id, error] = parse_loose_json(line);
      if (!error.empty() || !json.is_object() || id.empty()) continue;
      const auto says = [&](const char* key, std::string_view what) {
        return json.contains(key) && json[key].is_string() && json[key].get_ref<const std::string&>() == what;
      };
      if (says("verdict", "Error") && !says("blame", "input"))
        out.done_.erase(id);
      else
        out.done_.insert(id);
    }
    if (::ftruncate(out.fd_.get(), whole) != 0 || ::lseek(out.fd_.get(), 0, SEEK_END) < 0)
      return our_error("{}: {}", path.string(), std::strerror(errno));
    return out;
  }

  bool holds(const std::string& id) const { return done_.contains(id); }

  Status append(const std::string& line) {
    std::string_view rest = line;
    const off_t before = ::lseek(fd_.get(), 0, SEEK_CUR);
    while (!rest.empty()) {
      const ssize_t wrote = ::write(fd_.get(), rest.data(), rest.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        const int why = errno;
        if (before >= 0 && ::ftruncate(fd_.get(), before) != 0)
          return our_error("{}: {}; its last line may be cut short", path_.string(), std::strerror(why));
        return our_error("{}: {}", path_.string(), std::strerror(why));
      }
      rest.remove_prefix(static_cast<size_t>(wrote));
    }
    return ok_status();
  }

 private:
  Fd fd_;
  fs::path path_;
  std::set<std::string> done_;
};

Verdict unreadable(const Error& error) {
  Verdict v;
  v.kind = VerdictKind::kError;
  v.input_to_blame = error.blame == Blame::kInput;
  v.evidence.push_back({.rule = v.input_to_blame ? "input" : "internal", .sentence = error.message});
  return v;
}

bool is_candidate(const fs::path& path) {
  const auto ending = path.extension();
  return path.filename() != "reference.py" && (ending == ".py" || ending == ".txt" || ending == ".md");
}

}  // namespace

Result<BatchReader> BatchReader::open(const fs::path& path) {
  BatchReader reader;
  if (path == "-") {
    reader.path_ = "stdin";
    reader.is_stdin_ = true;
    reader.file_ = Fd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!reader.file_.valid()) return input_error("stdin: {}", std::strerror(errno));
    return reader;
  }
  reader.path_ = path;
  std::error_code failure;
  reader.is_folder_ = fs::is_directory(path, failure);
  if (!reader.is_folder_) {
    reader.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!reader.file_.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
    return reader;
  }
  std::vector<fs::path> folders = {path};
  for (const auto& entry : fs::directory_iterator(path, failure))
    if (entry.is_directory()) folders.push_back(entry.path());
  for (const auto& folder : folders) {
    if (!fs::exists(folder / "reference.py", failure)) continue;
    for (const auto& entry : fs::directory_iterator(folder, failure))
      if (entry.is_regular_file() && is_candidate(entry.path()))
        reader.files_.emplace_back(folder / "reference.py", entry.path());
  }
  if (failure) return input_error("{}: {}", path.string(), failure.message());
  if (reader.files_.empty())
    return input_error("{}: no reference.py with candidates in its folder, here or one folder down",
                       path.string());
  std::sort(reader.files_.begin(), reader.files_.end());
  return reader;
}

bool BatchReader::fill() {
  if (at_ == buffer_.size()) buffer_.clear(), at_ = 0;
  const size_t had = buffer_.size();
  buffer_.resize(had + kReadBytes);
  for (;;) {
    pollfd both[2] = {{file_.get(), POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
    const int ready = is_stdin_ ? ::poll(both, 2, -1) : 1;
    if (interrupted()) break;
    if (ready < 0) continue;
    const ssize_t got = ::read(file_.get(), buffer_.data() + had, kReadBytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    buffer_.resize(had + (got > 0 ? static_cast<size_t>(got) : 0));
    return got > 0;
  }
  buffer_.resize(had);
  return false;
}

bool BatchReader::next_line(std::string& line, bool& cut) {
  line.clear(), cut = false;
  for (;;) {
    const size_t end = buffer_.find('\n', at_), stop = std::min(end, buffer_.size());
    // Of a line that is too long no more is kept than its id can be found in.
    if (line.size() + (stop - at_) > kMaxLineBytes) cut = true;
    if (!cut || line.size() < kMaxIdBytes) line.append(buffer_, at_, stop - at_);
    at_ = stop;
    if (cut) line.resize(std::min(line.size(), 2 * kMaxIdBytes));
    if (end != std::string::npos) {
      ++at_;
      return true;
    }
    if (!fill()) return !line.empty() && !interrupted();
  }
}

std::optional<BatchItem> BatchReader::next() {
  std::optional<BatchItem> item;
  if (is_folder_) {
    if (number_ == static_cast<int64_t>(files_.size())) return std::nullopt;
    const auto& [reference, candidate] = files_[static_cast<size_t>(number_++)];
    const std::string name = candidate.lexically_relative(path_).replace_extension().string();
    item = BatchItem{.id = dump(Json(name)),
                     .line = number_,
                     .place = candidate.string(),
                     .pair = read_pair(reference, candidate)};
  } else {
    std::string line;
    bool cut = false;
    do {
      if (!next_line(line, cut)) return std::nullopt;
      ++number_;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    const std::string place = fmt::format("{}:{}", path_.string(), number_);
    auto read = read_batch_line(line, cut, place, path_.parent_path());
    item = BatchItem{.id = std::move(read.id), .line = number_, .place = place, .pair = std::move(read.pair)};
  }
  if (item->id.empty()) return item;
  const std::lock_guard lock(*mutex_);
  if (!ids_.insert(item->id).second) {
    item->pair = is_stdin_
                     ? input_error("{}: the id {} is under way and has no verdict yet", item->place, item->id)
                     : input_error("{}: the id {} came before", item->place, item->id);
    item->repeated = true;
  }
  return item;
}

void BatchReader::done(const BatchItem& item) {
  if (!is_stdin_ || item.repeated) return;
  const std::lock_guard lock(*mutex_);
  ids_.erase(item.id);
}

Result<BatchSummary> run_batch(BatchReader& reader, const std::function<Verdict(const Pair&)>& judge,
                               const BatchOptions& options) {
  std::optional<Output> output;
  if (!options.output.empty()) {
    NEREID_TRY(output, Output::open(options.output));
  }
  BatchSummary summary;
  // Two locks: a thread that waits for the next line does not hold up another's verdict.
  std::mutex reading;  // guards the reader and summary.skipped
  std::mutex mutex;    // guards the output and the rest of the summary
  std::optional<Error> failure;
  std::atomic<bool> failed = false;

  const auto take = [&]() -> std::optional<BatchItem> {
    std::lock_guard lock(reading);
    while (!failed && !interrupted()) {
      auto item = reader.next();
      if (!item || !output || item->id.empty() || !output->holds(item->id)) return item;
      reader.done(*item);
      ++summary.skipped;
    }
    return std::nullopt;
  };
  const auto give = [&](const BatchItem& item, const Verdict& verdict) {
    Json line = to_json(verdict);
    line["line"] = item.line;
    if (options.complete) options.complete(verdict, line);
    // The id is given back in the bytes in which it came.
    const std::string id = item.id.empty() ? dump(Json(item.place)) : id_text(item.id);
    const std::string text = "{\"id\":" + id + "," + printable_json(dump(line)).substr(1) + "\n";
    std::lock_guard lock(mutex);
    reader.done(item);  // a reader of the verdict may use the id at once
    const Status written = output ? output->append(text) : options.stream(text);
    if (!written.ok()) {
      failure = written.error();
      failed = true;
      return;
    }
    ++summary.verdicts[std::string(to_string(verdict.kind))];
    if (verdict.kind == VerdictKind::kError)
      ++(verdict.input_to_blame ? summary.input_errors : summary.our_errors);
    if (options.on_verdict) options.on_verdict(verdict);
  };
  const auto work = [&] {
    while (auto item = take()) {
      const Verdict verdict = item->pair.ok() ? judge(*item->pair) : unreadable(item->pair.error());
      if (!interrupted()) give(*item, verdict);
    }
  };

  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  if (failure) return *failure;
  if (interrupted()) return Error{"interrupted; run the same command to resume", Blame::kInterrupted};
  return summary;
}

}  // namespace nereid::verify
