#include "nereid/replay/worker/replay.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "nereid/replay/memory_plan.h"
#include "nereid/replay/worker/launch_work.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

Replay::Replay(const Program& program, Machine& machine, Position* position)
    : program_(program),
      machine_(machine),
      position_(position ? position : &own_position_),
      storages_(program.trace().storages.size()),
      values_(program.trace().values.size()),
      values_of_(program.trace().storages.size()) {}

void Replay::let_go() {
  for (size_t s = 0; s < storages_.size(); ++s) drop(static_cast<StorageId>(s));
  before_judged_.clear();
  dirty_ = false;
}

void Replay::reset() {
  let_go();
  generators_.clear();
  generators_before_judged_.clear();
  generator_states_.clear();
  findings_.clear();
  finding_count_ = 0;
  work_.clear();
  found_.clear();
  put_constants();
}

void Replay::put_constants() {
  const auto& storages = program_.trace().storages;
  for (size_t s = 0; s < storages.size(); ++s) {
    if (storages[s].role != trace::Role::kConstant && storages[s].data.empty()) continue;
    if (storages[s].role == trace::Role::kInput) continue;
    auto bytes = machine_.allocate(storages[s].bytes, storages[s].device);
    if (!storages[s].data.empty()) {
      const auto count = std::min<int64_t>(storages[s].bytes, storages[s].data.size());
      bytes_of(bytes, count)
          .copy_(at::from_blob(const_cast<char*>(storages[s].data.data()), {count},
                               at::TensorOptions().dtype(at::kByte)));
    }
    bind_storage(static_cast<StorageId>(s), std::move(bytes));
  }
}

void Replay::start(const RunOptions& options, const Injector& inject,
                   const std::function<void(int call)>& inject_inputs, bool whole) {
  reset();
  track_ = options.sanitize && machine_.tracks_written();
  for (size_t p = 0; p < program_.judged(); ++p) {
    const auto& phase = *program_.phases()[p].phase;
    run_phase(p, options, inject, whole);
    if (phase.kind == trace::PhaseKind::kForward) found_.after_forward(*this);
    if (phase.kind == trace::PhaseKind::kMakeInputs && inject_inputs &&
        program_.calls_used().contains(phase.call))
      inject_inputs(phase.call);
    // What init made is as init left it when the judged forward begins.
    const bool state_is_made =
        program_.phases()[p + 1].phase->kind != trace::PhaseKind::kInit &&
        (phase.kind == trace::PhaseKind::kInit || phase.kind == trace::PhaseKind::kModule);
    if (state_is_made) before_forwards();
  }
  undo_forwards();
}

void Replay::run_phase(size_t p, const RunOptions& options, const Injector& inject, bool whole) {
  const auto& prepared = program_.phases()[p];
  position_->phase = static_cast<int>(prepared.phase->kind);
  position_->call = prepared.phase->call;
  position_->step = -1;
  seed(phase_seed(options.seed, prepared.phase->kind, prepared.phase->call));
  this->inject(prepared.inject[0], inject);
  for (size_t i = 0; i < prepared.steps.size(); ++i) {
    found_.before_step(*this, p, static_cast<int>(i));
    if (prepared.needed[i] || whole) run_step(p, static_cast<int>(i), options);
    this->inject(prepared.inject[i + 1], inject);
    if (!whole && i < prepared.release.size())
      for (const auto storage : prepared.release[i]) drop(storage);
  }
  position_->step = -1;
}

