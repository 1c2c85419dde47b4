"""Takes memory, touching all of it, until there is none (bounded here to 16 GiB).

reference: ../tasks/relu.py
verdict: Untraceable or TimedOut
rule: sandbox-limit or python-error or not-traceable or time-limit
why: memory is limited; the judge's own is not touched.
"""
import torch.nn as nn

CHUNK = 64 << 20


class ModelNew(nn.Module):
    def forward(self, x):
        kept = [b"\x01" * CHUNK for _ in range(256)]
        raise RuntimeError(f"took {len(kept) * CHUNK} bytes without a refusal")
