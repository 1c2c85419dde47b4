"""Compiles C++ while it runs.

reference: ../tasks/relu.py
verdict: Untraceable
why: the sandbox starts no compiler and writes no library that could be loaded.
"""
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        source = "torch::Tensor answer(torch::Tensor x) { return x.clamp_min(0); }"
        self.extension = load_inline(name="nereid_hostile", cpp_sources=source, functions=["answer"])

    def forward(self, x):
        return self.extension.answer(x)