void Replay::run_step(size_t p, int i, const RunOptions& options) {
  const auto& prepared = program_.phases()[p];
  position_->step = i;
  const auto fail = [&](Failure::Kind kind, const std::string& message) {
    Failed failed(kind, message);
    failed.where = where_is(program_.trace(), *prepared.phase, i);
    return failed;
  };
  try {
    if (options.deadline.passed()) throw Failed(Failure::Kind::kTimedOut, "the time limit passed");
    if (const auto* prepared_call = std::get_if<PreparedCall>(&prepared.steps[i])) {
      run_call(*prepared_call);
      if (p == program_.judged() && stream_writes_ && !prepared_call->allocates())
        stream_writes_->end_call(i, *prepared_call, findings_, finding_count_);
    }
    if (const auto* launch = std::get_if<PreparedLaunch>(&prepared.steps[i]))
      run_launch(*launch, i, p == program_.judged(), options);
  } catch (const Failed& failed) {
    throw fail(failed.kind, failed.what());
  } catch (const c10::OutOfMemoryError&) {
    throw;  // of the GPU's memory: our plan was wrong, no fault of the candidate's
  } catch (const c10::NotImplementedError& error) {
    throw fail(Failure::Kind::kUnsupported, error.what_without_backtrace());
  } catch (const c10::Error& error) {
    throw fail(Failure::Kind::kRaised, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    throw fail(Failure::Kind::kRaised, "out of memory");
  }
}

void Replay::run_call(const PreparedCall& prepared_call) {
  if (prepared_call.allocates()) {
    for (const auto value : prepared_call.bound_results())
      create(program_.trace().values[value].storage, program_.trace().values[value].dtype);
    return;
  }
  prepared_call.run(*this);
  if (!track_) return;
  for (const auto value : prepared_call.writes()) mark_written(value);
}

void Replay::run_launch(const PreparedLaunch& launch, int step, bool judged, const RunOptions& options) {
  if (judged && options.leave_out.contains(step)) return leave_out(launch, step, options);
  if (const auto tuned = options.tuned.find(step); judged && tuned != options.tuned.end())
    run_tuning(launch, step, tuned->second, options);
  const auto chosen = judged ? options.alternatives.find(step) : options.alternatives.end();
  const int index = chosen == options.alternatives.end() ? 0 : chosen->second;
  for (const auto& prepared_call : launch.alternatives.at(static_cast<size_t>(index)).before)
    run_call(prepared_call);
  run_alternative(launch, static_cast<size_t>(index), step, judged, options);
  if (judged && options.digests && launch.alternatives.size() > 1) left_[step] = digest_of_written(step);
}

void Replay::run_tuning(const PreparedLaunch& launch, int step, const std::vector<int>& runs,
                        const RunOptions& options) {
  if (!launch.tuning) throw Failed(Failure::Kind::kRefused, "a launch that is not tuned in forward");
  for (const int index : runs) {
    const auto at = static_cast<size_t>(index);
    const auto& hooks = launch.tuning->runs.at(at);
    for (const auto& prepared_call : launch.alternatives.at(at).before) run_call(prepared_call);
    for (const auto& prepared_call : hooks.before) run_call(prepared_call);
    run_alternative(launch, at, step, true, options);
    for (const auto& prepared_call : hooks.after) run_call(prepared_call);
  }
  for (const auto& prepared_call : launch.tuning->reset) run_call(prepared_call);
}

void Replay::run_alternative(const PreparedLaunch& launch, size_t index, int step, bool judged,
                             const RunOptions& options) {
  const auto& alternative = launch.alternatives.at(index);
  LaunchRequest request;
  request.alternative = &launch.launch->alternatives[index];
  request.arguments = alternative.arguments;
  request.sanitize = options.sanitize;
  request.shuffled = judged && options.shuffled;
  const auto& grid = request.alternative->grid;
  const bool several = std::ranges::any_of(grid, [](int64_t size) { return size > 1; });
  if (judged && several && program_.launcher().communicates(request.alternative->kernel))
    communicating_.push_back(step);
  request.deadline = options.deadline;
  for (size_t b = 0; b < alternative.buffers.size(); ++b) {
    const auto& value = program_.trace().values[alternative.buffers[b]];
    auto& entry = storages_[value.storage];
    const auto& bytes = storage(value.storage);
    request.buffers.push_back({.storage = value.storage,
                               .data = static_cast<std::byte*>(bytes.mutable_data()),
                               .bytes = program_.trace().storages[value.storage].bytes,
                               .element_bytes = trace::element_bytes(value.dtype),
                               .written = entry.written.empty() ? nullptr : entry.written.data(),
                               .name = alternative.names[b]});
  }
  if (judged && options.count_work)
    if (const auto work = launch_work(program_.trace(), request, device_bytes(alternative)))
      work_.push_back({step, work->flops, work->bytes});
  const bool watched = judged && stream_writes_;
  if (watched) stream_writes_->begin(alternative, request);
  program_.launcher().launch(request, findings_, finding_count_);
  if (watched) stream_writes_->end_launch(step, findings_, finding_count_);
}

uint64_t Replay::digest_of_written(int step) {
  uint64_t digest = 0;
  for (const auto id : program_.written_by(step)) {
    if (!storages_[id].storage) continue;
    const auto bytes = bytes_of(*storages_[id].storage, program_.trace().storages[id].bytes);
    digest = mix_digest(digest, memory_digest(bytes, digest_key_));
  }
  return digest;
}

std::vector<at::Tensor> Replay::device_bytes(const PreparedAlternative& alternative) {
  std::vector<at::Tensor> bytes;
  for (const auto value : alternative.buffers) {
    const auto id = program_.trace().values[value].storage;
    bytes.push_back(bytes_of(storage(id), program_.trace().storages[id].bytes));
  }
  return bytes;
}

void Replay::begin_judged() {
  for (const auto id : found_.begin_judged(*this, track_))
    found_.spoil(*this, id, track_, storages_[id].written);
  before_judged_.resize(storages_.size());
  for (size_t s = 0; s < storages_.size(); ++s) before_judged_[s] = storages_[s].storage.has_value();
  for (const auto storage : program_.judged_writes())
    if (before_judged_[storage]) remember(storage);
  for (const auto& [name, generator] : generators_)
    generators_before_judged_[name] = generator.get_state().clone();
  dirty_ = false;
}

void Replay::run_judged(const RunOptions& options) {
  ready_judged(options);
  run_phase(program_.judged(), options, {}, false);
  machine_.synchronize();
}

bool Replay::spoil_what_changed() {
  const auto more = found_.add_changed(*this);
  if (!more.empty()) rewind();
  for (const auto id : more) {
    found_.spoil(*this, id, track_, storages_[id].written);
    remember(id);
  }
  return !more.empty();
}

void Replay::ready_judged(const RunOptions& options) {
  rewind();
  dirty_ = true;
  findings_.clear();
  finding_count_ = 0;
  communicating_.clear();
  has_stand_ins_ = false;
  work_.clear();
  left_.clear();
  track_ = options.sanitize && machine_.tracks_written();
  poisoned_truth_ = options.poisoned_truth;
  const auto& phase = *program_.phases()[program_.judged()].phase;
  stream_writes_.reset();
  if (track_ && StreamWrites::has_streams(phase)) stream_writes_.emplace(program_.trace(), phase);
  for (const auto storage : program_.workspace()) create(storage, type_in(storage));
}

void Replay::issue_judged(const RunOptions& options) {
  struct Unpoisoned {
    bool& poison;
    ~Unpoisoned() { poison = true; }
  } restore{poison_};
  poison_ = false;
  run_phase(program_.judged(), options, {}, false);
}

void Replay::restore_in_place() {
  const auto& storages = program_.trace().storages;
  for (size_t s = 0; s < storages.size(); ++s)
    if (storages_[s].saved.defined() && storages_[s].storage)
      bytes_of(*storages_[s].storage, storages[s].bytes).copy_(storages_[s].saved);
  for (const auto storage : program_.workspace())
    if (storages_[storage].storage)
      poison(*storages_[storage].storage, storages[storage].bytes, type_in(storage));
}

// As what the trace sees a storage, the last time.
trace::DType Replay::type_in(StorageId storage) const {
  trace::DType type = trace::DType::kU8;
  for (const auto& value : program_.trace().values)
    if (value.storage == storage) type = value.dtype;
  return type;
}

void Replay::rewind() {
  if (dirty_) restore();
  dirty_ = false;
}

void Replay::remember(StorageId id) {
  auto& entry = storages_[id];
  entry.saved = bytes_of(*entry.storage, program_.trace().storages[id].bytes).clone();
  entry.saved_written = entry.written;
}

void Replay::restore() {
  for (size_t s = 0; s < storages_.size(); ++s) {
    auto& entry = storages_[s];
    if (!before_judged_[s]) {
      drop(static_cast<StorageId>(s));
    } else if (entry.saved.defined()) {
      bytes_of(*entry.storage, program_.trace().storages[s].bytes).copy_(entry.saved);
      entry.written = entry.saved_written;
    }
  }
  std::erase_if(generators_,
                [&](const auto& entry) { return !generators_before_judged_.contains(entry.first); });
  for (auto& [name, generator] : generators_) generator.set_state(generators_before_judged_.at(name));
}

std::vector<size_t> Replay::changed(const std::vector<ValueId>& values) {
  std::vector<size_t> changed;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto id = program_.trace().values[values[i]].storage;
    const auto& entry = storages_[id];
    if (entry.saved.defined() && entry.storage &&
        !same_bits(entry.saved, bytes_of(*entry.storage, program_.trace().storages[id].bytes)))
      changed.push_back(i);
  }
  return changed;
}

