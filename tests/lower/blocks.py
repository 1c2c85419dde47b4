"""Blocks of networks and loops of cells, at odd sizes: cases with what their written files must mention, and
must not.
"""

from operators import Case

SLICED = "written where they are in it, without a copy"
TRAINED = """for m in self.modules():
    if isinstance(m, nn.BatchNorm2d):
        m.running_mean.normal_(0, 0.1), m.running_var.uniform_(0.5, 1.5)
self.eval()"""
LAYERS = """

def conv(i, o, k=1, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o)]
    return nn.Sequential(*layers, *([act()] if act else []))

"""


def block(name, layers, forward, shape, mentions=None, never=None, **more):
    init = "\n".join([layers, *(TRAINED.split("\n"))])
    return (
        Case("block_" + name, forward, (("x", shape),), init, family="blocks", setup=LAYERS, **more),
        mentions,
        never,
    )


def loop(name, cell, forward, shape, mentions=None, never=None, **more):
    return (
        Case("loop_" + name, forward, (("x", shape),), cell, family="blocks", **more),
        mentions,
        never,
    )


def cells(name, cell, step, first, result, shape, mentions, **more):
    """A cell in a loop over the first dimension of x, from states of zeros."""
    forward = f"""{first}
out = []
for t in range(x.shape[0]):
    {step}
    out.append(h)
{result}"""
    return loop(name, f"self.c = {cell}", forward, shape, mentions, **more)


TWINS = "total_1 = tl.zeros("
ON_THE_TILE = "reduced on the tile that is still in registers"
H = "h = torch.zeros(x.shape[1], 24, device=x.device, dtype=x.dtype)"

