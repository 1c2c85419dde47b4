#include "nereid/search/cost_model.h"

#include <algorithm>
#include <set>

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

}  // namespace

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
