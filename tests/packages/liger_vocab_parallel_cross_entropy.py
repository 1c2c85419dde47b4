"""liger-kernel: cross entropy as each rank of a tensor-parallel group computes it, with one rank.

reference: liger_vocab_parallel_cross_entropy.py
verdict: Verified
policy: hybrid
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
from liger_kernel.ops.vocab_parallel_cross_entropy import LigerVocabParallelCEFunction

LENGTH = 7
BATCH = 3
CLASSES = 151


class Model(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none").view(LENGTH, BATCH)


class ModelNew(nn.Module):
    def forward(self, logits, target):
        return LigerVocabParallelCEFunction.apply(logits, target, None, -100, 0.0, "megatron", "global")


def get_inputs():
    return [torch.randn(LENGTH, BATCH, CLASSES), torch.randint(0, CLASSES, (LENGTH, BATCH))]


def get_init_inputs():
    return []
