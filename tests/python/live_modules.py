"""Live modules of many kinds: name -> (module, example inputs, keywords of optimize). Shapes are small: the
interpreter runs the kernels."""

import collections
import dataclasses
import enum
from typing import NamedTuple

import numpy
import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    hidden: tuple = ()
    note: str = "none"


class Pair(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor


class Mode(enum.Enum):
    SUM = 1
    MEAN = 2


class Config:
    def __init__(self, width=16, scale=0.5):
        self.width, self.scale = width, scale


class Scaled(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.fc = config, nn.Linear(config.width, config.width)

    def forward(self, x):
        return self.fc(x) * self.config.scale


class Attention(nn.Module):
    def __init__(self, d=16, heads=2):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads
        self.register_buffer("mask", torch.ones(8, 8, dtype=torch.bool).tril(), persistent=False)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask if mask is None else mask)
        return self.out(y.transpose(1, 2).reshape(b, n, d))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(19, 8), nn.Linear(8, 19, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.table(tokens)))


class Keywords(nn.Module):
    def forward(self, x, *, gain=2.0, bias=None, act="relu"):
        y = getattr(F, act)(x * gain)
        return y if bias is None else y + bias


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(12, 6)

    def forward(self, batch, mode=Mode.SUM):
        x = self.fc(batch["x"]) + batch["more"][0]
        return Output(logits=x, hidden=(x.sum(-1) if mode is Mode.SUM else x.mean(-1), None), note="kept")


class Extremes(nn.Module):
    def forward(self, xs):
        return Pair(torch.stack(xs).amin(0), torch.stack(xs).amax(0))


class Ordered(nn.Module):
    def forward(self, x):
        return collections.OrderedDict([("b", x.exp()), ("a", [x + 1, x.sum()]), ("n", 3)])


class VarArgs(nn.Module):
    def forward(self, *xs, **more):
        return sum(xs) * more["w"]


class Attribute(nn.Module):
    """Tensors that are neither parameters nor buffers, and numbers that Python folds."""

    def __init__(self):
        super().__init__()
        self.table, self.power, self.weights = torch.linspace(0.5, 1.5, 12), 2, [0.5, 0.25]

    def forward(self, x):
        return (x**self.power) * self.table * self.weights[0] + self.weights[1]


class Rope(nn.Module):
    def __init__(self, d=8):
        super().__init__()
        self.register_buffer("freq", 1.0 / 100 ** (torch.arange(0, d, 2) / d))

    def forward(self, x):
        t = torch.arange(x.shape[1], device=x.device)[:, None] * self.freq
        a, b = x.chunk(2, -1)
        return torch.cat([a * t.cos() - b * t.sin(), a * t.sin() + b * t.cos()], -1)


