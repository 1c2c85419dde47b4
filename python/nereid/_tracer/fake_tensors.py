"""FakeTensor as the tracer needs it: addresses, values that are known, `.data =`, CPU fallbacks, other
threads."""

import numpy
import torch
import torch.utils.dlpack
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor

from . import tracing
from .._task.errors import Untraceable
from .operators import ADVICE

MAX_FALLBACK_BYTES = 256 << 20
_pointers = None


def set_pointers(pointers):
    global _pointers
    _pointers = pointers


def _data_ptr(self):
    return _pointers.address(self)


def _tolist(self):
    return tracing.recorder().known.tensor(self, "`tolist`").tolist()


def _known_array(tensor, what):
    real = tracing.recorder().known.tensor(tensor, what)
    with torch.utils._python_dispatch._disable_current_modes():  # a mode would give the memory of a fake
        return real.numpy()


def _numpy(self, *args, **kwargs):
    return _known_array(self, "`numpy`")


def _array(self, dtype=None):
    array = _known_array(self, "conversion to a numpy array")
    return array if dtype is None else array.astype(dtype)


def _dlpack(self, *args, **kwargs):
    raise Untraceable("DLPack: a tensor given to another library")


_tensor_data = torch.Tensor.data


def _get_data(self):
    return _tensor_data.__get__(self)


def _set_data(self, value):
    value = tracing.recorder().adopt(value) if not isinstance(value, FakeTensor) else value
    _tensor_data.__set__(self, value)
    self.fake_device = value.fake_device


def _pin_memory(self, *args, **kwargs):
    return self


def _record_stream(self, stream):
    return None


def _deepcopy(self, memo):
    """A copy as `Tensor.__deepcopy__` makes it, through operators that are recorded."""
    if id(self) in memo:
        return memo[id(self)]
    with torch.no_grad():
        flat = torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device=self.device)
        flat.copy_(self)
    if getattr(self, "_is_param", False):
        flat = torch.nn.Parameter(flat, requires_grad=self.requires_grad)
    elif self.requires_grad and self.is_leaf:
        flat.requires_grad_()
    memo[id(self)] = flat
    return flat


_fake_dispatch = FakeTensor.__torch_dispatch__.__func__


def _dispatch(cls, func, types, args=(), kwargs=None):
    """A fake tensor's own dispatch: reached where no mode is active, as in an unprepared thread. Nothing may
    be lost."""
    recorder = tracing.recorder()
    if (
        recorder is not None
        and not recorder.busy()
        and torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is None
    ):
        with recorder.fake_mode:
            return recorder.__torch_dispatch__(func, types, args, kwargs)
    return _fake_dispatch(cls, func, types, args, kwargs or {})


def _run_fallback(fake_mode, func, flat_args, args_spec, original):
    """Operators without a shape function run on zeros on the CPU, whatever device their tensors are on."""
    from torch.utils._pytree import tree_map, tree_unflatten

    total = sum(t.numel() * t.element_size() for t in flat_args if isinstance(t, torch.Tensor))
    if total > MAX_FALLBACK_BYTES:
        raise Untraceable(
            f"{func} has no shape function, and its arguments are too large to find the shape by running it"
        )
    device, real_of = None, {}

    def real(x):
        nonlocal device
        if isinstance(x, torch.device):
            return torch.device("cpu")
        if isinstance(x, FakeTensor):
            if device is None or x.dim() > 0:
                device = x.fake_device
            out = torch.zeros(x.shape, dtype=x.dtype, device="cpu")
            if x.layout is torch.strided and not x.is_contiguous():
                out = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="cpu").zero_()
            real_of[id(out)] = (out, x)
            return out
        return x

    with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
        args, kwargs = tree_unflatten([real(x) for x in flat_args], args_spec)
        result = func(*args, **kwargs)

    def fake(x):
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) in real_of:
            return real_of[id(x)][1]
        return tracing.recorder().new_fake(x.shape, x.stride(), x.dtype, device or "cuda")

    return tree_map(fake, result)


def _repr(self, **kwargs):
    return f"tensor(..., device='{self.fake_device}', size={tuple(self.shape)}, dtype={self.dtype})"


_getitem, _setitem = torch.Tensor.__getitem__, torch.Tensor.__setitem__


def _getitem_by_numbers(self, index):
    return _getitem(self, _with_tensors(index, self.fake_device))


def _setitem_by_numbers(self, index, value):
    return _setitem(self, _with_tensors(index, self.fake_device), value)


def _with_tensors(index, device):
    """An index with tensors in place of lists and arrays: PyTorch itself would make them on a real device."""
    if tracing.recorder() is None:
        return index
    if type(index) is tuple:
        if any(type(item) in (list, range, numpy.ndarray) for item in index):
            return tuple(_with_tensors(item, device) for item in index)
        return index
    if type(index) is range:
        index = list(index)
    if type(index) is numpy.ndarray and index.dtype.kind in "biu":
        return torch.tensor(index if index.dtype.kind == "b" else index.astype(numpy.int64), device=device)
    if type(index) is list and _all_numbers(index):
        return (
            torch.tensor(index, device=device)
            if index
            else torch.tensor([], dtype=torch.int64, device=device)
        )
    return index


def _all_numbers(items):
    return all(type(item) in (int, bool) or type(item) is list and _all_numbers(item) for item in items)


def _as_subclass(self, cls):
    if isinstance(self, cls):
        return self
    raise Untraceable(
        f"a tensor as the subclass {cls.__name__} cannot be traced: keep a plain tensor, and separately what"
        f" {cls.__name__} adds"
    )


def _rename(self, *names, **named):
    if names == (None,) and not named:
        return self
    raise Untraceable(f"named tensors cannot be traced: {ADVICE['named']}")


def install():
    fake_tensor.init_gpu_context = lambda *args, **kwargs: None
    fake_tensor.run_fallback_kernel = _run_fallback
    FakeTensor.__repr__ = FakeTensor.__str__ = _repr
    FakeTensor.as_subclass = _as_subclass
    for name in ("rename", "rename_", "refine_names", "align_to", "align_as"):
        setattr(FakeTensor, name, _rename)
    FakeTensor.data_ptr = _data_ptr
    FakeTensor.tolist = _tolist
    FakeTensor.numpy = _numpy
    FakeTensor.__array__ = _array
    FakeTensor.__dlpack__ = FakeTensor.__dlpack_device__ = _dlpack
    torch.utils.dlpack.to_dlpack = torch.to_dlpack = _dlpack
    FakeTensor.data = property(_get_data, _set_data)
    FakeTensor.pin_memory = _pin_memory
    FakeTensor.__getitem__, FakeTensor.__setitem__ = _getitem_by_numbers, _setitem_by_numbers
    FakeTensor.record_stream = _record_stream
    FakeTensor.__deepcopy__ = _deepcopy
    FakeTensor.__torch_dispatch__ = classmethod(_dispatch)
    _install_module_conversion()


def _module_apply(self, fn, recurse=True):
    """nn.Module._apply: parameters change by `.data =`, as real ones do, so that they stay the same objects;
    it would swap fake ones."""
    if recurse:
        for module in self.children():
            module._apply(fn)
    for parameter in self._parameters.values():
        if parameter is None:
            continue
        with torch.no_grad():
            applied = fn(parameter)
        if applied is not parameter:
            parameter.data = applied
        if parameter.grad is not None:
            with torch.no_grad():
                parameter.grad.data = fn(parameter.grad)
    for name, buffer in self._buffers.items():
        if buffer is not None:
            self._buffers[name] = fn(buffer)
    return self


def _install_module_conversion():
    torch.nn.Module._apply = _module_apply
