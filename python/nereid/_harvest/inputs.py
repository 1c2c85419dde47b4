"""Inputs of a module: the forms that modules take, and what a failed call says about them.

A form that fails is not given up at once: most errors of PyTorch name the size, rank or type that they
expected. `repaired` reads them and answers further inputs, in the order of their likelihood.
"""

import re

import torch

_MOST_SIZE = 512
_RANKS = {1: (2,), 2: (2, 32), 3: (2, 9, 32), 4: (2, 16, 16, 16), 5: (2, 16, 8, 8, 8)}


def drawn(shape, integers=False):
    return torch.randint(0, 16, shape) if integers else torch.randn(*shape)


def of_arity(count):
    """Forms of `count` tensor arguments, the likely ones first."""

    def one(form):
        kind, *shape = form
        return drawn(shape, kind == "tokens")

    forms = [("f", 2, 3, 32, 32), ("f", 2, 16, 32), ("f", 2, 16, 16, 16), ("f", 2, 9, 32),
             ("f", 2, 32, 16, 16), ("f", 2, 32), ("tokens", 2, 9),
             ("f", 2, 16), ("f", 2, 16, 9), ("f", 2, 3, 64, 64), ("f", 2, 1, 32, 32), ("f", 2, 16, 16, 32),
             ("f", 2, 4, 9, 8), ("f", 2, 3, 8, 32, 32),
             ("f", 2, 16, 8, 8, 8), ("f", 2, 1, 64), ("f", 2, 64), ("f", 2, 16, 64), ("f", 2, 1, 4000),
             ("f", 9, 9), ("f", 2, 10), ("f", 2, 32, 32),
             ("f", 2, 8, 16, 16), ("f", 2, 16, 16), ("f", 2, 4, 4, 32)]  # fmt: skip
    for form in forms:
        yield [one(form) for _ in range(count)]
    if count == 2:
        for a, b in ((("f", 2, 32, 16, 16), ("f", 2, 32)), (("f", 2, 9, 32), ("f", 2, 32)),
                     (("f", 2, 16, 16, 16), ("f", 2, 16)),
                     (("f", 2, 10), ("tokens", 2)), (("f", 2, 9, 32), ("f", 2, 7, 32)),
                     (("f", 2, 3, 32, 32), ("tokens", 2, 9)),
                     (("f", 9, 32), ("tokens", 2, 16)), (("f", 2, 16, 16, 16),
                         ("f", 2, 16, 8, 8))):  # fmt: skip
            yield [one(a), one(b)]


