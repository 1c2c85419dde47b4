"""The check before a call in native code, from what a call that passed the check in Python looked like.

`src/nereid/python/call_guard.h` compares. It passes no call that the check in Python (`module.py`) would not
pass; what it does not pass is checked there, and may be added here: objects that are equal but not the same,
another form of call.
"""

import enum
import os
import types

import torch

from .. import _export, _native
from .tensors import function_modes
from .watched import Watched

_MOST_FORMS = 16
_PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)
_SAME = (
    type(None), bool, torch.dtype, torch.layout, torch.memory_format, enum.Enum, type,
    types.FunctionType, types.BuiltinFunctionType,
)  # fmt: skip
_EQUAL = (int, str, bytes, torch.device)


class Unknown(Exception):
    """What the native check does not know."""


class Checked:
    """The native check of one Optimized."""

    def __init__(self):
        self.matched = None  # of a call's args and kwargs the tensors, or None; None while there is no check
        self.run = None  # of a call's args and kwargs the answer, or prepared.AGAIN; None while there is none
        self.runner = None  # whose it is
        self._guard = None
        self._misses = 0

    def take(self, runner):
        """Later calls that pass the check are run by this PlanRunner."""
        self.runner = runner
        self._follow()

    def _follow(self):
        if self.runner is not None:
            self.runner.follow(self._guard)
        self.run = self.runner.run if self.runner is not None and self._guard is not None else None

    def missed(self, fast, args, kwargs, tensors):
        """After the check in Python has passed a call that the native one did not: learns it. Less and less
        often where that does not help."""
        self._misses += 1
        if self._misses > 32 and self._misses & (self._misses - 1):
            return
        try:
            self._learn(fast, args, kwargs, tensors)
        except Unknown:
            return
        # What it has learned is what was checked, also where another thread changes the module meanwhile.
        if fast._nereid_differs(args, kwargs)[0] is not None:
            self.forget()

    def forget(self):
        self.matched = self._guard = None
        self._follow()

    def _learn(self, fast, args, kwargs, tensors):
        native = _native.extension()
        compare = getattr(getattr(torch._C, "_dynamo", None), "guards", None)
        if native is None or not hasattr(compare, "TensorGuards"):
            raise Unknown
        lists, state = lists_of(fast, tensors)
        form = form_of(fast, args, kwargs, tensors, state, compare.TensorGuards)
        guard = self._guard
        if guard is None or not guard.unchanged():
            guard = native.CallGuard(lists)
        elif guard.forms >= _MOST_FORMS:
            return
        guard.add(form)
        self._guard, self.matched = guard, guard.matched
        self._follow()


def lists_of(fast, tensors):
    """(what CallGuard takes, the tensors of the module that it compares)."""
    plan, watched = fast._nereid_plan, watched_now(fast)
    exported = plan.exported
    if exported.written or exported.mutates_inputs:
        raise Unknown
    if any(tensors[i].device.type == "cpu" for i, _ in plan.ranges):
        raise Unknown
    lists = watched.lists()
    places, absent = _places(fast)
    held = [(part, last) for part, last in places.values()]
    state = [mapping[key] for mapping, key in held]
    if not all(type(mapping) is dict for mapping, _ in held) or any(tensor is None for tensor in state):
        raise Unknown
    kinds = {tensor.device.type for tensor in (*tensors, *state)}
    lists["state"], lists["absent"] = held, absent
    _surroundings(lists, plan, tensors, interpreted=kinds != {"cuda"})
    lists["functions"] = [torch.is_grad_enabled, torch.Tensor.untyped_storage]
    return lists, state


def watched_now(fast):
    """What fast watches, with containers that are equal to those that it watched in their places."""
    watched = fast._nereid_watched
    if not watched.replaced():
        return watched
    again = Watched(fast._nereid_original)
    if again.unknown is not None or again.outside != watched.outside or watched.differs() is not None:
        raise Unknown
    fast.__dict__["_nereid_watched"] = again
    return again


def _places(fast):
    """By name the dictionary and the key of each tensor of the module that a call depends on: its state, what
    is tied, and all parameters, which may require gradients. And the places that must hold none."""
    original, places, absent = fast._nereid_original, {}, []
    names = [name for name, *_ in fast._nereid_places]
    names += [name for pair in fast._nereid_ties for name in pair]
    names += [name for name, _ in original.named_parameters(remove_duplicate=False)]
    for name in dict.fromkeys(names):
        path, _, last = name.rpartition(".")
        part = original.get_submodule(path)
        if part._parameters.get(last) is not None:
            places[name] = (part._parameters, last)
        elif last in part._buffers:
            places[name] = (part._buffers, last)
            absent.append((part._parameters, last))
        else:
            raise Unknown
    return places, absent


