"""Modules of the families that are slow at real sizes (bench/suite/families), at odd sizes that take the same
passes: cases with what their written files must mention, and must not.
"""

from operators import Case

LIMITED = "taps_0 = min("  # a class of places goes over its own taps
APART = "= tl.max_contiguous("  # one element a thread
SINGLES = "tl.multiple_of(tl.arange(0, BLOCK_N * BLOCK_K) % BLOCK_N, [1])"
ROWS = "channels_last_kernel"


def case(name, layer, shape, mentions=None, never=None, **more):
    return (
        Case("family_" + name, "self.f(x)", (("x", shape),), f"self.f = {layer}", family="families", **more),
        mentions,
        never,
    )


def product(name, forward, *shapes, mentions=None, never=None, **more):
    return (
        Case("family_" + name, forward, tuple(zip("xyz", shapes)), family="families", **more),
        mentions,
        never,
    )


def separable(name, depthwise, between, pointwise, shape, mentions=None, never=None, **more):
    forward = f"self.p({between.format('self.d(x)')})"
    init = f"self.d = {depthwise}\nself.p = {pointwise}\nself.eval()"
    return (
        Case("family_" + name, forward, (("x", shape),), init, family="families", **more),
        mentions,
        never,
    )


CASES = [
    # Sums that are long against their result: in parts, of large tiles, in segments.
    product("long_inner", "x @ y", (300, 15003), (15003, 260), mentions="tiles of 128 x 128"),
    product(
        "long_inner_transposed", "(x.t() @ y).relu() + 1", (9001, 131), (9001, 140), mentions="matmul_parts"
    ),
    product("long_inner_half", "x @ y", (140, 9000), (9000, 150), mentions="matmul_parts", dtype="float16"),
    product("long_inner_batched", "x @ y", (3, 33, 9001), (3, 9001, 20), mentions="matmul_parts"),
    product("long_segments", "x @ y", (140, 17, 8195), (140, 8195, 18), mentions="for segment in range"),
    product("square_split", "x @ y", (520, 4000), (4000, 530), mentions="matmul_parts"),
    product("long_not_split", "x @ y", (256, 33000), (33000, 256), never="fp16x3"),
    # Short rows that follow each other: some neighbours along what is reduced are kept apart, then reduced.
    product("short_runs", "x.amin(1) + x.abs().sum(1)", (90, 4096, 3), mentions="over [90, 32, 3] by [128]"),
    product("short_runs_held", "x.softmax(1)", (90, 4096, 3), never="[90, 32, 3]"),
    product("few_sums", "(x * y).sum(-1)", (7, 200003), (7, 200003), mentions="parts"),
    # Transposed convolutions by classes of places, each over its own taps.
    case(
        "transposed_groups",
        "nn.ConvTranspose2d(48, 60, 3, stride=2, padding=1, output_padding=1, groups=3)",
        (2, 48, 43, 39),
        mentions=LIMITED,
    ),
    case(
        "transposed_strides",
        "nn.ConvTranspose2d(34, 38, (5, 4), stride=3, padding=(2, 1), output_padding=(1, 2), groups=2)",
        (3, 34, 33, 27),
        mentions=LIMITED,
    ),
    case(
        "transposed_few_taps",
        "nn.ConvTranspose2d(33, 40, 2, stride=3, output_padding=1)",
        (2, 33, 37, 39),
    ),
    case(
        "transposed_dilated",
        "nn.ConvTranspose1d(40, 50, 5, stride=2, padding=3, dilation=3, output_padding=1)",
        (4, 40, 601),
        mentions=LIMITED,
    ),
    case(
        "transposed_common_factor",
        "nn.ConvTranspose1d(40, 50, 5, stride=2, padding=1, dilation=2)",
        (4, 40, 601),
    ),
    case(
        "transposed_space",
        "nn.ConvTranspose3d(24, 20, (3, 2, 3), stride=(2, 1, 2), padding=(1, 0, 1), output_padding=(0, 0, 1),"
        " groups=2)",
        (2, 24, 9, 21, 19),
        mentions=LIMITED,
    ),
    case(
        "transposed_half",
        "nn.ConvTranspose2d(48, 60, 3, stride=2, padding=1, groups=3)",
        (2, 48, 33, 29),
        mentions=LIMITED,
        dtype="bfloat16",
    ),
    # Grouped convolutions as products of rows of a group's channels.
    case(
        "groups", "nn.Conv2d(60, 84, 3, stride=2, padding=(1, 2), groups=3)", (3, 60, 61, 47), mentions=ROWS
    ),
    case(
        "groups_line", "nn.Conv1d(40, 60, 5, padding=4, dilation=2, groups=2)", (4, 40, 2203), mentions=ROWS
    ),
    case("groups_space", "nn.Conv3d(32, 24, 3, padding=1, groups=2)", (1, 32, 7, 19, 21), mentions=ROWS),
    case(
        "groups_few",
        "nn.Conv2d(60, 120, 3, padding=1, dilation=(2, 1), groups=12)",
        (2, 60, 67, 47),
        mentions=ROWS,
    ),
    case(
        "groups_half",
        "nn.Conv2d(64, 96, 3, padding=1, groups=4)",
        (3, 64, 41, 37),
        mentions=ROWS,
        dtype="float16",
    ),
    # A layer's states are its sequence, as views of what the steps write.
    *(
        (
            Case(
                f"family_states_{name}", forward, (("x", (6, 5, 8)),), f"self.f = {layer}", family="families"
            ),
            mentions,
            never,
        )
        for name, layer, forward, mentions, never in (
            ("handed_out", "nn.LSTM(8, 12)", "y, (h, c) = self.f(x)\ny, h, c", "[1:]", "sequence_kernel"),
            (
                "batch_first",
                "nn.GRU(8, 140, batch_first=True)",
                "self.f(x)[0]",
                "[1:].transpose(0, 1)",
                "sequence_kernel",
            ),
            ("read", "nn.RNN(8, 12)", "y = self.f(x)[0]\ny, y.softmax(-1), y[1:3]", None, None),
            ("changed", "nn.LSTM(8, 12)", "y = self.f(x)[0]\ny[0] = 1\ny.relu_()", None, None),
            ("twice", "nn.LSTM(8, 12)", "y = self.f(x)[0]\ny, y", None, None),
            ("of_layers", "nn.LSTM(8, 12, num_layers=2)", "self.f(x)[0]", "[1:]", "sequence_kernel"),
        )
    ),
    # Windows: pooling, and depthwise convolutions, with the pointwise ones after them.
    case("pool_gaps", "nn.MaxPool1d(4, stride=5, padding=1)", (3, 7, 333), mentions=APART),
    case(
        "pool_dilated", "nn.MaxPool2d((3, 2), stride=(1, 2), padding=(1, 0), dilation=(2, 3))", (3, 7, 33, 41)
    ),
    case(
        "pool_space",
        "nn.AvgPool3d(3, stride=2, padding=1, count_include_pad=False, ceil_mode=True)",
        (2, 3, 13, 16, 17),
        mentions=APART,
    ),
    case(
        "pool_half", "nn.AvgPool2d(3, stride=1, padding=1)", (3, 7, 33, 41), mentions=APART, dtype="float16"
    ),
    case("pool_all", "nn.AdaptiveAvgPool2d(1)", (3, 7, 33, 41), never=APART),
    case(
        "depthwise",
        "nn.Conv2d(11, 11, 5, stride=2, padding=(1, 3), dilation=(1, 2), groups=11)",
        (3, 11, 41, 37),
        mentions=APART,
    ),
    # A program has a part of one channel's plane, whose weights are the same for all of its elements.
    case(
        "depthwise_planes",
        "nn.Conv2d(7, 7, 3, padding=1, groups=7)",
        (3, 7, 28, 29),
        mentions="row = (tl.program_id(0) // tiles)",
    ),
    case(
        "depthwise_wide_planes",
        "nn.Conv2d(5, 5, 7, padding=(3, 6), dilation=(1, 2), groups=5)",
        (2, 5, 41, 23),
        mentions="row = (tl.program_id(0) // tiles)",
    ),
    case(
        "depthwise_half_planes",
        "nn.Sequential(nn.Conv2d(6, 6, 7, stride=2, padding=3, groups=6), nn.BatchNorm2d(6), nn.GELU())",
        (2, 6, 64, 70),
        mentions="row = (tl.program_id(0) // tiles)",
        dtype="bfloat16",
    ),
    case(
        "depthwise_space",
        "nn.Conv3d(4, 4, 3, padding=1, groups=4)",
        (2, 4, 7, 10, 11),
        mentions="row = (tl.program_id(0) // tiles)",
    ),
    case("depthwise_small_planes", "nn.Conv2d(7, 7, 3, groups=7)", (3, 7, 12, 12), never="// tiles"),
    # Larger windows element by element, one for all places at a time.
    case(
        "depthwise_window",
        "nn.Conv2d(5, 5, 13, padding=6, groups=5)",
        (2, 5, 50, 52),
        mentions="of 169 a program, 1 at a time",
    ),
    case(
        "depthwise_window_strided",
        "nn.Conv1d(6, 6, 90, stride=3, padding=40, groups=6)",
        (6, 6, 1801),
    ),
    case("pool_window", "nn.AvgPool2d(9, stride=1, padding=4)", (2, 5, 50, 53), mentions="1 at a time"),
    case("pool_window_max", "nn.MaxPool2d((7, 11), stride=1, padding=(3, 5))", (2, 5, 40, 33)),
    case("depthwise_more", "nn.Conv1d(11, 33, 4, stride=3, padding=2, groups=11)", (3, 11, 241)),
    separable(
        "separable",
        "nn.Conv2d(40, 40, 3, padding=1, groups=40, bias=False)",
        "{}",
        "nn.Conv2d(40, 70, 1)",
        (2, 40, 67, 83),
        mentions="Here 1 kernel moves",
    ),
    separable(
        "separable_norm",
        "nn.Sequential(nn.Conv2d(24, 24, 3, stride=2, padding=(1, 0), groups=24), nn.BatchNorm2d(24))",
        "F.relu6({})",
        "nn.Conv2d(24, 130, 1, bias=False)",
        (3, 24, 97, 75),
        mentions="Here 1 kernel moves",
    ),
    separable(
        "separable_line",
        "nn.Conv1d(48, 48, 3, padding=1, groups=48)",
        "{}",
        "nn.Conv1d(48, 100, 1)",
        (2, 48, 2003),
        mentions="Here 1 kernel moves",
    ),
    separable(
        "separable_half",
        "nn.Conv2d(40, 40, 3, padding=1, groups=40)",
        "{}",
        "nn.Conv2d(40, 70, 1)",
        (2, 40, 67, 83),
        mentions="Here 1 kernel moves",
        dtype="float16",
    ),
    separable(
        "separable_wide",
        "nn.Conv2d(40, 40, 3, padding=1, groups=40, bias=False)",
        "{}",
        "nn.Conv2d(40, 300, 1)",
        (1, 40, 47, 43),
        never="Here 1 kernel moves",
    ),
    # Maps that products read are computed in their loads, where that takes less time than their bytes.
    product(
        "computed_factors",
        "x, y = F.elu(x) + 1, F.elu(y) + 1\ns = y.transpose(-2, -1) @ z\n"
        "(x @ s) / ((x * y.sum(-2, keepdim=True)).sum(-1, keepdim=True) + 1e-6)",
        (2, 197, 36),
        (2, 197, 36),
        (2, 197, 36),
        mentions="Here 2 kernels move",
    ),
    product("factor_of_many_tiles", "(F.elu(x) + 1) @ y", (70, 40), (40, 2000), mentions="elu_add_kernel"),
    product("factor_and_result", "x = x.sigmoid() + 1\nx @ y, x", (70, 40), (40, 50), never="1 kernel moves"),
    # Sums of a factor's rows are added up in the product's loop, and stored by the first of its tiles.
    product(
        "factor_sums",
        "(x * x).sum(-1, keepdim=True) + y.abs().sum(-1) - 2 * (x @ y.t())",
        (70, 41),
        (131, 41),
        mentions="Here 1 kernel moves",
    ),
    product(
        "factor_sums_half",
        "(x.float() ** 2).sum(-1, keepdim=True) + x @ y",
        (70, 40),
        (40, 131),
        mentions="Here 1 kernel moves",
        dtype="float16",
    ),
    product(
        "factor_sums_stored",
        "x @ y, x.exp().sum(-1), (y * y).sum(-2)",
        (3, 70, 41),
        (3, 41, 131),
        mentions="(first_n == 0)",
    ),
    # A norm holds the rows that it sums.
    product(
        "sum_of_held_rows",
        "x @ y, F.layer_norm(x, (40,))",
        (70, 40),
        (40, 131),
        mentions="Here 2 kernels move",
    ),
    # All keys in one turn: nothing is loaded ahead.
    product(
        "keys_of_one_turn",
        "F.scaled_dot_product_attention(x, y, z)",
        (6, 49, 32),
        (6, 49, 32),
        (6, 49, 32),
        mentions="num_stages=1",
    ),
    # Divisions of sums of quotients, which ptxas may compile wrongly (packed_halves.py).
    product(
        "rolled_windows",
        "torch.roll(x, (-3, -3), (1, 2)).view(2, 4, 7, 4, 7, 8).transpose(2, 3).reshape(-1, 49, 8) @ y.t()",
        (2, 28, 28, 8),
        (16, 8),
        mentions="tl.assume(first_m >= 0)",
    ),
    # Rows at no vector's places: blocks of float32 as one row of elements, halves with padded rows.
    product("odd_rows", "x @ y.t()", (50, 259), (131, 259), mentions="[BLOCK_N, BLOCK_K])"),
    product("odd_columns", "x @ y", (50, 64), (64, 131), mentions="[BLOCK_K, BLOCK_N])"),
    product("odd_both", "x.abs() @ y + 1", (67, 93), (93, 51), mentions="m_left = first_m"),
    product("odd_transposed", "x.t().abs() @ y", (95, 67), (95, 51), mentions="[BLOCK_K, BLOCK_M])"),
    product("odd_batches", "x @ y.transpose(1, 2)", (3, 20, 33), (3, 45, 33), mentions="[BLOCK_N, BLOCK_K])"),
    product("odd_rows_even_shift", "x[:, 1:] @ y", (40, 65), (64, 96)),
    product("even_rows", "x @ y.t()", (50, 260), (131, 260), never="tl.reshape("),
    product("odd_long", "x @ y.t()", (90, 8197), (70, 8197), mentions="tl.reshape("),
    product("odd_parts", "x @ y", (1031, 1601), (1601, 1303), mentions="k_left < 1608"),
    product("odd_parts_transposed", "(x @ y.t()).relu()", (1031, 1601), (1303, 1601), mentions="1608"),
    product("odd_parts_first", "x.t() @ y", (1601, 1031), (1601, 1303), mentions="n < 1304"),
    # The right factor of float32 is the one that is adjacent along k, else it is loaded an element a thread.
    product("adjacent_right", "x @ y", (96, 80), (80, 112), mentions="m + k_left * 112"),
    product(
        "adjacent_right_with_bias", "(x @ y + z).relu()", (96, 80), (80, 112), (112,), mentions="m + k_left"
    ),
    product("adjacent_batches", "x @ y", (3, 72, 64), (3, 64, 80), mentions="m + batch"),
    product("adjacent_neither", "x.t() @ y", (80, 1100), (80, 1030), mentions=SINGLES),
    product("adjacent_odd_left", "x @ y", (40, 33, 33), (40, 33, 200), mentions=SINGLES),
    product("adjacent_right_computed", "x @ y.exp()", (1100, 80), (80, 1030), never=SINGLES),
    product("adjacent_both", "x @ y.t()", (96, 80), (112, 80), never=SINGLES),
    product("adjacent_half", "x @ y", (96, 80), (80, 112), never="m + k_left * 112", dtype="float16"),
    # A few rows and a long matrix whose rows are in no vectors: each of its elements is multiplied by all
    # rows.
    product("few_rows", "(x @ y.t() + z).relu()", (7, 1105), (45, 1105), (45,), mentions="sum_6 +="),
    product("few_rows_on_the_right", "x.t() @ y.exp()", (1057, 35), (1057, 3), never="sum_2 +="),
    product("few_rows_of_the_matrix_left", "x @ (2 / y).t()", (39, 1203), (3, 1203), mentions="sum_2 +="),
    product("few_rows_batched", "x @ y.transpose(1, 2)", (2, 4, 1031), (2, 33, 1031), mentions="sum_3 +="),
    product("few_rows_aligned", "x @ y.t()", (4, 1024), (40, 1024), never="sum_3 +="),
    product("few_rows_half", "x @ y.t()", (4, 1031), (40, 1031), never="sum_3 +=", dtype="float16"),
    # Distances of more than 25 rows, which PyTorch has by their product.
    product(
        "distances",
        "torch.cdist(x, y)",
        (2, 40, 48),
        (2, 70, 48),
        mentions="products_squares_distance_kernel",
    ),
    product("distances_of_few", "torch.cdist(x, y)", (20, 48), (21, 48), never="products_kernel"),
    # A few queries of many keys: products that are cut by keys.
    product(
        "few_queries",
        "torch.softmax(x @ y.transpose(-2, -1) * 0.25, -1) @ z",
        (2, 3, 8, 48),
        (2, 3, 600, 48),
        (2, 3, 600, 16),
        never="in one pass",
    ),
    product(
        "many_queries",
        "torch.softmax(x @ y.transpose(-2, -1) * 0.25, -1) @ z",
        (2, 3, 80, 48),
        (2, 3, 600, 48),
        (2, 3, 600, 16),
        mentions="in one pass",
    ),
    # Extrema of one matrix share a kernel; fuse_test.cpp has those along its rows and along its columns.
    product("one_direction", "x.amax(1) + x.amin(1)", (1100, 1100), mentions="Here 1 kernel moves"),
    # A map of other tensors does not end the sharing of a few long rows among programs.
    product(
        "shared_rows_and_others",
        "a = x - x.mean((0, 2), keepdim=True)\n(a * y).lerp(z, 0.25)",
        (9, 16, 17000),
        (9, 16, 17000),
        (9, 16, 17000),
        mentions="which exchange what they reduce",
    ),
    # Moments of rows that nothing holds for later follow from those of their parts: one read, no exchange.
    product("moments_in_parts", "torch.var_mean(x, -1)", (9, 300001), mentions="variance_parts"),
    product("moments_of_all", "x.std()", (1500, 1501), mentions="variance_parts"),
    product("moments_of_columns", "x.var(0, correction=2)", (70003, 40), mentions="variance_parts"),
    product("moments_of_half", "torch.std_mean(x, -1)", (12, 180000), dtype="float16"),
    # Rows that are held for what is made of them exchange their moments once.
    product("norm_of_one_group", "F.group_norm(x, 1)", (6, 7, 33, 1601), mentions="Here 1 kernel moves"),
    product(
        "norm_of_norm",
        "F.group_norm(F.instance_norm(x), 1)",
        (6, 7, 33, 1600),
        mentions="Here 3 kernels move",
    ),
    case(
        "norm_in_training",
        "nn.BatchNorm2d(5)",
        (33, 5, 113, 127),
        mentions="which exchange what they reduce",
    ),
    (
        Case(
            "family_norms_in_training",
            "F.relu(self.f(x) + self.g(y))",
            (("x", (33, 5, 113, 127)), ("y", (33, 5, 113, 127))),
            "self.f = nn.BatchNorm2d(5)\nself.g = nn.BatchNorm2d(5)",
            family="families",
        ),
        "variance_parts",
        None,
    ),
    # Tensors that are small next to another do not say along which dimension a sum's rows are.
    product(
        "weighted_rows",
        "(torch.softmax(x, 2).unsqueeze(-1) * y.transpose(0, 1)).sum(1)",
        (900, 70, 10),
        (70, 900, 10, 16),
        mentions="256 rows of 70 a program",
    ),
    # Deviations and scans along columns, whose rows are adjacent.
    product("held_columns", "x.std(0)", (300, 2200), mentions="16 rows of 300 a program"),
    product("held_columns_long", "x.var(0, correction=0)", (1100, 4300), mentions="8 rows of 1100 a program"),
    product("many_short_scans", "x.cumprod(0)", (5, 135001), mentions="512 rows of 5 a program"),
    product("scan_flipped", "x.flip(1).cumsum(1).flip(1)", (7, 900), mentions="Here 1 kernel moves"),
    product("scan_flipped_long", "x.flip(1).cumsum(1).flip(1)", (3, 40001), mentions="Here 3 kernels move"),
    product(
        "scan_moved", "x.cumprod(1).transpose(0, 2).contiguous()", (7, 90, 11), mentions="Here 1 kernel moves"
    ),
    product("scan_flipped_and_read", "a = x.cumsum(1)\na.flip(1) + a[:, :1]", (7, 900)),
    # What is stored and what a norm of it is are one kernel, and so are row sums of a loss and their
    # softmaxes.
    product(
        "sum_and_its_norm",
        "a = x + y\na * torch.rsqrt(a.float().pow(2).mean(-1, keepdim=True) + 1e-5), a",
        (33, 200),
        (33, 200),
        mentions="Here 1 kernel moves",
        dtype="bfloat16",
    ),
    product(
        "loss_of_rows",
        "F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction='batchmean')",
        (150, 300),
        (150, 300),
        mentions="Here 2 kernels move",
    ),
    # Rows of two and four elements are computed where they are read, and not stored.
    product(
        "areas_of_boxes",
        "a = (x[:, 2:] - x[:, :2]).prod(1)\nb = (y[:, 2:] - y[:, :2]).clamp(min=0).prod(1)\n(a / (a + b +"
        " 9)).mean()",
        (1100, 4),
        (1100, 4),
        mentions="Here 1 kernel moves",
    ),
    product("norms_of_few", "F.normalize(x, dim=1), x.softmax(1)", (900, 4), mentions="4 a program"),
    # One row of which no program holds all: its largest parts and their exponentials are of one pass.
    product(
        "one_long_softmax",
        "x.softmax(0)",
        (5000011,),
        mentions="Here 3 kernels move",
        never="softmax_sum_kernel",
    ),
    product("one_long_logsumexp", "x.logsumexp(0)", (5000011,), mentions="Here 2 kernels move"),
]
