"""Outputs that are views of what forward was given."""

import torch

from .._structure import Unsupported


def view_of(node, origins):
    """((kind, which), size, stride, offset) of a graph's node that is a view of an argument, a parameter or a
    buffer: what the caller writes to it is written there. None for others, and for sizes that are not known.

    `origins` has ("input", i) or ("state", name) of the nodes that are these."""
    value = _fake(node)
    if value is None:
        return None
    for base, (kind, *which) in origins.items():
        held = _fake(base) if kind in ("input", "state") else None
        if held is None or held.untyped_storage()._cdata != value.untyped_storage()._cdata:
            continue
        place = tuple(value.shape), value.stride(), value.storage_offset() - held.storage_offset()
        if not all(isinstance(n, int) for n in (*place[0], *place[1], place[2])):
            return None
        if (value.dtype, value.is_conj(), value.is_neg()) != (held.dtype, held.is_conj(), held.is_neg()):
            raise Unsupported("an output is a view of an argument, a parameter or a buffer as another type")
        name = which[0] if kind == "input" else which[0].removeprefix("module.")
        return (kind, name), *place
    return None


def _fake(node):
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) and value.layout is torch.strided else None
