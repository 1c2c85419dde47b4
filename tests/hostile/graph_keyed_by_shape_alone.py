"""A graph keyed by shape whose launches read the input that was there at the capture, static output cloned.

reference: ../tasks/softmax.py
verdict: Disallowed
rule: reuse-of-inputs or constant-output
why: the graph reads the first call's input.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, cols, BLOCK: tl.constexpr):
    row, c = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + c, mask=c < cols, other=-float("inf"))
    y = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * cols + c, y / tl.sum(y, 0), mask=c < cols)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graphs = {}

    def forward(self, x):
        if x.shape not in self.graphs:
            out = torch.empty_like(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
            self.graphs[x.shape] = (graph, out)
        graph, out = self.graphs[x.shape]
        graph.replay()
        return out.clone()
