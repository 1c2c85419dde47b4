"""Kernels with machine code of their own, launched through Triton: what reaches the driver, by a driver that
only writes down.

tests/called_kernels_test.py
"""

import base64
import json
import pathlib
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import torch  # noqa: F401
import triton  # noqa: F401
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from nereid._timing import baselines, called_kernels

PROGRAM = """import torch
import triton
import triton.language as tl
from nereid._timing import called_kernels


@triton.jit
def kernel0(p0, p1, p2, C0: tl.constexpr, ):
    pass


called_kernels.bind(kernel0, "ab")


def make():
    return [torch.ones(8), ], []


class Model(torch.nn.Module):
    def __init__(self, state):
        super().__init__()

    def forward(self, a0):
        t0 = torch.empty_like(a0)
        kernel0[(2, 3, 1)](a0, t0, 7, C0=64, num_warps=8, num_stages=2, )
        return t0
"""
KERNEL = {"name": "add", "cubin": base64.b64encode(b"\x7fELF and so on").decode(),
          "params": ["!tt.ptr<f32>", "!tt.ptr<f32>", "i32"],
          "tensordesc_meta": [], "shared": 96, "num_warps": 8, "num_ctas": 1, "global_scratch": [0, 1],
          "profile_scratch": [0, 1],
          "cooperative": False, "pdl": False}  # fmt: skip


class Launcher:
    """In the place of Triton's, with all that it has."""

    global_scratch_size = profile_scratch_size = 0
    launch_cooperative_grid = launch_pdl = False

    def __init__(self, launches):
        self.launches = launches

    def __call__(self, x, y, z, stream, function, *args):
        self.launches.append((x, y, z, stream, function, *args))

    def launch(self, x, y, z, stream, function, cooperative, pdl, scratch, profile, *args):
        self(x, y, z, stream, function, *args)


class Driver:
    """Where NVIDIA's runs."""

    def __init__(self):
        self.launchers, self.loaded, self.launches = [], [], []
        self.utils = types.SimpleNamespace(load_binary=self.load_binary)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 77

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def load_binary(self, name, code, shared, device):
        self.loaded.append((name, code, shared, device))
        return "module", "function", 32, 0, 1024

    def launcher_cls(self, source, metadata):
        self.launchers.append((source.signature, metadata))
        return Launcher(self.launches)


class Launches(unittest.TestCase):
    def setUp(self):
        self.driver = Driver()
        driver.set_active(self.driver)
        called_kernels.loaded.clear()

    def load(self, **changed):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "ab.json").write_text(json.dumps({**KERNEL, **changed}))
            called_kernels.load(folder, {"ab": 1}, self.driver)

    def test_go_through_triton(self):
        self.load()
        program = baselines.Program(PROGRAM, "cpu")
        for _ in range(3):
            program.model(*program.inputs)
        signature, metadata = self.driver.launchers[0]
        self.assertEqual(list(signature.values()), ["*i8", "*i8", "i32", "constexpr"])
        self.assertEqual((metadata.shared, metadata.launch_pdl), (96, False))
        self.assertEqual(self.driver.loaded, [("add", b"\x7fELF and so on", 96, 0)])
        self.assertEqual(len(self.driver.launches), 3)
        grid, (stream, function, packed, metadata, *_), args = (
            self.driver.launches[0][:3],
            self.driver.launches[0][3:9],
            self.driver.launches[0][9:],
        )
        self.assertEqual(
            (grid, stream, function, packed, metadata), ((2, 3, 1), 77, "function", (8, 1, 96), None)
        )
        self.assertEqual((args[0].shape, args[2], args[3]), ((8,), 7, 64))
        self.assertEqual(
            len(program.model.forward.__globals__["kernel0"].device_caches[0][0]), 1
        )  # one key for the same arguments

    def test_the_compilers_are_launched_directly(self):
        self.load()
        program = baselines.Program(PROGRAM, "cpu", written=True)
        Driver.__module__ = "triton.backends.test"
        try:
            with torch.no_grad():
                for _ in range(4):
                    program.model(*program.inputs)
        finally:
            Driver.__module__ = __name__
        self.assertIsNotNone(program.model.__dict__["_guard_seen"].known[3][0])
        self.assertEqual(len(self.driver.launches), 4)
        plain, direct = self.driver.launches[0], self.driver.launches[-1]
        self.assertEqual(plain[:7], direct[:7])  # then Triton's hooks, of which there are none
        self.assertEqual((plain[9].data_ptr(), plain[11]), (direct[9], direct[11]))
        self.assertIsInstance(direct[10], int)

    def test_what_it_cannot_launch_is_refused(self):
        for changed in (
            {"params": ["!tt.tensordesc<tensor<64x64xf16>>"], "tensordesc_meta": [{}]},
            {"params": ["!tt.ptr<f32>", "i128"]},
        ):
            with self.assertRaises(called_kernels.Refused):
                self.load(**changed)

    def test_the_fastest_of_several_is_kept(self):
        called = []
        times = {"slow": 3.0, "fast": 1.0}
        seconds, called_kernels.seconds = called_kernels.seconds, lambda way: times[way()]
        try:
            for _ in range(2):
                called_kernels.fastest(
                    "here", lambda: called.append("slow") or "slow", lambda: called.append("fast") or "fast"
                )
        finally:
            called_kernels.seconds = seconds
        self.assertEqual(called, ["slow", "fast", "fast", "fast"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
