#include "nereid/verify/stages/kept_traces.h"

#include "nereid/base/file.h"
#include "nereid/base/hash.h"
#include "nereid/trace/format/codec.h"

namespace nereid::verify {

std::optional<std::filesystem::path> KeptTraces::path_of(const std::string& name) const {
  if (folder_.empty() || name.size() != 64 || name.find_first_not_of("0123456789abcdef") != name.npos)
    return std::nullopt;
  return folder_ / (name + ".trace");
}

void KeptTraces::keep(const std::string& name, const std::string& bytes) const {
  if (const auto path = path_of(name)) (void)write_file_atomically(*path, bytes);
}

std::optional<trace::Trace> KeptTraces::take(const std::string& name, const std::string& digest) const {
  const auto path = path_of(name);
  if (!path) return std::nullopt;
  const auto bytes = read_file(*path);
  std::error_code gone;
  std::filesystem::remove(*path, gone);
  if (!bytes.ok() || (!digest.empty() && sha256_hex(*bytes) != digest)) return std::nullopt;
  auto trace = trace::parse(*bytes, path->string());
  if (!trace.ok()) return std::nullopt;
  return std::move(*trace);
}

}  // namespace nereid::verify
