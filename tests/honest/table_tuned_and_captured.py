"""An autotuned kernel over a table, in a captured graph that is kept by the inputs' addresses.

reference: ../tasks/scaled_lists.py
verdict: Verified
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": b}) for b in (128, 1024)], key=[])
@triton.jit
def step(p_table, g_table, out_table, sizes, rate, decay, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    p_ptr = tl.load(p_table + t).to(tl.pointer_type(tl.float32))
    g_ptr = tl.load(g_table + t).to(tl.pointer_type(tl.float32))
    out_ptr = tl.load(out_table + t).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes + t)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + i, mask=i < n)
        tl.store(out_ptr + i, p - rate * (tl.load(g_ptr + i, mask=i < n) + decay * p), mask=i < n)


class ModelNew(nn.Module):
    def __init__(self, rate, decay):
        super().__init__()
        self.rate, self.decay, self.graphs = rate, decay, {}

    def run(self, weights, gradients, outs, tables, sizes):
        step[(len(outs),)](*tables, sizes, self.rate, self.decay)

    def forward(self, weights, gradients):
        key = tuple(t.data_ptr() for t in (*weights, *gradients))
        if key not in self.graphs:
            outs = [torch.empty_like(w) for w in weights]
            tables = [torch.tensor([t.data_ptr() for t in e], device="cuda") for e in (weights, gradients, outs)]
            sizes = torch.tensor([t.numel() for t in outs], dtype=torch.int32, device="cuda")
            self.run(weights, gradients, outs, tables, sizes)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.run(weights, gradients, outs, tables, sizes)
            self.graphs[key] = graph, outs, tables, sizes
        graph, outs = self.graphs[key][:2]
        graph.replay()
        return outs
