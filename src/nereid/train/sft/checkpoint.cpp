#include "nereid/train/sft/checkpoint.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "nereid/base/file.h"
#include "nereid/base/json_field.h"
#include "nereid/lm/checkpoint/safetensors.h"
#include "nereid/lm/decoder/weights.h"

namespace nereid::train {
namespace {

constexpr const char* kStateName = "state.json";
constexpr int kCheckpointVersion = 1;
constexpr std::string_view kPrefix = "step-";
constexpr auto kPatience = std::chrono::minutes(10);  // for the other ranks' files

std::string optimizer_name(int64_t rank, int64_t ranks) {
  return fmt::format("optimizer-{}-of-{}.safetensors", rank, ranks);
}

std::string kept_name(int64_t rank, int64_t ranks) { return fmt::format("kept-{}-of-{}.cbor", rank, ranks); }

// The steps of a checkpoint's folder name, or -1.
int64_t steps_of(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return -1;
  int64_t steps = -1;
  const char* end = name.data() + name.size();
  const auto [at, failure] = std::from_chars(name.data() + kPrefix.size(), end, steps);
  return failure == std::errc() && at == end ? steps : -1;
}

// Finished ones, the latest first.
Result<std::vector<std::filesystem::path>> checkpoints_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (steps_of(entry.path()) >= 0) found.push_back(entry.path());
  if (error) return input_error("{}: {}", folder.string(), error.message());
  std::ranges::sort(found, std::greater{}, steps_of);
  return found;
}

Json state_json(const RunState& state, int64_t ranks, int64_t optimizer_steps) {
  return {{"nereid_checkpoint", kCheckpointVersion},
          {"step", state.step},
          {"epoch", state.place.epoch},
          {"window", state.place.window},
          {"row", state.place.row},
          {"tokens", state.tokens},
          {"targets", state.targets},
          {"data", state.data},
          {"more", state.more},
          {"ranks", ranks},
          {"optimizer_steps", optimizer_steps}};
}

struct StateFile {
  RunState state;
  int64_t ranks = 0, optimizer_steps = 0;
};
Result<StateFile> read_state(const std::filesystem::path& checkpoint) {
  const auto path = checkpoint / kStateName;
  NEREID_TRY(const std::string text, read_file(path, 1 << 20));
  NEREID_TRY(const Json json, parse_json(text, path.string()));
  const std::string named = path.string();  // a field refers to its name
  const JsonField root(json, named);
  StateFile file;
  NEREID_TRY([[maybe_unused]] const int64_t version,
             root.integer_at("nereid_checkpoint", 0, kCheckpointVersion, kCheckpointVersion));
  for (const auto& [key, field, lowest] : {std::tuple{"step", &file.state.step, 0},
                                           {"epoch", &file.state.place.epoch, 0},
                                           {"window", &file.state.place.window, 0},
                                           {"row", &file.state.place.row, 0},
                                           {"tokens", &file.state.tokens, 0},
                                           {"targets", &file.state.targets, 0},
                                           {"ranks", &file.ranks, 1},
                                           {"optimizer_steps", &file.optimizer_steps, 0}}) {
    NEREID_TRY(const auto value, root.at(key));
    NEREID_TRY(*field, value.integer(lowest, INT64_MAX));
  }
  NEREID_TRY(file.state.data, root.text_at("data"));
  NEREID_TRY(file.state.more, root.text_at("more"));
  return file;
}

Result<int64_t> whole_number(const lm::SafetensorsFile& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  int64_t value = -1;
  if (found != file.metadata().end()) {
    const char* end = found->second.data() + found->second.size();
    if (const auto [at, failure] = std::from_chars(found->second.data(), end, value);
        failure == std::errc() && at == end && value >= 0)
      return value;
  }
  return input_error("{}: expected '{}' in its metadata, a number from 0, got '{}'", file.path().string(),
                     name, found == file.metadata().end() ? "nothing" : found->second);
}

// What of one rank's file is in this trainer's range.
Result<int64_t> load_part(const std::filesystem::path& path, Trainer& trainer) {
  NEREID_TRY(const auto file, lm::SafetensorsFile::open(path));
  NEREID_TRY(const int64_t begin, whole_number(file, "begin"));
  NEREID_TRY(const int64_t end, whole_number(file, "end"));
  const int64_t from = std::max(begin, trainer.begin()), to = std::min(end, trainer.end());
  for (const auto& [name, target] : {std::pair{"master", trainer.master()},
                                     {"first", trainer.optimizer().first()},
                                     {"second", trainer.optimizer().second()}}) {
    const auto found = file.tensors().find(std::string_view(name));
    if (found == file.tensors().end() || found->second.dtype != lm::Dtype::kF32 ||
        found->second.shape != std::vector{end - begin})
      return input_error("{}: expected a tensor '{}' of F32 with {} elements", path.string(), name,
                         end - begin);
    if (from >= to) continue;
    const auto& bytes = found->second.bytes;
    at::Tensor whole = at::empty({to - from}, at::kFloat);
    std::memcpy(whole.data_ptr(), bytes.data() + (from - begin) * 4, static_cast<size_t>(to - from) * 4);
    target.slice(0, from - trainer.begin(), to - trainer.begin()).copy_(whole);
  }
  return std::max<int64_t>(to - from, 0);
}

}  // namespace

