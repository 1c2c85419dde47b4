"""Replays a trace's JSON on the CPU through torch.ops: the tracer's own check. Knows no launches.

The product's replayer is C++ and reads the same format; this one is for tests of the tracer alone.
"""

import base64

import torch

DTYPES = {
    "bool": torch.bool, "u8": torch.uint8, "i8": torch.int8, "i16": torch.int16, "u16": torch.uint16,
    "i32": torch.int32,
    "u32": torch.uint32, "i64": torch.int64, "u64": torch.uint64, "f16": torch.float16,
    "bf16": torch.bfloat16, "f32": torch.float32,
    "f64": torch.float64, "f8e4m3fn": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2,
    "c32": torch.complex32, "c64": torch.complex64,
    "c128": torch.complex128,
}  # fmt: skip
CPU = torch.device("cpu")
_manual_seed = torch.manual_seed
_generator = torch._C.Generator


class Mismatch(Exception):
    """The trace says something about an operator's result that PyTorch does otherwise."""


class Replay:
    def __init__(self, trace):
        self.trace, self.memory, self.generators, self.states, self.tensors = trace, {}, {}, {}, {}
        self.restrided = []  # operators whose results PyTorch lays out otherwise on the CPU

    def run(self, seed_of):
        """The output of each forward; `seed_of(phase, call)` seeds each phase."""
        outputs = []
        with torch.no_grad():
            for phase in self.trace["phases"]:
                torch._C.default_generator.manual_seed(seed_of(phase["phase"], phase["call"]))
                for step in phase["steps"]:
                    self._step(step)
                self.tensors = {}
                if "output" in phase:
                    outputs.append(self._clone(self._decode(phase["output"])))
        return outputs

    def _clone(self, tree):
        if isinstance(tree, torch.Tensor):
            return tree.clone()
        if isinstance(tree, (list, tuple)):
            return type(tree)(self._clone(item) for item in tree)
        if isinstance(tree, dict):
            return {key: self._clone(item) for key, item in tree.items()}
        return tree

    def _step(self, step):
        name = step["call"]
        if name == "nereid::constant":
            id = self.trace["values"][step["result"]["v"]]["s"]
            self.memory[id] = storage_of(self.trace["storages"][id])
        elif name == "nereid::manual_seed":
            torch._C.default_generator.manual_seed(step["args"][0])
        elif name == "nereid::save_generator":
            self.states[step["args"][0]] = self._generator(step["args"][1]).get_state()
        elif name == "nereid::restore_generator":
            self._generator(step["args"][1]).set_state(self.states[step["args"][0]])
        elif not name.startswith("nereid::"):
            self._call(name, step)

    def _call(self, name, step):
        func = overload(name)
        # One value is one tensor within a call: attention asks whether its query is its key.
        self.tensors = {}
        args = [self._decode(arg) for arg in step.get("args", [])]
        kwargs = {key: self._decode(arg) for key, arg in step.get("kwargs", [])}
        kwargs.pop("pin_memory", None)
        if any(argument.name == "device" for argument in func._schema.arguments):
            kwargs["device"] = CPU
        result = func(*args, **kwargs)
        self._bind(name, step["result"], result)
        for id in values_in(step["result"]):
            storage = self.trace["values"][id]["s"]
            described = self.trace["storages"][storage]
            if described.get("pinned") and described["role"] != "constant":
                self.memory[storage].copy_(storage_of(described))

    def _bind(self, name, arg, result):
        if arg is None:
            return
        if isinstance(result, torch.Tensor):
            self._bind_tensor(name, self.trace["values"][arg["v"]], result)
        elif isinstance(result, (list, tuple)):
            items = arg if isinstance(arg, list) else arg["tuple"]
            if len(items) != len(result):
                raise Mismatch(f"{name} has {len(result)} results, the trace {len(items)}")
            for item, one in zip(items, result):
                self._bind(name, item, one)

    def _bind_tensor(self, name, value, real):
        if list(real.shape) != value["n"] or real.dtype != DTYPES[value["t"]]:
            raise Mismatch(f"{name}: {list(real.shape)} {real.dtype}, in the trace {value['n']} {value['t']}")
        known = self.memory.get(value["s"])
        strides = [(mine, theirs) for n, mine, theirs in zip(value["n"], value["d"], real.stride()) if n > 1]
        same_layout = all(mine == theirs for mine, theirs in strides) and real.storage_offset() == value["o"]
        if known is not None and known.data_ptr() == real.untyped_storage().data_ptr():
            if not same_layout and real.numel() > 1:
                raise Mismatch(
                    f"{name}: a view with strides {list(real.stride())}+{real.storage_offset()}, in the trace"
                    f" {value['d']}+{value['o']}"
                )
            return
        if same_layout and real.untyped_storage().nbytes() >= self.trace["storages"][value["s"]]["bytes"]:
            self.memory[value["s"]] = real.untyped_storage()
            return
        self.restrided.append((name, list(real.stride()), value["d"]))
        self.memory[value["s"]] = torch.zeros(
            self.trace["storages"][value["s"]]["bytes"], dtype=torch.uint8, device=CPU
        ).untyped_storage()
        self._view(value).copy_(real)

    def _view(self, value):
        if value["s"] not in self.memory:
            raise Mismatch(f"storage {value['s']} is used before any step makes it")
        tensor = torch.empty(0, dtype=DTYPES[value["t"]], device=CPU)
        tensor.set_(self.memory[value["s"]], value["o"], value["n"], value["d"])
        if value.get("conj"):
            tensor = tensor.conj()
        tensor = torch._neg_view(tensor) if value.get("neg") else tensor
        if self.trace["storages"][value["s"]]["role"] == "parameter" and tensor.is_floating_point():
            tensor.requires_grad_()  # PyTorch's matmul asks, inside recurrent layers too
        return tensor

    def _decode(self, arg):
        if isinstance(arg, list):
            return [self._decode(item) for item in arg]
        if not isinstance(arg, dict):
            return arg
        ((kind, body),) = arg.items()
        if kind == "v":
            if body not in self.tensors:
                self.tensors[body] = self._view(self.trace["values"][body])
            return self.tensors[body]
        if kind == "f":
            return float(body)
        if kind == "c":
            return complex(*body)
        if kind == "tuple":
            return tuple(self._decode(item) for item in body)
        if kind == "dict":
            return {key: self._decode(item) for key, item in body}
        if kind == "object":
            named = {key: self._decode(item) for key, item in body["items"]}
            return tuple(named.values()) if body["kind"] == "namedtuple" else named
        if kind == "dtype":
            return DTYPES[body]
        if kind == "device":
            return CPU
        if kind in ("layout", "memory_format"):
            return getattr(torch, body)
        if kind == "generator":
            return self._generator(arg)
        return f"<{body}>"

    def _generator(self, arg):
        if arg is None:
            return torch._C.default_generator
        name = arg["generator"]
        if name not in self.generators:
            self.generators[name] = _generator().manual_seed(int(name.split(":")[1].split("#")[0]))
        return self.generators[name]


def storage_of(described):
    raw = bytearray(base64.b64decode(described["data"]))
    storage = torch.UntypedStorage(len(raw), device=CPU)
    if raw:
        import ctypes

        ctypes.memmove(storage.data_ptr(), bytes(raw), len(raw))
    return storage


def overload(name):
    namespace, rest = name.split("::")
    base, _, which = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), base), which or "default")


def values_in(arg):
    if isinstance(arg, list):
        return [id for item in arg for id in values_in(item)]
    if isinstance(arg, dict):
        if "v" in arg:
            return [arg["v"]]
        if "tuple" in arg:
            return values_in(arg["tuple"])
    return []
