// The figures of a run, step by step: metrics.jsonl, and TensorBoard's event file.
//
// metrics.jsonl has one object a line: {"step": 12, "loss": 2.5, ...}, each a whole line or not there at all,
// steps ascending. A run that goes on from a checkpoint cuts off what came after it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nereid/base/file.h"
#include "nereid/base/result.h"

namespace nereid::train {

using Figures = std::vector<std::pair<std::string, double>>;

// TensorBoard's records: TFRecord frames around Event messages of protocol buffers.
class EventFile {
 public:
  // A new file in `folder`. What an earlier file says of `from_step` and later no longer counts.
  static Result<EventFile> create(const std::filesystem::path& folder, int64_t from_step);
  Status add(int64_t step, const Figures& figures);
  const std::filesystem::path& path() const { return path_; }

 private:
  Status write(std::string_view event);
  std::filesystem::path path_;
  Fd fd_;
};

class MetricsLog {
 public:
  static constexpr const char* kName = "metrics.jsonl";
  // Keeps the lines of the steps below `from_step`.
  static Result<MetricsLog> open(const std::filesystem::path& folder, int64_t from_step);
  // Steps ascend. A figure that is no finite number is `null` in the line.
  Status add(int64_t step, const Figures& figures);

 private:
  MetricsLog(Fd fd, std::filesystem::path path, EventFile events)
      : fd_(std::move(fd)), path_(std::move(path)), events_(std::move(events)) {}
  Fd fd_;
  std::filesystem::path path_;
  EventFile events_;
};

// Each figure's curve: (step, value) in order, without what is no number. A last line that was cut off is
// passed over; any other line that is no such object is an error with its number.
using Curves = std::map<std::string, std::vector<std::pair<int64_t, double>>>;
Result<Curves> read_metrics(const std::filesystem::path& folder);

}  // namespace nereid::train
