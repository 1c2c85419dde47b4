#include "nereid/verify/kernel_library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "nereid/trace/cost.h"
#include "nereid/trace/op_class.h"

namespace nereid::verify {
namespace {

using trace::StorageId;

// A scalar's bits in the parameter's own type. Types narrower than f32 are given as f32: a cost does not look
// at them.
uint64_t bits_of(const trace::LaunchArg& arg, const std::string& type) {
  if (const auto* number = std::get_if<trace::FloatArg>(&arg))
    return type == "f64" ? std::bit_cast<uint64_t>(number->value)
                         : std::bit_cast<uint32_t>(static_cast<float>(number->value));
  const auto value = static_cast<uint64_t>(std::get<trace::IntArg>(arg).value);
  if (type == "i1") return value & 1;
  if (type == "i8") return value & 0xff;
  if (type == "i16") return value & 0xffff;
  if (type == "i32") return value & 0xffffffff;
  return value;
}

std::vector<StorageId> storages_of(const std::vector<trace::Access>& accesses) {
  std::set<StorageId> found;
  for (const auto& access : accesses) found.insert(access.storage);
  return {found.begin(), found.end()};
}

// Every write leaves nothing of what its storage held.
bool overwrites(const trace::Trace& trace, const trace::StepAccess& access) {
  return !access.writes.empty() &&
         std::all_of(access.writes.begin(), access.writes.end(), [&](const trace::Access& write) {
           return write.covers && write.first == 0 &&
                  write.last == trace.storages[static_cast<size_t>(write.storage)].bytes;
         });
}

Work work_of(trace::OpClass c) {
  if (trace::is_free(c)) return Work::kFree;
  return trace::may_be_small(c) ? Work::kPointwise : Work::kHeavy;
}

class FactsMaker {
 public:
  FactsMaker(const trace::Trace& trace, KernelLibrary& library)
      : trace_(trace), library_(library), ops_(trace) {}

  Result<TraceFacts> make() {
    TraceFacts facts;
    facts.trace = &trace_;
    for (const auto& kernel : trace_.kernels) {
      auto read = library_.read(kernel);
      facts.kernels.push_back(read.facts);
      kernels_.push_back(std::move(read));
    }
    for (const auto& phase : trace_.phases) {
      PhaseFacts out{.kind = phase.kind, .call = phase.call};
      for (const auto& step : phase.steps) out.steps.push_back(facts_of(step));
      facts.phases.push_back(std::move(out));
    }
    return facts;
  }

 private:
  StepFacts facts_of(const trace::Step& step) {
    const auto access = trace::access_of(trace_, step, uses());
    StepFacts facts;
    facts.reads = storages_of(access.reads), facts.writes = storages_of(access.writes);
    facts.overwrites = overwrites(trace_, access);
    facts.random = access.random;
    if (const auto* launch = std::get_if<trace::Launch>(&step)) {
      of_launch(*launch, facts);
    } else {
      of_call(std::get<trace::Call>(step), facts);
    }
    return facts;
  }

  void of_launch(const trace::Launch& launch, StepFacts& facts) {
    const auto& alternative = launch.alternatives.front();
    const auto& kernel = trace_.kernels[static_cast<size_t>(alternative.kernel)];
    facts.name = kernel.name;
    facts.key = fmt::format("{} {} {}x{}x{}", kernel.name, kernel.hash, alternative.grid[0],
                            alternative.grid[1], alternative.grid[2]);
    facts.place = launch.place;
    facts.work = Work::kTriton;
    if (const auto& readable = kernels_[static_cast<size_t>(alternative.kernel)].kernel) {
      const auto cost = launch_cost(trace_, alternative, *readable);
      facts.flops = cost.flops, facts.bytes = cost.bytes_read + cost.bytes_written;
    }
    if (facts.bytes == 0) facts.bytes = trace::bounded_cost(trace_, launch, uses()).bytes();
    facts.flops = std::max(facts.flops, facts.bytes / 4);  // at least one for each element that it touches
  }

  trace::KernelUses uses() const {
    return [this](const trace::Kernel& kernel) {
      return kernels_[static_cast<size_t>(&kernel - trace_.kernels.data())].uses;
    };
  }

  std::string shapes_of(const trace::Arg& result) const {
    std::string text;
    for (const auto v : trace::tensors_in(result)) {
      const auto& value = trace_.values[static_cast<size_t>(v)];
      text += fmt::format("{}[{}]", trace::to_string(value.dtype), fmt::join(value.sizes, ","));
    }
    return text;
  }

