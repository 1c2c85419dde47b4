"""What torch.compile would write for a traced module, as the text of a `ModelNew`; without a GPU.

`warm()` is called once in a process that then forks for every request; `handle(request)` does the work in a
jailed child. The trace is hostile input like any: it was made by the reference's own Python, and its
operators are called here, on tensors without data.

request = {"trace": document (docs/trace_format.md), "native_matmul": bool, "arch": 90}
answer  = {"imports": text, "classes": text} or {"declined": why}

The forward's steps are done again on fake tensors under make_fx, Inductor lowers that graph (graph.py of
torch._inductor), and its wrapper (inductor_wrapper.py here) is turned into plain Python: kernels with
`@triton.jit`, `torch.empty_strided`, launches. With `native_matmul` Inductor writes matrix products in Triton
too; without, they are PyTorch's.
"""

import contextlib
import math
import os
import tempfile

os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
import triton
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from triton.backends.compiler import GPUTarget

from .._tracer import arguments, fake_cuda

DTYPES = arguments.DTYPE_OF_NAME
_names = {}  # of the leaves of the graph that is being lowered


class Declined(Exception):
    pass


# -- the graph ---------------------------------------------------------------------------------------------


class Steps:
    """The last forward of a trace as a function of its leaves."""

    def __init__(self, document):
        self.document = document
        self.values, self.storages = document["values"], document["storages"]
        self.forward = document["phases"][-1]
        self.leaves = []  # (value id, Python text)
        for name, text in paths(self.forward["inputs"]):
            self.leaves.append((name, text))
        for state in document["state"]:
            self.leaves.append((state["value"], attribute(state["name"])))
        seen = set()
        self.leaves = [
            leaf
            for leaf in self.leaves
            if not (self.storage(leaf[0]) in seen or seen.add(self.storage(leaf[0])))
        ]

    def storage(self, value):
        return self.values[value]["s"]

    def fake_leaves(self):
        return [
            torch.empty_strided(v["n"], v["d"], dtype=DTYPES[v["t"]], device="cuda")
            for v in (self.values[i] for i, _ in self.leaves)
        ]

    def run(self, *tensors):
        self.made, self.roots = {}, {}
        for (value, _), tensor in zip(self.leaves, tensors):
            self.bind(value, tensor)
        for step in self.forward["steps"]:
            if "launch" in step:
                raise Declined("the module launches Triton kernels of its own")
            self.call(step)
        return [self.tensor(value) for value, _ in paths(self.forward["output"])]

    def bind(self, value, tensor):
        self.made[value] = tensor
        self.roots.setdefault(self.storage(value), (tensor, self.values[value]))

    def tensor(self, value):
        if value in self.made:
            return self.made[value]
        wanted = self.values[value]
        if wanted["s"] not in self.roots:
            storage = self.storages[wanted["s"]]
            raise Declined(f"it reads a {storage['role']} that is neither an argument of forward nor state")
        tensor, root = self.roots[wanted["s"]]
        if root["t"] != wanted["t"]:
            raise Declined("it looks at one storage under two dtypes")
        view = tensor.as_strided(
            wanted["n"], wanted["d"], wanted.get("o", 0) - root.get("o", 0) + tensor.storage_offset()
        )
        self.made[value] = view
        return view

    def call(self, step):
        name, overload = (step["call"].split(".") + ["default"])[:2]
        space, name = name.split("::")
        if space == "nereid":
            raise Declined(f"it uses {step['call']}")
        try:
            operator = getattr(getattr(getattr(torch.ops, space), name), overload)
        except AttributeError:
            raise Declined(f"there is no operator {step['call']} here") from None
        result = operator(
            *map(self.argument, step.get("args", [])),
            **{key: self.argument(arg) for key, arg in step.get("kwargs", [])},
        )
        self.take(step["result"], result)

    def take(self, arg, result):
        if isinstance(arg, dict) and "v" in arg:
            self.bind(arg["v"], result)
        elif isinstance(arg, (list, dict)) and isinstance(result, (list, tuple)):
            for one, item in zip(arg if isinstance(arg, list) else arg.get("tuple", []), result):
                self.take(one, item)

    def argument(self, arg):
        if isinstance(arg, list):
            return [self.argument(item) for item in arg]
        if not isinstance(arg, dict):
            return arg
        ((kind, body),) = arg.items()
        if kind == "v":
            return self.tensor(body)
        if kind == "f":
            return float(body)
        if kind == "c":
            return complex(*body)
        if kind == "tuple":
            return tuple(self.argument(item) for item in body)
        if kind == "dtype":
            return DTYPES[body]
        if kind == "device":
            return torch.device(body)
        if kind in ("layout", "memory_format"):
            return getattr(torch, body)
        raise Declined(f"it passes a {kind} to an operator")


