"""A graph as the text of a task."""

import dataclasses
import keyword
import math
import operator
import re

import torch

from .. import _structure
from .._structure import Unsupported
from .foreign import OWN
from .known import fixed
from .program import ASSERTIONS, Traced
from .values import input_text, state_text
from .views import view_of

_INPLACE = re.compile(r"[a-z0-9]_$")
_SKIPPED = ("aten::_assert_tensor_metadata", "aten::_assert_scalar", "aten::sym_constrain_range_for_size",
            "aten::sym_constrain_range")  # fmt: skip
_STATISTICS = (
    "aten::batch_norm",
    "aten::instance_norm",
    "aten::_native_batch_norm_legit",
    "aten::native_batch_norm",
)
CONSTANTS = "nereid_constants"  # the task's submodule of tensors that are no state


@dataclasses.dataclass
class Exported:
    """What `export` makes of a module."""

    source: str
    """The task file."""
    inputs: _structure.Node
    """Structure of the bound arguments."""
    outputs: object
    """Structure of what forward returns; its tensors are `returned`, in order."""
    returned: list
    """Of each output tensor where it comes from: ("computed", i), ("input", i), ("state", name), or
    ("view", (("input", i) or ("state", name), size, stride, offset))."""
    computed: int
    """Number of tensors that the task's forward returns: its results, then the arguments, parameters and
        buffers that it writes to."""
    used: list
    """Of each input tensor whether the task's forward takes it."""
    state: list
    """Names of the parameters and buffers that forward reads."""
    constants: list
    """Tensors that are neither: attributes, or made by forward from Python values."""
    written: list
    """Names of those that forward writes to: the task's forward takes them after the tensors."""
    state_names: dict
    """Name in the task of each of these."""
    copied: list
    """Of each input tensor whether it goes to the task as a contiguous copy: its elements share memory."""
    mutates_inputs: bool
    leading: list
    """Of each input tensor whether its leading size is the batch; empty where all sizes are fixed."""
    metas: list = dataclasses.field(default_factory=list)
    """(dtype, shape, strides) of each tensor that the task's forward computes; empty where one is unknown."""


