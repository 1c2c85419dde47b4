#include <algorithm>
#include <cmath>
#include <mutex>

#include "nereid/base/thread_pool.h"
#include "nereid/ttir/analysis/cost.h"
#include "nereid/ttir/analysis/facts.h"
#include "nereid/ttir/analysis/parameter_uses.h"
#include "nereid/ttir/exec/executor.h"
#include "nereid/ttir/exec/lowering/lowering.h"
#include "nereid/ttir/exec/lowering/masked_divisions.h"
#include "nereid/ttir/exec/machine.h"
#include "nereid/ttir/exec/races/race_log.h"
#include "nereid/ttir/exec/sanitizer.h"
#include "nereid/ttir/exec/schedule.h"
#include "nereid/ttir/ir/verifier.h"
#include "nereid/ttir/parse/parser.h"

namespace nereid::ttir {

struct Kernel::Program {
  Module module;
  const Function* function = nullptr;
  std::unique_ptr<Code> code;
  std::vector<Parameter> parameters;
  std::vector<MemoryUse> uses;
};

Kernel::Kernel(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

Result<Kernel> Kernel::load(std::string_view text) {
  auto program = std::make_unique<Program>();
  NEREID_TRY(program->module, parse(text));
  NEREID_TRY_STATUS(verify(program->module));
  for (const Function& f : program->module.functions)
    if (f.is_public && program->function == nullptr) program->function = &f;
  if (program->function == nullptr) return input_error("TTIR: expected a public function");
  const Function& f = *program->function;
  if (!f.results.empty())
    return input_error("TTIR: expected a kernel without results, @{} has {}", f.name, f.results.size());
  const auto uses = parameter_uses(program->module, f);
  for (size_t k = 0; k < f.parameters.size(); ++k) {
    const Type& type = program->module.type(f.parameters[k]);
    if (type.tensor)
      return input_error("TTIR: expected scalar parameters, {} is a {}", f.parameter_names[k],
                         to_string(type));
    program->parameters.push_back(
        {f.parameter_names[k], to_string(type), uses[k].read, uses[k].written, uses[k].chosen});
  }
  program->uses = memory_uses(program->module, f);
  spare_masked_divisions(program->module);
  NEREID_TRY(program->code, lower(program->module, f));
  return Kernel(std::move(program));
}

const std::string& Kernel::name() const { return program_->function->name; }
const std::vector<Parameter>& Kernel::parameters() const { return program_->parameters; }
bool Kernel::uses_int_to_ptr() const { return ttir::uses_int_to_ptr(program_->module); }
std::vector<std::string> Kernel::inline_assembly() const { return ttir::inline_assembly(program_->module); }
bool Kernel::branches_on_float_data() const { return ttir::branches_on_float_data(program_->module); }
bool Kernel::communicates() const { return program_->code->communicates; }
bool Kernel::multiplies() const { return ttir::multiplies(program_->module); }
bool Kernel::moves_by_data() const { return ttir::moves_by_data(program_->module); }
DataPaths Kernel::data_paths() const { return ttir::data_paths(program_->module, *program_->function); }

namespace {

// One value for each parameter: bits, or a descriptor.
struct Bound {
  int64_t bits = 0;
  bool is_pointer = false, is_descriptor = false;
  DescriptorData descriptor;
};

Result<int64_t> bind_pointer(const Pointer& p, size_t buffers, const std::string& name) {
  if (p.buffer < 0) return int64_t{0};
  if (static_cast<size_t>(p.buffer) >= buffers)
    return input_error("parameter {}: expected one of {} buffers, got number {}", name, buffers, p.buffer);
  if (p.offset > (int64_t{1} << 45) || p.offset < -(int64_t{1} << 45))
    return input_error("parameter {}: an offset of {} bytes", name, p.offset);
  return address_of(p.buffer, p.offset);
}

Result<std::vector<Bound>> bind(const Launch& launch, size_t buffers, const std::vector<Type>& types,
                                const std::vector<Parameter>& parameters) {
  std::vector<Bound> all;
  size_t next = 0;
  while (all.size() < types.size()) {
    const Type& type = types[all.size()];
    const std::string& name = parameters[all.size()].name;
    if (next >= launch.arguments.size())
      return input_error("expected an argument for parameter {} ({})", name, to_string(type));
    const Argument& argument = launch.arguments[next++];
    Bound b;
    if (type.elem == Elem::kDescriptor) {
      const auto* d = std::get_if<Descriptor>(&argument);
      const auto rank = static_cast<size_t>(type.rank());
      if (d == nullptr || d->shape.size() != rank || d->strides.size() != rank ||
          rank > b.descriptor.shape.size())
        return input_error("parameter {}: expected a descriptor of {} dimensions", name, rank);
      b.is_pointer = b.is_descriptor = true;
      NEREID_TRY(b.descriptor.base, bind_pointer(d->base, buffers, name));
      b.descriptor.rank = static_cast<int32_t>(rank);
      b.descriptor.nan_padding = d->nan_padding;
      std::copy(d->shape.begin(), d->shape.end(), b.descriptor.shape.begin());
      std::copy(d->strides.begin(), d->strides.end(), b.descriptor.strides.begin());
      all.push_back(b);
      for (size_t k = 0; k < 2 * rank && all.size() < types.size(); ++k) {
        if (!is_integer(types[all.size()].elem))
          return input_error("parameter {}: expected shapes and strides after it", name);
        Bound size;
        size.bits = k < rank ? d->shape[k] : d->strides[k - rank];
        all.push_back(size);
      }
      continue;
    }
    if (type.elem == Elem::kPointer) {
      const auto* p = std::get_if<Pointer>(&argument);
      if (p == nullptr) return input_error("parameter {}: expected a pointer ({})", name, to_string(type));
      b.is_pointer = true;
      NEREID_TRY(b.bits, bind_pointer(*p, buffers, name));
    } else {
      const auto* s = std::get_if<Scalar>(&argument);
      if (s == nullptr) return input_error("parameter {}: expected a scalar ({})", name, to_string(type));
      b.bits = canonical_bits(&s->bits, type.elem);
    }
    all.push_back(b);
  }
  if (next != launch.arguments.size())
    return input_error("expected {} arguments, got {}", next, launch.arguments.size());
  return all;
}

void set_parameters(Machine& m, const std::vector<Bound>& bound) {
  const auto& slots = m.context().code->parameter_slots;
  for (size_t k = 0; k < bound.size(); ++k) {
    if (!bound[k].is_descriptor) {
      m.set_uniform(slots[k], bound[k].bits);
      continue;
    }
    Tile* tile = m.pool().take(sizeof(DescriptorData));
    *new (tile->data()) DescriptorData = bound[k].descriptor;
    m.set_dense(slots[k], tile);
  }
}

// One thread's share of a run. Programs that wait for others are set aside with their machines and taken up
// again later.
class Worker {
 public:
  Worker(const LaunchContext& context, const std::vector<Bound>& bound, RaceLog* races, int thread)
      : context_(context), bound_(bound), races_(races), thread_(thread) {}

  void run(int64_t linear) {
    if (timed_out) return;
    try {
      auto machine = idle();
      const auto& grid = context_.launch->grid;
      machine->start(linear, {linear % grid[0], linear / grid[0] % grid[1], linear / grid[0] / grid[1]});
      continue_with(std::move(machine));
      if (waiting_.size() >= crowd_) {  // now and then, as most wait for programs that have not begun
        round();
        crowd_ = std::max<size_t>(256, 2 * waiting_.size());
      }
    } catch (const TilesExceeded&) {
      timed_out = tiles_exceeded = true;
    }
  }
  // All programs on this thread, as they may wait for one another. False where they do for ever.
  bool run_scheduled(int64_t programs, bool shuffled, bool interleaved, int64_t resident) {
    Schedule schedule(context_, programs, shuffled, shuffled && interleaved, resident,
                      {.make = [this] { return idle(); },
                       .finished =
                           [this](Machine& machine) {
                             if (races_ != nullptr) races_->add(machine.log, thread_);
                           }});
    try {
      return schedule.run();
    } catch (const TilesExceeded&) {
      timed_out = tiles_exceeded = true;
      return false;
    }
  }
  // Takes up every waiting program once.
  void round() {
    auto waiting = std::move(waiting_);
    waiting_.clear();
    std::reverse(waiting.begin(),
                 waiting.end());  // each wait for the next one as often as for the one before
    try {
      for (auto& machine : waiting) {
        if (timed_out) return;
        continue_with(std::move(machine));
      }
    } catch (const TilesExceeded&) {
      timed_out = tiles_exceeded = true;
    }
  }
  bool waits() const { return !waiting_.empty(); }
  int64_t stores() const { return stores_; }
  // Of all programs that were run.
  Work work() const {
    Work sum;
    for (const auto* machines : {&idle_, &waiting_})
      for (const auto& machine : *machines)
        sum.flops += machine->flops, sum.bytes += static_cast<double>(machine->bytes);
    return sum;
  }

  bool timed_out = false;
  bool tiles_exceeded = false;  // the run is an error, not a timeout

 private:
  std::unique_ptr<Machine> idle() {
    if (!idle_.empty()) {
      auto machine = std::move(idle_.back());
      idle_.pop_back();
      return machine;
    }
    auto machine = std::make_unique<Machine>(context_, pool_);
    set_parameters(*machine, bound_);
    machine->run_prologue();
    return machine;
  }
  void continue_with(std::unique_ptr<Machine> machine) {
    const int64_t before = machine->stores;
    const auto state = machine->resume(0);
    stores_ += machine->stores - before;
    if (state == Machine::State::kYielded) {
      waiting_.push_back(std::move(machine));
      return;
    }
    if (state == Machine::State::kTimedOut) timed_out = true;
    if (races_ != nullptr) races_->add(machine->log, thread_);
    machine->reset();
    idle_.push_back(std::move(machine));
  }

  const LaunchContext& context_;
  const std::vector<Bound>& bound_;
  RaceLog* const races_;
  const int thread_;
  TilePool pool_;
  std::vector<std::unique_ptr<Machine>> idle_, waiting_;
  size_t crowd_ = 256;
  int64_t stores_ = 0;
};

// What a launch does with each of its buffers.
std::vector<MemoryUse> uses_of_buffers(const std::vector<Bound>& bound, const std::vector<MemoryUse>& uses,
                                       size_t buffers) {
  std::vector<MemoryUse> by_buffer(buffers);
  for (size_t k = 0; k < bound.size(); ++k) {
    const int64_t buffer = buffer_of(bound[k].is_descriptor ? bound[k].descriptor.base : bound[k].bits);
    if (!bound[k].is_pointer || buffer < 0) continue;
    MemoryUse& use = by_buffer[static_cast<size_t>(buffer)];
    use.loads = use.loads || uses[k].loads;
    use.stores = use.stores || uses[k].stores;
    use.atomics = use.atomics || uses[k].atomics;
  }
  return by_buffer;
}

// Runs what waits for other programs until all are done, or nothing can happen any more.
bool finish_waiting(std::vector<std::unique_ptr<Worker>>& workers, const Deadline& deadline) {
  int64_t quiet_rounds = 0, last = -1;
  while (true) {
    bool waits = false;
    int64_t stores = 0;
    for (auto& worker : workers) {
      if (worker->waits()) worker->round();
      if (worker->timed_out) return false;
      waits = waits || worker->waits();
      stores += worker->stores();
    }
    if (!waits) return true;
    quiet_rounds = stores == last ? quiet_rounds + 1 : 0;
    last = stores;
    if (quiet_rounds > 1000 || deadline.passed())
      return false;  // every program waits for another: a deadlock
  }
}

Status check_buffers(const std::vector<Buffer>& buffers) {
  if (static_cast<int64_t>(buffers.size()) > kMaxBuffers)
    return input_error("expected at most {} buffers, got {}", kMaxBuffers, buffers.size());
  for (const Buffer& b : buffers)
    if (b.bytes < 0 || b.bytes > (int64_t{1} << 45) || (b.bytes > 0 && b.data == nullptr))
      return input_error("buffer {}: {} bytes without data", b.name, b.bytes);
  return ok_status();
}

Result<int64_t> program_count(const Launch& launch) {
  int64_t programs = 1;
  for (int64_t g : launch.grid) {
    if (g < 0 || g > (int64_t{1} << 31))
      return input_error("expected a grid of 0 to 2^31 programs, got {}", g);
    if (__builtin_mul_overflow(programs, g, &programs)) return input_error("a grid of too many programs");
  }
  return programs;
}

}  // namespace

Result<Report> Kernel::run(const Launch& launch, const std::vector<Buffer>& buffers,
                           const RunOptions& options) const {
  const Code& code = *program_->code;
  NEREID_TRY_STATUS(check_buffers(buffers));
  NEREID_TRY(const int64_t programs, program_count(launch));
  NEREID_TRY(const auto bound, bind(launch, buffers.size(), code.parameter_types, program_->parameters));

  Sanitizer sanitizer;
  LaunchContext context;
  context.launch = &launch;
  context.buffers = &buffers;
  context.code = &code;
  context.lines = &program_->module.lines;
  context.kernel = name();
  context.deadline = options.deadline;
  context.sanitize = options.sanitize;
  context.sanitizer = &sanitizer;

  if (options.sanitize) {
    for (const MemoryUse& use : uses_of_buffers(bound, program_->uses, buffers.size())) {
      context.watched.push_back(use.stores || (use.atomics && use.loads));
      context.passed.push_back(int{use.loads} + int{use.stores} + int{use.atomics} > 1);
    }
    if (programs <= 1 || programs >= (int64_t{1} << 31)) context.watched.clear();
  }
  // Where programs wait for one another the order must not depend on the threads, or findings would.
  const bool scheduled = (options.sanitize && code.synchronizes) || (options.shuffled && code.communicates);
  std::optional<HappensBefore> history;
  if (options.sanitize && code.synchronizes && !context.watched.empty())
    context.history = &history.emplace(programs);
  const bool alone = scheduled || options.pool == nullptr || options.pool->threads() == 1;
  const int threads = alone ? 1 : options.pool->threads();
  std::optional<RaceLog> races;
  if (!context.watched.empty() && !history) races.emplace(threads);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int t = 0; t < threads; ++t)
    workers.push_back(std::make_unique<Worker>(context, bound, races ? &*races : nullptr, t));
  const auto body = [&](int64_t linear, int thread) { workers[static_cast<size_t>(thread)]->run(linear); };
  bool finished = true;
  if (scheduled) {
    finished = workers[0]->run_scheduled(programs, options.shuffled, code.synchronizes, options.resident);
  } else if (alone) {
    for (int64_t linear = 0; linear < programs && !workers[0]->timed_out; ++linear) {
      body(linear, 0);
      if ((linear & 63) == 63 && options.deadline.passed()) workers[0]->timed_out = true;
    }
  } else {
    const int64_t grain = code.synchronizes ? 1 : std::clamp<int64_t>(programs / (threads * 8), 1, 64);
    options.pool->parallel_for(
        programs,
        [&](int64_t linear, int thread) {
          if ((linear & 63) == 63 && options.deadline.passed())
            workers[static_cast<size_t>(thread)]->timed_out = true;
          body(linear, thread);
        },
        grain);
  }
  finished = finish_waiting(workers, options.deadline) && finished;

  for (const auto& worker : workers)
    if (worker->tiles_exceeded)
      return input_error("kernel {}: its programs need more than {} MiB for their tiles", name(),
                         kMaxTileBytes >> 20);

  Report report;
  report.timed_out = !finished;
  for (const auto& worker : workers) report.timed_out = report.timed_out || worker->timed_out;
  if (options.sanitize) sanitizer.conclude(context, races ? &*races : nullptr);
  report.finding_count = sanitizer.count();
  report.findings = sanitizer.take(context, options.max_findings);
  return report;
}

Result<Work> Kernel::count(const Launch& launch, const std::vector<Buffer>& buffers, int64_t max_programs,
                           Deadline deadline) const {
  const Code& code = *program_->code;
  double all = 1;
  for (const int64_t g : launch.grid) all *= static_cast<double>(g);
  if (all == 0) return Work{};
  if (!(all < 0x1p62) || static_cast<int64_t>(buffers.size()) > kMaxBuffers)
    return input_error("a launch of {} programs and {} buffers", all, buffers.size());
  NEREID_TRY(const auto bound, bind(launch, buffers.size(), code.parameter_types, program_->parameters));
  Sanitizer sanitizer;
  LaunchContext context;
  context.launch = &launch;
  context.buffers = &buffers;
  context.code = &code;
  context.lines = &program_->module.lines;
  context.kernel = name();
  context.deadline = deadline;
  context.sanitizer = &sanitizer;
  std::vector<std::unique_ptr<Worker>> worker;
  worker.push_back(std::make_unique<Worker>(context, bound, nullptr, 0));
  const bool sampled = all > static_cast<double>(max_programs);
  const int64_t programs = sampled ? max_programs : static_cast<int64_t>(all);
  int64_t run = 0;
  for (; run < programs && !worker[0]->timed_out && !deadline.passed(); ++run) {
    double at = static_cast<double>(run) * 0.6180339887498949;  // evenly, whenever it ends
    at -= std::floor(at);
    worker[0]->run(sampled ? static_cast<int64_t>(at * all) : run);
  }
  finish_waiting(worker, deadline);
  Work work = worker[0]->work();
  double prologue = 0;
  for (const Instruction& i : code.prologue) prologue += static_cast<double>(i.flops);
  const double scale = all / static_cast<double>(std::max<int64_t>(run, 1));
  work.flops = work.flops * scale + prologue * all;
  work.bytes *= scale;
  return work;
}

namespace {

// The number of buffers that a launch names; nothing where it is no launch.
std::optional<int64_t> buffers_of(const Launch& launch) {
  int64_t buffers = 0;
  for (const Argument& argument : launch.arguments) {
    if (const auto* p = std::get_if<Pointer>(&argument)) buffers = std::max<int64_t>(buffers, p->buffer + 1);
    if (const auto* d = std::get_if<Descriptor>(&argument))
      buffers = std::max<int64_t>(buffers, d->base.buffer + 1);
  }
  if (buffers > kMaxBuffers) return std::nullopt;
  for (int64_t g : launch.grid)
    if (g < 0 || g > (int64_t{1} << 31)) return std::nullopt;
  return buffers;
}

}  // namespace

Cost Kernel::cost(const Launch& launch, const std::vector<int64_t>& buffer_bytes) const {
  const Code& code = *program_->code;
  const Cost nothing{.exact = false, .unknown = {}, .error = 1};
  const auto buffers = buffers_of(launch);
  if (!buffers) return nothing;
  const auto bound = bind(launch, static_cast<size_t>(*buffers), code.parameter_types, program_->parameters);
  if (!bound) return nothing;
  std::vector<BoundArgument> arguments;
  for (const Bound& b : *bound) arguments.push_back({b.bits, b.is_descriptor, b.descriptor});
  std::vector<int64_t> sizes = buffer_bytes;
  sizes.resize(static_cast<size_t>(*buffers));
  return count_cost(program_->module, *program_->function, code, launch, arguments, sizes,
                    [&](Machine& m) { set_parameters(m, *bound); });
}

Cost Kernel::walked_cost(const Launch& launch) const {
  const Code& code = *program_->code;
  const auto buffers = buffers_of(launch);
  if (!buffers) return {.exact = false, .unknown = {}, .error = 1};
  const auto bound = bind(launch, static_cast<size_t>(*buffers), code.parameter_types, program_->parameters);
  if (!bound) return {.exact = false, .unknown = {}, .error = 1};
  return walk_cost(program_->module, code, launch, *buffers, [&](Machine& m) { set_parameters(m, *bound); });
}

}  // namespace nereid::ttir
