"""Steps taken apart (src/nereid/render/apart) against the steps themselves: each module below is traced, all
its steps are taken apart, and what is put together again, in PyTorch's calls, is compared with the module.

    apart_test.py NEREID NEREID_APART_CHECK [UnitTest.names]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import torch

NEREID, CHECK = sys.argv[1:3]

TASK = """import torch
from torch import nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
# Name: (what __init__ does, what forward returns of x, y, z, inputs, what must not be left of it).
CASES = {
    "conv1d": ("self.f = nn.Conv1d(6, 8, 4, padding=2)", "self.f(x)", "[3, 6, 13]", "convolution"),
    "conv2d": ("self.f = nn.Conv2d(6, 8, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2))",
               "self.f(x)", "[2, 6, 9, 11]", "convolution"),
    "conv2d_groups": ("self.f = nn.Conv2d(6, 9, 3, padding=1, groups=3)", "self.f(x)", "[2, 6, 5, 7]",
                      "convolution"),
    "conv2d_depthwise": ("self.f = nn.Conv2d(6, 6, 3, stride=2, groups=6, bias=False)", "self.f(x)",
                         "[2, 6, 9, 7]", "convolution"),
    "conv3d": ("self.f = nn.Conv3d(3, 4, 2, bias=False)", "self.f(x)", "[1, 3, 4, 5, 4]", "convolution"),
    "conv_of_a_view": ("self.f = nn.Conv1d(6, 8, 3)", "self.f(x.transpose(1, 2)).relu()", "[3, 13, 6]",
                       "convolution"),
    "conv_transpose1d": ("self.f = nn.ConvTranspose1d(6, 4, 5, stride=3, padding=1, output_padding=1)",
                         "self.f(x)", "[2, 6, 7]", "convolution"),
    "conv_transpose2d": ("self.f = nn.ConvTranspose2d(6, 4, [8, 1], [4, 1])", "self.f(x)", "[2, 6, 5, 4]",
                         "convolution"),
    "conv_transpose2d_groups": ("self.f = nn.ConvTranspose2d(6, 4, 3, stride=2, groups=2, dilation=2)",
                                "self.f(x)", "[2, 6, 4, 3]", "convolution"),
    "max_pool1d": ("pass", "F.max_pool1d(x, 3, 2)", "[2, 4, 11]", "max_pool"),
    "max_pool2d": ("pass", "F.max_pool2d(x, 3, 2, 1)", "[2, 4, 8, 9]", "max_pool"),
    "max_pool2d_ceil": ("pass", "F.max_pool2d(x, (2, 3), 2, ceil_mode=True)", "[2, 4, 9, 8]", "max_pool"),
    "max_pool2d_dilated": ("pass", "F.max_pool2d(x, 2, 1, 0, 2)", "[4, 8, 9]", "max_pool"),
    "max_pool3d": ("pass", "F.max_pool3d(x, 2)", "[2, 3, 4, 5, 6]", "max_pool"),
    "avg_pool1d": ("pass", "F.avg_pool1d(x, 3, 2, 1)", "[2, 4, 11]", "avg_pool"),
    "avg_pool2d": ("pass", "F.avg_pool2d(x, 3, 2, 1)", "[2, 4, 8, 9]", "avg_pool"),
    "adaptive_avg_pool2d": ("pass", "F.adaptive_avg_pool2d(x, (2, 3))", "[2, 4, 8, 9]", "avg_pool"),
    "lstm": ("self.f = nn.LSTM(5, 6, 2, bidirectional=True, batch_first=True)", "self.f(x)", "[3, 4, 5]",
             "lstm"),
    "gru": ("self.f = nn.GRU(5, 6, bidirectional=True)", "self.f(x)", "[4, 3, 5]", "gru"),
    "gru_unbiased": ("self.f = nn.GRU(5, 6, 2, bias=False, batch_first=True)", "self.f(x)[0]", "[4, 3, 5]",
                     "gru"),
    "rnn_relu": ("self.f = nn.RNN(5, 6, nonlinearity='relu', bidirectional=True)", "self.f(x, y)",
                 "[4, 3, 5]|[2, 3, 6]", "rnn"),
    "rnn_tanh": ("self.f = nn.RNN(5, 6, 2)", "self.f(x)[1]", "[4, 3, 5]", "rnn_tanh"),
    "bilinear": ("pass", "F.interpolate(x, size=(11, 5), mode='bilinear')", "[2, 3, 4, 7]", "upsample"),
    "bilinear_aligned": ("pass", "F.interpolate(x, size=(9, 7), mode='bilinear', align_corners=True)",
                         "[2, 3, 4, 5]", "upsample"),
    "bilinear_of_one": ("pass", "F.interpolate(x, size=(6, 6), mode='bilinear')", "[2, 3, 1, 1]", "upsample"),
    "bilinear_factor": ("pass", "F.interpolate(x, scale_factor=2, mode='bilinear')", "[2, 3, 4, 5]",
                        "upsample"),
    "linear1d": ("pass", "F.interpolate(x, scale_factor=3, mode='linear')", "[2, 3, 4]", "upsample"),
    "trilinear": ("pass", "F.interpolate(x, size=(3, 4, 7), mode='trilinear')", "[1, 2, 4, 3, 5]",
                  "upsample"),
    "nearest2d": ("pass", "F.interpolate(x, scale_factor=(2, 3), mode='nearest')", "[2, 3, 4, 5]",
                  "upsample"),
    "complex_arithmetic": ("pass", "(x * y + y / (x.abs() + 1), x - z, z - x, 2.5 * x, -x, x + 1e-3)",
                           "[4, 5] c|[4, 5] c|[5]", ""),
    "complex_quotients": ("pass", "(z / (x + 3), x / (z * z + 1), x / (y + 4j))",
                          "[4, 5] c|[4, 5] c|[4, 5]", ""),
    "complex_abs": ("pass", "x.abs().sum(-1)", "[4, 5] c", "aten::abs.c"),
    "complex_conj": ("pass", "(x.conj() * y).real + x.imag", "[4, 5] c|[4, 5] c", ""),
    "complex_exp": ("pass", "(torch.exp(torch.complex(z * 0.1, z)), torch.polar(z, z))", "[4, 5] c|[2]|[5]",
                    "polar"),
    "complex_sum": ("pass", "x.reshape(2, 10).sum(-1)", "[4, 5] c", ""),
    "rotary": ("pass", "torch.view_as_real(torch.view_as_complex(x.reshape(3, 4, 4, 2)) * y)",
               "[3, 4, 8]|[4, 4] c", ""),
    "comparisons": ("pass", "(x > y, x >= 0.5, x < y, x <= y, x.relu() == y.relu(), x != y)",
                    "[4, 5]|[4, 5]", "aten::g"),
    "broadcast": ("pass", "(x + y, x * y - z, torch.maximum(z, x) / (y.abs() + 1))",
                  "[2, 3, 1, 4, 5]|[2, 1, 3, 4, 5]|[5]", ""),
    "reduced": ("pass", "(x.sum(3), x.mean(1), x.amax(-1, keepdim=True), y.sum(1))",
                "[2, 3, 4, 5, 3]|[4, 1, 2]", ""),
    "fft_real": ("pass", "torch.fft.rfft(x, dim=1).abs()", "[3, 10, 4]", "_fft"),
    "fft": ("pass", "(torch.fft.fft(x), torch.fft.ifft(x, norm='ortho'))", "[3, 7] c", "_fft"),
    "fft_back": ("pass", "(torch.fft.irfft(x, n=8), torch.fft.irfft(x, n=9, norm='forward'))", "[3, 5] c",
                 "_fft_c2r"),
    "sign": ("pass", "torch.sign(x.relu()) - torch.sign(y)", "[4, 5]|[4, 5]", "sign"),
    "logic": ("pass", "((x > 0) & (y > 0), (x > 0) | (y < 0), ~(x > 0), (x > 0) * y)", "[4, 5]|[4, 5]",
              "bitwise"),
    "counts": ("pass", "(x > 0).sum(-1) / 2, torch.count_nonzero(x > 0.5, dim=0)", "[4, 5]", "count"),
    "decomposed": ("self.p = nn.PReLU(4)", "torch.log10(self.p(x).abs() + 1).std(1)", "[3, 4, 5]", "prelu"),
    "negative_padding": ("self.f = nn.ConvTranspose1d(6, 4, 2, stride=2, padding=3)", "self.f(x)",
                         "[2, 6, 9]", "convolution"),
}  # fmt: skip

