"""Operators that networks use seldom, and uncommon options and types of others: cases as in `families.py`."""

from operators import Case

IMAGE, GRID = (2, 3, 5, 7), "torch.rand(2, 4, 6, 2).mul(2.4).sub(1.2).to(DTYPE)"
MASK = "torch.rand(5, 7) > 0.5"


def integers(low, high, *shape, dtype="int64"):
    return f"torch.randint({low}, {high}, {shape}, dtype=torch.{dtype})"


# Name: (forward, inputs: shapes or texts, ...).
FORWARDS = {
    "shift_by_number": ("(x << 3) ^ (x >> 1)", integers(-99, 99, 5, 13, dtype="int32")),
    "shift_by_tensor": ("(x << y) | (x >> y)", integers(0, 99, 5, 13), integers(-2, 70, 5, 13)),
    "shift_bytes": ("(x << 1) ^ (x >> y)", integers(0, 255, 33, dtype="uint8"),
        integers(0, 9, 33, dtype="uint8")),
    "integer_quotients": (
        "x // y + x % y - torch.fmod(x, y), torch.div(x, y, rounding_mode='trunc')",
        integers(-50, 50, 41),
        integers(1, 9, 41),
    ),
    "clamp_max_of_integers": ("x.clamp_max(3) + x.clamp_min(-2)", integers(-9, 9, 5, 8)),
    "inverse_functions": ("torch.acosh(x.abs() + 1.2), torch.atanh(x.tanh() * 0.9), torch.erfinv(x.tanh() * "
                          "0.9)", (5, 7)),
    "gamma_functions": ("torch.lgamma(x.abs() + 0.3), torch.digamma(x.abs() + 0.3)", (5, 7)),
    "bessel_functions": ("torch.i0(x), torch.special.i1(x), torch.special.i0e(x * 9), torch.special.i1e(x * "
                         "9)", (5, 7)),
    "logarithms_of_sums": ("torch.logaddexp2(x, y), torch.special.xlog1py(x, y.abs()), "
                           "torch.special.log_ndtr(x)", (5, 7), (5, 7)),
    "rounded_to_decimals": ("torch.round(x, decimals=2), torch.round(x * 99, decimals=-1)", (5, 7)),
    "signs": ("torch.sgn(x), torch.signbit(x), torch.isposinf(1 / x.abs()), torch.isneginf(-1 / x.abs())",
        (5, 7)),
    "next_after": ("torch.nextafter(x, y)", (5, 7), (5, 7)),
    "scaled_by_powers": ("torch.ldexp(x, y)", (5, 7), integers(-3, 4, 5, 7, dtype="int32")),
    "softmax_in_another_type": ("F.softmax(x, 1, dtype=torch.float64), F.log_softmax(x, 0, "
                                "dtype=torch.float64)", (5, 7)),
    "softmax_of_rows_that_are_masked": (
        "f = torch.ops.aten._safe_softmax\nf(x.masked_fill(y, float('-inf')), -1), f(x, 0)",
        (5, 7),
        "(torch.arange(35).reshape(5, 7) % 3 == 0) | (torch.arange(5)[:, None] == 2)",
    ),
    "norm_that_counts": ("torch.linalg.vector_norm(x.relu(), ord=0, dim=1)", (5, 7)),
    "among_others": ("torch.isin(x, y)", integers(0, 9, 5, 7), integers(0, 9, 4)),
    "renorm": ("torch.renorm(x, 2, 0, 1.5)", (5, 7)),
    "distances_of_other_orders": ("torch.cdist(x, y, p=1), torch.cdist(x, y, p=float('inf')), torch.dist(x, "
                                  "x "
                                  "+ 1, p=3)", (9, 7), (11, 7)),
    "distances_of_pairs": ("F.pdist(x), F.pdist(x, p=1)", (9, 7)),
    "products_and_more": ("torch.addr(x, y, z, beta=2), torch.addmv(y, x, z, alpha=0.5)", (5, 7), (5,), (7,)),
    "sum_of_products": ("torch.addbmm(x, y, z, beta=0.5, alpha=2)", (5, 7), (3, 5, 4), (3, 4, 7)),
    "clusters_of_which_one_is_empty": ("self.f.log_prob(x)", (5, 8)),
    "parts_replaced": (
        "torch.select_scatter(x, y[0], 0, -2), torch.slice_scatter(x, y, 0, 1, 9, 3), "
        "torch.diagonal_scatter(x, z, -1)",
        (9, 7),
        (3, 7),
        (7,),
    ),
    "blocks_on_a_diagonal": ("torch.block_diag(x, y, z)", (3, 4), (2, 5), (6,)),
    "filled_diagonal": ("x.clone().fill_diagonal_(3.0)", (5, 8)),
    "cross_products": ("torch.cross(x, y, dim=1), torch.linalg.cross(x, x[:1])", (5, 3), (5, 3)),
    "put_by_mask": ("z = x.clone()\nz[y] = 0.5\nz", (5, 7), MASK),
    "put_by_index": ("x.index_put((y, z), w), x.index_put((y[:, None],), w[:, None, None], accumulate=True)",
        (5, 7), integers(-5, 5, 9), integers(0, 7, 9), (9,)),
    "put_in_a_cache": ("x = x.clone()\nx[:, :, z] = y\nx", (2, 3, 16, 8), (2, 3, 2, 8),
        "torch.tensor([4, 11])"),
    "filled_from_a_source": ("x.masked_scatter(y, z)", (5, 7), MASK, (35,)),
    "scattered_means": (
        "x.scatter_reduce(0, y, z, 'mean'), x.scatter_reduce(0, y, z, 'mean', include_self=False), "
        "x.scatter_reduce(0, y, z, 'amax', include_self=False)",
        (5, 7),
        integers(0, 5, 9, 7),
        (9, 7),
    ),
    "buckets": (
        "torch.searchsorted(x.sort().values, y, right=True), torch.bucketize(y, x[0].sort().values, "
        "out_int32=True)",
        (5, 13),
        (5, 6),
    ),
    "unpooled": ("y, i = F.max_pool2d(x, 2, return_indices=True)\nF.max_unpool2d(y * 2, i, 2)", (2, 3, 8, 8)),
    "adaptive_places": ("F.adaptive_max_pool1d(x, 4, return_indices=True), F.adaptive_max_pool2d(x, (2, 5), "
                        "return_indices=True)", (2, 3, 17)),
    "affine_grids": ("F.affine_grid(x, (2, 3, 5, 7), align_corners=True), F.affine_grid(x, (2, 3, 5, 7), "
                     "align_corners=False)", (2, 2, 3)),
    "grid_of_zeros": ("F.grid_sample(x, y, align_corners=False), F.grid_sample(x, y, mode='bicubic', "
                      "align_corners=True)", IMAGE, GRID),
    "grid_at_borders": ("F.grid_sample(x, y, padding_mode='border', align_corners=True)", IMAGE, GRID),
    "mantissas_and_exponents": ("torch.frexp(x * 100), torch.frexp(x * 1e-40)[0], torch.frexp(x / 0)",
        (5, 7)),
    "histograms": ("torch.histc(x, 12, -2, 2), torch.histc(x, 5), torch.histc(x[:1, :1].abs().clamp(1, 1), "
                   "4)", (5, 21)),
    "modes": ("x.mode(-1)[0], y.mode(0, keepdim=True)[0], y.mode(1)[0]",
        integers(0, 4, 6, 13, dtype="int32"), "torch.randn(5, 7).round()"),
    "margins_of_several_labels": (
        "F.multilabel_margin_loss(x, y), F.multilabel_margin_loss(x, y, reduction='none'), "
        "F.multilabel_margin_loss(x[0], y[0])",
        (3, 6),
        "torch.tensor([[1, 3, -1, 2, 0, 1], [0, -1, 1, 1, 1, 1], [5, 2, 1, 0, -1, 3]])",
    ),
    "put_by_number": ("x.put(y, z), torch.put(x, y, z, accumulate=True)", (5, 7),
        "torch.randperm(35)[:8].view(2, 4) - 9", (2, 4)),
    "lstm_projected": ("y, (h, c) = self.f(x)\ny, h, c", (7, 3, 10)),
    "lstm_projected_from_states": ("y, (h, c) = self.f(x, (y, z))\ny, h, c", (3, 7, 10), (1, 3, 5),
        (1, 3, 16)),
    "any_of_flags": ("x.any(-1), x.all(0), (x.int() * 2).any(0), ~(y == 0)", MASK, (5, 7)),
    "grid_reflected": ("F.grid_sample(x, y, padding_mode='reflection', align_corners=False)", IMAGE, GRID),
    "grid_nearest": ("F.grid_sample(x, y, mode='nearest', align_corners=False)", IMAGE, GRID),
    "grid_of_volumes": ("F.grid_sample(x, y, align_corners=True)", (1, 2, 4, 5, 6),
        "torch.rand(1, 3, 4, 5, 3).mul(2).sub(1).to(DTYPE)"),
    "bicubic": ("F.interpolate(x, scale_factor=2, mode='bicubic'), F.interpolate(x, (4, 9), mode='bicubic', "
                "align_corners=True)", IMAGE),
    "antialiased": (
        "F.interpolate(x, (3, 4), mode='bilinear', antialias=True), F.interpolate(x, (8, 4), mode='bicubic', "
        "antialias=True)",
        (2, 3, 8, 9),
    ),
    "nearest_exact": ("F.interpolate(x, (8, 3), mode='nearest-exact'), F.interpolate(x, scale_factor=1.7, "
                      "mode='nearest')", IMAGE),
    "kept_from_the_first_call": (
        "if self.bias is None:\n"
        "    self.bias = torch.arange(7, device=x.device).sub(3).abs() * self.slope\n"
        "(x + self.bias).softmax(-1)",
        (5, 7),
    ),
    "kept_in_a_list": ("x * self.tables[0].to(x) + self.tables[1].to(x)", (5, 7)),
    "attention_of_kernels_of_gpus": (
        "b = torch.nn.attention.SDPBackend\n"
        "with torch.nn.attention.sdpa_kernel([b.FLASH_ATTENTION, b.EFFICIENT_ATTENTION]):\n"
        "    x = F.scaled_dot_product_attention(x, x, x)\n"
        "x.relu()",
        (2, 3, 5, 7),
    ),
    # Float32 products in parts: what corrects an infinite one is itself infinite, of either sign.
    "products_that_overflow": (
        "torch.exp(-(x @ y)), torch.sigmoid(F.linear(x, y.t()))",
        "torch.rand(40, 33) * torch.tensor([1e-20, 1e25]).repeat(20)[:, None]",
        "torch.rand(33, 20) * 1e20",
    ),
    "scores_that_overflow": (
        "F.scaled_dot_product_attention(x, y, z)",
        "torch.rand(2, 40, 32) * 1e5",
        "torch.cat([torch.randn(2, 25, 32) * 1e-5, torch.rand(2, 25, 32) * -1e38], 1)[:, torch.randperm(50)]",
        (2, 50, 32),
    ),
    "factors_after_zero_that_overflow": (
        "torch.cumprod(x, 1), torch.cumprod(y, 0)",
        "torch.cat([torch.randn(3, 40), torch.zeros(3, 1), torch.full((3, 459), 1e30)], 1)",
        "torch.cat([torch.randn(40, 9), torch.zeros(1, 9), torch.full((20, 9), -1e30)], 0)",
    ),
    "states_that_overflow": (
        "h = z\nfor t in range(3): h = torch.tanh(x[:, t] + h @ y)\nh",
        (4, 3, 70), "(torch.eye(70) + torch.rand(70).diag()) * 1e25", "torch.rand(4, 70) * 1e20",
    ),
}  # fmt: skip
# The second cluster has 8 / 4 / 4 = 0 features.
INITS = {
    "lstm_projected": "self.f = nn.LSTM(10, 16, proj_size=6, num_layers=2, bidirectional=True)",
    "lstm_projected_from_states": "self.f = nn.LSTM(10, 16, proj_size=5, bias=False, batch_first=True)",
    "kept_from_the_first_call": "self.slope, self.bias = nn.Parameter(torch.rand(1)), None",
    "kept_in_a_list": "t = torch.arange(7.0)\nself.tables = [t.cos(), t.sin()]",
    "clusters_of_which_one_is_empty": "self.f = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 12])",
}
# Float64, in which numbers that are float32 show.
DOUBLE = {
    "deviations": ("torch.std_mean(x, 1), x.std(0), torch.linalg.vector_norm(x, dim=1)", (7, 13)),
    "powers_and_bounds": (
        "F.local_response_norm(x, 5), x.clamp(-0.3, 0.7), torch.atan2(x, x.new_full((), 0.3))",
        (2, 9, 5, 5),
    ),
    "exponentials": ("F.celu(x * 1e-9), F.elu(x), torch.log1p(x.abs() * 1e-9)", (5, 7)),
    "gru": ("self.f(x)[0]", (5, 2, 6)),
    "lstm_wide": ("self.f(x)[0]", (3, 2, 6)),
}
# Numbers of the author's that are what a module's sizes would make as well, and what the file says of them.
NUMBERS = {
    "one_after_a_variance": ("x.var(-1, correction=0), torch.erf(x) + 1", "erf + 1.0", (8, 48)),
    "share_after_a_mean": ("x.mean(-1), y * (1 / 48), x.std(0) * 48", "y * 0.0208333", (8, 48), (6, 7)),
    "root_after_attention": ("(x @ x.mT * 12 ** -0.5).softmax(-1) @ x + y * 12 ** -0.5", "* 0.2886751",
        (2, 9, 12), (2, 9, 12)),
    "factors_that_are_widths": (
        "(x * 7 + 3).relu().sum(1), (y * 5 + 9).relu().sum(1)",
        "x * 7",
        integers(0, 9, 8, 7),
        integers(0, 9, 8, 5),
    ),
}  # fmt: skip
# A quotient whose last bit decides is rounded as PyTorch rounds it; others are quick.
DECIDING = {
    "quantised_rows": (
        "torch.round(x / (x.abs().amax(1, keepdim=True) / 127)).clamp(-128, 127).to(torch.int8)",
        "tl.div_rn(x, ",
    ),
    "floor_of_a_quotient": (
        "torch.div(x, y, rounding_mode='floor'), torch.div(x, y, rounding_mode='trunc')",
        "tl.div_rn(",
    ),
    "cast_of_a_quotient": ("torch.where((x / (y.abs() + 1)).to(torch.bool), x, y)", "tl.div_rn(x, "),
    "compared_quotient": ("torch.where(x / y.exp() > 0.25, x, y)", "tl.div_rn(x, "),
    "place_of_a_quotient": ("(x / y.exp()).argmax(1)", "tl.div_rn(x, "),
    "scale_of_another_kernel": ("torch.round(x * (127 / x.abs().amax()))", "tl.div_rn(1.0, "),
}
QUICK = {"quotient_of_a_sum": "torch.softmax(x, 1) * y, x / y.exp()"}
# How a kernel is cut, and what the file says of it.
CUTS = {
    "few_keys_in_one_turn": (
        "F.scaled_dot_product_attention(x, y, y)",
        "BLOCK_N=64",
        (2, 40, 32),
        (2, 50, 32),
    ),
    "two_programs_of_windows": (
        "F.conv2d(F.conv2d(x, y, padding=1, groups=64), z)",
        "maxnreg=128",
        (8, 64, 64, 64),
        (64, 1, 3, 3),
        (128, 64, 1, 1),
    ),
    "rounded_weights": ("self.f(x)[0]", "round_to_tf32(tl.load(weights", (5, 3, 20)),
    "weights_in_each_step": ("self.f(x)[0]", "round_to_tf32(weight)", (2, 5, 6)),
}
CUT_INITS = {
    "rounded_weights": "self.f = nn.RNN(20, 140)",
    "weights_in_each_step": "self.f = nn.RNN(6, 800)",
}
HALVES = (
    ("lstm_projected", "float16"),
    ("lstm_projected", "bfloat16"),
    ("lstm_projected_from_states", "bfloat16"),
)
DOUBLE_INITS = {"gru": "self.f = nn.GRU(6, 7, bidirectional=True)", "lstm_wide": "self.f = nn.LSTM(6, 40)"}


