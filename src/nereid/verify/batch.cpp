#include "nereid/verify/batch.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/interrupt.h"
#include "nereid/base/json.h"
#include "nereid/verify/ladder.h"
#include "nereid/verify/rules.h"

namespace nereid::verify {
namespace {

namespace fs = std::filesystem;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The output file: what it holds already, and appending to it line by line.
class Output {
 public:
  static Result<Output> open(const fs::path& path) {
    Output out;
    out.fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!out.fd_.valid()) return input_error("{}: {}", path.string(), std::strerror(errno));
    out.path_ = path;
    struct stat what {};
    if (::fstat(out.fd_.get(), &what) != 0) return our_error("{}: {}", path.string(), std::strerror(errno));
    if (!S_ISREG(what.st_mode)) return out;  // a pipe or a device holds nothing to go on from
    std::ifstream lines(path);
    std::string line;
    off_t whole = 0;
    while (std::getline(lines, line) && !lines.eof()) {
      whole += static_cast<off_t>(line.size()) + 1;
      const auto json = parse_json(line, path.string());
      if (!json.ok() || !json->is_object() || !json->contains("id") || !(*json)["id"].is_string()) continue;
      const auto& id = (*json)["id"].get_ref<const std::string&>();
      if (json->value("verdict", "") == "Error" && json->value("blame", "ours") == "ours")
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
  v.word = Word::kError;
  v.input_to_blame = error.blame == Blame::kInput;
  v.evidence.push_back({.rule = v.input_to_blame ? "input" : "internal", .sentence = error.message});
  return v;
}

// Until there is something to read, or the end; false: interrupted.
bool wait_for_stdin(std::ifstream& lines) {
  if (lines.rdbuf()->in_avail() > 0) return true;
  pollfd both[2] = {{STDIN_FILENO, POLLIN, 0}, {interrupt_fd(), POLLIN, 0}};
  while (::poll(both, 2, -1) < 0 && errno == EINTR && !interrupted()) continue;
  return !interrupted();
}

bool is_text(const Json& line, const char* field) { return line.contains(field) && line[field].is_string(); }

// `forbid`: the name of a remark, or a list of them.
Result<std::set<std::string>> forbidden_in(const Json& line, const std::string& place) {
  std::set<std::string> found;
  if (!line.contains("forbid")) return found;
  const Json& given = line["forbid"];
  for (const Json& name : given.is_array() ? given : Json::array({given})) {
    if (!name.is_string() || std::ranges::find(kForbiddable, name.get<std::string>()) == kForbiddable.end())
      return input_error("{}: forbid {}, expected {}", place, name.dump(), fmt::join(kForbiddable, " or "));
    found.insert(name);
  }
  return found;
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
    reader.lines_.open("/dev/stdin");
    if (!reader.lines_) return input_error("stdin: {}", std::strerror(errno));
    return reader;
  }
  reader.path_ = path;
  std::error_code failure;
  reader.is_folder_ = fs::is_directory(path, failure);
  if (!reader.is_folder_) {
    reader.lines_.open(path);
    if (!reader.lines_) return input_error("{}: {}", path.string(), std::strerror(errno));
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
    return input_error("{}: no reference.py with candidates beside it, here or one folder down",
                       path.string());
  std::sort(reader.files_.begin(), reader.files_.end());
  return reader;
}

std::optional<BatchItem> BatchReader::next() {
  std::optional<BatchItem> item;
  if (is_folder_) {
    if (number_ == static_cast<int64_t>(files_.size())) return std::nullopt;
    const auto& [reference, candidate] = files_[static_cast<size_t>(number_++)];
    item = {candidate.lexically_relative(path_).replace_extension().string(),
            read_pair(reference, candidate)};
  } else {
    std::string line;
    do {
      if (is_stdin_ && !wait_for_stdin(lines_)) return std::nullopt;
      if (!std::getline(lines_, line)) return std::nullopt;
      ++number_;
    } while (line.find_first_not_of(" \t\r") == std::string::npos);
    item = read_line(line);
  }
  if (!seen_.insert(item->id).second)
    item->pair = input_error("{}: the id '{}' came before", path_.string(), item->id);
  return item;
}

BatchItem BatchReader::read_line(const std::string& line) {
  const std::string place = fmt::format("{}:{}", path_.string(), number_);
  const auto parsed = parse_json(line, place);
  if (!parsed.ok()) return {place, parsed.error()};
  const Json& json = *parsed;
  if (!json.is_object() || !json.contains("id") ||
      !(json["id"].is_string() || json["id"].is_number_integer()))
    return {place, input_error("{}: expected an object with an `id`", place)};
  const std::string id = json["id"].is_string() ? json["id"].get<std::string>() : json["id"].dump();

  const auto read = [&]() -> Result<Pair> {
    Pair pair;
    if (is_text(json, "reference_source")) {
      pair.reference_name = json.value("reference_name", "reference.py");
      pair.reference_source = json["reference_source"];
    } else if (is_text(json, "reference")) {
      NEREID_TRY_STATUS(read_reference(path_.parent_path() / json["reference"].get<std::string>(), pair));
    } else {
      return input_error("{}: expected `reference` or `reference_source`", place);
    }
    if (is_text(json, "candidate_source")) {
      pair.candidate_name = json.value("candidate_name", "candidate.py");
      pair.candidate_text = json["candidate_source"];
    } else if (is_text(json, "candidate")) {
      NEREID_TRY_STATUS(read_candidate(path_.parent_path() / json["candidate"].get<std::string>(), pair));
    } else {
      return input_error("{}: expected `candidate` or `candidate_source`", place);
    }
    pair.policy = json.value("policy", "");
    if (!pair.policy.empty() && !policy_from_string(pair.policy))
      return input_error("{}: policy '{}', expected strict, mostly or hybrid", place, pair.policy);
    pair.trials = json.value("trials", 0);
    NEREID_TRY(pair.forbid, forbidden_in(json, place));
    if (json.contains("seed")) pair.seed = json.at("seed").get<uint64_t>();
    pair.protocol = json.value("protocol", "");
    if (!pair.protocol.empty() && !protocol_from_string(pair.protocol))
      return input_error("{}: protocol '{}', expected nereid or kernelbench", place, pair.protocol);
    pair.trace = json.value("trace", "");
    const std::string form = json.value("form", "");
    if (form == "answer") pair.form = Pair::Form::kAnswer;
    if (form == "source") pair.form = Pair::Form::kSource;
    return pair;
  };
  try {
    return {id, read()};
  } catch (const nlohmann::json::exception& e) {
    return {id, input_error("{}: {}", place, e.what())};
  }
}

Result<BatchSummary> run_batch(BatchReader& reader, const std::function<Verdict(const Pair&)>& judge,
                               const BatchOptions& options) {
  std::optional<Output> output;
  if (!options.output.empty()) {
    NEREID_TRY(output, Output::open(options.output));
  }
  BatchSummary summary;
  // Two locks: who waits for a line that is still to come keeps nobody from telling a verdict.
  std::mutex reading;  // guards the reader and summary.skipped
  std::mutex mutex;    // guards the output and the rest of the summary
  std::optional<Error> failure;
  std::atomic<bool> failed = false;

  const auto take = [&]() -> std::optional<BatchItem> {
    std::lock_guard lock(reading);
    while (!failed && !interrupted()) {
      auto item = reader.next();
      if (!item || !output || !output->holds(item->id)) return item;
      ++summary.skipped;
    }
    return std::nullopt;
  };
  const auto give = [&](const std::string& id, const Verdict& verdict) {
    Json line = to_json(verdict);
    line["id"] = id;
    const std::string text = dump(line) + "\n";
    std::lock_guard lock(mutex);
    const Status written = output ? output->append(text) : options.stream(text);
    if (!written.ok()) {
      failure = written.error();
      failed = true;
      return;
    }
    ++summary.words[std::string(to_string(verdict.word))];
    if (verdict.word == Word::kError) ++(verdict.input_to_blame ? summary.input_errors : summary.our_errors);
    if (options.on_verdict) options.on_verdict(verdict);
  };
  const auto work = [&] {
    while (auto item = take()) {
      const Verdict verdict = item->pair.ok() ? judge(*item->pair) : unreadable(item->pair.error());
      if (!interrupted()) give(item->id, verdict);
    }
  };

  const int jobs =
      options.jobs > 0 ? options.jobs : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (auto& thread : threads) thread.join();
  if (failure) return *failure;
  if (interrupted()) return Error{"interrupted; run it again with the same -o to go on", Blame::kInterrupted};
  return summary;
}

}  // namespace nereid::verify