CheckpointWriter::~CheckpointWriter() {
  if (writing_.valid()) writing_.wait();
}

Status CheckpointWriter::wait() { return writing_.valid() ? writing_.get() : ok_status(); }

Status CheckpointWriter::look() {
  const bool over =
      writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  return over ? writing_.get() : ok_status();
}

Status CheckpointWriter::start(const RunState& state, Trainer& trainer, std::string kept) {
  NEREID_TRY_STATUS(wait());
  const auto path = checkpoint_path(folder_, state.step);
  std::error_code error;
  // Rank 0 says for all whether it is there already. It has the same state then, and may be the only one
  // there is: it is not replaced.
  std::vector<double> there = {ranks_->rank() == 0 && std::filesystem::exists(path, error) ? 1.0 : 0.0};
  NEREID_TRY_STATUS(ranks_->sum(there));
  if (there[0] > 0) return ok_status();
  kept_ = std::move(kept);
  const c10::NoGradGuard no_gradients;
  begin_ = trainer.begin(), end_ = trainer.end(), optimizer_steps_ = trainer.optimizer().steps();
  if (ranks_->rank() == 0) {
    if (!weights_) weights_ = lm::make_weights(trainer.weights().config, at::kCPU);
    std::filesystem::create_directories(folder_, error);
    if (error) return our_error("{}: {}", folder_.string(), error.message());
    NEREID_TRY(auto staged, lm::StagedFolder::create(path));
    staged_.emplace(std::move(staged));
  }
  NEREID_TRY_STATUS(trainer.copy_state(copy_, /*with_weights=*/ranks_->rank() == 0));
  std::vector<double> everybody = {1};
  NEREID_TRY_STATUS(ranks_->sum(everybody));  // the folder is there
  const auto staged = std::filesystem::absolute(path).string() + ".incomplete";
  writing_ = std::async(std::launch::async, [this, state, staged, &trainer]() -> Status {
    trainer.wait_for_copies();
    NEREID_TRY_STATUS(write(state, staged));
    return ranks_->rank() == 0 ? publish(staged) : ok_status();
  });
  return ok_status();
}

Status CheckpointWriter::write(const RunState& state, const std::filesystem::path& staged) const {
  const c10::NoGradGuard no_gradients;
  // Before the optimizer's file, which says that this rank has written all that it has.
  if (!kept_.empty())
    NEREID_TRY_STATUS(write_file_atomically(staged / kept_name(ranks_->rank(), ranks_->count()), kept_));
  const std::map<std::string, std::string> metadata = {{"begin", fmt::to_string(begin_)},
                                                       {"end", fmt::to_string(end_)}};
  std::vector<lm::TensorInfo> infos;
  for (const char* name : {"master", "first", "second"})
    infos.push_back({name, lm::Dtype::kF32, {end_ - begin_}});
  NEREID_TRY(auto writer, lm::SafetensorsWriter::create(
                              staged / optimizer_name(ranks_->rank(), ranks_->count()), infos, metadata));
  for (const at::Tensor& tensor : {copy_.master, copy_.first, copy_.second})
    NEREID_TRY_STATUS(
        writer.append({static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}));
  NEREID_TRY_STATUS(writer.finish());
  if (ranks_->rank() != 0) return ok_status();
  weights_->flat.copy_(copy_.flat);
  lm::SaveOptions how;
  if (!tokenizer_.empty()) how.also = lm::tokenizer_files(tokenizer_);
  NEREID_TRY_STATUS(lm::save_weights(*weights_, staged / "model", how));
  return write_file_atomically(staged / kStateName,
                               state_json(state, ranks_->count(), optimizer_steps_).dump(1) + "\n");
}

