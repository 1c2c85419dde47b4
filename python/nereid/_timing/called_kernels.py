"""Kernels whose machine code is there already, launched as Triton launches its own.

    @triton.jit
    def kernel0(p0, p1, C0: tl.constexpr):
        pass

    called_kernels.bind(kernel0, "1a2b...")
    kernel0[(128,)](x, y, C0=64, num_warps=4)

A call goes all the way through Triton (arguments bound and specialised, the key looked up, the launcher that
Triton generates for a signature); only what would be compiled at the first one is taken from HASH.json
(src/nereid/tracer/compiled_kernel.h) instead.

`load` is for before anything hostile is read: it has the launchers built by a C compiler, of signatures of
known types. Nothing after it starts a program.
"""

import base64
import collections
import json
import pathlib

TYPES = {
    "f16": "fp16",
    "bf16": "bf16",
    "f32": "fp32",
    "f64": "fp64",
    "i1": "i1",
    "i8": "i8",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
}
FACTS = (
    "num_warps num_ctas shared global_scratch_size global_scratch_align profile_scratch_size"
    " profile_scratch_align launch_cooperative_grid launch_pdl"
)
Metadata = collections.namedtuple("Metadata", FACTS)
Source = collections.namedtuple("Source", "signature constants")

loaded = {}  # by hash


class Refused(Exception):
    pass


def launch_type(ttir):
    """What a launcher calls a parameter's type."""
    if ttir.startswith("!tt.ptr<"):
        return "*i8"  # a launcher takes all pointers alike
    if ttir not in TYPES:
        raise Refused(f"a kernel takes a {ttir}")
    return TYPES[ttir]


class CalledKernel:
    """In the place of Triton's CompiledKernel."""

    def __init__(self, document, constants):
        if document["tensordesc_meta"]:
            raise Refused("a kernel takes a tensor descriptor")
        self.name, self.machine_code = document["name"], base64.b64decode(document["cubin"])
        self.metadata = Metadata(
            document["num_warps"],
            document["num_ctas"],
            document["shared"],
            *document["global_scratch"],
            *document["profile_scratch"],
            document["cooperative"],
            document["pdl"],
        )
        self.packed_metadata = self.metadata.num_warps, self.metadata.num_ctas, self.metadata.shared
        signature = [launch_type(ttir) for ttir in document["params"]] + ["constexpr"] * constants
        self.source = self.src = Source(dict(enumerate(signature)), {})
        self.run = self.function = self.module = None

    def build_launcher(self, driver):
        self.run = driver.launcher_cls(self.source, self.metadata)

    def load(self, driver):
        self.module, self.function, *_ = driver.utils.load_binary(
            self.name, self.machine_code, self.metadata.shared, driver.get_current_device()
        )

    def launch_metadata(self, grid, stream, *args):
        return None  # no server listens


def load(folder, constants, driver):
    """Reads a file for each hash of `constants`, which says how many constants its kernel has, and builds
    what launches it."""
    for kernel, count in constants.items():
        loaded[kernel] = CalledKernel(
            json.loads((pathlib.Path(folder) / f"{kernel}.json").read_text()), count
        )
        loaded[kernel].build_launcher(driver)


def bind(function, kernel):
    """What `function` launches is the machine code of this hash."""
    import torch
    from triton.runtime import driver

    known = loaded[kernel]
    known.load(driver.active)
    scratch = known.metadata.global_scratch_size
    if scratch > 0:
        import triton

        triton.set_allocator(
            lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8)
        )

    def compiled(key, signature, device, constexprs, options, attrs, warmup):
        function.device_caches[device][0][key] = known
        return known

    function._do_compile = compiled


chosen = {}


def fastest(choice, *ways):
    """One of several ways to launch the same, as an autotuner does: the fastest, by the first call."""
    way = chosen.get(choice)
    if way is None:
        way = chosen[choice] = min(range(len(ways)), key=lambda i: seconds(ways[i]))
    ways[way]()


def seconds(way):
    import torch

    way()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    times = []
    for _ in range(5):
        begin.record()
        way()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return min(times)