def _surroundings(lists, plan, tensors, interpreted):
    """As `tensors.transformed`, `context_differs` and `no_device` do."""
    forward_ad = vars(torch.autograd.forward_ad)
    lists["entries"].append((forward_ad, "_current_level", forward_ad["_current_level"]))
    lists["answers"].append((torch.get_default_dtype, (), plan.dtype))
    refusals = [
        torch._C._len_torch_dispatch_stack,
        torch._C._functorch.peek_interpreter_stack,
        torch._C._get_tracing_state,
        torch.nn.modules.module._has_any_global_hook,
    ]
    if plan.autocast or not hasattr(torch._C, "_is_any_autocast_enabled"):
        places = [types.SimpleNamespace(device=tensor.device) for tensor in tensors]
        lists["answers"].append((_export.autocast_of, (places,), plan.autocast))
    else:
        refusals.append(torch._C._is_any_autocast_enabled)
    if plan.modes:
        lists["answers"].append((function_modes, (), plan.modes))
    else:
        refusals.append(torch._C._len_torch_function_stack)
    if interpreted:
        lists["answers"].append((_interpreted, (), True))
    lists["refusals"] = refusals


def _interpreted():
    return os.environ.get("TRITON_INTERPRET") == "1"


# -- a form of call ------------------------------------------------------------------------------------------


def form_of(fast, args, kwargs, tensors, state, guards):
    """What CallGuard.add takes."""
    leaves = []
    patterns = [pattern_of(args, leaves), pattern_of(kwargs, leaves)]
    order = order_of(leaves, tensors, fast._nereid_call, kwargs)
    patterns = [_indexed(pattern, order) for pattern in patterns]
    firsts = {}
    same = tuple(firsts.setdefault(id(t), i) for i, t in enumerate((*tensors, *state)))
    once = list({id(t): t for t in (*tensors, *state)}.values())  # torch compares no object twice
    sizes, strides = [list(t.shape) for t in once], [list(t.stride()) for t in once]
    check = guards(*once, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check if once else _alike
    gradients = any(tensor.requires_grad for tensor in once)
    return (*patterns, len(tensors), same, check, fast._nereid_plan.aliases, gradients)


def _alike():
    return True


def pattern_of(value, leaves):
    """A pattern as call_guard.cpp reads them; tensors are appended to `leaves`, by whose indices they go."""
    kind = type(value)
    if kind in _PLAIN_TENSORS:
        leaves.append(value)
        return "tensor", kind, len(leaves) - 1
    if isinstance(value, _SAME):
        return "same", value
    if kind in _EQUAL or (kind is float and value == value and value != 0):
        return "equal", value
    if kind in (float, complex):  # a zero equals a negative zero
        return "same", value
    if kind in (tuple, list):
        return kind.__name__, tuple(pattern_of(item, leaves) for item in value)
    if kind is dict and all(type(key) is str for key in value):
        return "dict", tuple(value), tuple(pattern_of(item, leaves) for item in value.values())
    raise Unknown


def order_of(leaves, tensors, call, kwargs):
    """Of each leaf its index among the call's tensors, which go by forward's signature."""
    if len(leaves) != len(tensors):
        raise Unknown
    if len({id(leaf) for leaf in leaves}) == len(leaves):
        index = {id(tensor): i for i, tensor in enumerate(tensors)}
        if index.keys() != {id(leaf) for leaf in leaves}:
            raise Unknown
        return [index[id(leaf)] for leaf in leaves]
    # A tensor that is given twice: which is which is known where arguments go in forward's order.
    names = [name for name in call.signature.parameters if name in kwargs]
    if names != list(kwargs) or any(a is not b for a, b in zip(leaves, tensors)):
        raise Unknown
    return range(len(leaves))


def _indexed(pattern, order):
    kind, *held = pattern
    if kind == "tensor":
        return kind, held[0], order[held[1]]
    if kind in ("tuple", "list", "dict"):
        return kind, *held[:-1], tuple(_indexed(item, order) for item in held[-1])
    return pattern
