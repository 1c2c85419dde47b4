#!/usr/bin/env python3
"""FLOPs of contractions, convolutions and attention as `nereid trace` counts them, against
torch.utils.flop_counter.

    .venv/bin/python tests/trace/flops_test.py build/release/bin/nereid

Each case is a forward over given shapes. PyTorch counts it eagerly on the CPU; Nereid counts it off the
trace.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COUNTED = {"contraction", "convolution", "attention"}

HEAD = "import torch, torch.nn as nn, torch.nn.functional as F\n"
# name: (lines of __init__, expression of forward over x, y, z, shapes of the inputs)
CASES = {
    "mm": ("pass", "x @ y", [(17, 33), (33, 9)]),
    "matrix times vector": ("pass", "torch.mm(x, y)", [(5, 7), (7, 1)]),
    "bmm": ("pass", "torch.bmm(x, y)", [(3, 17, 33), (3, 33, 9)]),
    "baddbmm": ("pass", "torch.baddbmm(z, x, y)", [(3, 17, 33), (3, 33, 9), (3, 17, 9)]),
    "addmm": ("pass", "torch.addmm(z, x, y, beta=0.5)", [(17, 33), (33, 9), (9,)]),
    "broadcast matmul": ("pass", "x @ y", [(2, 3, 17, 33), (33, 9)]),
    "linear over three dimensions": ("self.f = nn.Linear(12, 20)", "self.f(x)", [(2, 5, 12)]),
    "two linears": (
        "self.f = nn.Linear(12, 20); self.g = nn.Linear(20, 4, bias=False)",
        "self.g(F.relu(self.f(x)))",
        [(6, 12)],
    ),
    "einsum": ("pass", "torch.einsum('bij,bjk->bik', x, y)", [(3, 4, 5), (3, 5, 6)]),
    "einsum over two axes": ("pass", "torch.einsum('abc,bcd->ad', x, y)", [(3, 4, 5), (4, 5, 6)]),
    "conv1d": ("self.f = nn.Conv1d(4, 6, 3, padding=1)", "self.f(x)", [(2, 4, 20)]),
    "conv2d": ("self.f = nn.Conv2d(4, 6, 3, stride=2)", "self.f(x)", [(2, 4, 20, 21)]),
    "conv2d without a batch": ("self.f = nn.Conv2d(4, 6, 3)", "self.f(x)", [(4, 20, 21)]),
    "depthwise conv2d": ("self.f = nn.Conv2d(8, 8, 5, groups=8, dilation=2)", "self.f(x)", [(2, 8, 20, 20)]),
    "grouped conv3d": ("self.f = nn.Conv3d(4, 8, 3, groups=2)", "self.f(x)", [(1, 4, 6, 7, 8)]),
    "transposed conv2d": ("self.f = nn.ConvTranspose2d(4, 6, 3, stride=2)", "self.f(x)", [(2, 4, 9, 10)]),
    "grouped transposed conv1d": (
        "self.f = nn.ConvTranspose1d(4, 6, 4, groups=2)",
        "self.f(x)",
        [(3, 4, 11)],
    ),
    "transposed conv3d": ("self.f = nn.ConvTranspose3d(2, 3, 2, stride=2)", "self.f(x)", [(1, 2, 3, 4, 5)]),
    "attention": (
        "pass",
        "F.scaled_dot_product_attention(x, y, z)",
        [(2, 4, 16, 8), (2, 4, 24, 8), (2, 4, 24, 8)],
    ),
    "causal attention": (
        "pass",
        "F.scaled_dot_product_attention(x, y, z, is_causal=True)",
        [(2, 4, 16, 8)] * 3,
    ),
    "multi-head attention": (
        "self.f = nn.MultiheadAttention(16, 4, batch_first=True)",
        "self.f(x, x, x, need_weights=False)[0]",
        [(2, 10, 16)],
    ),
    "nothing counted": ("pass", "torch.softmax(x, -1) + x.cumsum(1)", [(4, 8)]),
}


def source(init, forward, shapes):
    names = ["x", "y", "z"][: len(shapes)]
    made = ", ".join(
        f"torch.randn{tuple(shape)}" if len(shape) > 1 else f"torch.randn({shape[0]})" for shape in shapes
    )
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n       "
        f" {init}\n    def forward(self, {', '.join(names)}):\n        return {forward}\ndef get_inputs():\n "
        f"   return [{made}]\ndef get_init_inputs():\n    return []\n"
    )


def eager_flops(text):
    scope = {}
    exec(text, scope)
    model, inputs = scope["Model"](), scope["get_inputs"]()
    # flop_counter does not know the CPU's fused attention; taken apart into two products, it does.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(*inputs)
    return counter.get_total_flops()


def traced_flops(nereid, document, folder):
    path = pathlib.Path(folder) / "trace.json"
    path.write_text(json.dumps(document))
    document = json.loads(
        subprocess.run([nereid, "trace", str(path), "--json"], check=True, capture_output=True).stdout
    )
    steps = document["phases"][-1]["steps"]
    unsure = [step["call"] for step in steps if step.get("class") in COUNTED and not step["exact"]]
    return sum(step["flops"] for step in steps if step.get("class") in COUNTED), unsure


def main():
    nereid = sys.argv[1]
    texts = {name: source(*case) for name, case in CASES.items()}
    expected = {name: eager_flops(text) for name, text in texts.items()}  # first: the tracer changes torch

    sys.path.insert(0, str(ROOT / "python"))
    from nereid._tracer import tracer

    tracer.warm()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            answer = tracer.handle(
                {
                    "source": text,
                    "path": "model.py",
                    "class": "Model",
                    "draw": 0,
                    "globals": {},
                    "calls": 1,
                    "reference": None,
                }
            )
            if "trace" not in answer:
                print(f"{name}: not traced: {json.dumps(answer)[:500]}")
                failures += 1
                continue
            flops, unsure = traced_flops(nereid, answer["trace"], folder)
            if flops != expected[name] or unsure:
                print(
                    f"{name}: expected {expected[name]} FLOPs as flop_counter counts, got {flops:.0f}"
                    f" {unsure or ''}"
                )
                failures += 1
    print(f"{len(CASES) - failures} of {len(CASES)} counts agree")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
