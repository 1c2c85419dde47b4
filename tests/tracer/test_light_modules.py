"""What is slow to import is not imported until something asks for it, and is itself then."""

import sys
import unittest

import identity  # puts the tracer on the path

from nereid._tracer import light_modules, tracer

ASKS = """
import sympy
import torch
import torch._dynamo
import torch._dynamo.utils
from torch.distributed.tensor import DTensor, Replicate
from torch.fx.experimental.symbolic_shapes import ShapeEnv, guard_or_false
from torch.utils.cpp_extension import CUDAExtension, load_inline

torch._dynamo.config.suppress_errors = True
torch._dynamo.reset()


class Model(torch.nn.Module):
    def forward(self, x):
        torch._dynamo.mark_dynamic(x, 0)
        compiled = torch.compile(lambda x: torch.relu(x) @ x.T)
        assert sympy.expand((sympy.Symbol("y") + 1) ** 2).coeff(sympy.Symbol("y")) == 2
        assert issubclass(DTensor, torch.Tensor) and Replicate() and ShapeEnv()
        assert guard_or_false(True) and CUDAExtension
        first, slope = compiled(x), torch.func.grad(lambda x: x.sum())(x)
        return first, slope, torch.cond(x.shape[0] > 2, lambda x: x + 1, lambda x: x - 1, (x,))


def get_inputs():
    return [torch.randn(4, 4)]


def get_init_inputs():
    return []
"""
BUILDS = (
    "from torch.utils.cpp_extension import CUDA_HOME, load_inline\nload_inline(name='x', cpp_sources='')\n"
)


def stand_ins():
    return {
        name
        for name in (*light_modules.NAMES, "torch.utils.cpp_extension")
        if type(sys.modules[name]) is light_modules._StandIn
    }


class LightModules(unittest.TestCase):
    def test_nothing_is_imported_before_it_is_asked_for(self):
        tracer.warm()
        tracer.warm_up()
        self.assertEqual(stand_ins(), {*light_modules.NAMES, "torch.utils.cpp_extension"})
        self.assertNotIn("sympy.core", sys.modules)
        self.assertNotIn("torch._dynamo.symbolic_convert", sys.modules)
        self.assertNotIn("setuptools", sys.modules)

        answer = identity.trace(ASKS, "asks.py")
        self.assertIn("trace", answer, answer)
        calls = [
            step["call"]
            for phase in answer["trace"]["phases"]
            if phase["phase"] == "forward"
            for step in phase["steps"]
        ]
        self.assertEqual(calls[:4], ["aten::relu", "aten::permute", "aten::mm", "aten::sum"])
        self.assertEqual(stand_ins(), set())
        self.assertIn("untraceable", identity.trace(BUILDS, "builds.py"))  # what is refused stays refused


if __name__ == "__main__":
    unittest.main()
