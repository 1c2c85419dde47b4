"""A task and a candidate in one file: a row softmax, one program a row."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 100)]


def get_init_inputs():
    return []


@triton.jit
def softmax_rows(x_ptr, out_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, e / tl.sum(e, axis=0), mask=offsets < columns)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        softmax_rows[(x.shape[0],)](x, out, x.shape[1], x.stride(0), BLOCK=128)
        return out
