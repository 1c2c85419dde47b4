"""Nested arguments and outputs as flat lists of tensors and a description of all the rest."""

import collections
import dataclasses
import enum
import types

import torch

_SIMPLE = (
    type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout,
    torch.memory_format, enum.Enum, range, slice,
    type, types.FunctionType, types.BuiltinFunctionType,
)  # fmt: skip
_HEAP_TYPE = 1 << 9  # of a class's __flags__: it is made by a class statement


class Unsupported(Exception):
    """A value that cannot be taken apart, or a module that cannot be exported; the message says which and
    why."""


class _Tensor:
    """The place of a tensor."""

    def __repr__(self):
        return "tensor"

    def __eq__(self, other):
        return isinstance(other, _Tensor)

    __hash__ = None


TENSOR = _Tensor()


@dataclasses.dataclass
class Node:
    """A container: `kind` (list, dict, ...), its class, its keys, and its items."""

    kind: str
    cls: type
    keys: tuple
    items: list


def flatten(value, tensors, where="argument"):
    """The description of `value`; its tensors are appended to `tensors`. Raises Unsupported for an object
    that it does not know."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return TENSOR
    if isinstance(value, _SIMPLE):
        return value
    cls = type(value)
    if cls in (list, tuple, torch.Size):
        return Node(cls.__name__, cls, (), [flatten(item, tensors, where) for item in value])
    if isinstance(value, tuple) and hasattr(cls, "_fields") and not getattr(value, "__dict__", None):
        return Node("namedtuple", cls, cls._fields, [flatten(item, tensors, where) for item in value])
    if dataclasses.is_dataclass(value):
        names = _names(value, cls, where)
        return Node(
            "dataclass", cls, names, [flatten(getattr(value, name), tensors, where) for name in names]
        )
    if cls in (dict, collections.OrderedDict, collections.Counter):
        return Node("dict", cls, tuple(value), [flatten(item, tensors, where) for item in value.values()])
    if cls is collections.defaultdict and isinstance(value.default_factory, (type, type(None))):
        items = [flatten(item, tensors, where) for item in (value.default_factory, *value.values())]
        return Node("defaultdict", cls, tuple(value), items)
    known = _registered(cls) if cls is not collections.defaultdict else None
    if known is not None:
        items, context = known.flatten_fn(value)
        return Node("pytree", cls, (_Same(context),), [flatten(item, tensors, where) for item in items])
    plain = cls is not collections.defaultdict and not getattr(value, "__dict__", None)
    if isinstance(value, dict) and plain:
        return Node("dict", cls, tuple(value), [flatten(item, tensors, where) for item in value.values()])
    raise Unsupported(
        f"{where} of type {cls.__module__}.{cls.__qualname__}: expected tensors, numbers, text, lists,"
        " tuples, dictionaries, dataclasses or what is registered with torch.utils._pytree"
    )


def _names(value, cls, where):
    """The attributes of a dataclass's object: all that it holds, whether or not its fields name them."""
    slots = [name for base in cls.__mro__ for name in _slots(base) if hasattr(value, name)]
    held = getattr(value, "__dict__", {})
    if _is_plain(cls):
        return (*held, *slots)
    names = tuple(field.name for field in dataclasses.fields(value) if field.init)
    if not held.keys() <= {*names}:
        more = ", ".join(map(str, held.keys() - {*names}))
        raise Unsupported(
            f"{where} of type {cls.__qualname__}: expected no attributes but fields, got {more}"
        )
    return names  # a dictionary, too: transformers' ModelOutput


def _slots(cls):
    names = cls.__dict__.get("__slots__", ())
    names = (names,) if isinstance(names, str) else names
    private = f"_{cls.__name__.lstrip('_')}"
    return [private + n if n.startswith("__") else n for n in names if not n.endswith("__")]


def _is_plain(cls):
    """Whether objects of the class hold attributes and nothing else."""
    return cls.__new__ is object.__new__ and all(
        base is object or base.__flags__ & _HEAP_TYPE for base in cls.__mro__
    )


class _Same:
    """A pytree's context, compared as it defines."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        try:
            return isinstance(other, _Same) and bool(self.value == other.value)
        except Exception:
            return False

    __hash__ = None


def _registered(cls):
    return torch.utils._pytree.SUPPORTED_NODES.get(cls)


def unflatten(description, tensors):
    """The value again. `tensors` is an iterator."""
    if description is TENSOR or isinstance(description, _Tensor):
        return next(tensors)
    if not isinstance(description, Node):
        return description
    items = [unflatten(item, tensors) for item in description.items]
    kind, cls = description.kind, description.cls
    if kind == "namedtuple":
        return tuple.__new__(cls, items)
    if kind == "dataclass" and not _is_plain(cls):
        return cls(**dict(zip(description.keys, items)))
    if kind == "dataclass":  # neither __init__ nor __post_init__ runs a second time
        made = object.__new__(cls)
        for name, item in zip(description.keys, items):
            object.__setattr__(made, name, item)
        return made
    if kind == "pytree":
        return _registered(cls).unflatten_fn(items, description.keys[0].value)
    if kind in ("dict", "defaultdict"):
        made = cls(items.pop(0)) if kind == "defaultdict" else cls()
        made.update(zip(description.keys, items))
        return made
    return cls(items)


def differs(where, want, got):
    """What of `got` is another structure or constant than `want`, as a sentence; None where all is the
    same."""
    if isinstance(want, _Tensor) or isinstance(got, _Tensor):
        return (
            None
            if isinstance(want, _Tensor) and isinstance(got, _Tensor)
            else f"{where}: expected {_text(want)}, got {_text(got)}"
        )
    if isinstance(want, Node) != isinstance(got, Node):
        return f"{where}: expected {_text(want)}, got {_text(got)}"
    if isinstance(want, Node):
        if want.cls is not got.cls or want.keys != got.keys or len(want.items) != len(got.items):
            return f"{where}: expected {_text(want)}, got {_text(got)}"
        named = want.kind not in ("pytree", "defaultdict") and want.keys
        names = want.keys if named else range(len(want.items))
        found = (differs(f"{where}[{name!r}]", a, b) for name, a, b in zip(names, want.items, got.items))
        return next(filter(None, found), None)
    same = type(want) is type(got) and (want == got or (want != want and got != got))
    if same and isinstance(want, float) and want == 0:  # a zero equals a negative zero
        same = str(want) == str(got)
    return None if same else f"{where}: expected {want!r}, got {got!r}"


def _text(description):
    if isinstance(description, _Tensor):
        return "a tensor"
    if not isinstance(description, Node):
        return repr(description)[:80]
    keys = (
        f" with keys {list(map(str, description.keys))}"
        if description.kind in ("dict", "dataclass", "namedtuple")
        else ""
    )
    return f"a {description.cls.__name__} of {len(description.items)}{keys}"