  void of_call(const trace::Call& call, StepFacts& facts) {
    const auto c = ops_.classify(call);
    facts.name = call.op;
    facts.key = fmt::format("{} {}", call.op, shapes_of(call.result));
    facts.kind = trace::to_string(c);
    facts.place = call.place;
    facts.work = work_of(c);
    if (facts.work == Work::kFree) return;
    const auto cost = trace::cost_of(trace_, call);
    facts.flops = cost.flops, facts.bytes = cost.bytes();
  }

  const trace::Trace& trace_;
  KernelLibrary& library_;
  const trace::OpFacts ops_;
  std::vector<ReadKernel> kernels_;
};

}  // namespace

KernelFacts facts_of_unreadable(const std::string& ttir, const std::string& trouble) {
  KernelFacts facts{.unreadable = trouble, .malformed = !trouble.starts_with("Unsupported")};
  facts.int_to_ptr = ttir.find("tt.int_to_ptr") != std::string::npos;
  constexpr std::string_view kAssembly = "tt.elementwise_inline_asm \"",
                             kExternal = "Unsupported: external function ";
  for (size_t at = 0; (at = ttir.find(kAssembly, at)) != std::string::npos;) {
    at += kAssembly.size();
    std::string text;
    for (; at < ttir.size() && ttir[at] != '"'; ++at) {
      if (ttir[at] == '\\' && at + 2 < ttir.size() && ttir[at + 1] == '0') {  // \0A is a line end
        text += '\n', at += 2;
        continue;
      }
      text += ttir[at];
    }
    facts.assembly.push_back(std::move(text));
  }
  if (trouble.starts_with(kExternal)) {
    const size_t end = std::min(trouble.find_first_of(" (", kExternal.size()), trouble.size());
    facts.foreign_function = trouble.substr(kExternal.size(), end - kExternal.size());
  }
  return facts;
}

ReadKernel KernelLibrary::read(const trace::Kernel& kernel) {
  {
    std::lock_guard lock(mutex_);
    const auto found = read_.find(kernel.hash);
    if (found != read_.end()) return found->second;
  }
  ReadKernel read;
  auto loaded = ttir::Kernel::load(kernel.ttir);
  if (loaded.ok()) {
    read.kernel = std::make_shared<const ttir::Kernel>(std::move(*loaded));
    read.facts = {.int_to_ptr = read.kernel->uses_int_to_ptr(),
                  .assembly = read.kernel->inline_assembly(),
                  .branches_on_float_data = read.kernel->branches_on_float_data(),
                  .moves_by_data = read.kernel->moves_by_data()};
    for (const auto& parameter : read.kernel->parameters())
      read.uses.push_back({.read = parameter.read, .written = parameter.written});
  } else {
    read.facts = facts_of_unreadable(kernel.ttir, loaded.error().message);
  }
  std::lock_guard lock(mutex_);
  if (read_.size() >= most_) read_.clear();
  read_[kernel.hash] = read;
  return read;
}

SizedLaunch launch_of(const trace::Trace& trace, const trace::Alternative& alternative, const ttir::Kernel& kernel) {
  SizedLaunch sized;
  ttir::Launch& launch = sized.launch;
  launch.grid = alternative.grid;
  std::map<StorageId, int> buffers;
  const auto pointer = [&](trace::ValueId id, int64_t offset) -> ttir::Pointer {
    if (id < 0) return {};
    const auto& value = trace.values[static_cast<size_t>(id)];
    const auto [at, fresh] = buffers.try_emplace(value.storage, static_cast<int>(buffers.size()));
    if (fresh) sized.buffer_bytes.push_back(trace.storages[static_cast<size_t>(value.storage)].bytes);
    return {at->second, value.offset * trace::element_bytes(value.dtype) + offset};
  };
  size_t parameter = 0;
  for (const auto& arg : alternative.args) {
    const std::string type =
        parameter < kernel.parameters().size() ? kernel.parameters()[parameter].type : "";
    ++parameter;
    if (const auto* p = std::get_if<trace::PointerArg>(&arg)) {
      launch.arguments.emplace_back(pointer(p->value, p->offset));
    } else if (const auto* d = std::get_if<trace::DescriptorArg>(&arg)) {
      launch.arguments.emplace_back(
          ttir::Descriptor{pointer(d->value, 0), d->shape, d->strides, d->nan_padding});
      parameter += 2 * d->shape.size();
    } else {
      launch.arguments.emplace_back(ttir::Scalar{bits_of(arg, type)});
    }
  }
  return sized;
}

ttir::Cost launch_cost(const trace::Trace& trace, const trace::Alternative& alternative,
                       const ttir::Kernel& kernel) {
  const SizedLaunch sized = launch_of(trace, alternative, kernel);
  return kernel.cost(sized.launch, sized.buffer_bytes);
}

Result<TraceFacts> facts_of(const trace::Trace& trace, KernelLibrary& library) {
  return FactsMaker(trace, library).make();
}

}  // namespace nereid::verify
