"""Values that forward reads while it is traced. Arguments, parameters and buffers are fake tensors; what
forward makes of sizes and constants alone is real, so that Python can branch on it as it does in a call."""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing, get_proxy_mode, get_proxy_slot
from torch.overrides import TorchFunctionMode

from .._structure import Unsupported

_Tensor = torch.Tensor
_READS = {
    _Tensor.item, _Tensor.tolist, _Tensor.__bool__, _Tensor.__int__, _Tensor.__float__, _Tensor.__index__,
    _Tensor.is_nonzero, _Tensor.equal, torch.is_nonzero, torch.equal,
}  # fmt: skip
_SIZES = {  # arguments after the first may be sizes that are tensors; C++ reads them
    _Tensor.view, _Tensor.reshape, torch.reshape, _Tensor.expand, _Tensor.repeat, _Tensor.narrow,
    torch.narrow,
    _Tensor.as_strided, torch.as_strided, _Tensor.new_zeros, _Tensor.new_ones, _Tensor.new_empty,
}  # fmt: skip
_SIZED = (  # their sizes depend on values, too, and PyTorch does not say so
    torch.ops.aten.repeat_interleave.self_Tensor, torch.ops.aten.tensor_split.tensor_indices_or_sections,
)  # fmt: skip


class Known(TorchFunctionMode):
    """Answers reads of tensors that depend on nothing but sizes and constants."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _SIZES:
            args, kwargs = (args[0], *map(_number, args[1:])), {k: _number(v) for k, v in kwargs.items()}
        read = [value for value in args if isinstance(value, torch.Tensor)] if func in _READS else []
        if not read or any(isinstance(value, FakeTensor) for value in read):
            return func(*args, **kwargs)
        return _read(read, func, *args, **kwargs)


def _read(tensors, function, *args, **kwargs):
    """What `function` makes of the values of these tensors."""
    tracer = get_proxy_mode().tracer
    for value in tensors:
        node = get_proxy_slot(value, tracer, None, lambda slot: slot.proxy.node)
        if node is None or not fixed(node):
            raise Unsupported("forward reads values of a tensor that differ from call to call")
    with disable_proxy_modes_tracing():
        return function(*args, **kwargs)


def _number(value):
    """A size that is a tensor as the number that it holds, also in a tuple of sizes."""
    if type(value) in (list, tuple):
        return type(value)(map(_number, value))
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor) or value.dim() > 0:
        return value
    return _read([value], _Tensor.item, value)


def check_shapes(graph):
    """Raises Unsupported where a size depends on values that may differ from call to call."""
    for node in graph.nodes:
        if node.target in _SIZED or torch.Tag.dynamic_output_shape in getattr(node.target, "tags", ()):
            if not (_by_place(node) or fixed(node)):
                raise Unsupported(f"operator {node.target}: a size that depends on values")


def _by_place(node):
    """Whether this indexes by numbers alone: the result has their shape."""
    if node.target is not torch.ops.aten.index.Tensor:
        return False
    dtypes = [one.meta["val"].dtype for one in node.args[1] if one is not None]
    return not {torch.bool, torch.uint8} & set(dtypes)


def _with_sources(node):
    """The node and all that it is computed from."""
    found, queue = set(), [node]
    while queue:
        one = queue.pop()
        if one not in found:
            found.add(one)
            queue.extend(one.all_input_nodes)
    return found


def fixed(node):
    """Whether this is computed from sizes and constants alone, and nothing else is written into what it is
    computed from."""
    sources = _with_sources(node)
    return all(map(_repeats, sources)) and not any(
        _with_sources(written) & sources and not all(map(_repeats, _with_sources(writer)))
        for writer in node.graph.nodes
        for written in _written(writer)
    )


def _repeats(node):
    """Whether this gives the same in each call, given the same."""
    if getattr(node.target, "__module__", None) == "_operator":
        return True
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    return (
        torch.Tag.nondeterministic_seeded not in node.target.tags and "empty" not in node.target._schema.name
    )


def _written(node):
    """What an operator writes to."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return []
    found = []
    for i, argument in enumerate(node.target._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = node.args[i] if i < len(node.args) else node.kwargs.get(argument.name)
            found += value if isinstance(value, (list, tuple)) else [value]
    return [one for one in found if isinstance(one, torch.fx.Node)]
