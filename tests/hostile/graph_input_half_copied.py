"""A captured graph whose static input gets only the first half of each later call's rows.

reference: ../tasks/relu.py
verdict: Disallowed
rule: reuse-of-inputs
why: the other rows are the first call's.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


def relu(x, out):
    relu_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, x):
        if self.graph is None:
            self.static_in, self.static_out = x.clone(), torch.empty_like(x)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                relu(self.static_in, self.static_out)
        half = x.shape[0] // 2
        self.static_in[:half].copy_(x[:half])
        self.graph.replay()
        return self.static_out.clone()
