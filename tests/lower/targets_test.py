"""Files of `nereid lower --target` compile for that GPU, within its shared memory.

Triton and its ptxas compile them; no GPU is needed.

python tests/lower/targets_test.py NEREID [TASK...]
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import types

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

HERE = pathlib.Path(__file__).resolve().parent
# Bytes of shared memory of a block, by the CUDA programming guide's table of compute capabilities.
LIMITS = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10}
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


class Launcher:
    def __init__(self, source, metadata):
        pass

    def __call__(self, *args):
        pass


class Driver:
    """The driver of a GPU that loads kernels and launches none."""

    launcher_cls = Launcher

    def __init__(self, name):
        self.capability, self.limit, self.loaded, self.too_large = int(name[3:]), LIMITS[name], 0, []
        self.utils = types.SimpleNamespace(
            load_binary=self.load, get_device_properties=lambda device: {"max_shared_mem": 1 << 30}
        )

    def load(self, name, code, shared, device):
        assert code[:4] == b"\x7fELF"
        self.loaded += 1
        if shared > self.limit:
            self.too_large.append(f"{name}: {shared} bytes of shared memory of {self.limit}")
        return "module", "function", 32, 0, 1024

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nereid")
    parser.add_argument("tasks", nargs="*")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        os.environ["TRITON_CACHE_DIR"] = str(folder / "cache")
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
            active = Driver(target)
            driver.set_active(active)
            for file in files:
                task, made = load(file, file.stem), load(written / file.name, f"{file.stem}_{target}")
                model = made.ModelNew(*task.get_init_inputs())
                try:
                    type(model).forward.__wrapped__(model, *task.get_inputs())
                except Exception as error:
                    wrong.append(f"{target}: {file.stem}: {type(error).__name__}: {error}")
                wrong += [f"{target}: {file.stem}: {text}" for text in active.too_large]
                active.too_large.clear()
            print(f"{target}: {active.loaded} kernels of {len(files)} files compile")
            assert active.loaded >= len(files) - len(wrong)
    print("\n".join(wrong))
    sys.exit(bool(wrong))


assert triton.__version__
main()