// Between init and the earlier forwards: a copy of what they may write of init's.
void Replay::before_forwards() {
  for (const auto storage : program_.undone())
    if (storages_[storage].storage) remember(storage);
}

void Replay::undo_forwards() {
  for (const auto id : program_.undone()) {
    auto& entry = storages_[id];
    if (!entry.storage || !entry.saved.defined()) continue;
    bytes_of(*entry.storage, program_.trace().storages[id].bytes).copy_(entry.saved);
    entry.written = entry.saved_written;
    entry.saved.reset();
  }
}

at::Tensor Replay::value(ValueId id) {
  auto& tensor = values_[id];
  if (!tensor.defined()) {
    const auto& value = program_.trace().values[id];
    tensor = view_of(value, storage(value.storage));
    // As a module's own parameters do: matmul asks, inside recurrent layers too, and folds its batch
    // accordingly.
    if (program_.is_parameter(id)) tensor.set_requires_grad(true);
    values_of_[value.storage].push_back(id);
  }
  return tensor;
}

at::Tensor Replay::operand(ValueId id, bool shape_only) {
  const auto& value = program_.trace().values[id];
  if (shape_only && !storages_[value.storage].storage) create(value.storage, value.dtype);
  const bool judged = position_->phase == static_cast<int>(program_.phases()[program_.judged()].phase->kind);
  if (exchange_ && judged && !shape_only) return exchange_(position_->step, id, this->value(id));
  return this->value(id);
}

