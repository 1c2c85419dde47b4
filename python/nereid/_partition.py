"""Splits a graph at the operators that are not exported: the parts between them can be compiled alone."""

import torch
from torch.fx.passes.split_module import split_module
from torch.utils._python_dispatch import TorchDispatchMode

_TAGS = (
    torch.Tag.nondeterministic_seeded,  # draws random numbers
    torch.Tag.data_dependent_output,  # reads values
    torch.Tag.dynamic_output_shape,
)
_MODES = ("_enter_autocast", "_exit_autocast", "_set_grad_enabled", "inference_mode")
_MOST = 16  # parts of a graph that are compiled
_UNKNOWN = object()


class _Calls(TorchDispatchMode):
    """Which operators were called."""

    def __init__(self):
        super().__init__()
        self.operators = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.operators.append(function)
        return function(*args, **(kwargs or {}))


def split(
    graph: torch.fx.GraphModule, args: tuple
) -> tuple[torch.fx.GraphModule, list[str], list[str]] | None:
    """(the graph as a module of parts in their order, names of those to compile, names of the rest); None
    where no part is left to compile.

    Where nothing in the graph stands out the parts are its halves.

    args    the graph's arguments, of which shapes and dtypes are used
    """
    calls = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output")]
    if any(getattr(node.target, "__name__", "") in _MODES for node in calls):
        return None  # what a mode covers must not be taken apart
    kept, computes = _classified(graph, args)
    parts = _runs(calls, kept)
    if not any(node in kept for node in calls):
        parts = _halves(calls, computes)
    number, compiled = {}, set()
    for i, part in enumerate(parts):
        number.update(dict.fromkeys(part, i))
        if part[0] not in kept and any(node in computes for node in part):
            compiled.add(i)
    if not compiled or len(parts) < 2:
        return None
    largest = sorted(compiled, key=lambda i: -len(parts[i]))[:_MOST]
    whole = split_module(graph, None, lambda node: number[node], keep_original_order=True)
    names = {name for name, _ in whole.named_children() if name.startswith("submod_")}
    ours = [name for i in sorted(largest) if (name := f"submod_{i}") in names]
    return (whole, ours, sorted(names.difference(ours))) if ours else None


def _classified(graph, args):
    """(nodes that are not exported, nodes that compute more than a view)."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    kept, computes, values = set(), set(), {}
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    given = iter(args)
    with torch.no_grad():
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                arg = next(given)
                values[node] = mode.from_tensor(arg.detach()) if isinstance(arg, torch.Tensor) else arg
                continue
            if node.op == "output":
                continue
            value, operators = _UNKNOWN, None
            if all(values[argument] is not _UNKNOWN for argument in node.all_input_nodes):
                value, operators = _called(graph, node, values, mode)
            values[node] = value
            if operators is None or not all(map(_exported, operators)) or not _plain(value):
                kept.add(node)
            elif any(not _is_view(operator) for operator in operators):
                computes.add(node)
    return kept, computes


def _called(graph, node, values, mode):
    """(the node's value on fake tensors, the operators that it called); unknown where it fails."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda argument: values[argument])
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return _UNKNOWN, None
    try:
        with mode, _Calls() as calls:
            if node.op == "call_function":
                value = node.target(*args, **kwargs)
            elif node.op == "call_method":
                value = getattr(args[0], node.target)(*args[1:], **kwargs)
            elif node.op == "call_module":
                value = graph.get_submodule(node.target)(*args, **kwargs)
            else:
                value = graph
                for name in node.target.split("."):
                    value = getattr(value, name)
                value = mode.from_tensor(value.detach()) if isinstance(value, torch.Tensor) else value
    except Exception:
        return _UNKNOWN, None
    return value, calls.operators


def _exported(operator):
    return (
        isinstance(operator, torch._ops.OpOverload)
        and operator.namespace in ("aten", "prims", "prim")
        and not any(tag in operator.tags for tag in _TAGS)
    )


def _is_view(operator):
    return operator.is_view or operator._schema.name == "aten::detach"


def _plain(value):
    """Whether all tensors in a node's value are dense and of real numbers."""
    leaves = torch.utils._pytree.tree_leaves(value)
    return all(
        leaf.layout is torch.strided and not leaf.is_quantized and not leaf.is_complex()
        for leaf in leaves
        if isinstance(leaf, torch.Tensor)
    )


def _runs(calls, kept):
    """Neighbours of one kind."""
    parts = []
    for node in calls:
        if parts and (parts[-1][0] in kept) == (node in kept):
            parts[-1].append(node)
        else:
            parts.append([node])
    return parts


def _halves(calls, computes):
    """Two parts with the same number of operators that compute; one where there is only one."""
    total = sum(node in computes for node in calls)
    if total < 2:
        return [calls]
    count = 0
    for i, node in enumerate(calls):
        count += node in computes
        if 2 * count >= total:
            return [calls[: i + 1], calls[i + 1 :]]
    return [calls]
