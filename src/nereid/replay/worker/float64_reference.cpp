#include "nereid/replay/worker/float64_reference.h"

#include <algorithm>
#include <set>

#include "nereid/replay/worker/inputs.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"
#include "nereid/trace/op_table.h"

namespace nereid::replay {

using trace::StorageId;
using trace::ValueId;

at::Tensor taken(Replay& replay, ValueId id) {
  const auto& trace = replay.program().trace();
  const auto tensor = replay.value(id).detach();
  const auto storage = trace.values[id].storage;
  const bool small_part = 2 * static_cast<int64_t>(tensor.nbytes()) < trace.storages[storage].bytes;
  return replay.made_by_judged(storage) && !small_part ? tensor : tensor.clone();
}

Float64Reference::Float64Reference(Upcast upcasted, std::vector<ValueId> watched, Machine& machine)
    : upcast_(std::move(upcasted)), machine_(machine) {
  program_ = Program::prepare(upcast_.trace, machine,
                              {.may_keep_inputs = true, .watched = std::move(watched), .spend = true});
  replay_ = std::make_unique<Replay>(*program_, machine);
}

std::vector<at::Tensor> Float64Reference::run(Replay& own, const RunOptions& options,
                                              const std::vector<ValueId>& outputs, Change change) {
  replay_->reset();
  const auto& trace = own.program().trace();
  // Constants are the upcast trace's own, unless they are what a trial may have changed.
  std::set<StorageId> given;
  for (const auto& state : trace.state) given.insert(trace.values[state.value].storage);
  for (const auto value : trace::tensors_in(own.program().phases()[own.program().judged()].phase->inputs))
    given.insert(trace.values[value].storage);
  for (const auto id : program_->live_in()) {
    if (!own.bound(id) || (trace.storages[id].role == trace::Role::kConstant && !given.contains(id)))
      continue;
    replay_->bind_storage(id, converted(own, id, change));
  }
  if (change.exchange) replay_->exchange_operands(change.exchange);
  if (change.watch) replay_->watch_results(change.watch);
  if (change.rounding) round_on_the_way(*change.rounding, change.coarse);
  if (change.mark_overflow)
    replay_->watch_results([this](StorageId id, const at::Tensor& made) {
      if (const auto was = upcast_.was[id]) replay::mark_overflow(made, real_of(*was));
    });
  std::vector<at::Tensor> out;
  try {
    replay_->run_judged(options);
    for (const auto id : outputs) out.push_back(taken(*replay_, id));
  } catch (...) {
    replay_->watch_results({}), replay_->exchange_operands({});
    replay_->let_go();
    throw;
  }
  replay_->watch_results({}), replay_->exchange_operands({});
  replay_->let_go();
  machine_.trim();
  return out;
}

void Float64Reference::round_on_the_way(at::Generator generator, bool coarse) {
  replay_->watch_results([this, generator, coarse](StorageId id, const at::Tensor& made) {
    if (const auto was = upcast_.was[id])
      coarse ? add_rounding_noise(made, real_of(*was), generator)
             : round_by_chance(made, real_of(*was), generator);
  });
  if (coarse) return;
  replay_->exchange_operands([this, generator](int step, ValueId id, const at::Tensor& operand) {
    const auto was = upcast_.was[upcast_.trace.values[id].storage];
    if (!was || !takes_mean_of(step, id)) return operand;
    auto moved = operand.detach().clone();
    move_half_ulp(moved, real_of(*was), generator);
    return moved;
  });
}

bool Float64Reference::takes_mean_of(int step, ValueId value) const {
  static constexpr std::string_view kMeans[] = {
      "mean",       "native_layer_norm", "layer_norm",       "native_group_norm", "group_norm",
      "batch_norm", "native_batch_norm", "cudnn_batch_norm", "instance_norm"};
  const auto& steps = program_->phases()[program_->judged()].phase->steps;
  if (step < 0 || static_cast<size_t>(step) >= steps.size()) return false;
  const auto* call = std::get_if<trace::Call>(&steps[static_cast<size_t>(step)]);
  if (!call || call->args.empty() ||
      std::ranges::find(kMeans, trace::split_name(call->op).name) == std::end(kMeans))
    return false;
  const auto averaged = trace::tensors_in(call->args[0]);
  return std::ranges::find(averaged, value) != averaged.end();
}

trace::DType Float64Reference::real_of(trace::DType type) {
  return type == trace::DType::kC64   ? trace::DType::kF32
         : type == trace::DType::kC32 ? trace::DType::kF16
                                      : type;
}

c10::Storage Float64Reference::converted(Replay& own, StorageId id, Change& change) const {
  const auto& storage = own.program().trace().storages[id];
  const auto bytes = bytes_of(own.storage(id), storage.bytes);
  const auto was = upcast_.was[id];
  if (!was) return bytes.clone().storage();
  const auto real = real_of(*was);
  const auto whole = storage.bytes / trace::element_bytes(real) * trace::element_bytes(real);
  auto upcasted = bytes.narrow(0, 0, whole)
                      .view(scalar_type(real))
                      .to(upcast_.same_dtype ? scalar_type(real) : c10::kDouble);
  if (upcast_.same_dtype) upcasted = upcasted.clone();
  // An input of 16 bits is taken as exact: its neighbouring values excuse no error.
  const bool finer = !upcast_.same_dtype && epsilon(real) > epsilon(trace::DType::kF32);
  if (change.nudge && !change.exact.contains(id))
    move_half_ulp(upcasted, finer ? trace::DType::kF32 : real, *change.nudge);
  if (change.scale != 1) upcasted.mul_(change.scale);
  if (change.nan) upcasted.nan_to_num_(*change.nan, *change.infinity, -*change.infinity);
  return upcasted.storage();
}

}  // namespace nereid::replay
