"""Every rewrite of `compiler/transforms/algebra.h` where it applies, and where its precondition does not
hold: cases with what their plans must mention, and must not. The sizes are those from which the cost model
sees a gain.
"""

from operators import Case

SUM, ONE, DIAGONAL, SCALE, SHIFT, TRIANGLE = (
    "one of the product's factors is summed",
    "one reduction over both",
    "with a diagonal",
    "a factor's scale",
    "added to a whole row changes nothing",
    "in which its triangle is not zero",
)
LINEAR = "self.f = nn.Linear({}, {})"


def case(name, forward, *shapes, init="", mentions=None, never=None, **more):
    return (
        Case("algebra_" + name, forward, tuple(zip("xyz", shapes)), init, family="algebra", **more),
        mentions,
        never,
    )


CASES = [
    case("sum_of_linear", "self.f(x).sum(1)", (129, 128), init=LINEAR.format(128, 1030), mentions=SUM),
    case(
        "scaled_sum_of_linear",
        "((self.f(x) - 1) / 2).sum(-1, keepdim=True) * 1.5",
        (128, 128),
        init=LINEAR.format(128, 1024),
        mentions=SUM,
    ),
    case("mean_of_batch", "self.f(x).mean(0)", (2050, 256), init=LINEAR.format(256, 300), mentions=SUM),
    case("mean_of_all", "(x @ y).mean()", (1024, 300), (300, 1030), mentions=SUM),
    case(
        "weighted_sum",
        "((x @ y) * self.p).sum(1)",
        (128, 128),
        (128, 1024),
        init="self.p = nn.Parameter(torch.randn(1024))",
        mentions=SUM,
    ),
    case(
        "difference_of_products",
        "(x @ y - 2 * (x @ z)).sum(1)",
        (512, 256),
        (256, 2048),
        (256, 2048),
        mentions=SUM,
    ),
    # Others read the product, too: the sum reads its factors instead, unless it is where the product's rows
    # are held.
    case(
        "sum_of_product_that_stays",
        "v = torch.einsum('bid,ijde->bije', x, y)\ns = v.mean(1)\nn = s.pow(2).sum(-1, keepdim=True)\n"
        "(v * (s * n / (1 + n)).unsqueeze(1)).sum(-1)",
        (256, 128, 8),
        (128, 10, 8, 16),
        mentions=SUM,
    ),
    case(
        "sum_of_product_that_is_held",
        "v = x @ y\nv - v.mean(1, keepdim=True)",
        (2048, 16),
        (16, 2048),
        never=SUM,
    ),
    case(
        "sum_of_product_and_its_norm",
        "v = x @ y\nF.layer_norm(v, (2048,)), v",
        (2048, 16),
        (16, 2048),
        never=SUM,
    ),
    case("sum_of_batches", "torch.bmm(x, y).sum((0, 2))", (8, 256, 128), (8, 128, 512), mentions=SUM),
    case(
        "mean_of_area",
        "self.f(x).mean((2, 3))",
        (2, 64, 28, 30),
        init="self.f = nn.Conv2d(64, 512, 1)",
        mentions=SUM,
    ),
    case(
        "mean_of_area_padded",
        "F.adaptive_avg_pool2d(self.f(x), 1)",
        (1, 64, 18, 19),
        init="self.f = nn.Conv2d(64, 1024, 3, padding=1, stride=2)",
        mentions=SUM,
    ),
    case(
        "two_linears",
        "self.g(self.f(x))",
        (8192, 16),
        init=LINEAR.format(16, 1024) + "\nself.g = nn.Linear(1024, 8)",
        mentions=SUM,
    ),
    case(
        "sum_of_linear_half",
        "self.f(x).sum(1)",
        (256, 256),
        init=LINEAR.format(256, 2048),
        dtype="bfloat16",
        mentions=SUM,
    ),
    # Nothing is gained, or something is in the way.
    case("sum_weighted_by_input", "((x @ y) * z).sum(1)", (128, 128), (128, 1024), (1024,), never=SUM),
    case(
        "product_with_product",
        "torch.bmm(y, self.f(x)).cummax(0).values",
        (3, 16, 96),
        (3, 31, 12),
        init="self.f = nn.ConvTranspose1d(16, 12, 5, padding=2)",
        never=SUM,
    ),
    case("small_sum", "(x @ y).sum(1)", (33, 65), (65, 20), never=SUM),
    case("maximum_between", "(x @ y).relu().sum(1)", (128, 128), (128, 1024), never=SUM),
    case("read_twice", "a = x @ y\na.sum(1), a", (128, 128), (128, 1024), never=SUM),
    case("square", "a = x @ y\n(a * a).sum(1)", (128, 128), (128, 1024), never=SUM),
    case("sum_of_sum", "(x.sum(-1) * 0.5).sum(0)", (7, 33, 65), mentions=ONE),
    case("mean_of_mean", "x.mean(-1).mean(-1)", (40, 33, 65), mentions=ONE),
    case("mean_of_scaled_mean", "(F.mish(x).mean(3) * y).mean(1)", (8, 2, 6, 12), (6,), mentions=ONE),
    # Where y is one hot, quotients are infinite: times a zero of x NaN, and sums of both signs are too.
    case("mean_of_quotient", "(F.mish(x).mean(3) / y).mean(1)", (8, 2, 6, 12), (6,), never=ONE),
    case(
        "sum_of_scaled_linear",
        "(self.f(x) * y).sum(1)",
        (512, 512),
        (512, 1),
        init=LINEAR.format(512, 2048),
        mentions=SUM,
    ),
    case(
        "sum_of_quotient_of_linear",
        "(self.f(x) / y).sum(1)",
        (512, 512),
        (512, 1),
        init=LINEAR.format(512, 2048),
        never=SUM,
    ),
    case("max_of_max", "x.amax(0).amax(-1)", (7, 33, 65), mentions=ONE),
    case("max_of_min", "x.amin(0).amax(-1)", (7, 33, 65), never=ONE),
    case("max_of_scaled_max", "(-x.amax(0)).amax(-1)", (7, 33, 65), never=ONE),
    case("sum_of_pool", "F.avg_pool1d(x, 5, stride=1).sum(-1)", (4, 8, 300), never=ONE),
    case("reduction_of_one", "x.sum(1, keepdim=True).amax(1).relu()", (33, 65)),
    case("diagonal_left", "torch.diag(x) @ y", (130,), (130, 70), mentions=DIAGONAL),
    case("diagonal_right", "y @ torch.diag(x) + 1", (70,), (130, 70), mentions=DIAGONAL),
    case("diagonal_shifted", "torch.diag(x, 3) @ y", (60,), (63, 70), mentions=DIAGONAL),
    case("diagonal_batches", "torch.diag_embed(x) @ y", (3, 50), (3, 50, 20), mentions=DIAGONAL),
    case("diagonal_read_twice", "a = torch.diag(x)\na @ y, a", (50,), (50, 20), never=DIAGONAL),
    case("scaled_query", "(x * 0.125) @ y.t()", (100, 64), (90, 64), mentions=SCALE),
    case("normalised_rows", "(x / 3) @ (y * z[:, None])", (100, 64), (64, 90), (64,), mentions=SCALE),
    case("scaled_rows", "(x * z[:, None]) @ y", (100, 64), (64, 90), (100,), never=SCALE),
    case("scale_that_overflows", "(x * z.exp().mean()) @ y", (100, 64), (64, 90), (100,), never=SCALE),
    case("scaled_terms", "(x * z) @ y", (100, 64), (64, 90), (64,), never=SCALE),
    case("softmax_of_sum", "F.softmax(x + 3, -1), F.log_softmax(1 - x, 0)", (33, 65), mentions=SHIFT),
    case(
        "softmax_of_distance", "F.softmax(x - x.max(-1, keepdim=True).values, -1)", (33, 65), mentions=SHIFT
    ),
    case(
        "softmax_of_parameter",
        "F.softmax(self.p + x.transpose(1, 2), 1)",
        (3, 33, 65),
        init="self.p = nn.Parameter(torch.randn(3, 1, 33))",
        mentions=SHIFT,
    ),
    case("softmax_from_least", "F.softmax(x - x.amin(-1, keepdim=True), -1)", (33, 65), never=SHIFT),
    case("softmax_from_other_axis", "F.softmax(x - x.amax(0, keepdim=True), -1)", (65, 65), never=SHIFT),
    case("softmax_of_rows", "F.softmax(x + y, -1)", (33, 65), (33, 1), never=SHIFT),
    case("triangle_left", "torch.tril(x) @ y", (200, 200), (200, 70), mentions=TRIANGLE),
    case("triangle_right", "y @ torch.triu(x, 2) + 1", (200, 190), (70, 200), mentions=TRIANGLE),
    case(
        "triangles",
        "torch.tril(x, -1) @ torch.tril(y), torch.triu(x) @ torch.triu(y, 3), torch.triu(x) @"
        " torch.tril(y).t()",
        (200, 200),
        (200, 200),
        mentions=TRIANGLE,
    ),
    case(
        "triangles_batch",
        "torch.bmm(torch.tril(x, 5), torch.triu(y, -7))",
        (3, 130, 140),
        (3, 140, 150),
        mentions=TRIANGLE,
    ),
    case(
        "chains",
        "x.relu().relu().clamp(-1, 2).clamp(-0.5, 3), x.exp().relu().abs().abs(), x.sigmoid().clamp(0, 1),"
        " -(-x).floor().round()",
        (33, 65),
    ),
    case(
        "clamps_beyond", "x.clamp(max=-0.5).clamp(min=0.5), x.tanh().clamp(min=-0.3).clamp(-1, 1)", (33, 65)
    ),
    case("row_times_column", "(x * 2) @ y", (33, 1), (1, 70), mentions=SCALE),
    case("one_term_of_maxima", "x.amax(-1) @ y", (3, 33, 1, 40), (3, 1, 3)),
    # Taps of a convolution that see padding alone are no part of its sum.
    case(
        "wide_window",
        "self.f(x)",
        (4, 24, 1, 2),
        init="self.f = nn.Conv2d(24, 32, 5, padding=2)",
        mentions="by [24, 1, 3]",
    ),
    case(
        "wide_window_transposed",
        "self.f(x)",
        (2, 20, 9, 1, 7),
        init="self.f = nn.ConvTranspose3d(20, 1, 5, padding=2)",
        mentions="by [20, 5, 1, 5]",
    ),
    case(
        "wide_window_by_classes",
        "self.f(x)",
        (2, 6, 1, 20),
        init="self.f = nn.ConvTranspose2d(6, 10, 7, stride=2, padding=3)",
        mentions="by [6, 2, 4]",
    ),
    case("huge_scale", "(x * 1e20) @ y * 1e-20", (100, 64), (64, 90), never=SCALE),
]
