"""One forward call as a graph: every PyTorch call in the author's spelling, with its tensors by identity, and
every module that was called on the way."""

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

MOST_NODES = 3000


class TooLarge(Exception):
    """A forward with more calls than are recorded."""


class Node:
    """A call: `function` with `args` and `kwargs`, whose tensors are Refs; `results` are the tensors of its
    answer, `many` says that it is a sequence."""

    __slots__ = ("function", "args", "kwargs", "results", "many", "result_shapes")


class Ref:
    """A tensor: the result `index` of node `node`, or (node None) the leaf of that number."""

    __slots__ = ("node", "index")

    def __init__(self, node, index):
        self.node, self.index = node, index

    def key(self):
        return (-1 if self.node is None else self.node, self.index)


class Leaf:
    """What was there before the call: an argument, a parameter, a buffer, or another constant."""

    __slots__ = ("tensor", "kind", "name")


class CalledModule:
    """A module's first call: its arguments, by value."""

    __slots__ = ("module", "args", "kwargs", "first", "last")


class Graph:
    def __init__(self):
        self.nodes, self.leaves, self.modules = [], [], []


def _is_sequence(value):
    return (
        isinstance(value, (tuple, list))
        and len(value) > 0
        and all(isinstance(v, torch.Tensor) for v in value)
    )


class Recorder(TorchFunctionMode):
    """Records into `graph`; `names` are those of parameters and buffers, by id."""

    def __init__(self, graph, names):
        super().__init__()
        self._graph, self._names = graph, names
        self._where, self._kept = {}, []

    def ref(self, tensor):
        found = self._where.get(id(tensor))
        if found is not None:
            return found
        leaf = Leaf()
        leaf.tensor = tensor
        leaf.kind, leaf.name = self._names.get(id(tensor), ("constant", ""))
        self._graph.leaves.append(leaf)
        return self._set(tensor, Ref(None, len(self._graph.leaves) - 1))

    def _set(self, tensor, ref):
        self._kept.append(tensor)
        self._where[id(tensor)] = ref
        return ref

    def given(self, value):
        """Registers a forward's arguments as leaves."""
        for tensor in torch.utils._pytree.tree_leaves(value):
            if isinstance(tensor, torch.Tensor) and id(tensor) not in self._where:
                self._names[id(tensor)] = ("argument", "")
                self.ref(tensor)

    def _encoded(self, value):
        if isinstance(value, torch.Tensor):
            return self.ref(value)
        if type(value) in (list, tuple, torch.Size):
            return type(value)(map(self._encoded, value)) if type(value) is not torch.Size else tuple(value)
        if type(value) is dict:
            return {k: self._encoded(v) for k, v in value.items()}
        if type(value) is slice:
            return slice(self._encoded(value.start), self._encoded(value.stop), self._encoded(value.step))
        return value

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        node = Node()
        node.function = function
        node.args, node.kwargs = self._encoded(tuple(args)), self._encoded(dict(kwargs))
        result = function(*args, **kwargs)
        if function is torch.Tensor.__setitem__:
            result_tensors, node.many = [args[0]], False
        elif isinstance(result, torch.Tensor):
            result_tensors, node.many = [result], False
        elif _is_sequence(result):
            result_tensors, node.many = list(result), True
        else:
            return result
        if len(self._graph.nodes) >= MOST_NODES:
            raise TooLarge(f"more than {MOST_NODES} calls")
        number = len(self._graph.nodes)
        self._graph.nodes.append(node)
        node.results = len(result_tensors)
        node.result_shapes = [(tuple(t.shape), t.dtype) for t in result_tensors]
        for i, tensor in enumerate(result_tensors):
            self._set(tensor, Ref(number, i))
        return result


def record(module, args, kwargs):
    """(graph, output) of one call."""
    graph = Graph()
    names = {}
    for name, tensor in module.named_parameters(remove_duplicate=False):
        names.setdefault(id(tensor), ("parameter", name))
    for name, tensor in module.named_buffers(remove_duplicate=False):
        names.setdefault(id(tensor), ("buffer", name))
    recorder = Recorder(graph, names)
    seen, open_calls, hooks = set(), {}, []

    def before(called, given, options):
        if called in seen:
            return
        seen.add(called)
        one = CalledModule()
        one.module, one.args, one.kwargs, one.first = called, given, dict(options), len(graph.nodes)
        one.last = None
        open_calls[called] = one
        graph.modules.append(one)

    def after(called, given, options, output):
        one = open_calls.pop(called, None)
        if one is not None:
            one.last = len(graph.nodes)

    for child in module.modules():
        hooks.append(child.register_forward_pre_hook(before, with_kwargs=True))
        hooks.append(child.register_forward_hook(after, with_kwargs=True))
    try:
        recorder.given((args, kwargs))
        with recorder:
            output = module(*args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    return graph, output


def _zeros(tensor, *_, **__):
    with torch.no_grad():
        return tensor.zero_()


def _new(cls, *args, **kwargs):
    return object.__new__(cls)


def _new_recorded(cls, *args, **kwargs):
    made = object.__new__(cls)
    object.__setattr__(made, Constructions.KEY, (args, kwargs))
    return made


class Constructions:
    """While it is entered, modules remember the arguments that they are made with, and random initialisation
    is left out: values do not matter, but they are the same each time."""

    KEY = "_nereid_made_with"

    def __enter__(self):
        nn.Module.__new__ = staticmethod(_new_recorded)
        self._initialisers = {}
        for name in ("uniform_", "normal_", "trunc_normal_", "xavier_uniform_", "xavier_normal_",
                     "kaiming_uniform_", "kaiming_normal_",
                     "orthogonal_", "sparse_"):  # fmt: skip
            self._initialisers[name] = getattr(nn.init, name)
            setattr(nn.init, name, _zeros)
        return self

    def __exit__(self, *_):
        # Without a __new__ of its own, once it had one, a class takes no arguments any more.
        nn.Module.__new__ = staticmethod(_new)
        for name, function in self._initialisers.items():
            setattr(nn.init, name, function)


def made_with(module):
    return vars(module).get(Constructions.KEY)