def made(name, forward, inputs, init, dtype="float32"):
    return (
        Case(f"uncommon_{name}", forward, tuple(zip("xyzw", inputs)), init, dtype=dtype, family="uncommon"),
        None,
        None,
    )


CASES = (
    [made(name, forward, inputs, INITS.get(name, "")) for name, (forward, *inputs) in FORWARDS.items()]
    + [
        (made(name, forward, inputs, CUT_INITS.get(name, ""))[0], says, None)
        for name, (forward, says, *inputs) in CUTS.items()
    ]
    + [(made(name, forward, inputs, "")[0], says, None) for name, (forward, says, *inputs) in NUMBERS.items()]
    + [
        (made(name, forward, ((6, 40), (6, 40)), "")[0], says, None)
        for name, (forward, says) in DECIDING.items()
    ]
    + [(made(name, forward, ((6, 40), (6, 40)), "")[0], None, "div_rn") for name, forward in QUICK.items()]
    + [
        made(f"{name}_{dtype}", *FORWARDS[name][:1], FORWARDS[name][1:], INITS[name], dtype)
        for name, dtype in HALVES
    ]
    + [
        made(f"double_{name}", forward, inputs, DOUBLE_INITS.get(name, ""), "float64")
        for name, (forward, *inputs) in DOUBLE.items()
    ]
)
