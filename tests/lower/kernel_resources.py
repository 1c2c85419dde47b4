"""Registers, spilled bytes and shared memory of each kernel of a file that `nereid lower` wrote, by Triton's
ptxas.

    python tests/lower/kernel_resources.py WRITTEN TASK [--target sm_90] [--json] [--keep CACHE]

WRITTEN and TASK: a file each, or two folders with files of the same names. The kernels are compiled for the
task's own sizes and launched nowhere: tensors are on PyTorch's meta device, so no GPU and no memory for them
is needed. --keep: a folder for Triton's cache, with the TTIR, TTGIR and PTX of each kernel.
Exit code 1: a file did not compile, a kernel spills more than MOST_SPILLS bytes a thread, needs more shared
memory than the target has, may leave the range of an integer in an address (offset_bounds.py), or has a
constant that ptxas drops (packed_halves.py).
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import io
import json
import os
import pathlib
import re
import sys
import tempfile
import types

import offset_bounds
import packed_halves
import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

# Bytes of shared memory of a block, by the CUDA programming guide's table of compute capabilities.
LIMITS = {"sm_80": 163 << 10, "sm_90": 227 << 10, "sm_100": 227 << 10}
MOST_SPILLS = 128  # bytes that a thread stores to local memory
MOST_PROGRAMS = (1 << 31) - 1  # of a grid's first dimension
LOG = re.compile(
    r"Compiling entry function '(\w+)'.*?(\d+) bytes spill stores.*?Used (\d+) registers", re.DOTALL
)


@dataclasses.dataclass
class Kernel:
    name: str
    registers: int
    spilled_bytes: int
    shared_bytes: int
    programs: int = 0  # of its largest launch
    trouble: list = dataclasses.field(default_factory=list)

    def troubles(self, limit):
        if self.spilled_bytes > MOST_SPILLS:
            yield f"{self.name}: {self.spilled_bytes} bytes of spills of {MOST_SPILLS}"
        if self.shared_bytes > limit:
            yield f"{self.name}: {self.shared_bytes} bytes of shared memory of {limit}"
        if self.programs > MOST_PROGRAMS:
            yield f"{self.name}: a grid of {self.programs} programs"
        yield from (f"{self.name}: {text}" for text in self.trouble)


def launcher_of(active):
    class Launcher:
        def __init__(self, source, metadata):
            self.names = source.fn.arg_names

        def __call__(self, x, y, z, stream, function, *args):
            assert y == z == 1, "written files launch grids of one dimension"
            given = dict(zip(self.names, args[-len(self.names) :], strict=True))
            sizes = {name: each.numel() for name, each in given.items() if isinstance(each, torch.Tensor)}
            integers = {name: each for name, each in given.items() if type(each) is int}
            active.launched.setdefault((function, x, tuple(sizes.items())), []).append(integers)

    return Launcher


class Driver:
    """The driver of a GPU that loads kernels and launches none."""

    def __init__(self, name):
        self.capability, self.limit = int(name[3:]), LIMITS[name]
        self.kernels, self.launched = [], {}  # launches by function, programs and sizes of tensors
        self.launcher_cls = launcher_of(self)
        self.utils = types.SimpleNamespace(
            load_binary=self.load, get_device_properties=lambda device: {"max_shared_mem": 1 << 30}
        )

    def load(self, name, code, shared, device):
        assert code[:4] == b"\x7fELF"
        self.kernels.append(Kernel(name, 0, 0, shared))
        return "module", len(self.kernels) - 1, 32, 0, 1024

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


def compiled(module):
    """The compiled kernels of a written file, by the functions that the driver gave out."""
    functions = [f for f in vars(module).values() if isinstance(f, triton.runtime.JITFunction)]
    caches = [cache[0] for function in functions for cache in function.device_caches.values()]
    return {kernel.function: kernel for cache in caches for kernel in cache.values()}


def resources(written, task, target, cache=None):
    """The kernels of one written file, in the order in which they are first launched."""
    with contextlib.ExitStack() as stack:
        # A kernel that is in the cache has no log of ptxas.
        cache = cache or stack.enter_context(tempfile.TemporaryDirectory())
        os.environ["TRITON_CACHE_DIR"] = str(cache)
        return compile_file(written, task, target)


def compile_file(written, task, target):
    active = Driver(target)
    driver.set_active(active)
    triton.knobs.nvidia.dump_ptxas_log = True
    log = io.StringIO()
    with torch.device("meta"), torch.no_grad():
        reference = load(task, task.stem)
        made = load(written, f"{task.stem}_{target}")
        model = made.ModelNew(*reference.get_init_inputs())
        with contextlib.redirect_stdout(log):
            type(model).forward.__wrapped__(model, *reference.get_inputs())
    found = LOG.findall(log.getvalue())
    assert [name for name, *_ in found] == [kernel.name for kernel in active.kernels], log.getvalue()
    for kernel, (_, spilled, registers) in zip(active.kernels, found, strict=True):
        kernel.registers, kernel.spilled_bytes = int(registers), int(spilled)
    texts = compiled(made)
    for (function, programs, sizes), launches in active.launched.items():
        kernel, ttir = active.kernels[function], texts[function].asm["ttir"]
        kernel.programs = max(kernel.programs, programs)
        bounds = {
            name: (min(each[name] for each in launches), max(each[name] for each in launches))
            for name in launches[0]
        }
        found = offset_bounds.overflows(ttir, programs, dict(sizes), bounds)
        found += map("ptxas may drop the constant of {}".format,
                     packed_halves.dropped_constants(texts[function].asm["ptx"]))  # fmt: skip
        kernel.trouble += [text for text in found if text not in kernel.trouble]
    return active.kernels


def pairs(written, task):
    if written.is_file():
        return [(written, task)]
    return [(file, task / file.name) for file in sorted(written.glob("*.py")) if (task / file.name).is_file()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("written", type=pathlib.Path)
    parser.add_argument("task", type=pathlib.Path)
    parser.add_argument("--target", default="sm_90", choices=list(LIMITS))
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each kernel")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for Triton's cache")
    options = parser.parse_args()
    bad = 0
    for written, task in pairs(options.written, options.task):
        kernels, troubles = [], []
        try:
            kernels = resources(written, task, options.target, options.keep and options.keep / task.stem)
            for kernel in kernels:
                troubles += kernel.troubles(LIMITS[options.target])
        except Exception as error:
            troubles.append(f"{type(error).__name__}: {error}")
        for kernel in kernels:
            values = dataclasses.asdict(kernel)
            if options.json:
                print(json.dumps({"task": task.stem, **values}), flush=True)
            else:
                print(f"{task.stem}: {kernel.name}: {kernel.registers} registers, "
                      f"{kernel.spilled_bytes} spilled, {kernel.shared_bytes} shared")  # fmt: skip
        print("".join(f"{task.stem}: {text}\n" for text in troubles), file=sys.stderr, end="", flush=True)
        bad += bool(troubles)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
