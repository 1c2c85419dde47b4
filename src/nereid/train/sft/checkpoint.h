// Checkpoints of a run: folders that appear whole, written by a thread while training goes on.
//
// FOLDER/step-00000500 holds `model/` (config.json, safetensors and tokenizer, as transformers reads them),
// an `optimizer-R-of-N.safetensors` for each rank (`master`, `first`, `second`: float32; in its metadata the
// range [begin, end) of the flat buffer), `state.json`, and, where a kind of run keeps more of a rank,
// `kept-R-of-N.cbor`.
#pragma once

#include <future>

#include "nereid/lm/checkpoint/staged_folder.h"
#include "nereid/train/data/packer.h"
#include "nereid/train/sft/trainer.h"

namespace nereid::train {

// Where a run stands. Training draws no random numbers after the weights: the data's order is a function of
// seed and place.
struct RunState {
  int64_t step = 0;                 // steps done
  Place place;                      // of the next row
  int64_t tokens = 0, targets = 0;  // seen
  std::string data{};               // the training set's fingerprint
  std::string more{};               // whatever else a kind of run keeps
  bool operator==(const RunState&) const = default;
};

class CheckpointWriter {
 public:
  // `tokenizer` is a folder: its tokenizer's files go into each checkpoint's model; empty: none.
  CheckpointWriter(std::filesystem::path folder, int64_t keep, Ranks& ranks, std::filesystem::path tokenizer)
      : folder_(std::move(folder)), keep_(keep), ranks_(&ranks), tokenizer_(std::move(tokenizer)) {}
  ~CheckpointWriter();

  // Waits for the one before, begins to copy what there is to the host, and writes it in a thread. The
  // trainer, which outlives the writing, changes nothing before it is copied. All ranks call it together;
  // `kept` is whatever else this rank keeps, if anything. Where this step's checkpoint is there, nothing is
  // written.
  Status start(const RunState& state, Trainer& trainer, std::string kept = "");
  // Until what was started is on the disk; its error, where it is not.
  Status wait();
  // What went wrong with it, as soon as that is known.
  Status look();

 private:
  Status write(const RunState& state, const std::filesystem::path& staged) const;
  Status publish(const std::filesystem::path& staged);

  std::filesystem::path folder_;
  int64_t keep_;
  Ranks* ranks_;
  std::filesystem::path tokenizer_;
  std::optional<lm::StagedFolder> staged_;  // rank 0's
  // The copy.
  HostState copy_;
  std::optional<lm::Weights> weights_;  // rank 0's: what is saved
  int64_t begin_ = 0, end_ = 0, optimizer_steps_ = 0;
  std::string kept_;
  std::future<Status> writing_;
};

// The checkpoint with the most steps; none where there is none.
Result<std::optional<std::filesystem::path>> latest_checkpoint(const std::filesystem::path& folder);

// Sets the trainer to it, whatever number of ranks wrote it. Errors (blamed on the input) name the file and
// what was expected.
Result<RunState> load_checkpoint(const std::filesystem::path& checkpoint, Trainer& trainer);

// Of a checkpoint whose weights are elsewhere, as one rank leaves it: the state, what the rank keeps, if
// anything, and those that are too many.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, int64_t step);
Status write_run_state(const std::filesystem::path& staged, const RunState& state, const std::string& kept);
Result<RunState> read_run_state(const std::filesystem::path& checkpoint);
Status prune_checkpoints(const std::filesystem::path& folder, int64_t keep);

// What each rank of that checkpoint kept, in the order of ranks; empty where no rank did.
Result<std::vector<std::string>> read_kept(const std::filesystem::path& checkpoint);

}  // namespace nereid::train
