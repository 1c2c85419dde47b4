// Who wrote and who judged when in one search: how busy a language model and the judge were.
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nereid/base/deadline.h"

namespace nereid::search {

struct Span {
  enum class Kind : uint8_t { kWritten, kJudged } kind = Kind::kWritten;
  std::string label{};      // "model sample 2 from plan", "model"
  double from = 0, to = 0;  // seconds since the timeline's beginning
  bool verified = false;    // of kJudged
};

// Thread-safe.
class Timeline {
 public:
  double now() const { return watch_.seconds(); }
  void add(Span span);
  std::vector<Span> spans() const;  // in the order of their beginnings

 private:
  const Stopwatch watch_;
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

// Shares of [0, seconds] in which something was written, judged, and both at once.
struct Utilization {
  double written = 0, judged = 0, both = 0;
};
Utilization utilization(const std::vector<Span>& spans, double seconds);

// {"writing": 0.6, "judging": 0.5, "both": 0.2, "spans": [{"what": "judged", "label": ..., "from": ..., "to":
// ...}]}
nlohmann::json to_json(const std::vector<Span>& spans, double seconds);

}  // namespace nereid::search