# Also of infinities, and of numbers whose squares overflow.
LINEAR = {"complex_abs", "conv1d", "max_pool2d", "bilinear", "trilinear", "comparisons", "broadcast"}


def input_text(text):
    sizes, _, kind = text.partition("] ")
    return f"torch.randn({sizes.rstrip(']')}]{', dtype=torch.complex64' if kind else ''})"


class Apart(unittest.TestCase):
    def check(self, name):
        init, result, inputs, gone = CASES[name]
        inputs = [input_text(text) for text in inputs.split("|")]
        with tempfile.TemporaryDirectory() as folder:
            task, trace = (pathlib.Path(folder) / f for f in ("task.py", "task.trace"))
            task.write_text(
                TASK.format(
                    init=init, names=", ".join("xyz"[: len(inputs)]), result=result, inputs=", ".join(inputs)
                )
            )
            subprocess.run([NEREID, "trace", task, "-o", trace], check=True, capture_output=True)
            done = subprocess.run([CHECK, trace, task], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
            found = json.loads(done.stdout)
            if gone:
                self.assertFalse([op for op in found["operators"] if gone in op], f"{name}: {found}")
            for question in found["questions"]:
                self.assertNotIn("complex", question, name)
        self.compare(name, found["text"])

    def compare(self, name, text):
        own = types.ModuleType(name)
        exec(compile(text, name, "exec"), own.__dict__)
        torch.manual_seed(1)
        module, apart = own.Model(), own.ModelNew()
        apart.load_state_dict(module.state_dict())
        for scale in (1, 1e-3, 30) + ((1e25, 1e-25, float("inf")) if name in LINEAR else ()):
            inputs = [x * scale for x in own.get_inputs()]
            if scale == float("inf"):  # a few infinities, the others as they are
                inputs = own.get_inputs()
                for x in inputs:
                    x[torch.rand(x.shape) < 0.1] = float("inf")
            with torch.no_grad():
                expected, given = flat(module(*inputs)), flat(apart(*inputs))
            self.assertEqual(len(expected), len(given), name)
            for a, b in zip(expected, given, strict=True):
                self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), text)
                finite = a[a.isfinite()] if a.is_floating_point() or a.is_complex() else a[:0].flatten()
                size = finite.abs().max() if finite.numel() > 0 else 0
                torch.testing.assert_close(
                    b,
                    a,
                    rtol=1e-4,
                    atol=1e-5 * float(size),
                    equal_nan=True,
                    msg=lambda m: f"{name}, {scale}: {m}",
                )


def flat(outputs):
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [tensor for each in outputs for tensor in flat(each)]


def case(name):
    return lambda self: self.check(name)


for each in CASES:
    setattr(Apart, f"test_{each}", case(each))

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
