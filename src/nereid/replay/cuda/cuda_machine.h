// The machine of a CUDA replay: one process, one device, one stream.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "nereid/gpu/kernel.h"
#include "nereid/gpu/mapping.h"
#include "nereid/replay/cuda/fenced_memory.h"
#include "nereid/replay/worker/machine.h"

namespace nereid::replay::cuda {

class CudaMachine final : public Machine {
 public:
  // Makes the device's context, installs the fenced allocator and moves the thread to a stream of its own.
  // Once in a process, before anything else touches ATen's CUDA side.
  static Result<std::unique_ptr<CudaMachine>> create(int device);

  // The machine code for kernels with that hash, for the traces loaded afterwards.
  void add_kernel(const std::string& hash, gpu::CompiledKernel image);
  void forget_kernels();

  c10::Device device(trace::Device device) const override;
  c10::Storage allocate(int64_t bytes, trace::Device device) override;
  std::unique_ptr<Launcher> load_kernels(const trace::Trace& trace) override;
  SharedBlock share(int64_t bytes) override;
  SharedBlock open(const Fd& fd, int64_t bytes, bool to_write) override;
  void synchronize() override;
  void trim() override;
  bool tracks_written() const override { return false; }
  // A thread that waits for a GPU computes nothing.
  Deadline limit(double seconds) const override { return Deadline::after(seconds, LimitOwner::kCandidate); }
  double work(double wall, double) const override { return wall; }
  bool fences() const override { return fenced; }

  FencedMemory& fenced_memory() { return *fenced_memory_; }

  const gpu::Driver& driver() const { return driver_; }
  int device_index() const { return device_; }
  const gpu::DeviceFacts& facts() const { return facts_; }
  CUstream stream() const;

  // A kernel of this hash, loaded on first use; throws Failed where it was not compiled.
  const gpu::LoadedKernel& kernel(const std::string& hash, const std::string& name);

  // Waits until the stream is idle. What came is returned, not thrown; CUDA_ERROR_NOT_READY: the deadline
  // passed.
  CUresult wait(Deadline deadline) const;
  // A kernel faulted, or never ended: the context is lost and the process fit for nothing but an answer.
  bool lost() const { return lost_; }
  void mark_lost() { lost_ = true; }
  // Waits for all work. False where the context is lost, on whichever call the fault showed first.
  bool works() { return !lost_ && driver_.cuCtxSynchronize() == CUDA_SUCCESS; }

 private:
  CudaMachine(const gpu::Driver& driver, int device, gpu::DeviceFacts facts);

  struct Kernel {
    gpu::CompiledKernel image;
    std::unique_ptr<gpu::LoadedKernel> loaded;
  };
  const gpu::Driver& driver_;
  const int device_;
  const gpu::DeviceFacts facts_;
  FencedMemory* const fenced_memory_;
  std::map<std::string, Kernel> kernels_;
  bool lost_ = false;
};

}  // namespace nereid::replay::cuda
