// One replay of a program: the storages, and what was done to them.
//
//   Replay replay(program, machine);
//   replay.start(seed);                 // module, init, earlier calls; the judged call's inputs are made (a
//   reference)
//                                       // or set by the caller with set() (a candidate)
//   replay.begin_judged();              // remembers what the judged forward may write
//   replay.run_judged(options);         // as often as wanted, each time from the same state
//   replay.output(i)
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "nereid/replay/worker/memory_digest.h"
#include "nereid/replay/worker/program.h"
#include "nereid/replay/worker/roles/found_memory.h"
#include "nereid/replay/worker/stream_writes.h"

namespace nereid::replay {

// Shared with the parent process: where this replay is, so that a crash can be located. Written before each
// step.
struct Position {
  volatile int32_t phase = -1, call = -1, step = -1;
};

struct RunOptions {
  uint64_t seed = 0;
  bool sanitize = false;
  bool shuffled = false;  // the programs of the judged forward's launches run in another order
  Deadline deadline = Deadline::never();
  std::set<int> leave_out = {};  // launches of the judged forward, by step
  bool poisoned_truth = true;    // what booleans in new storages are
  bool other_stand_ins = false;  // see Replay::leave_out
  bool count_work = false;       // Replay::work, of the judged forward
  bool digests = false;          // Replay::left
  std::map<int, int> alternatives =
      {};  // of launches of the judged forward: step -> index; 0 where not named
  std::map<int, std::vector<int>> tuned = {};  // see ConfiguredRun
};

class Replay : private Operands {
 public:
  // Fills an injected storage (see PreparedPhase::inject): state by name, pinned data.
  using Injector = std::function<void(trace::StorageId, Replay&)>;

  Replay(const Program& program, Machine& machine, Position* position = nullptr);

  // Forgets everything but constants.
  void reset();
  // ... and constants, too: nothing is held until `start` or `reset`.
  void let_go();

  // The phases before the judged forward, as far as it needs them. `make_inputs` has steps only in a
  // reference; a candidate's inputs come from `inject_inputs(call)`, called where that phase stands. With
  // `whole`, all steps run, needed or not.
  void start(const RunOptions& options, const Injector& inject,
             const std::function<void(int call)>& inject_inputs, bool whole = false);

  void begin_judged();
  // From the state at begin_judged: restores what may have been written, poisons workspace, seeds, runs.
  void run_judged(const RunOptions& options);
  // Back to the state at begin_judged.
  void rewind();

  // Whether the judged forward has to run again: it changed memory that it has to leave as it found it, and
  // may if it has not read it.
  bool spoil_what_changed();

  // The parts of run_judged, for timing: what comes before the steps, and the steps alone, which
  // are only issued. New storages are not poisoned meanwhile: the caller poisons them between
  // runs.
  void ready_judged(const RunOptions& options);
  void issue_judged(const RunOptions& options);
  // Called with each result of the calls that follow, which it may change; until it is given none.
  using Watcher = std::function<void(trace::StorageId, at::Tensor)>;
  void watch_results(Watcher watcher) { watcher_ = std::move(watcher); }
  using Operands::tf32;
  // Called with each operand of the judged forward's calls, by step: what it gives is taken instead.
  using Exchange = std::function<at::Tensor(int step, trace::ValueId, const at::Tensor&)>;
  void exchange_operands(Exchange exchange) { exchange_ = std::move(exchange); }

  // The contents at begin_judged again, and workspace poisoned, all where they are.
  void restore_in_place();

  const Program& program() const { return program_; }
  at::Tensor value(trace::ValueId value);
  const std::vector<trace::ValueId>& outputs() const { return program_.outputs(); }

  // The judged forward made it: it stays whole where it is still held when that forward runs again.
  bool made_by_judged(trace::StorageId storage) const {
    return static_cast<size_t>(storage) >= before_judged_.size() || !before_judged_[storage];
  }
  bool bound(trace::StorageId storage) const { return storages_[storage].storage.has_value(); }
  const c10::Storage& storage(trace::StorageId storage) const;
  trace::DType type_in(trace::StorageId storage) const;
  void bind_storage(trace::StorageId storage, c10::Storage bytes);  // all of it counts as written
  // Poisoned, unless all of it is about to be overwritten; nothing counts as written.
  void create(trace::StorageId storage, trace::DType type, bool overwritten = false);
  void mark_written(trace::ValueId value);