def paths(arg, text=""):
    """(value id, Python text) of every tensor in the tree of a forward's inputs or output."""
    if isinstance(arg, dict) and "v" in arg:
        yield arg["v"], text
    elif isinstance(arg, list) or isinstance(arg, dict) and "tuple" in arg:
        for index, item in enumerate(arg if isinstance(arg, list) else arg["tuple"]):
            yield from paths(item, f"{text or 'inputs'}[{index}]")
    elif isinstance(arg, dict) and "dict" in arg:
        for key, item in arg["dict"]:
            yield from paths(item, f"{text or 'inputs'}[{key!r}]")


def number_checks(arg, text=""):
    """Two lines for each Python float among a forward's inputs, which its kernels hold as a constant."""
    if isinstance(arg, float):
        value = repr(arg) if math.isfinite(arg) else f"float('{arg!r}')"
        yield f"if {text} == {text}:" if math.isnan(arg) else f"if {text} != {value}:"
        yield f"    raise ValueError('expected {arg!r}, got ' + str({text}))"
    elif isinstance(arg, list) or isinstance(arg, dict) and "tuple" in arg:
        for index, item in enumerate(arg if isinstance(arg, list) else arg["tuple"]):
            yield from number_checks(item, f"{text or 'inputs'}[{index}]")
    elif isinstance(arg, dict) and "dict" in arg:
        for key, item in arg["dict"]:
            yield from number_checks(item, f"{text or 'inputs'}[{key!r}]")


def tree_text(arg, names):
    """The output's tree with the next names in place of its tensors."""
    if isinstance(arg, dict) and "v" in arg:
        return next(names)
    if isinstance(arg, list):
        return "[" + ", ".join(tree_text(item, names) for item in arg) + "]"
    if isinstance(arg, dict) and "tuple" in arg:
        return "(" + "".join(tree_text(item, names) + ", " for item in arg["tuple"]).rstrip() + ")"
    if isinstance(arg, dict) and "dict" in arg:
        return "{" + ", ".join(f"{key!r}: {tree_text(item, names)}" for key, item in arg["dict"]) + "}"
    if isinstance(arg, dict):
        raise Declined("its output holds what is neither tensor nor number")
    return repr(arg)


def attribute(name):
    return "self" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in name.split("."))


# -- Inductor ----------------------------------------------------------------------------------------------


def inductor_text(steps, native_matmul):
    from torch._decomp import core_aten_decompositions  # noqa: F401  fills the tables
    from torch._inductor import config
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V

    settings = {"triton.native_matmul": native_matmul, "fallback_random": True,
                "triton.unique_kernel_names": True,
                "triton.descriptive_names": "original_aten", "assert_indirect_indexing": False,
                "size_asserts": False,
                "alignment_asserts": False, "freezing": False, "comment_origin": False}  # fmt: skip
    settings = {key: value for key, value in settings.items() if key in config._config}
    mode = FakeTensorMode(allow_non_fake_inputs=False)
    with config.patch(settings), mode, torch.no_grad():
        leaves = steps.fake_leaves()
        graph = make_fx(
            torch.func.functionalize(steps.run, remove="mutations"), decomposition_table=select_decomp_table()
        )(*leaves)
        if any(node.op == "get_attr" for node in graph.graph.nodes):
            raise Declined("it holds tensors of its own that are no state")
        lowering = GraphLowering(graph, shape_env=None, graph_id=0)
        with V.set_graph_handler(lowering), V.set_fake_mode(mode), V.set_debug_handler(DebugContext()):
            lowering.run(*leaves)
            code = lowering.codegen()[0]
    return getattr(code, "value", code), list(lowering.graph_input_names)


