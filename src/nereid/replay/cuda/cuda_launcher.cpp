#include "nereid/replay/cuda/cuda_launcher.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include "nereid/replay/worker/types.h"

namespace nereid::replay::cuda {
namespace {

CUdeviceptr address_of(const ttir::Pointer& pointer, const std::vector<LaunchBuffer>& buffers) {
  if (pointer.buffer < 0) return static_cast<CUdeviceptr>(pointer.offset);
  return reinterpret_cast<CUdeviceptr>(buffers.at(static_cast<size_t>(pointer.buffer)).data) +
         static_cast<CUdeviceptr>(pointer.offset);
}

std::vector<gpu::Argument> resolve(const LaunchRequest& request) {
  std::vector<gpu::Argument> resolved;
  for (const ttir::Argument& argument : request.arguments) {
    if (const auto* pointer = std::get_if<ttir::Pointer>(&argument))
      resolved.emplace_back(address_of(*pointer, request.buffers));
    else if (const auto* scalar = std::get_if<ttir::Scalar>(&argument))
      resolved.emplace_back(gpu::Scalar{scalar->bits});
    else if (const auto* descriptor = std::get_if<ttir::Descriptor>(&argument))
      resolved.emplace_back(gpu::Descriptor{address_of(descriptor->base, request.buffers), descriptor->shape,
                                            descriptor->strides, descriptor->nan_padding});
  }
  return resolved;
}

// Freed when this goes; the caching allocator reuses it in the stream's order, so a kernel may still be using
// it then.
c10::DataPtr scratch_memory(int64_t bytes) {
  return bytes == 0 ? c10::DataPtr()
                    : c10::cuda::CUDACachingAllocator::get()->allocate(static_cast<size_t>(bytes));
}

ttir::FindingKind kind_of(CUresult code) {
  if (code == CUDA_ERROR_MISALIGNED_ADDRESS) return ttir::FindingKind::kMisaligned;
  if (code == CUDA_ERROR_ASSERT) return ttir::FindingKind::kAssertion;
  return ttir::FindingKind::kOutOfBounds;
}

std::string_view describe_error(CUresult code) {
  switch (code) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return "reads or writes outside every tensor";
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return "reads or writes at an address that its element's size does not divide";
    case CUDA_ERROR_ASSERT:
      return "fails a device assertion";
    default:
      return "ends in a trap";
  }
}

}  // namespace

ttir::Finding finding_of_fault(const trace::Kernel& kernel, CUresult code, const std::string& error) {
  ttir::Finding finding;
  finding.kind = kind_of(code);
  finding.kernel = kernel.name;
  finding.file = kernel.place.file;
  finding.line = kernel.place.line;
  finding.sentence = fmt::format("kernel {} ({}:{}) {} on the GPU: {}", kernel.name, kernel.place.file,
                                 kernel.place.line, describe_error(code), error);
  return finding;
}

std::vector<ttir::Parameter> CudaLauncher::parameters(trace::KernelId id) {
  const trace::Kernel& kernel = trace_.kernels.at(static_cast<size_t>(id));
  if (const auto parsed = ttir::Kernel::load(kernel.ttir); parsed.ok()) return parsed->parameters();
  // The GPU may run what our executor does not know; then every pointer counts as read and written.
  std::vector<ttir::Parameter> parameters;
  for (const std::string& type : machine_.kernel(kernel.hash, kernel.name).image().params)
    parameters.push_back({.name = fmt::format("arg{}", parameters.size()), .type = type});
  return parameters;
}

void CudaLauncher::launch(const LaunchRequest& request, std::vector<ttir::Finding>& findings,
                          int64_t& finding_count) {
  const trace::Kernel& kernel = trace_.kernels.at(static_cast<size_t>(request.alternative->kernel));
  const gpu::LoadedKernel& loaded = machine_.kernel(kernel.hash, kernel.name);
  const auto& grid = request.alternative->grid;
  const c10::DataPtr global = scratch_memory(loaded.global_scratch_bytes(grid));
  const c10::DataPtr profile = scratch_memory(loaded.profile_scratch_bytes(grid));
  const gpu::Scratch scratch{reinterpret_cast<CUdeviceptr>(global.get()),
                             reinterpret_cast<CUdeviceptr>(profile.get())};
  const auto outcome = loaded.launch(grid, resolve(request), scratch, machine_.stream());
  if (!outcome.ok()) throw Failed(Failure::Kind::kRaised, outcome.error().message);
  if (gpu::is_kernel_fault(outcome->code)) {  // of an earlier launch that was not waited for
    machine_.mark_lost();
    throw Failed(Failure::Kind::kCrashed,
                 fmt::format("a kernel before {} faulted: {}", kernel.name, outcome->error));
  }
  if (!outcome->ok())
    throw Failed(Failure::Kind::kUnsupported,
                 fmt::format("kernel {} cannot be launched: {}", kernel.name, outcome->error));
  if (request.sanitize) check(request, kernel, findings, finding_count);
}

void CudaLauncher::check(const LaunchRequest& request, const trace::Kernel& kernel,
                         std::vector<ttir::Finding>& findings, int64_t& finding_count) {
  const CUresult code = machine_.wait(request.deadline);
  if (code == CUDA_ERROR_NOT_READY) {
    machine_.mark_lost();
    throw Failed(Failure::Kind::kTimedOut, fmt::format("kernel {} did not end", kernel.name));
  }
  if (gpu::is_kernel_fault(code)) {
    machine_.mark_lost();
    findings.push_back(finding_of_fault(kernel, code, gpu::describe(machine_.driver(), code)));
    ++finding_count;
    throw Failed(Failure::Kind::kCrashed, findings.back().sentence);
  }
  TORCH_CHECK(code == CUDA_SUCCESS, "the GPU failed in kernel ", kernel.name, ": ",
              gpu::describe(machine_.driver(), code));
  for (const Stray& stray : machine_.fenced_memory().strayed()) {
    ttir::Finding finding = finding_of_fault(kernel, CUDA_ERROR_ILLEGAL_ADDRESS, {});
    finding.sentence =
        fmt::format("kernel {} ({}:{}) writes {} bytes just outside a tensor of {} bytes", kernel.name,
                    kernel.place.file, kernel.place.line, stray.strayed, stray.bytes);
    for (const LaunchBuffer& buffer : request.buffers)
      if (reinterpret_cast<CUdeviceptr>(buffer.data) == stray.data) finding.buffer = buffer.name;
    findings.push_back(std::move(finding));
    ++finding_count;
  }
}

}  // namespace nereid::replay::cuda