  // The indices of those values whose storage's bytes differ from what they were at begin_judged.
  std::vector<size_t> changed(const std::vector<trace::ValueId>& values);

  // Storages of Program::left_as_found that some forward did not leave so.
  std::set<trace::StorageId> not_as_found() const { return found_.changed(*this); }
  const FoundMemory& found() const { return found_; }

  const std::vector<ttir::Finding>& findings() const { return findings_; }
  int64_t finding_count() const { return finding_count_; }
  // The launches of the last judged forward, by step, in which the order of programs may matter without a
  // race.
  const std::vector<int>& communicating_steps() const { return communicating_; }
  // The last judged forward left launches out that would have written integers.
  bool has_stand_ins() const { return has_stand_ins_; }
  // Of each launch that does more or less by what it loads: what it did (launch_work.h).
  const std::vector<StepWork>& work() const { return work_; }
  // Of each launch with alternatives: a digest of all that it may have written, right after it. Digests of
  // one Replay can be compared with each other alone.
  const std::map<int, uint64_t>& left() const { return left_; }

 private:
  struct Entry {
    std::optional<c10::Storage> storage;
    std::vector<uint8_t> written;  // empty: all of it is
    at::Tensor saved;              // at begin_judged, where the judged forward may write it
    std::vector<uint8_t> saved_written;
  };

  at::Tensor operand(trace::ValueId value, bool shape_only) override;
  void bind(trace::ValueId value, at::Tensor result) override;
  at::Generator generator(const std::string& name) override;
  void seed(uint64_t seed) override;
  void save_generator(int64_t number, const std::string& name) override;
  void restore_generator(int64_t number, const std::string& name) override;

  void run_phase(size_t phase, const RunOptions& options, const Injector& inject, bool whole);
  void run_step(size_t phase, int step, const RunOptions& options);
  void run_call(const PreparedCall& prepared_call);
  void run_launch(const PreparedLaunch& launch, int step, bool judged, const RunOptions& options);
  // What the launch would have written stays as it is, but for integers. Later kernels take these for
  // addresses and bounds, so they hold small numbers that the launch does not write: 0 (1 where it writes 0);
  // with `other_stand_ins`, 1 (0 where it writes 1).
  void leave_out(const PreparedLaunch& launch, int step, const RunOptions& options);
  // As an autotuner measures: each of these alternatives, with what its hooks do around a run.
  void run_tuning(const PreparedLaunch& launch, int step, const std::vector<int>& runs,
                  const RunOptions& options);
  void run_alternative(const PreparedLaunch& launch, size_t index, int step, bool judged,
                       const RunOptions& options);
  std::vector<at::Tensor> device_bytes(const PreparedAlternative& alternative);  // of its buffers
  void inject(const std::vector<trace::StorageId>& storages, const Injector& inject);
  void remember(trace::StorageId storage);  // a copy for run_judged
  void restore();
  void before_forwards();
  void undo_forwards();
  void drop(trace::StorageId storage);
  void put_constants();
  uint64_t digest_of_written(int step);

  const Program& program_;
  Machine& machine_;
  Position* position_;
  Position own_position_;
  std::vector<Entry> storages_;
  std::vector<at::Tensor> values_;                      // made on demand; undefined where not
  std::vector<std::vector<trace::ValueId>> values_of_;  // by storage: which are made
  std::vector<bool> before_judged_;                     // storages bound at begin_judged
  bool dirty_ = false;                                  // the judged forward has run
  bool track_ = false;                                  // keep `written` bitmaps
  bool poison_ = true;                                  // what is created
  bool poisoned_truth_ = true;
  Watcher watcher_;
  Exchange exchange_;
  std::vector<at::Generator> generators_named(const std::string& name);

  FoundMemory found_;
  std::map<std::string, at::Generator> generators_;
  std::map<std::string, at::Tensor> generators_before_judged_;   // their states at begin_judged
  std::map<int64_t, std::vector<at::Tensor>> generator_states_;  // nereid::save_generator
  std::optional<StreamWrites> stream_writes_;                    // of the run under way
  std::vector<ttir::Finding> findings_;
  int64_t finding_count_ = 0;
  std::vector<int> communicating_;
  bool has_stand_ins_ = false;
  std::vector<StepWork> work_;
  std::map<int, uint64_t> left_;
  const uint64_t digest_key_ = unguessable_key();
};

}  // namespace nereid::replay
