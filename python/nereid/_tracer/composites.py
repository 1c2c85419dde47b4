"""Shapes of composites that cannot be taken apart here: their C++ asks cuDNN, or a device that is not there.

Each function answers the fake result of a call; `PARTS` says what the operator becomes on CUDA, for analysis
alone.
"""

import torch


def _recurrent_output(new_fake, data, features, hidden, batch_first):
    *outer, _ = data.shape
    shape = (*outer, features)
    strides = contiguous(shape)
    if batch_first and len(shape) == 3:  # made time first, then transposed
        strides = (features, shape[0] * features, 1)
    return new_fake(shape, strides, data.dtype, data.fake_device), *(
        like(new_fake, state) for state in hidden
    )


def like(new_fake, tensor):
    return new_fake(tensor.shape, contiguous(tensor.shape), tensor.dtype, tensor.fake_device)


def contiguous(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def lstm_input(
    new_fake, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    return _recurrent_output(new_fake, data, hx[0].shape[-1] * (2 if bidirectional else 1), hx, batch_first)


def lstm_data(new_fake, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    return _recurrent_output(new_fake, data, hx[0].shape[-1] * (2 if bidirectional else 1), hx, False)


def rnn_input(new_fake, data, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    return _recurrent_output(new_fake, data, hx.shape[-1] * (2 if bidirectional else 1), (hx,), batch_first)


def rnn_data(new_fake, data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    return _recurrent_output(new_fake, data, hx.shape[-1] * (2 if bidirectional else 1), (hx,), False)


def lstm_cell(new_fake, data, hx, *weights, **named):
    return tuple(like(new_fake, state) for state in hx)


def cell(new_fake, data, hx, *weights, **named):
    return like(new_fake, hx)


def ctc_loss(
    new_fake, log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False
):
    batch = () if log_probs.dim() == 2 else (log_probs.shape[1],)
    shape = batch if reduction == 0 else ()
    return new_fake(shape, contiguous(shape), log_probs.dtype, log_probs.fake_device)


def grid_sampler(new_fake, data, grid, *options, **named):
    shape = (*data.shape[:2], *grid.shape[1:-1])
    return new_fake(shape, contiguous(shape), data.dtype, data.fake_device)


SHAPES = {
    "grid_sampler": grid_sampler,
    "lstm.input": lstm_input, "lstm.data": lstm_data, "lstm_cell": lstm_cell,
    "ctc_loss.IntList": ctc_loss, "ctc_loss.Tensor": ctc_loss,
    **{f"{kind}.input": rnn_input for kind in ("gru", "rnn_tanh", "rnn_relu")},
    **{f"{kind}.data": rnn_data for kind in ("gru", "rnn_tanh", "rnn_relu")},
    **{f"{kind}_cell": cell for kind in ("gru", "rnn_tanh", "rnn_relu")},
}  # fmt: skip
PARTS = {
    **{f"{kind}.{form}": ["aten::_cudnn_rnn"] for kind in ("lstm", "gru", "rnn_tanh",
        "rnn_relu") for form in ("input", "data")},
    "lstm_cell": ["aten::mm", "aten::mm", "aten::_thnn_fused_lstm_cell"],
    "gru_cell": ["aten::mm", "aten::mm", "aten::_thnn_fused_gru_cell"],
    "rnn_tanh_cell": ["aten::addmm", "aten::addmm", "aten::tanh"],
    "rnn_relu_cell": ["aten::addmm", "aten::addmm", "aten::relu"],
    "grid_sampler": ["aten::grid_sampler_2d"], "ctc_loss.IntList": ["aten::_ctc_loss"],
    "ctc_loss.Tensor": ["aten::_ctc_loss"],
}  # fmt: skip


def with_plain_attention(composite):
    """Attention as its mathematics: none of the kernels that a module may allow instead is here. Recorded is
    the call, as which kernel computes it is the device's choice."""

    def parts(*args, **kwargs):
        allowed = torch._C._get_math_sdp_enabled()
        torch._C._set_sdp_use_math(True)
        try:
            return composite(*args, **kwargs)
        finally:
            torch._C._set_sdp_use_math(allowed)

    return parts


def sizes_by_value(name):
    """Operators whose result's shape is that of a run with true integer arguments and zeros for the rest."""
    return name in ("aten::_pack_padded_sequence", "aten::_pad_packed_sequence")


# Operators of whose results only the first means anything, and whose other results have shapes that depend on
# the device.
FIRST_RESULT_ONLY = frozenset(("aten::_embedding_bag", "aten::_embedding_bag_forward_only"))


# -- factories: what a kernel's host code calls most. FakeTensorMode would answer the same, slower; None asks
# it.


def _device(device):
    return CUDA if device is None or device.type == "cuda" else device


def sized(new_fake, size, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    if memory_format not in (None, torch.contiguous_format) or layout not in (None, torch.strided):
        return None
    return new_fake(size, contiguous(size), dtype or torch.get_default_dtype(), _device(device))


def strided(new_fake, size, stride, *, dtype=None, layout=None, device=None, pin_memory=None):
    return new_fake(size, stride, dtype or torch.get_default_dtype(), _device(device))


def sized_like(
    new_fake, source, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    if (
        memory_format not in (None, torch.preserve_format)
        or layout not in (None, torch.strided)
        or not source.is_contiguous()
    ):
        return None
    return new_fake(
        source.shape,
        contiguous(source.shape),
        dtype or source.dtype,
        source.fake_device if device is None else _device(device),
    )


def itself(new_fake, target, *args, **named):
    """An in-place operator whose other arguments are numbers: the result is its first argument."""
    return target


CUDA = torch.device("cuda", 0)
FACTORIES = {
    "aten::empty.memory_format": sized, "aten::zeros": sized, "aten::ones": sized,
    "aten::empty_strided": strided,
    "aten::randn": sized, "aten::rand": sized,
    "aten::empty_like": sized_like, "aten::zeros_like": sized_like, "aten::ones_like": sized_like,
    "aten::randn_like": sized_like, "aten::rand_like": sized_like,
    **{f"aten::{name}": itself for name in ("zero_", "fill_.Scalar", "uniform_", "normal_", "exponential_")},
}  # fmt: skip