def candidate(request):
    from . import inductor_wrapper

    steps = Steps(request["trace"])
    if not steps.forward["steps"]:
        raise Declined("its forward does nothing")
    text, names = inductor_text(steps, bool(request.get("native_matmul")))
    keyed = isinstance(steps.forward["inputs"], dict) and "dict" in steps.forward["inputs"]
    wrapper = inductor_wrapper.Wrapper(text, dict(zip(names, (leaf for _, leaf in steps.leaves))))
    return wrapper.write(base=request["trace"]["class"], parameters="**inputs" if keyed else "*inputs",
                         checks=list(number_checks(steps.forward["inputs"])),
                         output=lambda results: tree_text(steps.forward["output"],
                             iter(results)))  # fmt: skip


def handle(request):
    with contextlib.suppress(OSError):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.gettempdir()
    try:
        return candidate(request)
    except Declined as why:
        return {"declined": str(why)}
    except Exception as error:  # Inductor's own refusals are of many types
        return {
            "declined": f"{type(error).__name__}: {str(error).splitlines()[0][:400] if str(error) else ''}"
        }


class Driver:
    """Triton's, of a GPU that is not there."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_device_capability(self, device=0):
        return 9, 0

    def is_active(self):
        return True


_installed = False


def install():
    """Patches torch in this process, for good: a GPU that answers questions and holds nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    # It must read torch.cuda's functions before they are replaced.
    import torch._dynamo.device_interface  # noqa: F401

    fake_cuda.install()
    fake_tensor.init_gpu_context = lambda *args, **kwargs: None
    from torch._dynamo.device_interface import CudaInterface
    from torch._inductor.runtime import triton_helpers

    triton_helpers.set_driver_to_gpu = lambda *args: None
    triton.runtime.driver.set_active(Driver())
    answers = {"get_device_properties": lambda device=None: fake_cuda.PROPERTIES,
               "get_compute_capability": lambda device=None: 90,
               "is_available": lambda: True, "current_device": lambda: 0, "device_count": lambda: 1,
               "is_triton_capable": lambda device=None: True,
               "raise_if_triton_unavailable": lambda device=None: None}  # fmt: skip
    for name, answer in answers.items():
        setattr(CudaInterface, name, staticmethod(answer))
    CudaInterface.Worker.get_device_properties = staticmethod(lambda device=None: fake_cuda.PROPERTIES)


def warm():
    install()
    with tempfile.TemporaryDirectory() as folder:
        before = tempfile.tempdir
        tempfile.tempdir = folder
        for native in (False, True):
            answer = handle({"trace": SAMPLE, "native_matmul": native})
            if "classes" not in answer:
                raise RuntimeError(f"the warm-up graph was not lowered: {answer}")
        tempfile.tempdir = before


def _value(storage, *sizes):
    strides, stride = [], 1
    for size in reversed(sizes):
        strides.insert(0, stride)
        stride *= size
    return {"s": storage, "t": "f32", "n": list(sizes), "d": strides}


def _call(name, *args, result):
    return {"call": f"aten::{name}", "args": list(args), "result": {"v": result}}


# softmax(gelu(linear(x)), -1).sum(1), as a trace
SAMPLE = {
    "class": "Model",
    "storages": [{"bytes": 0, "role": role} for role in ("input", "parameter", "parameter", "temporary",
        "temporary", "temporary", "temporary")],
    "values": [_value(0, 32, 64), _value(1, 128, 64), _value(2, 128), _value(3, 32, 128), _value(4, 32, 128),
        _value(5, 32, 128), _value(6, 32)],
    "state": [{"name": "fc.weight", "value": 1}, {"name": "fc.bias", "value": 2}],
    "phases": [{"phase": "forward", "inputs": [{"v": 0}], "output": {"v": 6},
                "steps": [_call("linear", {"v": 0}, {"v": 1}, {"v": 2}, result=3),
                    _call("gelu", {"v": 3}, result=4),
                          _call("softmax.int", {"v": 4}, -1, result=5),
                          _call("sum.dim_IntList", {"v": 5}, [1], result=6)]}],
}  # fmt: skip


def main():
    import json
    import sys

    install()
    answer = handle({"trace": json.load(open(sys.argv[1]))["trace"], "native_matmul": "--native" in sys.argv})
    print(answer.get("declined") or answer["imports"] + answer["classes"])


if __name__ == "__main__":
    main()
