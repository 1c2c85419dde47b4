"""Files of `nereid lower --target` compile for that GPU, within its registers and its shared memory.

Triton and its ptxas compile them (kernel_resources.py); no GPU is needed.

python tests/lower/targets_test.py NEREID [TASK...]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import kernel_resources
from kernel_resources import LIMITS

HERE = pathlib.Path(__file__).resolve().parent
TASKS = """attention_bf16 conv2d layer_norm matmul_fp16 softmax swiglu_bf16""".split()
# Sizes with the largest tiles.
LARGE = {
    "product": ("x @ y", "torch.randn(2048, 2048), torch.randn(2048, 2048)", ""),
    "product_half": ("x @ y", "torch.randn(4096, 4096, dtype=torch.float16), torch.randn(4096, 4096, "
                              "dtype=torch.float16)", ""),
    "convolution": ("F.conv2d(x, y, padding=1).relu()",
        "torch.randn(16, 128, 56, 56), torch.randn(128, 128, 3, 3)", ""),
    "attention": ("F.scaled_dot_product_attention(x, y, z)",
        ", ".join(["torch.randn(2, 16, 1024, 128)"] * 3), ", z"),
    "rows": ("torch.softmax(x, -1) + y", "torch.randn(64, 100000), torch.randn(100000)", ""),
    "transposed": ("x.t() * 2 + y", "torch.randn(4096, 4096), torch.randn(4096, 4096)", ""),
    # Divisions of sums of quotients (packed_halves.py).
    "rolled_windows": ("F.linear(torch.roll(x, (-4, -4), (1, 2)).view(8, 4, 8, 4, 8, 96)"
        ".transpose(2, 3).reshape(-1, 64, 96), y)", "torch.randn(8, 32, 32, 96), torch.randn(288, 96)", ""),
    "rolled_odd_windows": ("F.linear(torch.roll(x, (-3, -3), (1, 2)).view(8, 8, 7, 8, 7, 96)"
        ".transpose(2, 3).reshape(-1, 49, 96), y)", "torch.randn(8, 56, 56, 96), torch.randn(288, 96)", ""),
    "lstm": ("self.f(x, y)[0]", "torch.randn(4, 128, 64), None", "", "nn.LSTM(64, 512)"),
    "gru_half": ("self.f(x, y)[0]", "torch.randn(4, 256, 64, dtype=torch.half), None", "",
                 "nn.GRU(64, 640, dtype=torch.half)"),
    "rnn": ("self.f(x, y)[0]", "torch.randn(4, 64, 64), None", "", "nn.RNN(64, 1000)"),
}  # fmt: skip
PROGRAM = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = {layer}

    def forward(self, x, y{more}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("tasks", nargs="*")
    options = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        files = [HERE.parent / "tasks" / f"{name}.py" for name in options.tasks or TASKS]
        files = [file for file in files if file.is_file()]
        for name, (result, inputs, more, *layer) in ({} if options.tasks else LARGE).items():
            files.append(folder / f"{name}.py")
            layer = layer[0] if layer else None
            files[-1].write_text(PROGRAM.format(result=result, inputs=inputs, more=more, layer=layer))
        for target in LIMITS:
            written = folder / target
            subprocess.run(
                [options.nereid, "lower", *files, "-o", written, "--target", target],
                check=True,
                capture_output=True,
            )
            compiled = 0
            for file in files:
                try:
                    kernels = kernel_resources.resources(written / file.name, file, target)
                except Exception as error:
                    wrong.append(f"{target}: {file.stem}: {type(error).__name__}: {error}")
                    continue
                assert kernels, file
                compiled += len(kernels)
                for kernel in kernels:
                    wrong += [f"{target}: {file.stem}: {text}" for text in kernel.troubles(LIMITS[target])]
            print(f"{target}: {compiled} kernels of {len(files)} files compile")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


main()