// Rank 0's: the folder gets its name when everybody's file is there.
Status CheckpointWriter::publish(const std::filesystem::path& staged) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::error_code error;
  for (int64_t rank = 0; rank < ranks_->count(); ++rank)
    while (!std::filesystem::exists(staged / optimizer_name(rank, ranks_->count()), error)) {
      if (std::chrono::steady_clock::now() > deadline)
        return our_error("{}: rank {} has not written its part",
                         (staged / optimizer_name(rank, ranks_->count())).string(), rank);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  NEREID_TRY_STATUS(staged_->publish());
  staged_.reset();
  return prune_checkpoints(folder_, keep_);
}

std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step) {
  return folder / fmt::format("{}{:08}", kPrefix, step);
}

Status write_run_state(const std::filesystem::path& staged, const RunState& state, const std::string& kept) {
  if (!kept.empty()) NEREID_TRY_STATUS(write_file_atomically(staged / kept_name(0, 1), kept));
  return write_file_atomically(staged / kStateName, state_json(state, 1, 0).dump(1) + "\n");
}

Result<RunState> read_run_state(const std::filesystem::path& checkpoint) {
  NEREID_TRY(StateFile file, read_state(checkpoint));
  return std::move(file.state);
}

Status prune_checkpoints(const std::filesystem::path& folder, int64_t keep) {
  NEREID_TRY(const auto found, checkpoints_in(folder));
  for (size_t i = static_cast<size_t>(keep); i < found.size(); ++i) {
    std::error_code error;
    // Under another name first: half a checkpoint is never taken for one.
    const auto going = found[i].string() + ".incomplete";
    std::filesystem::rename(found[i], going, error);
    if (!error) std::filesystem::remove_all(going, error);
    if (error) return our_error("{}: cannot be removed: {}", found[i].string(), error.message());
  }
  return ok_status();
}

Result<std::optional<std::filesystem::path>> latest_checkpoint(const std::filesystem::path& folder) {
  NEREID_TRY(const auto found, checkpoints_in(folder));
  return found.empty() ? std::optional<std::filesystem::path>() : found.front();
}

Result<RunState> load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer) {
  const c10::NoGradGuard no_gradients;
  NEREID_TRY(const StateFile file, read_state(checkpoint));
  int64_t loaded = 0;
  for (int64_t rank = 0; rank < file.ranks; ++rank) {
    NEREID_TRY(const int64_t part, load_part(checkpoint / optimizer_name(rank, file.ranks), trainer));
    loaded += part;
  }
  if (loaded != trainer.end() - trainer.begin())
    return input_error(
        "{}: expected elements {} to {} of the parameters, got {} of them: it is of another model",
        checkpoint.string(), trainer.begin(), trainer.end(), loaded);
  trainer.optimizer().set_steps(file.optimizer_steps);
  NEREID_TRY_STATUS(trainer.spread_master());
  return file.state;
}

Result<std::vector<std::string>> read_kept(const std::filesystem::path& checkpoint) {
  NEREID_TRY(const StateFile file, read_state(checkpoint));
  std::vector<std::string> kept;
  std::error_code error;
  for (int64_t rank = 0; rank < file.ranks; ++rank) {
    const auto path = checkpoint / kept_name(rank, file.ranks);
    if (rank == 0 && !std::filesystem::exists(path, error)) return kept;
    NEREID_TRY(kept.emplace_back(), read_file(path));
  }
  return kept;
}

}  // namespace nereid::train