def signature(given):
    """Shapes and types: inputs that fail alike have one."""
    values = given.items() if isinstance(given, dict) else enumerate(given)
    return tuple((key, tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else (key, repr(v)[:60])
                 for key, v in values)  # fmt: skip


def of_name(name, nodes=None):
    """A tensor for an argument of this name; of a graph with so many `nodes`, where given."""
    if name.startswith("edge_index"):
        return torch.randint(0, nodes or 9, (2, 16))
    if re.search(r"(^|_)(ids?|tokens?|indices|idx|index|batch)$", name):
        return torch.randint(0, nodes or 16, (nodes,) if nodes else (2, 9))
    if re.search(r"mask", name):
        return torch.ones(2, 9, dtype=torch.bool)
    if re.search(r"^(temb|emb|time|t|cond|c|timestep)\w*$", name):
        return torch.randn(2, 32)
    return torch.randn(nodes, 16) if nodes else torch.randn(2, 9, 32)


def repaired(given, error, parameters=()):
    """Inputs like `given` (a list, or a dictionary by name) with what the error asks for. `parameters` are
    the names and defaults of all arguments."""
    text, found, seen = str(error), [], {signature(given)}
    if "NoneType" in text:
        found += _optional_given(given, parameters)
    for pattern, rule in _RULES:
        match = re.search(pattern, text)
        if match:
            found += rule(given, match)
            break
    else:
        found += _with_sizes_swapped(given, text)
    for each in found:
        if signature(each) not in seen:
            seen.add(signature(each))
            yield each


def _optional_given(given, parameters):
    """One argument, then all, that are None by default."""
    names = [name for name, _ in parameters]
    items = given if isinstance(given, dict) else dict(zip(names, given))
    absent = [name for name, default in parameters if default is None and items.get(name) is None]
    found = [{**items, name: of_name(name)} for name in absent[:3]]
    return found + ([{**items, **{name: of_name(name) for name in absent}}] if len(absent) > 1 else [])


def _changed(given, change):
    """`given` with `change(tensor)` for each tensor; None where it leaves all as they are."""
    items = dict(given.items() if isinstance(given, dict) else enumerate(given))
    new = {k: change(v) if isinstance(v, torch.Tensor) else v for k, v in items.items()}
    if all(new[k] is items[k] for k in items):
        return []
    return [new if isinstance(given, dict) else list(new.values())]


def _each_alone(given, change):
    """`given` with one tensor changed, for each tensor."""
    items = dict(given.items() if isinstance(given, dict) else enumerate(given))
    found = []
    for key, value in items.items():
        new = change(value) if isinstance(value, torch.Tensor) else value
        if new is not value:
            one = {**items, key: new}
            found.append(one if isinstance(given, dict) else list(one.values()))
    return found


def _sized(tensor, axis, size):
    shape = list(tensor.shape)
    if not (-len(shape) <= axis < len(shape)) or shape[axis] == size or not 1 <= size <= _MOST_SIZE:
        return tensor
    shape[axis] = size
    return drawn(shape, not tensor.is_floating_point())


def _axis_from(given, axis, old, new):
    """That axis from `old` to `new`, in all tensors that have it so, then in each alone."""

    def change(tensor):
        fits = -tensor.dim() <= axis < tensor.dim() and tensor.shape[axis] == old
        return _sized(tensor, axis, new) if fits else tensor

    return _changed(given, change) + _each_alone(given, change)


def _last_axis(given, match):
    old, new = int(match[1]), int(match[2])
    return _axis_from(given, -1, old, new) + _axis_from(given, 1, old, new)


def _channels(given, match):
    shape, new = [int(n) for n in match[1].split(",")], int(match[2])
    old = shape[1] if len(shape) > 1 else shape[0]
    return _axis_from(given, 1, old, new) + _axis_from(given, -1, old, new)


def _running(given, match):
    old, new = int(match[1]), int(match[2])
    return _axis_from(given, 1, old, new) + _axis_from(given, -1, old, new)


def _normalized(given, match):
    wanted, shape = ([int(n) for n in match[i].split(",")] for i in (1, 2))
    found = []
    for k in range(1, len(wanted) + 1):
        if len(shape) >= k and shape[-k] != wanted[-k]:
            found += _axis_from(given, -k, shape[-k], wanted[-k])
            found += _axis_from(given, 1, shape[-k], wanted[-k])
    return found


def _ranked(given, match):
    """Another rank: of several that the error names, the largest first, which is the batched one."""
    found = []
    for rank in sorted(
        {int(n) for groups in re.findall(_RANK, match.string) for n in groups if n}, reverse=True
    ):

        def change(tensor, rank=rank):
            if tensor.dim() == rank or rank not in _RANKS:
                return tensor
            return drawn(_RANKS[rank], not tensor.is_floating_point())

        found += _changed(given, change) + _each_alone(given, change)
    return found


def _integers(given, match):
    def change(tensor):
        return drawn(tensor.shape[:2], True) if tensor.is_floating_point() else tensor

    return _each_alone(given, change) + _changed(given, change)


def _floats(given, match):
    def change(tensor):
        return tensor if tensor.is_floating_point() else drawn(tensor.shape)

    return _changed(given, change)


def _whole_chunks(given, match):
    old, chunk = int(match[1]), int(match[2])
    found = []
    for axis in (-1, 1, 2, 3):
        found += _axis_from(given, axis, old, chunk * max(1, round(old / chunk)))
    return found


def _with_sizes_swapped(given, text):
    """A size that the error names, in the place of another one that it names."""
    numbers = list(dict.fromkeys(int(n) for n in re.findall(r"(?<![\w.])\d{1,4}(?![\w.]\d)", text)))[:6]
    sizes = {n for v in (given.values() if isinstance(given, dict) else given) if isinstance(v, torch.Tensor)
             for n in v.shape[1:]}  # fmt: skip
    found = []
    for old in numbers:
        for new in numbers:
            if old in sizes and old != new and 1 <= new <= _MOST_SIZE:
                for axis in (-1, 1, 2, 3):
                    found += _axis_from(given, axis, old, new)[:1]
    return found[:8]


_LIST = r"\[([\d, ]+)\]"
_RANK = (
    r"values to unpack \(expected (\d)|\b([1-5])-?[dD]\b|expected (\d) dims|\b(\d)-dim"
    r"|([1-5]) dimensions|input to be ([1-5])"
)
_RULES = [
    (r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", _last_axis),
    (rf"expected input{_LIST} to have (\d+) channels", _channels),
    (rf"normalized_shape={_LIST}.*input of size{_LIST}", _normalized),
    (r"running_mean should contain (\d+) elements not (\d+)", _running),
    (_RANK, _ranked),
    (r"scalar types?:? Long|indices must be long|must be Long|expected scalar type (?:Long|Int)", _integers),
    (r"(?:Long|long int) != (?:Float|float)|not implemented for '(?:Long|Int)'|expected scalar type Float",
        _floats),
    (r"divide axis of length (\d+) in chunks of (\d+)", _whole_chunks),
]  # fmt: skip
