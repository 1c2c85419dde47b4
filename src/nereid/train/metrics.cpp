#include "nereid/train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "nereid/base/json_field.h"
#include "nereid/train/data/crc32c.h"
#include "nereid/train/line_file.h"

namespace nereid::train {
namespace {

template <typename Number>
void put(std::string& out, Number number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

// Protocol buffers: a field's number and how its value is written, then the value.
enum class Wire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
void put_varint(std::string& out, uint64_t number) {
  for (; number >= 128; number >>= 7) out += static_cast<char>(number | 128);
  out += static_cast<char>(number);
}
void put_key(std::string& out, int field, Wire wire) {
  put_varint(out, static_cast<uint64_t>(field << 3 | static_cast<int>(wire)));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_key(out, field, Wire::kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog
// session_log = 7; }
std::string event_head(int64_t step) {
  std::string event;
  put_key(event, 1, Wire::kFixed64), put(event, seconds_since_1970());
  put_key(event, 2, Wire::kVarint), put_varint(event, static_cast<uint64_t>(step));
  return event;
}

// TensorFlow's mask of a checksum that is stored next to its data.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes.data(), bytes.size());
  return std::rotr(crc, 15) + 0xa282ead8u;
}

}  // namespace

Result<EventFile> EventFile::create(const std::filesystem::path& folder, int64_t from_step) {
  char host[256] = "localhost";
  (void)::gethostname(host, sizeof host - 1);
  EventFile file;
  const auto seconds = static_cast<int64_t>(seconds_since_1970());
  for (int again = 0; !file.fd_.valid(); ++again) {
    file.path_ = folder / fmt::format("events.out.tfevents.{}.{}.{}.{}", seconds, host, ::getpid(), again);
    file.fd_ = Fd(::open(file.path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
    if (!file.fd_.valid() && errno != EEXIST)
      return our_error("{}: cannot write: {}", file.path_.string(), std::strerror(errno));
  }
  std::string version = event_head(0);
  put_bytes(version, 3, "brain.Event:2");
  NEREID_TRY_STATUS(file.write(version));
  std::string start = event_head(from_step);
  std::string session;  // SessionLog { SessionStatus status = 1; }, START = 1
  put_key(session, 1, Wire::kVarint), put_varint(session, 1);
  put_bytes(start, 7, session);
  NEREID_TRY_STATUS(file.write(start));
  return file;
}

Status EventFile::add(int64_t step, const Figures& figures) {
  std::string summary;
  for (const auto& [name, value] : figures) {
    std::string item;  // Summary.Value { string tag = 1; float simple_value = 2; }
    put_bytes(item, 1, name);
    put_key(item, 2, Wire::kFixed32), put(item, static_cast<float>(value));
    put_bytes(summary, 1, item);
  }
  std::string event = event_head(step);
  put_bytes(event, 5, summary);
  return write(event);
}

Status EventFile::write(std::string_view event) {
  std::string frame;
  put(frame, static_cast<uint64_t>(event.size()));
  put(frame, masked_crc(frame));
  frame += event;
  put(frame, masked_crc(event));
  return append(fd_, path_, frame);
}

Result<MetricsLog> MetricsLog::open(const std::filesystem::path& folder, int64_t from_step) {
  const auto path = folder / kName;
  NEREID_TRY(Fd fd, open_cut_off(path, from_step));
  NEREID_TRY(EventFile events, EventFile::create(folder, from_step));
  return MetricsLog(std::move(fd), path, std::move(events));
}

Status MetricsLog::add(int64_t step, const Figures& figures) {
  nlohmann::ordered_json line = {{"step", step}};
  for (const auto& [name, value] : figures) line[name] = value;  // what is not finite is written as null
  NEREID_TRY_STATUS(append(fd_, path_, line.dump() + "\n"));
  return events_.add(step, figures);
}

Result<Curves> read_metrics(const std::filesystem::path& folder) {
  const auto path = folder / MetricsLog::kName;
  NEREID_TRY(const std::string text, read_file(path));
  Curves curves;
  int64_t number = 0;
  for (size_t at = 0, end; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    const std::string where = fmt::format("{}:{}", path.string(), ++number);
    NEREID_TRY(const Json json, parse_json(std::string_view(text).substr(at, end - at), where));
    const JsonField root(json, where);
    NEREID_TRY(const auto step_field, root.at("step"));
    NEREID_TRY(const int64_t step, step_field.integer(0, INT64_MAX));
    NEREID_TRY_STATUS(root.each_member(1000, [&](const std::string& name, const JsonField& field) -> Status {
      if (name == "step" || field.json().is_null()) return ok_status();
      NEREID_TRY(const double value, field.number());
      curves[name].emplace_back(step, value);
      return ok_status();
    }));
  }
  return curves;
}

}  // namespace nereid::train
