"""Returns a tensor subclass that computes when it is read.

reference: ../tasks/relu.py
verdict: Disallowed or Untraceable or Mismatch or Unsafe
why: it is not read during forward, and what was not done by its end is not in the trace.
"""
import torch
import torch.nn as nn
import triton
import triton.language as tl


class Lazy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def evaluate(value):
            if isinstance(value, Lazy) and hasattr(value, "source"):
                return torch.relu(value.source)
            return value

        with torch._C.DisableTorchFunctionSubclass():
            return function(*map(evaluate, args), **(kwargs or {}))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x).as_subclass(Lazy)
        out.source = x
        return out
