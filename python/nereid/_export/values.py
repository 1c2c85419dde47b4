"""Tensors as text: parameters, buffers and arguments that are made like those of a live module."""

import math

import torch

from .._structure import Unsupported

_FEW = 4096  # buffers of no more elements are written as they are


def _finite(tensor):
    values = tensor.detach().to("cpu", torch.float64).flatten()
    return values[torch.isfinite(values)]


def _strided(tensor, make):
    """Text of a tensor with the strides of `tensor`; `make(shape)` is text of a contiguous one."""
    shape, strides = tuple(tensor.shape), tensor.stride()
    if tensor.is_contiguous():
        return make(shape)
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if tensor.numel() else 0
    return f"{make((span,))}.as_strided({shape}, {tuple(strides)})"


def _number(value):
    return repr(value) if not isinstance(value, float) or math.isfinite(value) else f'float("{value}")'


def _literal(tensor):
    """Text with all values, on the default device."""
    flat = tensor.detach().to("cpu").contiguous().flatten()
    if flat.dtype.is_floating_point and flat.dtype not in (torch.float32, torch.float64):
        flat = flat.float()
    values = ", ".join(map(_number, flat.tolist()))
    text = f"torch.tensor([{values}], dtype={tensor.dtype}).reshape({tuple(tensor.shape)})"
    return text


def _pattern(tensor):
    """Text of common constant tensors: one value, a count along the last dimension, a triangle. Else None."""
    values = tensor.detach().to("cpu")
    shape = tuple(tensor.shape)
    first = values.flatten()[0].item()
    if bool((values == first).all()):
        return f"torch.full({shape}, {_number(first)}, dtype={tensor.dtype})"
    if (
        tensor.dtype in (torch.int64, torch.int32)
        and values.dim()
        and bool((values == torch.arange(shape[-1], dtype=tensor.dtype)).all())
    ):
        return f"torch.arange({shape[-1]}, dtype={tensor.dtype}).repeat({(*shape[:-1], 1)})"
    if values.dim() >= 2 and tensor.dtype is torch.bool:
        ones = torch.ones(shape, dtype=torch.bool)
        for text in ("tril", "triu"):
            if bool((values == getattr(ones, text)()).all()):
                return f"torch.ones({shape}, dtype=torch.bool).{text}()"
    return None


def state_text(tensor, kind):
    """Text that makes a parameter or buffer like this one."""
    if tensor.numel() == 0:
        return f"torch.empty({tuple(tensor.shape)}, dtype={tensor.dtype})"
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Unsupported(f"a {kind} of layout {tensor.layout}")
    dense = tensor.is_contiguous()
    if kind == "buffer" and dense:
        if (text := _pattern(tensor)) is not None and (not tensor.is_floating_point() or tensor.numel() == 1):
            return text
        if tensor.numel() <= _FEW and not tensor.is_complex():
            return _literal(tensor)
    if not tensor.is_floating_point() and not tensor.is_complex():
        if tensor.numel() <= 1 << 16:
            return (
                _literal(tensor)
                if dense
                else f"{_literal(tensor)}.as_strided({tuple(tensor.shape)}, {tensor.stride()})"
            )
    return _strided(tensor, lambda shape: _random(tensor, shape))


def _random(tensor, shape):
    """Text of random values like those of `tensor`."""
    dtype = tensor.dtype
    if dtype is torch.bool:
        share = tensor.detach().double().mean().item() if tensor.numel() else 0.5
        return f"(torch.rand({shape}) < {share:.6g})"
    if dtype.is_complex:
        return f"torch.randn({shape}, dtype={dtype})"
    if not dtype.is_floating_point:
        low, high = (int(tensor.min()), int(tensor.max())) if tensor.numel() else (0, 0)
        return (
            f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"
            if high > low
            else f"torch.full({shape}, {low}, dtype={dtype})"
        )
    values = _finite(tensor)
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    wide = dtype if dtype in (torch.float32, torch.float64) else None
    text = "torch.{}({}" + (", dtype=torch.float64)" if wide is torch.float64 else ")")
    if low >= 0 and high > low:
        made = f"{text.format('rand', shape)} * {high - low:.6g} + {low:.6g}"
    else:
        deviation, mean = (
            (float(values.std()) if len(values) > 1 else 0.0),
            (float(values.mean()) if len(values) else 0.0),
        )
        deviation = deviation if deviation > 0 else 0.1
        made = f"{text.format('randn', shape)} * {deviation:.6g} + {mean:.6g}"
    return f"({made})" if wide is not None else f"({made}).to({dtype})"


def input_text(tensor):
    """Text that draws an argument like this one."""
    if tensor.numel() == 0:
        return f"torch.empty({tuple(tensor.shape)}, dtype={tensor.dtype})"
    whole = not tensor.is_floating_point() and not tensor.is_complex()
    if whole and tensor.is_contiguous() and (text := _pattern(tensor)) is not None:
        return text
    if tensor.is_floating_point() and bool((tensor == tensor.flatten()[0]).all()):
        value = float(tensor.flatten()[0])
        like = "torch.randn" if value <= 0 or not math.isfinite(value) else f"{value:.6g} * torch.rand"
        cast = "" if tensor.dtype is torch.float32 else f".to({tensor.dtype})"
        return _strided(tensor, lambda shape: f"({like}({shape})){cast}")
    return _strided(tensor, lambda shape: _random(tensor, shape))