CASES = [
    # Products that share their left factor: a sum of each in one kernel, where what is moved takes longer.
    block(
        "gated_unit",
        "self.g = nn.Linear(24, 40)\nself.u = nn.Linear(24, 40, bias=False)\nself.d = nn.Linear(40, 24)",
        "x + self.d(F.silu(self.g(x)) * self.u(x))",
        (3, 50, 24),
        mentions=TWINS,
    ),
    block(
        "gated_unit_half",
        "self.g = nn.Linear(40, 48)\nself.u = nn.Linear(40, 48)",
        "F.gelu(self.g(x)) * self.u(x)",
        (70, 40),
        mentions=TWINS,
        dtype="bfloat16",
    ),
    block(
        "gated_convolutions",
        "self.f = nn.Conv1d(16, 24, 2, dilation=3)\nself.g = nn.Conv1d(16, 24, 2, dilation=3)",
        "torch.tanh(self.f(x)) * torch.sigmoid(self.g(x))",
        (3, 16, 80),
        mentions=TWINS,
    ),
    block(
        "queries_keys_values",
        "self.q = nn.Linear(32, 32)\nself.k = nn.Linear(32, 32)\nself.v = nn.Linear(32, 32)",
        "F.scaled_dot_product_attention(*(p(x).view(2, 40, 2, 16).transpose(1, 2) for p in (self.q, self.k, "
        "self.v)))",
        (2, 40, 32),
        mentions=TWINS,
    ),
    block(
        "mean_and_deviation",
        "self.m = nn.Linear(40, 24)\nself.s = nn.Linear(40, 24)",
        "m = self.m(x)\n(m + torch.exp(0.5 * self.s(x)), m)",
        (70, 40),
        mentions=TWINS,
    ),
    block(
        "other_sizes_are_apart",
        "self.a = nn.Linear(40, 24)\nself.b = nn.Linear(40, 32)",
        "(self.a(x).relu(), self.b(x).tanh())",
        (70, 40),
        never=TWINS,
    ),
    block(
        "triangles_are_apart",
        "self.a = nn.Parameter(torch.randn(40, 40))\nself.b = nn.Parameter(torch.randn(40, 40))",
        "(x @ self.a.tril()).relu() * (x @ self.b.triu())",
        (70, 40),
    ),
    # Padding on one side, of which the part that is a number, rounded to TF32, has a kernel of its own.
    block(
        "padded_before",
        "self.c = nn.Conv1d(64, 64, 3, dilation=4)\nself.d = nn.Conv1d(64, 64, 3, dilation=4)",
        "y = F.relu(self.c(F.pad(x, (8, 0))))\nF.relu(self.d(F.pad(y, (8, 0))) + x)",
        (16, 64, 2048),
        mentions=SLICED,
    ),
    # Concatenations whose parts are written into slices, and whose readers' rows are.
    block(
        "fire",
        "self.s = nn.Conv2d(36, 20, 1)\nself.e = nn.Conv2d(20, 60, 1)\nself.f = nn.Conv2d(20, 68, 3,"
        " padding=1)",
        "x = F.relu(self.s(x))\ntorch.cat([F.relu(self.e(x)), F.relu(self.f(x))], 1)",
        (2, 36, 23, 37),
        mentions=SLICED,
    ),
    block(
        "inception",
        "self.a = conv(48, 36)\nself.b = nn.Sequential(conv(48, 40), conv(40, 52, 3))\n"
        "self.d = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(48, 32))\nself.out = conv(120, 64)",
        "self.out(torch.cat([self.a(x), self.b(x), self.d(x)], 1))",
        (2, 48, 29, 31),
        mentions=SLICED,
    ),
    block(
        "dense",
        "self.n = nn.ModuleList([nn.BatchNorm2d(40 + 24 * i) for i in range(2)])\n"
        "self.a = nn.ModuleList([nn.Conv2d(40 + 24 * i, 96, 1, bias=False) for i in range(2)])\n"
        "self.b = nn.ModuleList([nn.Conv2d(96, 24, 3, padding=1, bias=False) for i in range(2)])",
        "for n, a, b in zip(self.n, self.a, self.b):\n"
        "    x = torch.cat([x, b(F.relu(a(F.relu(n(x)))))], 1)\nx",
        (2, 40, 47, 47),
        mentions=SLICED,
    ),
    block(
        "dense_inside",
        "self.n = nn.ModuleList([nn.BatchNorm2d(40 + 24 * i) for i in range(3)])\n"
        "self.a = nn.ModuleList([nn.Conv2d(40 + 24 * i, 96, 1, bias=False) for i in range(3)])\n"
        "self.b = nn.ModuleList([nn.Conv2d(96, 24, 3, padding=1, bias=False) for i in range(2)])",
        "x = torch.cat([x, self.b[0](F.relu(self.a[0](F.relu(self.n[0](x)))))], 1)\n"
        "x = torch.cat([x, self.b[1](F.relu(self.a[1](F.relu(self.n[1](x)))))], 1)\n"
        "F.avg_pool2d(self.a[2](F.relu(self.n[2](x))), 2)",
        (2, 40, 47, 47),
        mentions=SLICED,
    ),
    block(
        "unet",
        "self.first = conv(3, 20, 3)\nself.second = conv(20, 36, 3)\nself.up = nn.ConvTranspose2d(36, 20, 2,"
        " 2)\nself.back = conv(40, 20, 3)",
        "a = self.first(x)\ny = self.second(F.max_pool2d(a, 2))\nself.back(torch.cat([self.up(y), a], 1))",
        (2, 3, 38, 46),
        mentions=SLICED,
    ),
    # Stored in rows of channels alone, of which something else reads elements, too.
    block(
        "skip_pooled",
        "self.a = conv(3, 36, 3)\nself.b = conv(36, 68, 3)\nself.c = conv(53, 20, 3)",
        "y = self.a(x)\nz = self.b(F.max_pool2d(y, 2))\nself.c(torch.cat([F.pixel_shuffle(z, 2), y], 1))",
        (2, 3, 54, 50),
        never=" y_ptr",
    ),
    block(
        "pooled_twice",
        "self.a = conv(24, 36, 3)\nself.b = conv(36, 20, 3)\nself.c = conv(36, 20, 3)",
        "y = self.a(x)\nz = F.max_pool2d(y, (7, 5), 1, (3, 2))\nself.b(y) + self.c(torch.maximum(-z, y))",
        (2, 24, 37, 41),
        never=" y_ptr",
    ),
    block(
        "residual_half",
        "self.a = conv(24, 36, 3)\nself.b = conv(36, 40, 3)\nself.c = conv(40, 36, 3, act=None)",
        "y = self.a(x)\nF.relu(self.c(self.b(y)) + y)",
        (2, 24, 37, 41),
        never=" y_ptr",
        dtype="float16",
    ),
    block(
        "shuffle",
        "self.a = conv(34, 34)\nself.b = conv(34, 34, 3, groups=34, act=None)\nself.c = conv(34, 34)",
        "l, r = x.chunk(2, 1)\ny = torch.cat([l, self.c(self.b(self.a(r)))], 1)\nn, k, h, w = y.shape\n"
        "y.view(n, 2, k // 2, h, w).transpose(1, 2).reshape(n, k, h, w)",
        (4, 68, 27, 29),
    ),
    block(
        "cat_half",
        "self.e = nn.Conv2d(32, 60, 1)\nself.f = nn.Conv2d(32, 68, 3, padding=1)",
        "torch.cat([F.relu(self.e(x)), x * 2, self.f(x)], 1)",
        (2, 32, 21, 23),
        mentions=SLICED,
        dtype="float16",
    ),
    block(
        "cat_width",
        "self.e = nn.Linear(130, 60)\nself.f = nn.Linear(130, 70)",
        "torch.cat([self.e(x).tanh(), self.f(x), x[:, :3]], 1)",
        (301, 130),
        mentions=SLICED,
    ),
    block(
        "cat_read_again",
        "self.e = nn.Linear(130, 60)\nself.f = nn.Linear(130, 70)\nself.g = nn.Linear(130, 33)",
        "y = self.e(x).tanh()\nz = torch.cat([y, self.f(x)], 1)\nz, self.g(z), y.sum(1)",
        (301, 130),
    ),
    # Residual blocks; products of one tap.
    block(
        "bottleneck",
        "self.a = conv(136, 40)\nself.b = conv(40, 40, 3)\nself.c = conv(40, 136, act=None)\nself.d ="
        " conv(136, 48)",
        "x = F.relu(self.c(self.b(self.a(x))) + x)\nself.d(x)",
        (2, 136, 41, 39),
    ),
    block(
        "bottleneck_down",
        "self.a = conv(72, 40)\nself.b = conv(40, 40, 3, 2)\nself.c = conv(40, 144, act=None)\n"
        "self.s = conv(72, 144, 1, 2, act=None)",
        "F.relu(self.c(self.b(self.a(x))) + self.s(x))",
        (2, 72, 55, 53),
    ),
    block(
        "inverted",
        "self.a = conv(24, 100, act=nn.ReLU6)\nself.b = conv(100, 100, 3, groups=100, act=nn.ReLU6)\n"
        "self.c = conv(100, 24, act=None)",
        "x + self.c(self.b(self.a(x)))",
        (2, 24, 59, 61),
    ),
    # A window of 49 elements; a norm over long rows whose result is read in rows of channels.
    block(
        "convnext",
        "self.d = nn.Conv2d(40, 40, 7, padding=3, groups=40)\nself.n = nn.LayerNorm(40)\nself.a ="
        " nn.Linear(40, 160)\nself.b = nn.Linear(160, 40)",
        "y = self.d(x).permute(0, 2, 3, 1)\nx + self.b(F.gelu(self.a(self.n(y)))).permute(0, 3, 1, 2)",
        (2, 40, 27, 29),
    ),
    block(
        "norm_of_images",
        "self.a = nn.Conv2d(16, 16, 3, padding=1)\nself.n = nn.InstanceNorm2d(16, affine=True)\n"
        "self.b = nn.Conv2d(16, 16, 3, padding=1)",
        "self.b(F.leaky_relu(self.n(self.a(x)), 0.01))",
        (1, 16, 131, 133),
    ),
    # Halves of a layer that meet again are products of their own.
    block(
        "gated_by_half_a_layer",
        "self.a = nn.Linear(24, 160)\nself.b = nn.Linear(80, 24)",
        "u, g = self.a(x).chunk(2, -1)\nx + self.b(u * F.gelu(g))",
        (3, 50, 24),
        mentions=TWINS,
    ),
    # In blocks of a product most columns would be padding.
    block(
        "few_results_of_a_channel",
        "self.a = nn.Conv2d(12, 36, 3, padding=1, groups=12)\n"
        "self.b = nn.Conv1d(5, 20, 4, stride=3, groups=5)",
        "F.relu(self.a(x)), self.b(x[:, :5].flatten(2))",
        (2, 12, 23, 37),
        never="tl.dot(",
    ),
    block(
        "gated_by_half_a_convolution",
        "self.a = nn.Conv2d(20, 160, 3, padding=1, stride=2)\nself.b = nn.BatchNorm2d(160).eval()",
        "u, g = self.b(self.a(x)).chunk(2, 1)\nu * g.sigmoid()",
        (2, 20, 47, 45),
        mentions=TWINS,
    ),
    block(
        "gated_by_half_a_pointwise_convolution",
        "self.a = nn.Conv1d(40, 144, 1)",
        "F.glu(self.a(x), 1)",
        (3, 40, 1501),
        mentions=TWINS,
    ),
    block(
        "gates_that_are_quarters",
        "self.a = nn.Linear(72, 320)",
        "i, f, g, o = self.a(x).chunk(4, -1)\nc = f.sigmoid() * 0.7 + i.sigmoid() * g.tanh()\n"
        "o.sigmoid() * c.tanh(), c",
        (3, 50, 72),
        mentions=TWINS,
    ),
    block(
        "gates_that_are_sums_of_products",
        "self.a = nn.Linear(72, 320)\nself.b = nn.Linear(72, 320)",
        "i, f, g, o = (self.a(x) + self.b(x.flip(0))).chunk(4, -1)\n"
        "(o.sigmoid() * (f.sigmoid() * 0.7 + i.sigmoid() * g.tanh()).tanh())",
        (3, 50, 72),
        mentions=TWINS,
    ),
    # Of few rows the factors' bytes are all that counts.
    block(
        "gates_of_few_rows",
        "self.c = nn.GRUCell(160, 160)",
        "self.c(x)",
        (3, 160),
        never=TWINS,
    ),
    block(
        "thirds_of_which_two_meet_first",
        "self.a = nn.Linear(72, 240)",
        "r, n, z = self.a(x).split(80, -1)\n(r + z).sigmoid() * n.tanh()",
        (3, 50, 72),
        mentions=TWINS,
    ),
    block(
        "halves_that_nothing_joins",
        "self.a = nn.Linear(24, 160)\nself.b = nn.Linear(80, 24)",
        "u, g = self.a(x).chunk(2, -1)\nself.b(u), g.relu()",
        (3, 50, 24),
        never=TWINS,
    ),
    # Tensors that modules keep as attributes become buffers.
    block(
        "attributes",
        "self.l = nn.Linear(20, 20)\nself.table = torch.arange(100.0).reshape(5, 20).sin()\n"
        "self.n = nn.Identity()\nself.n.scale = torch.full((1, 20), 0.5)",
        "self.l(x + self.table.to(x.device)) * self.n.scale.to(x.device)",
        (3, 5, 20),
        mentions='register_buffer("held_n_scale", self.n.scale',
    ),
    # A product's dimensions as one.
    block(
        "patches",
        "self.p = nn.Conv2d(3, 40, 4, 4)\nself.cls = nn.Parameter(torch.randn(1, 1, 40))\n"
        "self.pos = nn.Parameter(torch.randn(1, 36, 40))",
        "t = self.p(x).flatten(2).transpose(1, 2)\n"
        "torch.cat([self.cls.expand(x.shape[0], -1, -1), t], 1) + self.pos",
        (3, 3, 20, 28),
        mentions=SLICED,
        never="conv_ptr",
    ),
    block(
        "places_and_positions",
        "self.p = nn.Conv2d(20, 36, 3, padding=1)\nself.pos = nn.Parameter(torch.randn(1, 143, 36))",
        "F.relu(self.p(x).flatten(2).transpose(1, 2) + self.pos)",
        (3, 20, 11, 13),
        never="conv_ptr",
    ),
    # What follows the statistics is stored in rows of channels, by a kernel of its own that transposes.
    block(
        "trained",
        "self.a = nn.Conv2d(24, 36, 3, padding=1, bias=False)\nself.b = nn.Conv2d(36, 20, 3, padding=1)",
        "self.b(F.relu(F.batch_norm(self.a(x), None, None, training=True)))",
        (5, 24, 83, 73),
        mentions="tiles of 32 x 64 of 14940 x 73",
    ),
    # Reductions over one side of a product, which a tile has all of.
    block(
        "pooled_by_scores",
        "self.s = nn.Sequential(nn.Linear(36, 50), nn.Tanh(), nn.Linear(50, 1))",
        "(torch.softmax(self.s(x), 1) * x).sum(1)",
        (67, 131, 36),
        mentions=ON_THE_TILE,
        never="tanh_ptr",
    ),
    block(
        "norm_of_product",
        "self.l = nn.Linear(37, 50)\nself.n = nn.LayerNorm(50)",
        "y = self.l(x)\nself.n(F.gelu(y)), y.amax(-1)",
        (8501, 37),
        mentions=ON_THE_TILE,
        never="gelu_ptr",
    ),
    block(
        "classes_of_places",
        "self.c = nn.Conv2d(20, 21, 3, padding=1)",
        "self.c(x).softmax(1)",
        (3, 20, 61, 59),
        mentions=ON_THE_TILE,
        never="conv_ptr",
    ),
    block(
        "classes_half",
        "self.l = nn.Linear(37, 50)",
        "self.l(x).view(4, -1, 50).log_softmax(-1)",
        (8504, 37),
        mentions=ON_THE_TILE,
        dtype="float16",
    ),
    block(
        "classes_of_columns",
        "self.w = nn.Parameter(torch.randn(50, 36))",
        "y = self.w @ x\nF.softmax(y, 0) - F.relu(y).mean(0)",
        (36, 8501),
        mentions=ON_THE_TILE,
    ),
    # Strides and dilations with a common factor.
    block(
        "transposed_common",
        "self.t = nn.ConvTranspose2d(36, 40, 3, stride=2, dilation=2, padding=1, output_padding=1)",
        "self.t(x)",
        (2, 36, 17, 19),
    ),
    block(
        "transposed_common_three",
        "self.t = nn.ConvTranspose1d(36, 40, 4, stride=6, dilation=4, padding=5, bias=False)",
        "F.relu(self.t(x))",
        (3, 36, 151),
    ),
    block(
        "transposed_common_groups",
        "self.t = nn.ConvTranspose2d(36, 36, 3, stride=(4, 3), dilation=(2, 3), padding=(2, 1), groups=36)",
        "self.t(x)",
        (2, 36, 13, 17),
    ),
    # Cells in loops.
    cells("gru", "nn.GRUCell(20, 24)", "h = self.c(x[t], h)", H, "torch.stack(out), h", (7, 5, 20), "gru"),
    cells(
        "lstm",
        "nn.LSTMCell(20, 24)",
        "h, c = self.c(x[t], (h, c))",
        f"{H}\nc = torch.ones_like(h)",
        "torch.stack(out, 1), c",
        (7, 5, 20),
        "lstm",
    ),
    cells("rnn", "nn.RNNCell(20, 24)", "h = self.c(x[t], h)", H, "torch.cat(out, 1)", (7, 5, 20), "rnn"),
    cells(
        "relu_backwards",
        "nn.RNNCell(20, 24, nonlinearity='relu', bias=False)",
        "h = self.c(x[x.shape[0] - 1 - t], h)",
        H,
        "torch.stack(out).mean(0)",
        (7, 5, 20),
        "rnn",
    ),
    cells(
        "last",
        "nn.GRUCell(20, 100)",
        "h = self.c(x[t], h)",
        "h = torch.zeros(x.shape[1], 100, device=x.device)",
        "h",
        (4, 5, 20),
        "gru",
    ),
    loop(
        "layers",
        "self.i = nn.Linear(20, 24)\nself.a = nn.GRUCell(24, 24)\nself.b = nn.LSTMCell(24, 16)",
        f"{H}\nk = torch.zeros(x.shape[1], 16, device=x.device)\nc = torch.zeros_like(k)\nout = []\n"
        "for t in range(x.shape[0]):\n    h = self.a(F.relu(self.i(x[t])), h)\n    k, c = self.b(h, (k, c))\n"
        "    out.append(k)\ntorch.stack(out), h",
        (5, 5, 20),
        "lstm",
    ),
    loop(
        "fed_back",
        "self.c = nn.GRUCell(24, 24)\nself.o = nn.Linear(24, 24)",
        "h = x\ny = torch.zeros_like(x)\nout = []\nfor t in range(4):\n    h = self.c(y, h)\n    y ="
        " self.o(h)\n    out.append(y)\ntorch.stack(out, 1)",
        (5, 24),
    ),
    loop(
        "read_on_the_way",
        "self.c = nn.LSTMCell(24, 24)",
        "h = c = x[0]\nout = []\nfor t in range(4):\n    h, c = self.c(x[t] + c, (h, c))\n    out.append(c)\n"
        "torch.stack(out, 1)",
        (4, 5, 24),
    ),
    loop(
        "written_on_the_way",
        "self.c = nn.GRUCell(24, 24)",
        "h, y, out = x[0], x * 2, []\nfor t in range(4):\n    h = self.c(y[t], h)\n    y.add_(1)\n   "
        " out.append(h)\ntorch.stack(out, 1)",
        (4, 5, 24),
    ),
    loop(
        "stacked",
        "self.i = nn.Linear(20, 24)\nself.s = nn.Linear(24, 24, bias=False)",
        f"{H}\nout = []\nfor t in range(x.shape[0]):\n    h = torch.tanh(self.i(x[t]) + self.s(h))\n"
        "    out.append(h)\ntorch.stack(out)",
        (6, 5, 20),
    ),
]