class Windows(nn.Module):
    """An integer buffer that is an index, as in Swin."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(9, 2))
        self.register_buffer("index", (torch.arange(4)[:, None] - torch.arange(4)[None, :] + 4))

    def forward(self, x):
        return x + self.bias[self.index.view(-1)].view(4, 4, 2).permute(2, 0, 1)


class Residual(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.a, self.n, self.b = (
            nn.Conv2d(c, c, 3, padding=1, bias=False),
            nn.BatchNorm2d(c),
            nn.Conv2d(c, c, 1),
        )

    def forward(self, x):
        return x + self.b(F.relu(self.n(self.a(x))))


class InPlace(nn.Module):
    def forward(self, x, steps):
        steps.add_(1)
        return x * 2, steps


class Passes(nn.Module):
    def forward(self, x, y):
        return y, x + y, x


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleDict({"fine-grained": nn.Linear(8, 8), "class": nn.Linear(8, 8)})
        self.gate = nn.Parameter(torch.randn(2))

    def forward(self, x):
        weights = self.gate.softmax(0)
        return sum(weights[i] * expert(x) for i, expert in enumerate(self.experts.values()))


GAIN = 2.0  # forward of Reader reads it, as in a notebook
LIMITS = {"low": [-0.5]}


class Slots:
    __slots__ = ("shift",)

    def __init__(self):
        self.shift = 0.25


def shifted(x, amount=None):
    return x + (LIMITS["low"][0] if amount is None else amount)


def reader(scale):
    """A module whose forward reads what is no attribute of it, and attributes of many kinds."""

    class Reader(nn.Module):
        power = 3

        def __init__(self):
            super().__init__()
            self.table, self.slots, self.nested = (
                numpy.array([1.5, 2.5]),
                Slots(),
                {"a": [{"b": [{"c": (1.0, [4.0])}]}]},
            )
            self.names, self.queue, self.bias = (
                {"relu"},
                collections.deque([1.0]),
                nn.Linear(8, 8, bias=False),
            )

        def act(self, x):
            return x.relu() if "relu" in self.names else x

        def forward(self, x):
            y = self.act(shifted(self.bias(x))) * GAIN * scale + float(self.table[0]) ** self.power
            return y * self.slots.shift - self.queue[0] + self.nested["a"][0]["b"][0]["c"][1][0]

    return Reader()


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.rms, self.group = nn.RMSNorm(16), nn.GroupNorm(2, 4)

    def forward(self, x):
        return self.group(self.rms(x))


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.ih, self.hh = nn.Linear(6, 12), nn.Linear(4, 12)

    def forward(self, x, h):
        for step in range(x.shape[1]):
            r, z, n = (self.ih(x[:, step]) + self.hh(h)).chunk(3, -1)
            h = torch.sigmoid(z) * h + (1 - torch.sigmoid(z)) * torch.tanh(n * torch.sigmoid(r))
        return h


class Loss(nn.Module):
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=0.1), logits.argmax(-1)


class Inference(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    @torch.no_grad()
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return F.softplus(self.fc(x))


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([torch.randn(8), torch.randn(8)])
        self.shifts = nn.ParameterDict({"a-b": torch.randn(8), "plain": torch.randn(8)})

    def forward(self, x):
        return (x * self.scales[0] + self.shifts["a-b"]).relu() * self.scales[1] - self.shifts["plain"]


def local(f):
    class Local(nn.Module):
        def forward(self, *xs):
            return f(*xs)

    return Local()


def weight_normed():
    return nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))


def modules():
    torch.manual_seed(0)
    r = torch.randn
    half = dict(dtype=torch.float16)
    return {
        "linear": (nn.Linear(8, 12), (r(4, 8),)),
        "sequential": (
            nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8)),
            r(4, 8),
        ),
        "dropout_eval": (
            nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 4), nn.Dropout(0.1), nn.Sigmoid()).eval(),
            (r(4, 8),),
        ),
        "half": (nn.Sequential(nn.Linear(16, 16, **half), nn.SiLU()), (r(4, 16).half(),)),
        "bfloat16": (nn.LayerNorm(16, dtype=torch.bfloat16), (r(4, 16).bfloat16(),)),
        "attention": (Attention(), (r(2, 8, 16),)),
        "attention_masked": (Attention(), (r(2, 8, 16), torch.ones(8, 8).tril().bool())),
        "tied": (Tied(), (torch.randint(0, 19, (3, 5)),)),
        "keywords": (Keywords(), {"x": r(4, 8), "gain": 3.0, "bias": r(8), "act": "gelu"}),
        "keywords_defaults": (Keywords(), (r(4, 8),)),
        "structured": (Structured(), ({"x": r(4, 12), "more": [r(6), None, 7]},)),
        "named_tuple": (Extremes(), ([r(4, 8), r(4, 8), r(4, 8)],)),
        "ordered": (Ordered(), (r(4, 8),)),
        "var_args": (VarArgs(), (r(4, 8), r(4, 8), r(8)), {"example_kwargs": {"w": r(4, 1)}}),
        "attribute": (Attribute(), (r(4, 12),)),
        "rope": (Rope(), (r(2, 6, 8),)),
        "windows": (Windows(), (r(3, 2, 4, 4),)),
        "residual": (Residual().eval(), (r(2, 4, 6, 6),)),
        "passes": (Passes(), (r(4, 8), r(4, 8))),
        "experts": (Experts(), (r(4, 8),)),
        "parameter_lists": (Listed(), (r(4, 8),)),
        "norms": (Norms(), (r(2, 4, 16),)),
        "gru": (Gru(), (r(2, 3, 6), r(2, 4))),
        "loss": (Loss(), (r(6, 10), torch.randint(0, 10, (6,)))),
        "no_grad_inside": (Inference(), (r(4, 8),)),
        "config": (Scaled(Config()), (r(4, 16),)),
        "local": (local(lambda a, b: torch.softmax(a @ b.t(), -1)), (r(4, 8), r(6, 8))),
        "strided": (local(lambda x: x.sum(1) * 2), (r(8, 4).t(),)),
        "expanded": (local(lambda x, y: x * y + 1), (r(1, 8).expand(4, 8), r(4, 8))),
        "conv1d": (nn.Sequential(nn.Conv1d(3, 5, 3), nn.ReLU(), nn.MaxPool1d(2)), (r(2, 3, 12),)),
        "upsample": (nn.Upsample(scale_factor=2), (r(1, 2, 4, 4),)),
        "pool": (nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12, 3)), (r(2, 3, 4, 4),)),
        "embedding_bag": (nn.EmbeddingBag(11, 6, mode="sum"), (torch.randint(0, 11, (3, 4)),)),
        "integers": (
            local(lambda a, b: (a * 3 + b).clamp(0, 50)),
            (torch.randint(0, 9, (4, 8)), torch.randint(0, 9, (4, 8))),
        ),
        "booleans": (local(lambda x, m: x.masked_fill(m, -1.0).cumsum(-1)), (r(4, 8), r(4, 8) > 0)),
        "double": (nn.Linear(6, 4, dtype=torch.float64), (r(3, 6).double(),)),
        "weight_norm": (weight_normed(), (r(4, 8),)),
        "encoder_layer": (
            nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0),
            (r(2, 5, 16),),
        ),
        "batch_norm_training": (nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6)), (r(16, 8),)),
        "silent_write": (local(lambda x, y: (y.mul_(2), x + y)[1]), (r(4, 8), r(4, 8))),
        "topk": (local(lambda x: x.topk(3, -1)), (r(4, 12),)),
    }


# Cannot be exported or verified: the original runs, and the reason says why.
class Branches(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 0 else x - 1


class Appends(nn.Module):
    def forward(self, xs):
        xs.append(xs[0] * 2)
        return xs[0].relu()


class Remembers(nn.Module):
    """A state that is replaced, not written to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(4, 8))

    def forward(self, x):
        self.state = torch.tanh(self.state + x)
        return self.state * 2


class Asserts(nn.Module):
    def forward(self, x):
        torch._assert_async((x < 100).all())
        return x.relu()


class Opaque:
    pass


class TakesOpaque(nn.Module):
    def forward(self, x, thing):
        return x + 1


def hooked():
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    module[0].register_forward_hook(lambda part, args, output: output * 2)
    return module


def refused():
    r = torch.randn
    return {
        "branches": (Branches(), (r(4, 8),), "not exported"),
        "hooks": (hooked(), (r(4, 8),), "module 0 has hooks"),
        "opaque": (TakesOpaque(), (r(4, 8), Opaque()), "Opaque"),
        "appends": (Appends(), ([r(4, 8)],), "forward changes a container among its arguments"),
        "remembers": (Remembers(), (r(4, 8),), "forward replaces state"),
        "asserts": (Asserts(), (r(4, 8),), "an assertion on data"),
        "identity": (nn.Identity(), (r(4, 8),), "computes nothing"),
        "numpy": (local(lambda x: torch.from_numpy(x.numpy() * 2)), (r(4, 8),), "not exported"),
    }
