// Traces on their way from the judge that had them made to the clock that times what it verified: files of a
// folder that both know, each taken once. The trace is the program: so what is timed is what was judged, and
// nothing is traced twice.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "nereid/trace/trace.h"

namespace nereid::verify {

class KeptTraces {
 public:
  // An empty path: nothing is kept.
  explicit KeptTraces(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // `name`: 64 hexadecimal digits; `bytes`: as trace::serialize gives them. A trace that cannot be written is
  // missing later.
  void keep(const std::string& name, const std::string& bytes) const;
  // Nullopt where there is none, or none that can be read, or (with `digest`) whose SHA-256 is another: then
  // it is to be traced. Removed from the folder.
  std::optional<trace::Trace> take(const std::string& name, const std::string& digest = "") const;

 private:
  std::optional<std::filesystem::path> path_of(const std::string& name) const;
  std::filesystem::path folder_;
};

}  // namespace nereid::verify
