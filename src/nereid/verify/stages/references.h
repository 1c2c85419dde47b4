// References that were traced in this run, each once for a source, a draw and sizes. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "nereid/base/result.h"
#include "nereid/trace/trace.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::verify {

struct Traced {
  trace::Trace trace;
  TraceAnalysis facts;  // points into `trace`
};

class References {
 public:
  explicit References(size_t most = 256) : most_(most) {}

  using Make = std::function<Result<std::shared_ptr<const Traced>>()>;
  // What `make` gave for this key, now or earlier. Calls for it while it is made wait. An error is
  // not kept, unless it is the input's fault.
  Result<std::shared_ptr<const Traced>> get(const std::string& key, const Make& make);

 private:
  struct Entry {
    std::mutex making;
    bool done = false;
    Result<std::shared_ptr<const Traced>> result{Error{}};
  };
  const size_t most_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::list<std::string> order_;  // least recently made first
};

}  // namespace nereid::verify
