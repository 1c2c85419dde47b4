"""Verified kernels as an operator of PyTorch, which torch.export, and what compiles its programs, sees.

`torch.ops.nereid.kernels_HASH(inputs, state)` launches the kernels of a plan. On a GPU it is a triton_op:
Inductor and AOTInductor compile its kernels. In Triton's interpreter it is a custom operator.
"""

import hashlib
import os
import threading
import types

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .. import _export, _structure
from .kernels import answer_of, load
from .tensors import no_device, same_layout, state_of

_made: dict = {}  # by the hash of a plan's source
_lock = threading.RLock()


def holds(fast):
    """Whether the kernels of what `optimize` returned can be one operator without side effects."""
    settings, plan = fast._nereid_settings, fast._nereid_plan
    if settings is None or not settings.operators or plan.source is None or not plan.valid:
        return False
    exported, watched = plan.exported, fast._nereid_watched
    special = exported.written or exported.mutates_inputs or exported.constants or exported.leading
    return not special and bool(exported.metas) and watched.unknown is None and fast._nereid_failed is None


def answer(fast, args, kwargs):
    """Forward's answer while torch.export traces it: the operator's where the kernels hold."""
    plan, original = fast._nereid_plan, fast._nereid_original
    tensors: list = []
    try:
        structure = _structure.flatten(fast._nereid_call.bind(args, kwargs), tensors)
    except (TypeError, _structure.Unsupported):
        return original.forward(*args, **kwargs)
    held = {id(state_of(original, name)): name for name in reversed(plan.exported.state)}
    names = list(reversed(held.values()))  # of tied ones the first
    state = [state_of(original, name) for name in names]
    wanted = [*plan.tensors, *(fast._nereid_state[name] for name in names)]
    if (
        _structure.differs("arguments", plan.exported.inputs, structure) is not None
        or not all(held is not None and _fixed(held, want) for held, want in zip([*tensors, *state], wanted))
        or any(state_of(original, a) is not state_of(original, b) for a, b in fast._nereid_ties)
        or any(tensors[i].device.type == "cpu" for i, _ in plan.ranges)  # values are not known here
        or no_device(tensors, fast._nereid_state) is not None
        or (torch.is_grad_enabled() and any(t.requires_grad for t in (*tensors, *original.parameters())))
        or _export.autocast_of(tensors) != plan.autocast
        or torch.get_default_dtype() != plan.dtype
        or torch.nn.modules.module._has_any_global_hook()
        or fast._nereid_watched.differs() is not None
    ):
        return original.forward(*args, **kwargs)
    given = [
        t.contiguous() if copied else t
        for t, used, copied in zip(tensors, plan.exported.used, plan.exported.copied)
        if used
    ]
    results = _operator(plan, names, given, fast._nereid_state)(given, state)
    return answer_of(plan.exported, results, tensors, original)


def _fixed(tensor, want):
    """Whether a tensor has the sizes that were verified, and no symbolic ones."""
    sizes = (*tensor.shape, *tensor.stride()) if tensor.layout is torch.strided else (None,)
    return all(isinstance(n, int) for n in sizes) and same_layout(tensor, want)


def _operator(plan, names, given, state):
    key = hashlib.sha256(plan.source.encode()).hexdigest()[:16]
    with _lock:
        if key not in _made:
            layouts = [(t.dtype, tuple(t.shape), t.stride()) for t in given]
            with _disable_current_modes():  # a trace is under way, and this is no part of it
                _made[key] = _make(key, plan, names, layouts, [state[name] for name in names])
        return _made[key]


def _make(key, plan, names, layouts, state_layouts):
    loaded, module = load(plan.source)
    interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    inner = type(module).forward
    inner = getattr(inner, "__wrapped__", inner)  # without the guard, which is done here
    space = vars(loaded) if interpreted else {**vars(loaded), **_traceable(loaded)}
    forward = types.FunctionType(inner.__code__, space, "forward", inner.__defaults__, inner.__closure__)
    module.forward = types.MethodType(forward, module)
    ours, metas = [plan.exported.state_names[name] for name in names], plan.exported.metas

    def kernels(inputs: list[torch.Tensor], state: list[torch.Tensor]) -> list[torch.Tensor]:
        inputs = [_with_strides(t, want) for t, want in zip(inputs, layouts, strict=True)]
        state = [_with_strides(t, want) for t, want in zip(state, state_layouts, strict=True)]
        with _lock:  # functional_call replaces parameters for a moment
            made = torch.func.functional_call(module, dict(zip(ours, state)), tuple(inputs))
        made = [made] if plan.exported.computed == 1 else list(made)
        return [_with_strides(t, want) for t, want in zip(made, metas, strict=True)]

    define = torch.library.custom_op if interpreted else torch.library.triton_op
    operator = define(f"nereid::kernels_{key}", kernels, mutates_args=())

    @operator.register_fake
    def _(inputs, state):
        device = (inputs or state)[0].device
        return [
            torch.empty_strided(shape, stride, dtype=dtype, device=device) for dtype, shape, stride in metas
        ]

    return operator


def _traceable(loaded):
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    kinds = (JITFunction, Autotuner)
    return {n: torch.library.wrap_triton(k) for n, k in vars(loaded).items() if isinstance(k, kinds)}


def _with_strides(tensor, want):
    """The tensor, with the strides that kernels were written for."""
    dtype, shape, stride, *_ = want
    if tensor.dtype != dtype or tuple(tensor.shape) != tuple(shape):
        raise ValueError(
            f"expected a {dtype} tensor of shape {shape}, got {tensor.dtype} {tuple(tensor.shape)}"
        )
    if all(n == 1 or a == b for n, a, b in zip(shape, tensor.stride(), stride)):
        return tensor
    return torch.empty_strided(shape, stride, dtype=dtype, device=tensor.device).copy_(tensor)
