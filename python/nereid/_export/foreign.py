"""Operators of other packages, which no graph of PyTorch's own operators holds: while forward is traced, a
definition in PyTorch's own operators, else the operator's own Python function, takes their place."""

import torch
from torch.overrides import TorchFunctionMode

from .._structure import Unsupported

OWN = ("aten", "prims", "prim")  # namespaces that a task may name


def grouped_mm(input, weight, offs):
    """Row i of `input` (S, K) times weight[g] (K, N), where g is the first of the groups whose end offs[g] is
    beyond i; rows beyond the last group are 0."""
    row = torch.arange(input.shape[0], device=input.device)
    group = (row[:, None] >= offs).sum(1)
    held = group.clamp(max=weight.shape[0] - 1)
    product = torch.bmm(input[:, None], weight[held])[:, 0]
    return torch.where((group < weight.shape[0])[:, None], product, 0.0)


# Of operators whose own function reads values of tensors; each takes the operator's arguments by name, too.
DEFINITIONS = {"transformers::grouped_mm_fallback": grouped_mm}
_GROUPED = [getattr(torch.nn.functional, "grouped_mm", None), getattr(torch, "_grouped_mm", None)]


class Inlined(TorchFunctionMode):
    """Traces into operators of other packages. `functions`: also into their own Python functions, where the
    caller watches what these read (reached.py)."""

    def __init__(self, functions):
        super().__init__()
        self._functions = functions

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _GROUPED and _untraced(*args, **kwargs):
            given = {key: value for key, value in kwargs.items() if value is not None}
            return grouped_mm(*args, **given)
        name = _foreign(func)
        made = torch._library.custom_ops.OPDEFS.get(name) if self._functions else None
        body = DEFINITIONS.get(name) or (made and function_of(made))
        if body is None:
            return func(*args, **kwargs)
        with self:
            try:
                return body(*args, **kwargs)
            except Unsupported:
                raise
            except Exception as error:
                why = (str(error).strip().splitlines() or [""])[0][:200]
                raise Unsupported(
                    f"operator {name}: no operator of PyTorch's own, and its function is not traced: "
                    f"{type(error).__name__}: {why}"
                ) from error


def _untraced(input, weight, offs=None, **more):
    """Whether this is a grouped product that PyTorch computes and that its own tracing refuses."""
    kinds = (input.dtype, weight.dtype, input.dim(), weight.dim())
    plain = offs is not None and all(value is None for value in more.values())
    return plain and kinds == (torch.float32, torch.float32, 2, 3)


def _foreign(func):
    """The name of an operator that is none of PyTorch's own, "package::operator"; else None."""
    if isinstance(func, torch._ops.OpOverload):
        name = func._schema.name
    elif isinstance(func, torch._ops.OpOverloadPacket):
        name = func._qualified_op_name
    else:
        return None
    return name if name.split("::")[0] not in OWN else None


def function_of(made):
    """The Python function of an operator that torch.library.custom_op made, where it has this one alone, for
    every device, and writes to no argument; else None."""
    several = len(made._backend_fns) != 1 or made._disabled_kernel
    return None if several or made._opoverload._schema.is_mutable else made._init_fn
