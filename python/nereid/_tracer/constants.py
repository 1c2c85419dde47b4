"""Tensors made from Python's and numpy's data: the data goes into the trace as constants."""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from . import tracing

MAX_NESTING = 64


def _plain(data, depth=0):
    """Nested data without tensors in it: scalars that are tensors are read."""
    if isinstance(data, torch.Tensor):
        if isinstance(data, FakeTensor):
            return (
                tracing.recorder().known.tensor(data, "`torch.tensor`").tolist()
                if data.dim()
                else data.item()
            )
        return data
    if isinstance(data, (list, tuple)) and depth < MAX_NESTING:
        return [_plain(item, depth + 1) for item in data]
    return data


def _holds_tensor(data, depth=0):
    if isinstance(data, torch.Tensor):
        return True
    if isinstance(data, (list, tuple)) and depth < MAX_NESTING:
        return any(_holds_tensor(item, depth + 1) for item in data[:4096])
    return False


def _target(device):
    if device is None:
        return default_device()
    return torch.device("cuda" if isinstance(device, int) else device)


def default_device():
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    device = context.device if context is not None else torch.device("cuda")
    for mode in _function_modes():
        if isinstance(mode, torch.utils._device.DeviceContext):
            device = mode.device
    return device


def _function_modes():
    from torch.overrides import _get_current_function_mode_stack

    return _get_current_function_mode_stack()


def _from_data(original):
    def make(data, *args, dtype=None, device=None, requires_grad=False, pin_memory=False, **kwargs):
        recorder = tracing.recorder()
        if isinstance(data, torch.Tensor):
            if original.__name__ == "tensor":
                out = data.detach().clone()
                out = out.to(device=device, dtype=dtype) if device is not None or dtype is not None else out
            else:
                out = data.to(device=device, dtype=dtype) if device is not None or dtype is not None else data
            return out.requires_grad_() if requires_grad else out
        if recorder is None:
            return original(data, *args, dtype=dtype, device=device, **kwargs)
        if _holds_tensor(data):
            data = _plain(data)
        device = _target(device)
        if device.type == "meta":
            return original(data, *args, dtype=dtype, device=device, requires_grad=requires_grad, **kwargs)
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch._C._DisableFuncTorch():
            real = original(data, *args, dtype=dtype, device="cpu", **kwargs)
        fake = recorder.constant(real, device)
        return fake.requires_grad_() if requires_grad else fake

    make.__name__, make.__doc__ = original.__name__, original.__doc__
    return make


def _from_memory(original):
    """from_numpy and frombuffer: the tensor would share memory with what it is made from; here it has a
    copy."""

    def make(*args, **kwargs):
        recorder = tracing.recorder()
        if recorder is None:
            return original(*args, **kwargs)
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch._C._DisableFuncTorch():
            real = original(*args, **kwargs)
        return recorder.constant(real, "cpu")

    make.__name__ = original.__name__
    return make


def _new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    return torch.tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


def _new(self, *args, device=None):
    """Tensor.new(sizes) and Tensor.new(data)."""
    return _as_tensor_legacy(self.dtype, device or self.device)(*args) if args else self.new_empty(0)


def _as_tensor_legacy(dtype, device):
    """torch.FloatTensor, torch.cuda.LongTensor and their kin: called with sizes or with data."""

    def make(*args, **kwargs):
        if len(args) == 1 and not isinstance(args[0], int):
            if isinstance(args[0], torch.Size):
                return torch.empty(args[0], dtype=dtype, device=device)
            return torch.tensor(args[0], dtype=dtype, device=device)
        return torch.empty(args, dtype=dtype, device=device)

    return make


_LEGACY = {
    "Float": torch.float32, "Double": torch.float64, "Half": torch.float16, "BFloat16": torch.bfloat16,
    "Long": torch.int64,
    "Int": torch.int32, "Short": torch.int16, "Char": torch.int8, "Byte": torch.uint8, "Bool": torch.bool,
}  # fmt: skip


class _LegacyType(type):
    """Stands for torch.FloatTensor and its kin: callable, and usable in isinstance."""

    def __call__(cls, *args, **kwargs):
        return cls.make(*args, **kwargs)

    def __instancecheck__(cls, instance):
        return isinstance(instance, torch.Tensor) and instance.dtype == cls.dtype


def _tensor_new(cls, *args, **kwargs):
    """torch.Tensor(...): sizes, or data."""
    if cls is torch.Tensor and tracing.recorder() is not None:
        dtype = torch.get_default_dtype()
        if not args:
            return torch.empty(0, dtype=dtype)
        if isinstance(args[0], torch.Tensor):
            return args[0].detach() if len(args) == 1 else args[0]
        if len(args) == 1 and not isinstance(args[0], int):
            return (
                torch.empty(args[0], dtype=dtype)
                if isinstance(args[0], torch.Size)
                else torch.tensor(args[0], dtype=dtype)
            )
        return torch.empty(args, dtype=dtype)
    return _original_tensor_new(cls, *args, **kwargs)


_original_tensor_new = torch._C.TensorBase.__new__


def install():
    for name in ("tensor", "as_tensor", "asarray"):
        setattr(torch, name, _from_data(getattr(torch, name)))
    for name in ("from_numpy", "frombuffer"):
        setattr(torch, name, _from_memory(getattr(torch, name)))
    torch.scalar_tensor = _from_data_scalar
    FakeTensor.new = _new
    torch.Tensor.new_tensor = FakeTensor.new_tensor = _new_tensor
    for name, dtype in _LEGACY.items():
        for module, device in ((torch, "cpu"), (torch.cuda, "cuda")):
            legacy = _LegacyType(
                f"{name}Tensor", (), {"dtype": dtype, "make": staticmethod(_as_tensor_legacy(dtype, device))}
            )
            setattr(module, f"{name}Tensor", legacy)
    torch.Tensor.__new__ = staticmethod(_tensor_new)


def _from_data_scalar(value, *, dtype=None, device=None, **kwargs):
    return torch.tensor(value, dtype=dtype or torch.get_default_dtype(), device=device)
