#include "nereid/search/cost_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "nereid/replay/host/upcast.h"
#include "nereid/trace/op_class.h"

namespace nereid::search {
namespace {

// Bytes of the widest floating-point elements that anybody sees in each storage.
std::vector<int64_t> widths_of(const trace::Trace& trace) {
  std::vector<int64_t> widths(trace.storages.size(), 0);
  for (const auto& value : trace.values) {
    auto& width = widths[static_cast<size_t>(value.storage)];
    if (trace::is_floating(value.dtype)) width = std::max(width, trace::element_bytes(value.dtype));
  }
  return widths;
}

bool contracts(const trace::Trace& trace, const trace::Step& step) {
  if (const auto* call = std::get_if<trace::Call>(&step)) {
    const auto kind = trace::listed_class(call->op);
    return kind == trace::OpClass::kContraction || kind == trace::OpClass::kConvolution ||
           kind == trace::OpClass::kAttention || kind == trace::OpClass::kRecurrent;
  }
  const auto& launch = std::get<trace::Launch>(step);
  const auto& kernel = trace.kernels[static_cast<size_t>(launch.alternatives.front().kernel)];
  return kernel.ttir.find("tt.dot") != std::string::npos;
}

bool in_tf32(const trace::Step& step, const replay::Tf32& tf32) {
  const auto* call = std::get_if<trace::Call>(&step);
  const bool convolves = call != nullptr && trace::listed_class(call->op) == trace::OpClass::kConvolution;
  return convolves ? tf32.convolutions : tf32.matmuls;
}

}  // namespace

gpu::Work min_work(const verify::TraceAnalysis& facts, bool allow_tf32) {
  gpu::Work least;
  const int judged = facts.judged();
  if (judged < 0) return least;
  const auto& trace = *facts.trace;
  const auto& phase = trace.phases[static_cast<size_t>(judged)];
  const auto& steps = facts.phases[static_cast<size_t>(judged)].steps;
  const auto widths = widths_of(trace);
  const auto tf32 = replay::tf32_of(trace, allow_tf32);
  std::map<trace::StorageId, double> read;  // bytes that steps ask for, of storages that exist before
  std::set<trace::StorageId> written, made;
  for (const auto id : trace::tensors_in(phase.output))
    written.insert(trace.values[static_cast<size_t>(id)].storage);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    int64_t width = 0;
    for (const auto* list : {&step.reads, &step.writes})
      for (const auto id : *list) width = std::max(width, widths[static_cast<size_t>(id)]);
    for (const auto id : step.reads)
      if (!made.contains(id)) read[id] += step.bytes;
    for (const auto id : step.writes) {
      const auto role = trace.storages[static_cast<size_t>(id)].role;
      if (role != trace::Role::kTemporary) written.insert(id);
      made.insert(id);
    }
    if (width > 4)
      least.f64 += step.flops;
    else if (!contracts(trace, phase.steps[i]))
      least.f32 += step.flops;
    else if (width == 4)
      least.tf32 += (in_tf32(phase.steps[i], tf32) ? 1 : 3) * step.flops;
    else
      least.half += step.flops;
  }
  const auto bytes = [&](trace::StorageId id) {
    return static_cast<double>(trace.storages[static_cast<size_t>(id)].bytes);
  };
  for (const auto& [id, asked] : read) least.bytes_read += asked > 0 ? std::min(asked, bytes(id)) : 0;
  for (const auto id : written)
    if (made.contains(id)) least.bytes_written += bytes(id);
  return least;
}

double roofline_ms(const verify::TraceAnalysis& facts, const gpu::DevicePeaks& peaks, bool allow_tf32) {
  const gpu::Work least = min_work(facts, allow_tf32);
  const double memory = (least.bytes_read + least.bytes_written) / peaks.bytes;
  const double matrix = least.tf32 / peaks.tf32 + least.half / peaks.half;
  return 1e3 * std::max({memory, matrix, least.f32 / peaks.f32, least.f64 / peaks.f64});
}

Work work_of(const verify::TraceAnalysis& facts, const Gpu& gpu) {
  Work work;
  const int judged = facts.judged();
  if (judged < 0) return work;
  const auto& trace = *facts.trace;
  const auto& phase = trace.phases[static_cast<size_t>(judged)];
  const auto& steps = facts.phases[static_cast<size_t>(judged)].steps;
  const auto widths = widths_of(trace);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto& step = steps[i];
    const bool triton = step.work == verify::Work::kTriton;
    if (!triton && step.work == verify::Work::kFree && step.bytes == 0) continue;
    double storages = 0;
    int64_t width = 0;
    std::set<trace::StorageId> touched(step.reads.begin(), step.reads.end());
    touched.insert(step.writes.begin(), step.writes.end());
    for (const auto id : touched) {
      storages += static_cast<double>(trace.storages[static_cast<size_t>(id)].bytes);
      width = std::max(width, widths[static_cast<size_t>(id)]);
    }
    StepWork one{.name = step.name, .triton = triton, .flops = step.flops};
    // A kernel's count is of all that it asks for; what it reads again comes from the cache.
    one.bytes = triton && storages > 0 ? std::min(step.bytes, storages) : step.bytes;
    const double peak = !contracts(trace, phase.steps[i]) ? gpu.pointwise_flops
                        : width > 2                       ? gpu.float32_contraction_flops
                                                          : gpu.half_contraction_flops;
    const double memory = one.bytes / gpu.memory_bytes_per_second, computing = one.flops / peak;
    one.roofline_ms = std::max(memory, computing) * 1e3;
    one.ms =
        (std::max({memory, computing, step.bytes / gpu.cache_bytes_per_second}) + gpu.launch_seconds) * 1e3;
    work.flops += one.flops, work.bytes += one.bytes, work.ms += one.ms;
    work.steps.push_back(std::move(one));
  }
  return work;
}

}  // namespace nereid::search
