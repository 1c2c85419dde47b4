"""Layers of PyTorch's own whose Python asks for data or for a tensor's class: here they do the same work
without asking."""

import torch
from torch.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss
from torch.nn.modules.transformer import TransformerEncoder
from torch.nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from torch.nn.utils import parametrizations
from torch._subclasses.fake_tensor import FakeTensor

from . import tracing

# -- lazy layers: a parameter without a shape is of a subclass, and a fake tensor has a class already


class _UninitializedFakeParameter(FakeTensor, UninitializedParameter):
    cls_to_become = FakeTensor
    shape = torch._C.TensorBase.shape


class _UninitializedFakeBuffer(FakeTensor, UninitializedBuffer):
    cls_to_become = FakeTensor
    shape = torch._C.TensorBase.shape


def _new_parameter(cls, requires_grad=True, device=None, dtype=None):
    if tracing.recorder() is None:
        return _parameter_new(cls, requires_grad, device, dtype)
    empty = Parameter(torch.empty(0, device=device, dtype=dtype), requires_grad)
    empty.__class__ = _UninitializedFakeParameter
    return empty


def _new_buffer(cls, requires_grad=False, device=None, dtype=None, persistent=True):
    if tracing.recorder() is None:
        return _buffer_new(cls, requires_grad, device, dtype, persistent)
    empty = torch.empty(0, device=device, dtype=dtype)
    empty.persistent = persistent
    empty.__class__ = _UninitializedFakeBuffer
    return empty


_parameter_new, _buffer_new = UninitializedParameter.__new__, UninitializedBuffer.__new__


def is_uninitialized(tensor):
    return isinstance(tensor, (_UninitializedFakeParameter, _UninitializedFakeBuffer))


# -- TransformerEncoder: in evaluation, with padded sequences, it works on nested tensors, of which a trace
# cannot say


def _takes_nested_path(encoder, src, mask, padding):
    """As TransformerEncoder.forward decides it."""
    first = encoder.layers[0]
    usual = (torch.backends.mha.get_fastpath_enabled() and getattr(encoder, "use_nested_tensor",
             False) and not first.training
             and src.dim() == 3 and padding is not None and mask is None
              and not torch.is_autocast_enabled() and not torch.is_grad_enabled())  # fmt: skip
    return usual and (not getattr(encoder, "mask_check", True) or _is_left_aligned(padding))


def _is_left_aligned(padding):
    """Whether every sequence's elements come before its padding: then a nested tensor holds them."""
    padded = tracing.recorder().known.tensor(padding, "TransformerEncoder's check of its padding mask")
    padded = padded if padded.dtype == torch.bool else padded != 0
    return bool((padded[:, 1:] >= padded[:, :-1]).all())


def _encoder_forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
    """The layers on padded tensors under their mask, then zeros in the padding: what unpacking a nested
    tensor leaves there."""
    if tracing.recorder() is None or not _takes_nested_path(self, src, mask, src_key_padding_mask):
        return _forward_padded(self, src, mask, src_key_padding_mask, is_causal)
    norm, self.norm = self.norm, None
    try:
        output = _forward_padded(self, src, mask, src_key_padding_mask, is_causal)
    finally:
        self.norm = norm
    padded = src_key_padding_mask if src_key_padding_mask.dtype == torch.bool else src_key_padding_mask != 0
    output = output.masked_fill(padded.unsqueeze(-1), 0.0)
    return output if norm is None else norm(output)


def _forward_padded(self, src, mask, padding, is_causal):
    nested, self.use_nested_tensor = getattr(self, "use_nested_tensor", False), False
    try:
        return _original_encoder_forward(self, src, mask, padding, is_causal)
    finally:
        self.use_nested_tensor = nested


_original_encoder_forward = TransformerEncoder.forward


# -- others


def _predict(self, input):
    """AdaptiveLogSoftmaxWithLoss.predict on all rows; PyTorch's leaves those out whose shortlist says
    enough."""
    head = self.head(input)
    best = torch.argmax(head, dim=1)
    return torch.where(
        best >= self.shortlist_size, torch.argmax(self._get_full_log_prob(input, head), dim=1), best
    )


def _never_orthogonal(Q, eps=None):
    """What is orthogonal already is made so once more, which changes it by rounding alone."""
    return False


def install():
    UninitializedParameter.__new__, UninitializedBuffer.__new__ = (
        staticmethod(_new_parameter),
        staticmethod(_new_buffer),
    )
    TransformerEncoder.forward = _encoder_forward
    AdaptiveLogSoftmaxWithLoss.predict = _predict
    parametrizations._is_orthogonal = _never_orthogonal
