"""Loads a CUDA library with ctypes and means to call it on the tensors' addresses.

reference: ../tasks/matmul.py
verdict: Untraceable or Disallowed
why: nothing that the library does could be in the trace; without a device it does not even start.
"""
import ctypes

import torch
import torch.nn as nn
import triton
import triton.language as tl


class ModelNew(nn.Module):
    def forward(self, a, b):
        driver = ctypes.CDLL("libcuda.so.1")
        if driver.cuInit(0) != 0:
            raise RuntimeError("no device")
        c = torch.empty(a.shape[0], b.shape[1], device=a.device)
        driver.cuMemcpyDtoD_v2(ctypes.c_void_p(c.data_ptr()), ctypes.c_void_p(a.data_ptr()), 4 * c.numel())
        return c