const c10::Storage& Replay::storage(StorageId id) const {
  const auto& entry = storages_[id];
  if (!entry.storage)
    throw Failed(Failure::Kind::kRaised, fmt::format("storage {} is used before anything made it", id));
  return *entry.storage;
}

void Replay::drop(StorageId id) {
  for (const auto value : values_of_[id]) values_[value].reset();
  values_of_[id].clear();
  storages_[id] = {};
}

void Replay::bind_storage(StorageId id, c10::Storage bytes) {
  drop(id);
  storages_[id].storage = std::move(bytes);
}

void Replay::create(StorageId id, trace::DType type, bool overwritten) {
  const auto& storage = program_.trace().storages[id];
  auto bytes = machine_.allocate(storage.bytes, storage.device);
  if (poison_ && !overwritten) poison(bytes, storage.bytes, type, poisoned_truth_);
  auto saved = std::move(storages_[id].saved);
  auto saved_written = std::move(storages_[id].saved_written);
  bind_storage(id, std::move(bytes));
  storages_[id].saved = std::move(saved);
  storages_[id].saved_written = std::move(saved_written);
  if (track_) storages_[id].written.assign((storage.bytes + 7) / 8, 0);
}

// A result becomes a storage of the replay as it is, where it is as the trace says. Where it does not
// (another layout on this machine, part of something larger, an argument itself) it is copied into one that
// does: kernels were given the trace's strides.
void Replay::bind(ValueId id, at::Tensor result) {
  const auto& trace = program_.trace();
  const auto& value = trace.values[id];
  const auto& storage = trace.storages[value.storage];
  if (result.sizes() != at::IntArrayRef(value.sizes))
    throw Failed(Failure::Kind::kRaised,
                 fmt::format("a result has the sizes {} where the trace has {}",
                             fmt::join(result.sizes(), "x"), fmt::join(value.sizes, "x")));
  const bool as_traced =
      result.layout() == c10::kStrided && result.scalar_type() == scalar_type(value.dtype) &&
      (result.strides() == at::IntArrayRef(value.strides) || result.numel() == 0) &&
      result.storage_offset() == value.offset && result.is_conj() == value.conj &&
      result.is_neg() == value.neg && static_cast<int64_t>(result.storage().nbytes()) >= storage.bytes &&
      result.device() == machine_.device(storage.device);
  auto& entry = storages_[value.storage];
  if (as_traced && entry.storage && entry.storage->is_alias_of(result.storage())) return;
  if (as_traced && !entry.storage && !machine_.fences() && result.storage().use_count() == 1 &&
      result.use_count() == 1) {
    bind_storage(value.storage, result.storage());
    if (program_.is_parameter(id)) result.set_requires_grad(true);
    values_[id] = std::move(result);
    values_of_[value.storage].push_back(id);
    if (watcher_) watcher_(value.storage, values_[id]);
    return;
  }
  if (!entry.storage) create(value.storage, value.dtype, is_whole(trace, id));
  this->value(id).copy_(result);
  if (watcher_) watcher_(value.storage, this->value(id));
  mark_written(id);
}

