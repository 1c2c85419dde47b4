#include "nereid/replay/worker/roles/dump.h"

#include "nereid/base/file.h"
#include "nereid/base/json.h"
#include "nereid/replay/worker/cpu_machine.h"
#include "nereid/replay/worker/replay.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/format/codec.h"

namespace nereid::replay {
namespace {

class Dump {
 public:
  Dump(Replay& replay, std::filesystem::path folder) : replay_(replay), folder_(std::move(folder)) {}

  Status tensors(const std::string& group,
                 const std::vector<std::pair<std::string, trace::ValueId>>& values) {
    manifest[group] = Json::array();
    for (const auto& [path, id] : values) {
      const auto& value = replay_.program().trace().values[id];
      if (!replay_.bound(value.storage)) continue;
      const auto tensor = replay_.value(id).resolve_conj().resolve_neg().contiguous();
      const auto file = fmt::format("{}.{}.bin", group, manifest[group].size());
      NEREID_TRY_STATUS(write_file_atomically(
          folder_ / file,
          {static_cast<const char*>(tensor.const_data_ptr()), static_cast<size_t>(tensor.nbytes())}));
      manifest[group].push_back(
          {{"path", path}, {"dtype", trace::to_string(value.dtype)}, {"sizes", value.sizes}, {"file", file}});
    }
    return ok_status();
  }

  Json manifest = Json::object();

 private:
  Replay& replay_;
  std::filesystem::path folder_;
};

std::vector<std::pair<std::string, trace::ValueId>> numbered(const trace::Arg& tree) {
  std::vector<std::pair<std::string, trace::ValueId>> out;
  for (const auto value : trace::tensors_in(tree)) out.emplace_back(std::to_string(out.size()), value);
  return out;
}

}  // namespace

Status dump_replay(const std::filesystem::path& path, uint64_t seed, const std::filesystem::path& folder,
                   bool whole) {
  std::filesystem::create_directories(folder);
  auto loaded = trace::load(path);
  if (!loaded.ok())
    return write_file_atomically(folder / "manifest.json", Json{{"failure", loaded.error().message}}.dump());
  const auto& trace = *loaded;
  const ReplayMode mode;
  Json manifest;
  try {
    auto machine = make_cpu_machine();
    const auto program = Program::prepare(trace, *machine, {.may_keep_inputs = true, .reference = true});
    Replay replay(*program, *machine);
    const RunOptions options{.seed = seed};
    replay.start(options, {}, {}, whole);
    replay.begin_judged();
    Dump dump(replay, folder);
    const auto& judged = trace.phases[program->judged()];
    NEREID_TRY_STATUS(dump.tensors("inputs", numbered(judged.inputs)));
    replay.run_judged(options);
    NEREID_TRY_STATUS(dump.tensors("outputs", numbered(judged.output)));
    manifest = std::move(dump.manifest);
  } catch (const Failed& failed) {
    manifest["failure"] = fmt::format("{}: {}", failed.where ? describe(*failed.where) : "", failed.what());
  } catch (const std::exception& error) {
    manifest["failure"] = error.what();
  }
  return write_file_atomically(folder / "manifest.json", manifest.dump());
}

}  // namespace nereid::replay
