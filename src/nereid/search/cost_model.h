// What a trace's forward would take on a GPU, estimated from its steps: what ranks proposals where there is
// no clock.
//
// A step takes the longest of moving its distinct bytes to and from memory, moving all the bytes that it asks
// for through the cache, and computing; and no step is quicker than a launch. Views and allocations are free.
// It is a model, and is reported as one.
#pragma once

#include <string>
#include <vector>

#include "nereid/gpu/roofline.h"
#include "nereid/verify/analysis/trace_analysis.h"

namespace nereid::search {

// What is reached in practice, not what a data sheet says.
struct Gpu {
  std::string name = "H200";
  double memory_bytes_per_second = 4.0e12;
  double cache_bytes_per_second = 9e12;
  double pointwise_flops = 45e12;  // float32, outside contractions
  double float32_contraction_flops = 50e12;
  double half_contraction_flops = 600e12;  // float16, bfloat16 and less
  double launch_seconds = 2e-6;            // as a node of a CUDA graph
};

struct StepWork {
  std::string name{};  // "aten::mm", or the kernel's name
  bool triton = false;
  double flops = 0, bytes = 0;  // distinct bytes
  double ms = 0;
  double roofline_ms = 0;  // the longer of memory and computing alone
};

struct Work {
  std::vector<StepWork> steps{};  // of the judged forward, without those that do nothing
  double flops = 0, bytes = 0, ms = 0;
};

Work work_of(const verify::TraceAnalysis& facts, const Gpu& gpu = {});

// The least work of the judged forward: each byte of inputs and state that it needs read once, each byte of
// results and changed state written once, and its operations by the unit that does them. Products of float32
// count as three in TF32, or as one if PyTorch's flags or `allow_tf32` allow TF32.
gpu::Work min_work(const verify::TraceAnalysis& facts, bool allow_tf32 = false);
// The longer of bytes over bandwidth and operations over rates, in milliseconds.
double roofline_ms(const verify::TraceAnalysis& facts, const gpu::DevicePeaks& peaks,
                   bool allow_tf32 = false);

}  // namespace nereid::search
