// Registers fewer of libtorch's operators when a program starts. Of the 16,000 kernels that libtorch_cpu.so
// registers before main(), 7,200 are for what no program of ours does: TorchScript's tracer,
// functionalization, tensors without data, vmap, other vendors' devices. Registering them takes a third of
// the time that a program with libtorch takes to start. libtorch calls this function through its table of
// symbols, where a program's own comes first; so it is linked into each program (Torch.cmake).
#include <dlfcn.h>
#include <torch/library.h>

#include <cstdio>
#include <cstdlib>

namespace {

bool is_unused(c10::DispatchKey key) {
  switch (key) {
    using enum c10::DispatchKey;
    case Tracer:
    case Functionalize:
    case Meta:
    case SparseMeta:
    case SparseCsrMeta:
    case Batched:
    case VmapMode:
    case FuncTorchBatched:
    case FuncTorchBatchedDecomposition:
    case FuncTorchVmapMode:
    case AutocastXPU:
    case AutocastMPS:
    case AutocastMTIA:
    case AutocastMAIA:
    case NestedTensorHPU:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Visible: libtorch's calls lead here.
__attribute__((visibility("default"))) torch::Library& torch::Library::_impl(const char* name,
                                                                             CppFunction&& f,
                                                                             _RegisterOrVerify how) & {
  if (dispatch_key_ && is_unused(*dispatch_key_)) return *this;
  using Impl = Library& (*)(Library*, const char*, CppFunction&&, _RegisterOrVerify);
  static const auto impl = reinterpret_cast<Impl>(
      dlsym(RTLD_NEXT, "_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"));
  if (impl == nullptr) {  // the loader does not miss it: this function has its name
    std::fputs("expected the libtorch that this program was built with: torch::Library::_impl is missing\n",
               stderr);
    std::abort();
  }
  f.schema_.reset();  // from the function's types, to be compared with the operator's: PyTorch has done it
  return impl(this, name, std::move(f), how);
}
