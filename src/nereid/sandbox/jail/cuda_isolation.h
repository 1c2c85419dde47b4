// The jail of a process that talks to the GPU: the CPU workers' (sandbox/jail/jail.h), opened as far as
// NVIDIA's driver needs it and no further.
//
// It is entered in two steps. Before the driver is touched: namespaces, no privileges, files. After it has
// made its context and its threads, and before anything hostile is read: limits and system calls, for all
// threads. What the driver asks of the kernel differs between its versions, so there are a few jails, from
// the strictest on, and the first in which a context comes up and computes is taken; the caller gets the
// isolation layers.
//
// `gpu_selftest KERNELS isolation` shows what a driver asks for, and which of these it bears.
#pragma once

#include <span>

#include "nereid/sandbox/jail/jail.h"

namespace nereid::sandbox {

// A jail that a driver may be able to live in.
struct CudaFit {
  const char* name;
  bool namespaces, own_root, pid_namespace, landlock;
};
// From the strictest on; the last has seccomp and limits alone.
std::span<const CudaFit> cuda_fits();

// For this process and its libraries, which a child of its own inherits.
Policy cuda_policy(const CudaFit& fit);

// Before the first use of a CUDA library: none may keep files, which it could not, or believe those it finds.
void keep_no_caches();

}  // namespace nereid::sandbox