void Replay::mark_written(ValueId id) {
  const auto& value = program_.trace().values[id];
  auto& entry = storages_[value.storage];
  if (entry.written.empty() || trace::element_count(value) == 0) return;
  const auto element = trace::element_bytes(value.dtype);
  const auto [first, last] = trace::byte_extent(value);
  if (last - first >= program_.trace().storages[value.storage].bytes &&
      trace::element_count(value) * element == last - first)
    entry.written.clear();  // all of it
  else
    set_bits_of(entry.written.data(), value, element, 0, value.offset);
}

void Replay::inject(const std::vector<StorageId>& storages, const Injector& inject) {
  for (const auto id : storages) {
    const auto& storage = program_.trace().storages[id];
    if (storage.pinned && !storage.data.empty()) {
      auto bytes = machine_.allocate(storage.bytes, storage.device);
      const auto count = std::min<int64_t>(storage.bytes, storage.data.size());
      bytes_of(bytes, count)
          .copy_(at::from_blob(const_cast<char*>(storage.data.data()), {count},
                               at::TensorOptions().dtype(at::kByte)));
      bind_storage(id, std::move(bytes));
    } else if (inject) {
      inject(id, *this);
    }
  }
}

void Replay::seed(uint64_t seed) { at::manual_seed(seed); }

// The default ones are one to a trace: what they draw depends on where the tensors are.
std::vector<at::Generator> Replay::generators_named(const std::string& name) {
  if (!name.empty()) return {generator(name)};
  std::vector<at::Generator> found = {at::globalContext().defaultGenerator(c10::Device(c10::kCPU))};
  const auto device = machine_.device(trace::Device::kCuda);
  if (device.type() != c10::kCPU) found.push_back(at::globalContext().defaultGenerator(device));
  return found;
}

void Replay::save_generator(int64_t number, const std::string& name) {
  auto& states = generator_states_[number];
  states.clear();
  for (const auto& generator : generators_named(name)) states.push_back(generator.get_state());
}

void Replay::restore_generator(int64_t number, const std::string& name) {
  const auto states = generator_states_.find(number);
  auto generators = generators_named(name);
  if (states == generator_states_.end() || states->second.size() != generators.size())
    throw Failed(Failure::Kind::kRaised, "a generator's state that was not saved here");
  for (size_t i = 0; i < generators.size(); ++i) generators[i].set_state(states->second[i]);
}

at::Generator Replay::generator(const std::string& name) {
  auto& generator = generators_[name];
  if (!generator.defined()) {
    const auto colon = name.find(':');
    const auto device =
        machine_.device(name.starts_with("cuda") ? trace::Device::kCuda : trace::Device::kCpu);
    generator = at::globalContext().defaultGenerator(device).clone();
    generator.set_current_seed(colon == name.npos ? 0 : std::strtoull(name.c_str() + colon + 1, nullptr, 10));
  }
  return generator;
}

}  // namespace nereid::replay
