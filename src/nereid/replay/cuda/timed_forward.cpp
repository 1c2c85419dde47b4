#include "nereid/replay/cuda/timed_forward.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <limits>
#include <map>

#include "nereid/gpu/statistics.h"
#include "nereid/gpu/timing.h"
#include "nereid/replay/worker/operators.h"
#include "nereid/replay/worker/types.h"

namespace nereid::replay::cuda {
namespace {

// A driver call that fails for reasons of ours.
void must(const gpu::Driver& driver, CUresult code, const char* what) {
  TORCH_CHECK(code == CUDA_SUCCESS, what, ": ", gpu::describe(driver, code));
}

}  // namespace

CacheFlush::CacheFlush(const CudaMachine& machine) {
  const int64_t bytes = std::max<int64_t>(3 * machine.facts().l2_bytes, int64_t{64} << 20);
  const auto options = at::TensorOptions().dtype(at::kFloat).device(machine.device(trace::Device::kCuda));
  memory_ = at::zeros({bytes / 4}, options);
  sum_ = at::zeros({}, options);
}

void CacheFlush::run() { at::sum_out(sum_, memory_, at::IntArrayRef{0}); }

struct TimedForward::Event {
  explicit Event(const gpu::Driver& driver) : driver(driver) {
    must(driver, driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  ~Event() { driver.cuEventDestroy(event); }
  const gpu::Driver& driver;
  CUevent event = nullptr;
};

// The captured forward, and the graph around it that is launched.
struct TimedForward::Graph {
  explicit Graph(const gpu::Driver& driver) : driver(driver), forward(/*keep_graph=*/true) {}
  ~Graph() {
    if (exec != nullptr) driver.cuGraphExecDestroy(exec);
    if (timed != nullptr) driver.cuGraphDestroy(timed);
  }
  const gpu::Driver& driver;
  at::cuda::CUDAGraph forward;
  CUgraph timed = nullptr;
  CUgraphExec exec = nullptr;
  std::vector<std::pair<CUdeviceptr, size_t>> pool;  // the memory that what the forward made is in
};

TimedForward::TimedForward(CudaMachine& machine, Replay& replay, CacheFlush& flush)
    : machine_(machine),
      replay_(replay),
      flush_(flush),
      begin_(std::make_unique<Event>(machine.driver())),
      end_(std::make_unique<Event>(machine.driver())) {}

TimedForward::~TimedForward() = default;

// The first is what the replay stands on, the others are copies of it.
void TimedForward::make_sets() {
  const auto& program = replay_.program();
  const auto& trace = program.trace();
  const auto& written = program.judged_writes();
  Bindings inputs;
  int64_t bytes = 0;
  for (const auto value : trace::tensors_in(program.phases()[program.judged()].phase->inputs)) {
    const auto id = trace.values[value].storage;
    const auto same = [id](const auto& binding) { return binding.first == id; };
    if (!replay_.bound(id) || trace.storages[id].device != trace::Device::kCuda ||
        std::ranges::find(written, id) != written.end() || std::ranges::any_of(inputs, same))
      continue;
    inputs.emplace_back(id, replay_.storage(id));
    bytes += trace.storages[id].bytes;
  }
  size_t free = 0, total = 0;
  must(machine_.driver(), machine_.driver().cuMemGetInfo(&free, &total), "cuMemGetInfo");
  const auto& footprint = program.footprint();
  const int count = gpu::input_sets(bytes, bytes + footprint.forward - footprint.standing,
                                    machine_.facts().l2_bytes, static_cast<int64_t>(free));
  sets_.resize(static_cast<size_t>(count));
  for (auto& set : sets_) {
    set.inputs = inputs;
    if (&set == &sets_.front()) continue;
    for (auto& [id, storage] : set.inputs)
      storage = bytes_of(storage, trace.storages[id].bytes).clone().storage();
  }
}

void TimedForward::bind(const Bindings& bindings) {
  for (const auto& [id, storage] : bindings) replay_.bind_storage(id, storage);
}

std::string TimedForward::capture(const RunOptions& options) {
  make_sets();
  // Once as it is: whatever libraries make on first use must not be made while capturing.
  replay_.run_judged(options);
  for (auto& set : sets_) {
    bind(set.inputs);
    replay_.ready_judged(options);
    machine_.synchronize();
    if (auto reason = capture(set, options); !reason.empty()) return reason;
  }
  return {};
}

std::string TimedForward::capture(InputSet& set, const RunOptions& options) {
  const gpu::Driver& driver = machine_.driver();
  const c10::DeviceIndex device = static_cast<c10::DeviceIndex>(machine_.device_index());
  auto graph = std::make_unique<Graph>(driver);
  auto& forward = graph->forward;
  forward.register_generator_state(
      at::globalContext().defaultGenerator(machine_.device(trace::Device::kCuda)));
  std::string reason;
  forward.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
  try {
    replay_.issue_judged(options);
  } catch (const Failed& failed) {
    reason = failed.what();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  }
  try {
    forward.capture_end();
  } catch (const c10::Error& error) {
    if (reason.empty()) reason = error.what_without_backtrace();
    c10::cuda::CUDACachingAllocator::endAllocateToPool(device, forward.pool());
  }
  if (!reason.empty()) {
    replay_.ready_judged(options);  // lets go of what the capture made
    return reason.substr(0, reason.find('\n'));
  }
  forward.instantiate();
  forward.replay();  // gives the random operators of the graph their seed, for all later launches
  machine_.synchronize();

  CUgraphNode first = nullptr, child = nullptr, last = nullptr;
  must(driver, driver.cuGraphCreate(&graph->timed, 0), "cuGraphCreate");
  must(driver, driver.cuGraphAddEventRecordNode(&first, graph->timed, nullptr, 0, begin_->event),
       "cuGraphAddEventRecordNode");
  must(driver, driver.cuGraphAddChildGraphNode(&child, graph->timed, &first, 1, forward.raw_cuda_graph()),
       "cuGraphAddChildGraphNode");
  must(driver, driver.cuGraphAddEventRecordNode(&last, graph->timed, &child, 1, end_->event),
       "cuGraphAddEventRecordNode");
  must(driver, driver.cuGraphInstantiateWithFlags(&graph->exec, graph->timed, 0),
       "cuGraphInstantiateWithFlags");
  must(driver, driver.cuGraphUpload(graph->exec, machine_.stream()), "cuGraphUpload");
  for (const auto& segment : c10::cuda::CUDACachingAllocator::snapshot(forward.pool(), false).segments)
    graph->pool.emplace_back(static_cast<CUdeviceptr>(segment.address), segment.total_size);
  const auto& program = replay_.program();
  for (const auto id : program.workspace()) set.made.emplace_back(id, replay_.storage(id));
  for (const auto value : replay_.outputs())
    if (const auto id = program.trace().values[value].storage; replay_.made_by_judged(id))
      set.made.emplace_back(id, replay_.storage(id));
  set.graph = std::move(graph);
  return {};
}

void TimedForward::poison_pool(const Graph& graph) {
  // All ones: a NaN in every floating-point type, and no plausible index.
  for (const auto& [address, size] : graph.pool)
    must(machine_.driver(), machine_.driver().cuMemsetD8Async(address, 0xFF, size, machine_.stream()),
         "cuMemsetD8Async");
}

// What the last run made and let go of is in the allocator's free memory, where this run's new storages
// will.
void TimedForward::poison_free_memory() {
  for (const auto& segment : c10::cuda::CUDACachingAllocator::snapshot({0, 0}, false).segments) {
    auto address = static_cast<CUdeviceptr>(segment.address);
    for (const auto& block : segment.blocks) {
      if (!block.active)
        must(machine_.driver(),
             machine_.driver().cuMemsetD8Async(address, 0xFF, block.size, machine_.stream()),
             "cuMemsetD8Async");
      address += block.size;
    }
  }
}

void TimedForward::wait(Deadline deadline) {
  const CUresult code = machine_.wait(deadline);
  if (code == CUDA_SUCCESS) return;
  machine_.mark_lost();
  if (code == CUDA_ERROR_NOT_READY) throw Failed(Failure::Kind::kTimedOut, "a timed run did not end");
  if (gpu::is_kernel_fault(code))
    throw Failed(Failure::Kind::kCrashed,
                 "a kernel faulted in a timed run: " + gpu::describe(machine_.driver(), code));
  must(machine_.driver(), code, "a timed run");
}

double TimedForward::elapsed() const {
  float milliseconds = 0;
  must(machine_.driver(), machine_.driver().cuEventElapsedTime(&milliseconds, begin_->event, end_->event),
       "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

std::vector<double> TimedForward::graph(int count, Deadline deadline) {
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    const InputSet& set = next_set();
    TORCH_CHECK(set.graph != nullptr, "no graph was captured");
    bind(set.inputs);
    bind(set.made);
    replay_.restore_in_place();
    poison_pool(*set.graph);
    flush_.run();
    must(machine_.driver(), machine_.driver().cuGraphLaunch(set.graph->exec, machine_.stream()),
         "cuGraphLaunch");
    wait(deadline);
    samples.push_back(elapsed());
  }
  return samples;
}

std::vector<double> TimedForward::launches(const RunOptions& options, int count, Deadline deadline) {
  const gpu::Driver& driver = machine_.driver();
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    bind(next_set().inputs);
    replay_.ready_judged(options);
    poison_free_memory();
    flush_.run();
    must(driver, driver.cuEventRecord(begin_->event, machine_.stream()), "cuEventRecord");
    replay_.issue_judged(options);
    must(driver, driver.cuEventRecord(end_->event, machine_.stream()), "cuEventRecord");
    wait(deadline);
    samples.push_back(elapsed());
  }
  return samples;
}

double TimedForward::quick(const RunOptions& options, int count) {
  const gpu::Driver& driver = machine_.driver();
  std::vector<double> samples;
  for (int i = 0; i <= count; ++i) {
    replay_.ready_judged(options);
    must(driver, driver.cuEventRecord(begin_->event, machine_.stream()), "cuEventRecord");
    replay_.issue_judged(options);
    must(driver, driver.cuEventRecord(end_->event, machine_.stream()), "cuEventRecord");
    wait(options.deadline);
    if (i > 0) samples.push_back(elapsed());  // the first run loads modules
  }
  return gpu::median(std::move(samples));
}

int choose_alternatives(TimedForward& forward, const Program& program, RunOptions& options, double seconds) {
  constexpr int kRuns = 5;
  const auto& steps = program.phases()[program.judged()].phase->steps;
  // Launches by the kernels that they offer: an autotuner chooses once for a key.
  std::map<std::vector<trace::KernelId>, std::vector<int>> groups;
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* launch = std::get_if<trace::Launch>(&steps[i]);
    if (launch == nullptr || launch->alternatives.size() < 2) continue;
    std::vector<trace::KernelId> kernels;
    for (const auto& alternative : launch->alternatives) kernels.push_back(alternative.kernel);
    groups[kernels].push_back(static_cast<int>(i));
  }
  const Deadline budget = Deadline::after(seconds);
  int timed = 0;
  for (const auto& [kernels, members] : groups) {
    double best_seconds = std::numeric_limits<double>::infinity();
    const auto given = options.alternatives.find(members.front());
    int best = given == options.alternatives.end() ? 0 : given->second;
    for (size_t index = 0; index < kernels.size() && !budget.passed(); ++index) {
      for (const int step : members) options.alternatives[step] = static_cast<int>(index);
      try {
        const double taken = forward.quick(options, kRuns);
        ++timed;
        if (taken < best_seconds) best_seconds = taken, best = static_cast<int>(index);
      } catch (const Failed& failed) {
        if (failed.kind != Failure::Kind::kUnsupported) throw;
      }
    }
    for (const int step : members) options.alternatives[step] = best;
  }
  return timed;
}

}  // namespace nereid::replay::cuda
