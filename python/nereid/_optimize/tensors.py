"""What a call's tensors, and the state of PyTorch around it, must be like."""

import os

import torch

from .. import _export, _structure


def meta_of(tensor):
    return (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.device.type)


def special(what, tensor):
    """Why a tensor is no plain one; None where it is."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        return f"{what}: expected a plain tensor, got a {type(tensor).__name__}"
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return f"{what}: expected a strided tensor, got one of layout {tensor.layout}, or a lazy conjugate"
    return None


def aliases_of(tensors):
    """Of each tensor the first one whose memory it shares."""
    if len(tensors) < 2:
        return (0,) * len(tensors)
    first = {}
    return tuple(first.setdefault(tensor.untyped_storage()._cdata, i) for i, tensor in enumerate(tensors))


def held_by(part, name):
    """A module's own parameter or buffer; None where there is none."""
    held = part._parameters.get(name)
    return part._buffers.get(name) if held is None else held


def state_of(module, name):
    """A parameter or buffer by its name; None where there is none."""
    path, _, last = name.rpartition(".")
    part = module.get_submodule(path)
    return part._parameters.get(last) if last in part._parameters else part._buffers.get(last)


def alike(one, other):
    """Whether the tensors of two answers are the same but for rounding."""
    found = [], []
    for answer, tensors in zip((one, other), found):
        _structure.flatten(answer, tensors)
    for a, b in zip(*found):
        if a.shape != b.shape:
            return False
        wide = torch.complex128 if a.is_complex() or b.is_complex() else torch.float64
        a, b = a.detach().to(wide).nan_to_num(), b.detach().to(wide).nan_to_num()
        if (a - b).norm() > 0.05 * (1e-6 + b.norm()):
            return False
    return len(found[0]) == len(found[1])


def same_layout(tensor, want):
    if tensor.dtype is not want[0] or tensor.shape != want[1] or tensor.device.type != want[3]:
        return False
    strides = tensor.stride()
    return strides == want[2] or all(size == 1 or a == b for size, a, b in zip(want[1], strides, want[2]))


def tensors_differ(plan, tensors):
    """What of a call's tensors is another than the plan holds for, as a sentence; None where all is the
    same."""
    leading = plan.exported.leading
    batch = (
        next((t.shape[0] for t, is_batch in zip(tensors, leading) if is_batch and t.dim() > 0), None)
        if leading
        else None
    )
    for i, (tensor, want) in enumerate(zip(tensors, plan.tensors)):
        if (why := special(f"tensor {i} of the arguments", tensor)) is not None:
            return why
        if leading and leading[i]:
            same = (tensor.dtype, tensor.shape[1:], tensor.device.type) == (want[0], want[1][1:], want[3])
            same = same and tensor.shape[0] == batch and tensor.is_contiguous()
        else:
            same = same_layout(tensor, want)
        if not same:
            return (
                f"argument tensor {i}: expected {text_of(want, bool(leading) and leading[i])}, got "
                f"{text_of(meta_of(tensor))}"
            )
    if len(tensors) > 1 and aliases_of(tensors) != plan.aliases:
        return "arguments: expected tensors that share memory as in the example, got others"
    for i, bounds in plan.ranges:
        if tensors[i].device.type == "cpu" and (got := range_of(tensors[i])) is not None:
            if got[0] < bounds[0] or got[1] > bounds[1]:
                return (
                    f"argument tensor {i}: expected integers from {bounds[0]} to {bounds[1]}, as in the "
                    f"example, got some from {got[0]} to {got[1]}"
                )
    return None


def text_of(meta, any_batch=False):
    shape = str(tuple(meta[1])) if not any_batch else f"(batch, {', '.join(map(str, meta[1][1:]))})"
    return (
        f"a {str(meta[0]).removeprefix('torch.')} tensor of shape {shape} and strides {tuple(meta[2])} on"
        f" {meta[3]}"
    )


def transformed():
    """Why a call is no plain one; None where it is. Wrapped tensors have no memory of their own."""
    if (
        torch._C._len_torch_dispatch_stack()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
        or torch._C._get_tracing_state() is not None
    ):
        return (
            "expected a plain call, got one under a torch dispatch mode, a function transform, forward-mode"
            " gradients or torch.jit.trace"
        )
    return None


def context_differs(plan, tensors, parts):
    """`parts` are all modules of the module."""
    if torch.is_grad_enabled() and (
        any(t.requires_grad for t in tensors)
        or any(p is not None and p.requires_grad for part in parts for p in part._parameters.values())
    ):
        return (
            "expected a call without gradients (torch.no_grad(), torch.inference_mode() or"
            " requires_grad_(False)), got one where an argument or a parameter requires a gradient"
        )
    if _export.autocast_of(tensors) != plan.autocast:
        return (
            f"autocast: expected {dict(plan.autocast) or 'none'}, got"
            f" {dict(_export.autocast_of(tensors)) or 'none'}"
        )
    if torch.get_default_dtype() != plan.dtype:
        return f"default dtype: expected {plan.dtype}, got {torch.get_default_dtype()}"
    if function_modes() != plan.modes:
        return (
            f"expected a call under the torch function modes {list(plan.modes)}, got {list(function_modes())}"
        )
    if torch.nn.modules.module._has_any_global_hook():
        return "expected no global module hooks, got some"
    return None


def function_modes():
    """The torch function modes around the call; torch.set_default_device is one."""
    count = torch._C._len_torch_function_stack()
    return tuple(_mode_text(torch._C._get_function_stack_at(i)) for i in range(count)) if count else ()


def _mode_text(mode):
    return f"{type(mode).__name__}({getattr(mode, 'device', '')})"


def range_of(tensor):
    """The least and the largest value of a tensor of integers; None for others and for none."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool or not tensor.numel():
        return None
    if tensor.device.type == "meta":
        return None
    least, largest = tensor.aminmax()
    return int(least), int(largest)


def ties_of(names):
    """(name, first name) of parameters and buffers that are the same object as an earlier one."""
    first = {}
    return [
        (name, first[id(value)]) for name, value in names.items() if first.setdefault(id(value), name) != name
    ]


def view_of(tensor, size, stride, offset):
    """A view, by its place in the tensor's memory."""
    return tensor.as_strided(size, stride, tensor.storage_offset() + offset)


def no_device(tensors, state):
    kinds = {tensor.device.type for tensor in tensors} | {meta[3] for meta in state.values()}
    if kinds == {"cuda"} or (kinds <= {"cuda", "cpu"} and os.environ.get("TRITON_INTERPRET") == "1"):
        return None
    return f"the kernels need a CUDA device, got tensors on {', '.join(sorted(kinds))}"
