// The process that speaks to a Tinker-compatible service (python/nereid/_tinker): requests and answers are
// lines of JSON, one request at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/base/program/installation.h"
#include "nereid/base/program/interrupt.h"

namespace nereid::train {

class TinkerClient {
 public:
  // What it says on stderr is appended to `log`; an empty path: to nowhere.
  static Result<std::unique_ptr<TinkerClient>> start(const Installation& installation,
                                                     const std::filesystem::path& log);
  ~TinkerClient();  // ends the process

  // The last line of the answer; `on_part` gets those before it, which have a "prompt". An error has the
  // service's words: blamed on the input where it refuses the request. Interruptible: Ctrl-C ends the
  // request, and the next one may follow.
  using LineCallback = std::function<Status(const Json& part)>;
  Result<Json> ask(const Json& request, bool interruptible, const LineCallback& on_part = {});

 private:
  TinkerClient() = default;
  Status send(std::string line);
  Result<std::string> read_line(bool interruptible);
  Error cancel();

  int pid_ = -1;
  KilledAtExit killed_at_exit_;
  Fd to_, from_;
  std::string incoming_;
  std::filesystem::path log_;
};

}  // namespace nereid::train
