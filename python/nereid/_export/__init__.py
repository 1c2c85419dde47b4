"""A live module as a task: exported in the caller's process, and written as a file of plain ATen calls.

The file's `class Model` has the parameters and buffers that forward reads under the names that they have in
the module, with the same shapes and dtypes. Values of parameters are random with the same mean and deviation,
since trials perturb them; small buffers and integers keep their values, since forward may use them as
indices, masks or variances.
"""

import threading

import torch

from .. import _structure
from .._structure import Unsupported
from .program import Flat, program_of
from .writer import Writer


_one_at_a_time = threading.RLock()  # torch.export replaces parameters and patches PyTorch for a moment


def export(module, bound, call, *, batch=False, flags=(), functions=False):
    """Exports `call(module, bound)`: `bound` is the mapping of forward's arguments; `flags` are lines that
    the task begins with; `functions`: Python functions of other packages' operators are traced, too, and the
    caller watches what they read. Raises Unsupported with the cause."""
    tensors = []
    inputs = _structure.flatten(bound, tensors, "argument")
    if not tensors and next(module.parameters(), None) is None and next(module.buffers(), None) is None:
        raise Unsupported("neither arguments nor parameters nor buffers hold a tensor")
    flat = Flat(module, inputs, call, autocast_of(tensors), functions)
    given, tensors = tensors, [t.contiguous() if overlaps(t) else t for t in tensors]
    leading = []
    if batch:
        size = next((t.shape[0] for t in tensors if t.dim() > 0), None)
        leading = [t.dim() > 0 and t.shape[0] == size for t in tensors]
    with _one_at_a_time:
        program = program_of(flat, tensors, leading)
    writer = Writer(program, flat, tensors, leading)
    exported = writer.exported(flags)
    if (
        exported.written
    ):  # what forward writes to is an argument of the task, so that what it holds afterwards is judged
        exported = Writer(program, flat, tensors, leading, exported.written).exported(flags)
    exported.copied = [one is not other for one, other in zip(given, tensors)]
    bases = [which[0] for kind, which in exported.returned if kind == "view"]
    if any(kind == "input" and exported.copied[which] for kind, which in bases):
        raise Unsupported("an output is a view of an argument whose elements share memory")
    if exported.mutates_inputs and any(exported.copied):
        raise Unsupported("forward writes to an argument, and one has elements that share memory")
    return exported


def autocast_of(tensors):
    """(device type, dtype) of each autocast that is enabled now and that a call on these tensors may meet."""
    kinds = sorted({tensor.device.type for tensor in tensors} | {"cuda", "cpu"})
    return tuple((kind, torch.get_autocast_dtype(kind)) for kind in kinds if torch.is_autocast_enabled(kind))


def overlaps(tensor):
    """Whether elements of an expanded tensor share memory."""
    return tensor.numel() > 0 and any(
        size > 1 and stride == 0 for size, stride in zip(tensor.shape, tensor.stride())
    )
