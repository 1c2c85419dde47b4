"""Connected convex subgraphs of a recorded call, each as a task.

A module of torch.nn that is one call is written as that module (`self.conv = nn.Conv2d(...)`), other calls as
the author spelled them. Parameters and buffers that a call takes directly become the task's own; all other
tensors from outside are arguments of its forward.
"""

import inspect
import keyword
import random
import re

import torch
from torch import nn

from .. import _export
from . import recording, spelling
from .recording import Ref
from .spelling import NoText

_LETTERS = "x y z u v w p q".split()
_MOST_ELEMENTS = 1 << 22
_FREE = ("view", "reshape", "permute", "transpose", "flatten", "unsqueeze", "squeeze", "__getitem__",
         "chunk", "split", "unbind", "expand",
         "expand_as", "contiguous", "detach", "T", "mT", "view_as", "movedim", "swapaxes", "unflatten", "t",
         "narrow", "select", "data", "type_as",
         "to", "float", "clone", "half", "size", "tensor_split", "reshape_as")  # fmt: skip


class Cutter:
    """Of one graph. `options`: max_operators, per_entry, seed."""

    def __init__(self, graph, options, seed):
        self._graph, self._options = graph, options
        self._random = random.Random(seed)
        nodes = graph.nodes
        self._text_of, self._alias, self._free = {}, {}, {}
        self._read = []
        for i, node in enumerate(nodes):
            refs = [self._real(r) for r in _refs(node)]
            self._read.append(refs)
            try:
                kind, name = spelling.name_of(node.function)
                short = name.rpartition(".")[2]
            except NoText:
                self._text_of[i] = None
                continue
            if short in spelling.IDENTITY and refs:
                self._alias[(i, 0)] = refs[0]  # not in training: what it was given
                self._text_of[i] = None
                continue
            bad = (
                short == "__setitem__"
                or spelling.is_random(name)
                or any(n > 1 and not node.many for n in [node.results])
            )
            self._text_of[i] = None if bad or not refs else name
            self._free[i] = short in _FREE
        self._usable = [i for i in range(len(nodes)) if self._text_of.get(i)]
        self._before = [{r.node for r in refs if r.node is not None} for refs in self._read]
        self._after = [set() for _ in nodes]
        self._ancestors = [0] * len(nodes)
        for i, before in enumerate(self._before):
            mask = 0
            for b in before:
                self._after[b].add(i)
                mask |= self._ancestors[b] | (1 << b)
            self._ancestors[i] = mask
        self._descendants = [0] * len(nodes)
        for i in reversed(range(len(nodes))):
            for a in self._after[i]:
                self._descendants[i] |= self._descendants[a] | (1 << a)
        self._layers = self._layers_by_node()

    def _real(self, ref):
        while ref.key() in self._alias:
            ref = self._alias[ref.key()]
        return ref

    def _layers_by_node(self):
        """Modules of torch.nn that are one recorded call, by that call."""
        found = {}
        for called in self._graph.modules:
            module = called.module
            if (
                called.last is None
                or called.last != called.first + 1
                or type(module).__module__.split(".")[:2] != ["torch", "nn"]
            ):
                continue
            if len(called.args) != 1 or called.kwargs or any(True for _ in module.children()):
                continue
            found[called.first] = module
        return found

    def tasks(self):
        """Tasks, each a dict with `code`, `form` and `key`."""
        if not self._usable:
            return
        seen, made = set(), 0
        wanted = self._options["per_entry"]
        for _ in range(12 * wanted):
            if made >= wanted:
                return
            size = self._random.randint(1, self._options["max_operators"])
            chosen = self._grown(size)
            if chosen is None:
                continue
            if (key := self._key(chosen)) in seen:
                continue
            seen.add(key)
            try:
                code = self._written(chosen)
            except NoText:
                continue
            if code is not None and len(code) <= 20_000:
                made += 1
                yield {"code": code, "form": "subgraph"}

    def _grown(self, size):
        """A random convex connected set with `size` operators that are not views, as sorted numbers; None
        where it does not come out."""
        start = self._random.choice(self._usable)
        chosen, mask = {start}, 1 << start
        for _ in range(4 * size):
            work = sum(not self._free[i] for i in chosen)
            if work >= size:
                break
            around = set()
            for i in chosen:
                around |= self._before[i] | self._after[i]
            around = [i for i in sorted(around - chosen) if self._text_of.get(i)]
            if not around:
                break
            closed = self._closure(mask | (1 << self._random.choice(around)))
            members = _members(closed)
            if len(members) > 3 * size + 3 or sum(not self._free.get(i, False) for i in members) > size:
                continue
            if not all(self._text_of.get(i) for i in members):
                continue
            chosen, mask = set(members), closed
        chosen = sorted(chosen)
        return chosen if any(not self._free[i] for i in chosen) else None

    def _closure(self, mask):
        """The set with all that is between its members."""
        above = below = 0
        for i in _members(mask):
            above |= self._ancestors[i]
            below |= self._descendants[i]
        return mask | (above & below)

    def _key(self, chosen):
        """What is equal for sets that do the same on tensors of the same sizes."""
        number, parts = {}, []

        def text(ref):
            if not isinstance(ref, Ref):
                return None
            ref = self._real(ref)
            if ref.key() not in number:
                number[ref.key()] = len(number)
                return f"%{number[ref.key()]}:{self._shape(ref)}"
            return f"%{number[ref.key()]}"

        for i in chosen:
            node = self._graph.nodes[i]
            parts.append(self._text_of[i] + repr(_mapped((node.args, node.kwargs), lambda r: text(r))))
            for r in range(node.results):
                text(Ref(i, r))
        return "\n".join(parts)

    def _shape(self, ref):
        if ref.node is None:
            tensor = self._graph.leaves[ref.index].tensor
            return tuple(tensor.shape), str(tensor.dtype)
        return self._graph.nodes[ref.node].result_shapes[ref.index]

    # -- text -----------------------------------------------------------------------------------------------

    def _written(self, chosen):
        inside = set(chosen)
        names, taken = {}, {"self", "torch", "nn", "F", "Model", "math"}
        arguments, state, body = [], [], []
        layer_names = {}

        def fresh(wish):
            name, n = wish, 1
            while name in taken or keyword.iskeyword(name):
                n += 1
                name = f"{wish}{n}"
            taken.add(name)
            return name

        def reference(value):
            if not isinstance(value, Ref):
                return None
            ref = self._real(value)
            key = ref.key()
            if key not in names:
                leaf = self._graph.leaves[ref.index] if ref.node is None else None
                if leaf is not None and leaf.kind != "argument":
                    wish = re.sub(r"\W", "_", ".".join(leaf.name.split(".")[-2:])) or "constant"
                    wish = wish.lstrip("0123456789_") or "state"
                    name = fresh(wish)
                    state.append((name, leaf))
                    names[key] = f"self.{name}"
                else:
                    name = fresh(_LETTERS[len(arguments) % len(_LETTERS)])
                    arguments.append((name, ref))
                    names[key] = name
            return names[key]

        for i in chosen:
            node = self._graph.nodes[i]
            layer = self._layer(i, layer_names, fresh)
            if layer is not None:
                text = f"self.{layer}({reference(self._read[i][0])})"
            else:
                text = spelling.call_text(node.function, node.args, node.kwargs, reference)
            if node.many:
                used = [
                    any(Ref(i, r).key() == x.key() for j in inside for x in self._read[j])
                    for r in range(node.results)
                ]
                targets = []
                for r in range(node.results):
                    name = fresh("h") if used[r] or not any(used) else "_"
                    targets.append(name)
                    names[(i, r)] = name
                body.append(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {text}")
            else:
                names[(i, 0)] = name = fresh("h")
                body.append(f"{name} = {text}")
        consumed = {r.key() for j in chosen for r in self._read[j]}
        results = []
        for i in chosen:
            for r in range(self._graph.nodes[i].results):
                if (i, r) not in consumed and names[(i, r)] != "_":
                    results.append((names[(i, r)], self._graph.nodes[i].result_shapes[r]))
        if not arguments or not results or len(results) > 4 or len(arguments) > 8:
            return None
        return self._file(arguments, state, layer_names, body, results)

    def _layer(self, i, layer_names, fresh):
        """The name of the torch.nn module that is this call, where it can be written as one."""
        module = self._layers.get(i)
        if module is None or module in layer_names:
            return layer_names[module][0] if module is not None else None
        given = recording.made_with(module)
        if given is None:
            return None
        try:
            text = layer_text(module, *given)
        except NoText:
            return None
        wish = getattr(module, "_nereid_name", type(module).__name__.lower())
        layer_names[module] = (fresh(wish if wish.isidentifier() else type(module).__name__.lower()), text)
        return layer_names[module][0]

    def _file(self, arguments, state, layers, body, results):
        lines = ["import torch", "from torch import nn"]
        if any("F." in line for line in body):
            lines.append("import torch.nn.functional as F")
        lines += ["", "", "class Model(nn.Module):"]
        if state or layers:
            lines += ["    def __init__(self):", "        super().__init__()"]
            for name, text in layers.values():
                lines.append(f"        self.{name} = {text}")
            for name, leaf in state:
                kind = "parameter" if leaf.kind == "parameter" else "buffer"
                text = _export.values.state_text(leaf.tensor.detach(), kind)
                if len(text) > 4000:
                    raise NoText("a large constant")
                lines.append(f"        self.{name} = nn.Parameter({text})" if kind == "parameter"
                             else f'        self.register_buffer("{name}", {text})')  # fmt: skip
            lines.append("")
        lines.append(f"    def forward(self, {', '.join(name for name, _ in arguments)}):")
        lines += [f"        {line}" for line in body]
        lines.append(f"        return {', '.join(name for name, _ in results)}")
        lines += ["", "", "def get_inputs():", "    return ["]
        for _, ref in arguments:
            lines.append(f"        {self._input(ref)},")
        lines += ["    ]", "", "", "def get_init_inputs():", "    return []", ""]
        text = "\n".join(lines)
        return text if runs(text, [shape for _, shape in results]) else None

    def _input(self, ref):
        if ref.node is None:
            return input_text(self._graph.leaves[ref.index].tensor)
        shape, dtype = self._shape(ref)
        return shape_text(shape, dtype)


def _members(mask):
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _refs(node):
    return [x for x in torch.utils._pytree.tree_leaves([node.args, node.kwargs]) if isinstance(x, Ref)] + [
        y for x in torch.utils._pytree.tree_leaves([node.args, node.kwargs]) if isinstance(x, slice)
        for y in (x.start, x.stop, x.step) if isinstance(y, Ref)
    ]  # fmt: skip


def _mapped(value, change):
    if isinstance(value, Ref):
        return change(value)
    if isinstance(value, (tuple, list)):
        return [_mapped(v, change) for v in value]
    if isinstance(value, dict):
        return {k: _mapped(v, change) for k, v in value.items()}
    return (
        value
        if isinstance(value, (int, float, str, bool, type(None), slice, torch.dtype))
        else type(value).__name__
    )


def layer_text(module, args, kwargs):
    """nn.Conv2d(3, 8, kernel_size=3), with the options that its author gave."""
    cls = type(module)
    if getattr(nn, cls.__name__, None) is not cls:
        raise NoText(cls.__name__)
    kwargs = {k: v for k, v in kwargs.items() if k not in ("inplace", "device")}
    names = list(inspect.signature(cls.__init__).parameters)[1:]
    if "inplace" in names and len(args) > names.index("inplace"):
        args = args[: names.index("inplace")]
    texts = [spelling.literal(a) for a in args] + [f"{k}={spelling.literal(v)}" for k, v in kwargs.items()]
    return f"nn.{cls.__name__}({', '.join(texts)})"


def shape_text(shape, dtype):
    """Text that draws a tensor of this shape."""
    sizes = ", ".join(map(str, shape))
    if any(s == 0 for s in shape):
        raise NoText("an empty tensor")
    if dtype is torch.bool:
        return f"torch.rand({sizes or '()'}) < 0.5"
    if dtype.is_complex:
        return f"torch.randn({sizes or '()'}, dtype={dtype})"
    if not dtype.is_floating_point:
        raise NoText("integers whose bounds are unknown")
    text = f"torch.randn({sizes or '()'})"
    return text if dtype is torch.float32 else f"{text}.to({dtype})"


def input_text(tensor):
    """Text that draws an argument like this one."""
    if tensor.numel() == 0:
        raise NoText("an empty tensor")
    if tensor.is_floating_point():
        return shape_text(tuple(tensor.shape), tensor.dtype)
    return _export.values.input_text(tensor.detach())


def runs(text, expected=None):
    """Whether a task's forward runs on its own inputs, and gives results of these shapes and dtypes."""
    try:
        names = {"__name__": "task"}
        exec(compile(text, "task.py", "exec"), names)
        given = names["get_init_inputs"]()
        model = names["Model"](**given) if isinstance(given, dict) else names["Model"](*given)
        inputs = names["get_inputs"]()
        output = model(**inputs) if isinstance(inputs, dict) else model(*inputs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:
        return False
    found = [t for t in torch.utils._pytree.tree_leaves(output) if isinstance(t, torch.Tensor)]
    if not found or any(t.numel() > _MOST_ELEMENTS or t.numel() == 0 for t in found):
        return False
    return expected is None or [(tuple(t.shape), t.dtype) for t in found] == list(expected)