def _writes(module):
    """Whether a graph writes to a tensor that it did not make."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
            if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
                return True
    return False


class Writer:
    """Writes one graph as a task."""

    def __init__(self, program, flat, tensors, leading, moved=()):
        self._program, self._flat, self._tensors, self._leading = program, flat, tensors, leading
        self._moved = list(moved)
        self._graph = program.graph_module
        self._state = {
            **dict(flat.named_parameters(remove_duplicate=False)),
            **dict(flat.named_buffers(remove_duplicate=False)),
        }
        self._devices = {t.device for t in [*tensors, *self._state.values()]}
        if len({(d.type, d.index) for d in self._devices}) > 1:
            raise Unsupported(
                f"parameters and arguments on several devices: {sorted(map(str, self._devices))}"
            )
        self._lines, self._names, self._taken = [], {}, set()
        self._constants, self._constant_names = [], {}
        self._origin = {}  # node: ("input", i) or ("state", name)
        self._used_inputs, self._used_state, self._written = set(), {}, set()
        # A view that is valid on this device may not be on another one: attention's results have other
        # strides there.
        self._view = "view" if _writes(self._graph) else "reshape"

    # -- where placeholders come from -----------------------------------------------------------------------

    def _bind_placeholders(self):
        graph = self._graph.graph
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        if isinstance(self._program, Traced):
            names = self._program.state_names
            for i, node in enumerate(placeholders):
                self._origin[node] = ("state", names[i]) if i < len(names) else ("input", i - len(names))
            return
        from torch.export.graph_signature import InputKind

        nodes = {node.name: node for node in placeholders}
        count = 0
        for spec in self._program.graph_signature.input_specs:
            name = getattr(spec.arg, "name", None)
            node = nodes.get(name)
            if spec.kind == InputKind.USER_INPUT:
                self._origin[node] = ("input", count)
                count += 1
            elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                self._origin[node] = ("state", spec.target)
            elif spec.kind == InputKind.CONSTANT_TENSOR:
                self._origin[node] = ("constant", self._program.constants[spec.target])
            else:
                raise Unsupported(f"an input of kind {spec.kind.name}")

    def _constant(self, tensor):
        for i, held in enumerate(self._constants):
            if held is tensor:
                return i
        self._constants.append(tensor)
        return len(self._constants) - 1

    # -- text -----------------------------------------------------------------------------------------------

    def _name(self, node):
        if node not in self._names:
            base = re.sub(r"\W", "_", node.name)
            base = (
                f"v_{base}"
                if keyword.iskeyword(base) or base[0].isdigit() or base in ("self", "torch", "nn", "device")
                else base
            )
            name, n = base, 1
            while name in self._taken:
                n, name = n + 1, f"{base}_{n}"
            self._taken.add(name)
            self._names[node] = name
        return self._names[node]

    def _read(self, node):
        """Text of a node that is read."""
        origin = self._origin.get(node)
        if origin is None or origin[0] == "alias":
            return self._name(node)
        if origin[0] == "input":
            self._used_inputs.add(origin[1])
            return f"x{origin[1]}"
        if origin[0] == "state":
            name = origin[1].removeprefix("module.")
            if name in self._moved:
                return f"s{self._moved.index(name)}"
            self._used_state[name] = self._state[origin[1]]
            return _attribute(_safe(name))
        return f"self.{CONSTANTS}.c{self._constant(origin[1])}"

    def _text(self, value):
        if isinstance(value, torch.fx.Node):
            return self._read(value)
        if isinstance(value, (list, torch.fx.immutable_collections.immutable_list)):
            return "[" + ", ".join(map(self._text, value)) + "]"
        if isinstance(value, tuple):
            return "(" + ", ".join(map(self._text, value)) + ("," if len(value) == 1 else "") + ")"
        if isinstance(value, slice):
            return f"slice({self._text(value.start)}, {self._text(value.stop)}, {self._text(value.step)})"
        if isinstance(value, torch.device):
            return "device"
        if isinstance(value, bool) or value is None:
            return repr(value)
        if isinstance(value, (int, str)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, complex):
            return f"complex({self._text(value.real)}, {self._text(value.imag)})"
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        raise Unsupported(f"a graph's argument of type {type(value).__name__}")

    def _target(self, target):
        if isinstance(target, torch._ops.OpOverload):
            if target in ASSERTIONS:
                raise Unsupported("operator aten._assert_async: an assertion on data")
            if target.namespace not in OWN:
                raise Unsupported(f"operator {target}: no operator of PyTorch's own")
            name, overload = target._schema.name.split("::")[1], target._overloadname
            name = self._view if name in ("view", "_unsafe_view") and overload == "default" else name
            return f"torch.ops.{target.namespace}.{name}.{overload}"
        module = getattr(target, "__module__", None)
        if module == "_operator":
            return None
        if module == "math":
            return f"math.{target.__name__}"
        if getattr(torch, getattr(target, "__name__", ""), None) is target:
            return f"torch.{target.__name__}"
        if target in (max, min, int, float, bool, abs, round):
            return target.__name__
        raise Unsupported(f"operator {target}")

    # -- nodes ----------------------------------------------------------------------------------------------

    def _write_graph(self, module):
        """Writes a graph's nodes; returns the arguments of its output."""
        for node in module.graph.nodes:
            if node.op == "get_attr":
                value = module
                for part in node.target.split("."):
                    value = getattr(value, part)
                if isinstance(value, torch.Tensor):
                    self._origin[node] = ("constant", value)
                else:
                    self._origin[node] = ("module", value)
            elif node.op == "call_function":
                self._write_call(node)
            elif node.op == "output":
                return node.args[0]
            elif node.op != "placeholder":
                raise Unsupported(f"a graph's node {node.op} {node.target}")
        return ()

    def _write_call(self, node):
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self._write_region(node)
        if isinstance(target, torch._ops.OpOverload) and target._schema.name in _SKIPPED:
            return None
        if target in ASSERTIONS and isinstance(self._program, Traced) and fixed(node.args[0]):
            return None  # it held while forward was traced, and holds in each call
        if target is torch._C._set_grad_enabled:  # a task has no gradients
            return None
        if target is operator.getitem:
            source = node.args[0]
            if (region := self._origin.get(source)) and region[0] == "region":
                return self._alias(node, region[1][node.args[1]])
            self._lines.append(f"{self._name(node)} = {self._text(source)}[{self._text(node.args[1])}]")
            return None
        if isinstance(target, torch._ops.OpOverload):
            self._note_writes(node)
        name = self._target(target)
        if name is None:
            symbol = {
                "add": "+",
                "sub": "-",
                "mul": "*",
                "floordiv": "//",
                "truediv": "/",
                "mod": "%",
                "pow": "**",
            }.get(target.__name__)
            comparison = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.get(
                target.__name__
            )
            if target.__name__ == "neg":
                text = f"-{self._text(node.args[0])}"
            elif symbol or comparison:
                text = f"{self._text(node.args[0])} {symbol or comparison} {self._text(node.args[1])}"
            else:
                raise Unsupported(f"operator {target}")
            self._lines.append(f"{self._name(node)} = {text}")
            return None
        if name == "torch.ops.aten.sym_size.int":
            self._lines.append(f"{self._name(node)} = {self._text(node.args[0])}.size({node.args[1]})")
            return None
        kwargs = {
            key: value
            for key, value in node.kwargs.items()
            if not (key in ("pin_memory", "layout") and value in (False, None, torch.strided))
        }
        arguments = [
            *map(self._text, node.args),
            *(f"{key}={self._text(value)}" for key, value in kwargs.items()),
        ]
        self._lines.append(f"{self._name(node)} = {name}({', '.join(arguments)})")
        return None

    def _alias(self, node, value):
        if isinstance(value, torch.fx.Node):
            self._lines.append(f"{self._name(node)} = {self._text(value)}")
            if value in self._origin:
                self._origin[node] = ("alias", value)

    def _note_writes(self, node):
        """Of an operator that writes to an argument: which, and that it returns it."""
        schema = node.target._schema
        for i, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
                if isinstance(written, torch.fx.Node):
                    self._written.add(self._root(written))
        if schema.name in _STATISTICS and node.args[5]:  # their schemas do not say so
            for running in node.args[3:5]:
                if isinstance(running, torch.fx.Node):
                    self._written.add(self._root(running))
        if _INPLACE.search(schema.name) and node.args and isinstance(node.args[0], torch.fx.Node):
            self._origin.setdefault(node, ("alias", node.args[0]))

    def _root(self, node):
        """The node whose object this one is."""
        while (origin := self._origin.get(node)) is not None and origin[0] == "alias":
            node = origin[1]
        return node

    def _write_region(self, node):
        """A region with another grad mode or autocast; its graph is written in place."""
        kind = node.target.name() if callable(getattr(node.target, "name", None)) else str(node.target)
        if "set_grad_enabled" in kind:
            body, given, opened = node.args[1], node.args[2:], None
        elif "autocast" in kind:
            device, dtype, enabled, cache = node.args[:4]
            body, given = node.args[4], node.args[5:]
            opened = (
                f"with torch.autocast(device.type, dtype={self._text(dtype)}, enabled={enabled},"
                f" cache_enabled={cache}):"
            )
        else:
            raise Unsupported(f"operator {kind}: control flow that depends on data")
        module = self._origin[body][1]
        places = [inner for inner in module.graph.nodes if inner.op == "placeholder"]
        for inner, outer in zip(places, given):
            self._names[inner] = self._text(outer)
            if isinstance(outer, torch.fx.Node) and outer in self._origin:
                self._origin[inner] = ("alias", outer)
        start = len(self._lines)
        outputs = self._write_graph(module)
        if opened is not None:
            self._lines[start:] = [opened, *("    " + line for line in self._lines[start:] or ["pass"])]
        self._origin[node] = ("region", list(outputs) if isinstance(outputs, (list, tuple)) else [outputs])

    # -- the file -------------------------------------------------------------------------------------------

    def exported(self, flags):
        self._bind_placeholders()
        outputs = self._write_graph(self._graph)
        returned, computed = [], []
        for value in outputs:
            if not isinstance(value, torch.fx.Node):
                raise Unsupported(f"an output that is no tensor in the graph: {value!r}")
            root = self._root(value)
            origin = self._origin.get(root)
            if origin is not None and origin[0] == "input":
                returned.append(("input", origin[1]))
            elif origin is not None and origin[0] == "state":
                returned.append(("state", origin[1].removeprefix("module.")))
            elif (view := view_of(root, self._origin)) is not None:
                returned.append(("view", view))
            else:
                if root not in computed:
                    computed.append(root)
                returned.append(("computed", computed.index(root)))
        results = [self._read(node) for node in computed]
        written = [
            node
            for node in self._written
            if self._origin.get(self._root(node), (None,))[0] in ("input", "state")
        ]
        names = [
            self._origin[self._root(node)][1].removeprefix("module.")
            for node in written
            if self._origin[self._root(node)][0] == "state"
        ]
        results += sorted(
            {self._read(self._root(node)) for node in written}
        )  # what these hold afterwards is judged, too
        writes = {self._origin.get(self._root(node), (None,))[0] for node in self._written}
        if not computed and not writes & {"input", "state"}:
            raise Unsupported("forward computes nothing")
        if "constant" in writes:
            raise Unsupported(
                "forward writes to a tensor that is neither an argument, a parameter nor a buffer"
            )
        source = self._file(results, flags)
        values = [node.meta.get("val") for node in computed]
        known = all(isinstance(value, torch.Tensor) for value in values) and len(values) == len(results)
        return Exported(
            source=source,
            inputs=self._flat._inputs,
            outputs=self._flat.outputs,
            returned=returned,
            computed=len(results),
            used=[i in self._used_inputs for i in range(len(self._tensors))],
            state=list(self._used_state),
            written=sorted(set(names)),
            state_names={name: _safe(name) for name in self._used_state},
            copied=[],
            constants=self._constants,
            mutates_inputs="input" in writes,
            leading=self._leading,
            metas=[(v.dtype, tuple(v.shape), v.stride()) for v in values] if known else [],
        )

    def _file(self, results, flags):
        taken = [i for i in range(len(self._tensors)) if i in self._used_inputs]
        lines = [
            "import math",
            "",
            "import torch",
            "from torch import nn",
            "",
            *flags,
            "",
            _REGISTER,
            "",
            "class Model(_Part):",
        ]
        lines += ["    def __init__(self):", "        super().__init__()"]
        first = {}
        for name, tensor in self._used_state.items():
            kind = "parameter" if isinstance(tensor, torch.nn.Parameter) else "buffer"
            if id(tensor) in first:
                lines.append(
                    f"        _register(self, {_safe(name)!r}, {_attribute(_safe(first[id(tensor)]))}, None)"
                )
                continue
            first[id(tensor)] = name
            lines.append(f"        _register(self, {_safe(name)!r}, {state_text(tensor, kind)}, {kind!r})")
        for i, tensor in enumerate(self._constants):
            lines.append(
                f"        _register(self, '{CONSTANTS}.c{i}', {state_text(tensor, 'buffer')}, 'buffer')"
            )
        moved = (f"s{i}" for i in range(len(self._moved)))
        lines += [
            f"        self.train({self._flat.module.training})",
            "",
            f"    def forward({', '.join(['self', *(f'x{i}' for i in taken), *moved])}):",
        ]
        body = list(self._lines)
        if any(re.search(r"\bdevice\b", line) for line in body):
            if taken:
                body.insert(0, f"device = x{taken[0]}.device")
            elif self._used_state:
                body.insert(0, f"device = {_attribute(_safe(next(iter(self._used_state))))}.device")
            else:
                body.insert(0, 'device = torch.device("cuda")')
        body.append(
            f"return {results[0]}"
            if len(results) == 1
            else f"return ({', '.join(results)})"
            if results
            else "return ()"
        )
        lines += ["        " + line for line in body]
        lines += ["", "", "def get_inputs():", "    return ["]
        lines += [f"        {input_text(self._tensors[i])}," for i in taken]
        state = {name.removeprefix("module."): tensor for name, tensor in self._state.items()}
        lines += [f"        {input_text(state[name])}," for name in self._moved]
        return "\n".join([*lines, "    ]", "", "", "def get_init_inputs():", "    return []", ""])


_REGISTER = """class _Part(nn.Module):
    def __getitem__(self, name):
        return self._modules[str(name)]


def _register(module, name, tensor, kind):
    *path, last = name.split(".")
    for part in path:
        if part not in module._modules:
            module.add_module(part, _Part())
        module = module._modules[part]
    if kind == "parameter":
        tensor = nn.Parameter(tensor, requires_grad=tensor.is_floating_point())
    if kind == "parameter" or isinstance(tensor, nn.Parameter):
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor)
"""


def _safe(name):
    """A parameter's name with parts that can stand in a program: "experts.fine-grained.weight" is
    experts.p_fine_grained.weight."""
    *path, last = name.split(".")

    def part(text, numbers):
        plain = text.isidentifier() and not keyword.iskeyword(text) or (numbers and text.isdigit())
        return text if plain else "p_" + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", text)

    return ".".join([*(part(text, True) for text in path), part(last, False)])


def _attribute(name):
    """ "a.0.weight" as text: self.a[0].weight."""
    text = "self"
    for part in name.split("."):
        text += f"[{part}]" if part.isdigit() else f".{part}"
    return text
