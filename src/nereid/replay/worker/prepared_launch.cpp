#include "nereid/replay/worker/prepared_launch.h"

#include <fmt/format.h>

#include <bit>

#include "nereid/replay/worker/types.h"

namespace nereid::replay {
namespace {

using trace::StorageId;
using trace::ValueId;

std::string buffer_name(const trace::Trace& trace, StorageId id) {
  const auto& storage = trace.storages[id];
  switch (storage.role) {
    case trace::Role::kInput:
      return "input " + storage.name;
    case trace::Role::kParameter:
      return "parameter " + storage.name;
    case trace::Role::kBuffer:
      return "buffer " + storage.name;
    case trace::Role::kConstant:
      return fmt::format("constant {}", id);
    case trace::Role::kTemporary:
      return fmt::format("temporary {}", id);
  }
  return {};
}

uint16_t f16_bits(double value) { return c10::Half(static_cast<float>(value)).x; }
uint16_t bf16_bits(double value) { return c10::BFloat16(static_cast<float>(value)).x; }

// A scalar argument as the parameter's own type holds it.
ttir::Scalar scalar_bits(const trace::LaunchArg& arg, const std::string& type) {
  const auto* integer = std::get_if<trace::IntArg>(&arg);
  const auto* real = std::get_if<trace::FloatArg>(&arg);
  const double as_double = real ? real->value : static_cast<double>(integer->value);
  if (type == "f64") return {std::bit_cast<uint64_t>(as_double)};
  if (type == "f32") return {std::bit_cast<uint32_t>(static_cast<float>(as_double))};
  if (type == "f16") return {f16_bits(as_double)};
  if (type == "bf16") return {bf16_bits(as_double)};
  const auto bits = type == "i1"    ? 1
                    : type == "i8"  ? 8
                    : type == "i16" ? 16
                    : type == "i32" ? 32
                    : type == "i64" ? 64
                                    : 0;
  if (bits == 0 || !integer)
    throw Failed(Failure::Kind::kRefused,
                 fmt::format("a kernel's parameter of type {} was given a number", type));
  return {static_cast<uint64_t>(integer->value) & (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1)};
}

std::vector<PreparedCall> prepare_calls(const std::vector<trace::Call>& calls, const trace::Trace& trace,
                                        Machine& machine) {
  std::vector<PreparedCall> prepared;
  for (const auto& call : calls) prepared.push_back(PreparedCall::prepare(call, trace, machine));
  return prepared;
}

PreparedAlternative prepare_alternative(const trace::Alternative& alternative, const trace::Trace& trace,
                                        Machine& machine, Launcher& launcher) {
  PreparedAlternative out;
  out.before = prepare_calls(alternative.before, trace, machine);
  const auto parameters = launcher.parameters(alternative.kernel);
  const auto buffer_of = [&](ValueId value) {
    const auto storage = trace.values[value].storage;
    for (size_t i = 0; i < out.buffers.size(); ++i)
      if (trace.values[out.buffers[i]].storage == storage) return static_cast<int>(i);
    out.buffers.push_back(value);
    out.names.push_back(buffer_name(trace, storage));
    out.read.push_back(false);
    out.written.push_back(false);
    return static_cast<int>(out.buffers.size()) - 1;
  };
  const auto pointer = [&](ValueId value, int64_t bytes, const ttir::Parameter& parameter) {
    if (value < 0) return ttir::Pointer{-1, bytes};
    const auto& v = trace.values[value];
    const auto buffer = buffer_of(value);
    out.read[buffer] = out.read[buffer] || parameter.read;
    out.written[buffer] = out.written[buffer] || parameter.written;
    return ttir::Pointer{buffer, v.offset * trace::element_bytes(v.dtype) + bytes};
  };
  size_t parameter = 0;
  for (const auto& arg : alternative.args) {
    if (parameter >= parameters.size())
      throw Failed(Failure::Kind::kRefused,
                   fmt::format("the kernel has {} parameters, the launch gives more", parameters.size()));
    if (const auto* p = std::get_if<trace::PointerArg>(&arg)) {
      out.arguments.push_back(pointer(p->value, p->offset, parameters[parameter]));
      ++parameter;
    } else if (const auto* d = std::get_if<trace::DescriptorArg>(&arg)) {
      out.arguments.push_back(ttir::Descriptor{pointer(d->value, 0, parameters[parameter]), d->shape,
                                               d->strides, d->nan_padding});
      parameter += 1 + d->shape.size() + d->strides.size();
    } else {
      out.arguments.push_back(scalar_bits(arg, parameters[parameter++].type));
    }
  }
  return out;
}

PreparedTuning prepare_tuning(const trace::Tuning& tuning, const trace::Trace& trace, Machine& machine) {
  PreparedTuning out;
  for (const auto& run : tuning.runs)
    out.runs.push_back({prepare_calls(run.before, trace, machine), prepare_calls(run.after, trace, machine)});
  out.reset = prepare_calls(tuning.reset, trace, machine);
  return out;
}

}  // namespace

PreparedLaunch PreparedLaunch::prepare(const trace::Launch& launch, const trace::Trace& trace,
                                       Machine& machine, Launcher& launcher) {
  PreparedLaunch out;
  out.launch = &launch;
  for (const auto& alternative : launch.alternatives)
    out.alternatives.push_back(prepare_alternative(alternative, trace, machine, launcher));
  if (launch.tuning) out.tuning = prepare_tuning(*launch.tuning, trace, machine);
  return out;
}

}  // namespace nereid::replay
